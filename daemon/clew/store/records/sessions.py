"""Sessions and timelines as they are listed."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session in a listing. `person`: whose direct chat it is in, None for groups."""

    id: str
    address: str
    title: str
    created: float
    updated: float
    messages: int
    compactions: int
    person: str | None


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What goes with messages that are forgotten. entries: of the summary that stands. quotes: results of tools that quote them in other
    threads. copies: of them in branches."""

    messages: int
    files: int = 0
    notes: int = 0
    entries: int = 0
    quotes: int = 0
    copies: int = 0


@dataclass(frozen=True, slots=True)
class ExportLink:
    """A link by which a person fetches a thread once, by the hash of what stands in it. expires: seconds since the epoch."""

    hash: str
    session: str
    person: str
    expires: float


@dataclass(frozen=True, slots=True)
class Sent:
    """A file in a timeline. mime: what it is, by its bytes once they were looked at. size: bytes."""

    id: str
    name: str
    mime: str
    size: int


@dataclass(frozen=True, slots=True)
class Said:
    """One line of an address's timeline. `seq` grows with every commit; `id` is the sender's own for user messages, ours for replies.

    failed: a reply that says that there is none. question: the code of the open question that it asks. files: that came with it.
    """

    seq: int
    id: str
    role: Literal["user", "assistant"]
    text: str
    at: float
    sender_name: str = ""
    in_reply_to: str = ""
    answers: tuple[str, ...] = ()
    failed: bool = False
    question: str = ""
    files: tuple[Sent, ...] = ()
