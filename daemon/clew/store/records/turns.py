"""A turn: what it is claimed with, what it adds, and how it ends."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from clew.messages import Block, Message, Role
from clew.store.notes import NOTHING, NoteEffect, Standing
from clew.store.records.approvals import Withdrawn
from clew.store.records.calls import CacheEntry, ModelCall, ToolState
from clew.store.records.jobs import JobEffect
from clew.store.records.logins import LoggedOut, LoginLink
from clew.store.records.people import AccessEffect, InboxKind, LinkCode, Person
from clew.store.records.search import Recalled
from clew.store.records.sessions import ExportLink
from clew.store.records.window import PromptState, ViewRows
from clew.transport import Address

SAFE_ATTEMPTS = 2
"""Starts of a turn after which it runs alone, last and without tools."""


class LeaseLost(Exception):
    """Somebody else has claimed the turn since: stop, write nothing."""


@dataclass(frozen=True, slots=True)
class Item:
    """An inbox row that a claim is for. `reply_to`: the platform's id of the message that it replies to. instant: when a job was due."""

    id: int
    kind: InboxKind
    text: str
    client_id: str
    person: str
    sender_name: str
    context: Mapping[str, str]
    received: float
    job: str | None = None
    reply_to: str | None = None
    instant: float | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """One turn of one session, held by `owner` until `lease` ends; `epoch` fences it.

    kind: `message` and `job` are for the agent, the others are not. first_seq: its first user message. resumed: it had begun before.
    stopping: somebody had stopped it then. attempts: how often it was started, this time included. rows, notes: its session's view and
    what is known where it is answered, where a model is to answer.
    more: another turn may be claimed as well. failures: of the job, in a row. opening: the messages that it appended when it was begun.
    """

    turn: str
    session: str
    address: Address
    direct: bool
    kind: InboxKind
    owner: str
    epoch: int
    items: tuple[Item, ...]
    person: Person | None
    first_seq: int
    started: float
    resumed: bool = False
    stopping: bool = False
    attempts: int = 1
    rows: "ViewRows | None" = None
    notes: Standing = NOTHING
    more: bool = False
    failures: int = 0
    opening: tuple[Message, ...] = ()

    @property
    def risky(self) -> bool:
        """Starting it may have brought the process down before."""
        return self.attempts > SAFE_ATTEMPTS


@dataclass(frozen=True, slots=True)
class Room:
    """Whether another turn of a person, and of a job, may be claimed. jobs_first: a job goes before people."""

    people: bool = True
    jobs: bool = True
    jobs_first: bool = False


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to append; the store gives it its id and place."""

    role: Role
    blocks: tuple[Block, ...]
    at: float
    sender: str = ""
    sender_name: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """What a turn adds in one commit."""

    messages: tuple[NewMessage, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    tools: tuple[ToolState, ...] = ()
    cache: tuple[CacheEntry, ...] = ()
    recalled: tuple[Recalled, ...] = ()
    prompt: PromptState | None = None


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where a thread is best cut, taken by the background from `due` on unless the thread goes on. `seq`: the last row in front of it,
    None for the last there is."""

    reason: Literal["quiet", "task", "topic"]
    seq: int | None
    due: float
    session: str = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """What somebody does to a thread by hand: to messages, or to the newest compaction (`undo`, by its id). by: the person, for a pin.
    zone: of the dates in a summary that is written anew without what is forgotten. `private`: what is said from now on is not remembered
    elsewhere, until it is `open` again."""

    kind: Literal["pin", "unpin", "take_back", "undo", "forget", "private", "open"]
    ids: tuple[str, ...]
    by: str = ""
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Switch:
    """The chat goes on with another thread: one that is there or, with a `parent`, a new one that branches off that thread at row `seq`."""

    session: str
    parent: str = ""
    seq: int = 0


AnyEffect = Effect | NoteEffect | JobEffect | AccessEffect | LinkCode | LoginLink | LoggedOut | Withdrawn | Switch | ExportLink
"""What takes place in the commit that stores a command's answer."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended. new_session: its chat begins a new one. boundary: where its thread may be cut. effects: of a command, in the commit
    that stores its answer. run: what a job came to that went well, and said nothing."""

    state: Literal["done", "failed", "stopped"]
    step: Step = Step()
    error: str = ""
    new_session: bool = False
    boundary: Boundary | None = None
    effects: tuple[AnyEffect, ...] = ()
    run: Literal["", "silent", "skipped"] = ""
