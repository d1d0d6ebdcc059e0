"""Sessions, transcripts and compactions as people page through them."""

from dataclasses import dataclass
from typing import Literal

from clew.messages import Message
from clew.store.records.sessions import SessionRow


@dataclass(frozen=True, slots=True)
class Listed:
    """A session on a page. behind: rows of it that its summary covers. prompt: tokens of the newest reply's prompt, 0 before the first."""

    row: SessionRow
    behind: int
    prompt: int

    @property
    def in_window(self) -> int:
        """Rows behind the summary, those taken back included."""
        return self.row.messages - self.behind


@dataclass(frozen=True, slots=True)
class Filed:
    """Which sessions are wanted: whose id, title, address or person holds `words`, at chats of `transport`; empty for all. runs: those of
    jobs' runs beside their chats, instead of all others."""

    words: str = ""
    transport: str = ""
    runs: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a transcript. taken_back: `undo`, `deleted`, or empty for one that nobody took back; shown: it stands in a prompt until that
    changes. address: where it was written. turn: whether its turn is known. private: it was said in private. edits: (new words, when) of
    what its writer changed later."""

    message: Message
    taken_back: str
    shown: bool
    pinned: bool
    address: str
    turn: bool
    private: bool
    edits: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """Some rows of a transcript, in order. earlier, later: whether there are rows in front of them, and behind."""

    lines: tuple[Line, ...]
    earlier: bool
    later: bool


@dataclass(frozen=True, slots=True)
class CompactionRow:
    """A compaction in a listing. number: its place among those of its session, from 1. tokens: of the window before and after it, None
    where an older clew did not write them down."""

    number: int
    id: str
    kind: str
    trigger: str
    from_seq: int
    to_seq: int
    covered: int
    messages: int
    created: float
    undone_at: float | None
    tokens: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that went wrong. at: seconds since the epoch. where: an address, or a job. session, turn: empty where there is none."""

    kind: Literal["turn", "reply", "job"]
    at: float
    where: str
    session: str
    turn: str
    error: str
