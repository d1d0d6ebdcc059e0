"""A turn as it can be looked at afterwards."""

from dataclasses import dataclass

from clew.messages import Message
from clew.store.records.calls import ModelCall
from clew.store.records.pages import CompactionRow
from clew.store.records.window import Compaction


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn. ended: None while it runs. first_seq: its first user message, 0 where it asked no model."""

    id: str
    session: str
    address: str
    kind: str
    state: str
    started: float
    ended: float | None
    error: str
    first_seq: int


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A call of a tool. started, ended: seconds since the epoch, None where it did not."""

    call: str
    name: str
    arguments: str
    state: str
    started: float | None
    ended: float | None


@dataclass(frozen=True, slots=True)
class AskedRow:
    """A question about a call: who was asked, at `address`, what came of it and how. answered: None while it is open."""

    tool: str
    person: str
    address: str
    question: str
    state: str
    how: str
    asked: float
    answered: float | None


@dataclass(frozen=True, slots=True)
class Past:
    """A turn with what it did. said: its own rows, in order. compacted: compactions of its session while it ran."""

    turn: TurnRow
    said: tuple[Message, ...]
    calls: tuple[ModelCall, ...]
    tools: tuple[ToolRow, ...]
    asked: tuple[AskedRow, ...]
    compacted: tuple[CompactionRow, ...]


@dataclass(frozen=True, slots=True)
class Sight:
    """What a model call was shown of its session, as the rows tell of that time. compaction: the newest one that stood; number: its place
    among those of its session. messages: the newest rows of the window; total: how many there were."""

    compaction: Compaction | None
    number: int
    messages: tuple[Message, ...]
    total: int
