"""Questions that a call waits for, and their answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from clew.messages import ToolCall
from clew.store.records.replies import Reply


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to whoever speaks, as the door sees it. refs: the ids under which it was sent. open: it was not answered yet.
    joins: an answer is part of the turn that asks, and answered with it."""

    id: str
    turn: str
    tools: tuple[str, ...]
    refs: frozenset[str]
    open: bool
    joins: bool


@dataclass(frozen=True, slots=True)
class Given:
    """An answer to the question `asking` of `turn`. always: for each later call too. how: it was said; the person passed over it with
    other words; it expired; its turn was stopped. joins: what was said is part of the turn."""

    asking: str
    turn: str
    yes: bool
    how: Literal["said", "passed", "expired", "stopped"] = "said"
    always: bool = False
    joins: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked before `calls` run. person: who may answer. here: it is asked where its turn is answered, else `notice`
    says there that somebody is asked. behalf: the person whose message the calls arose from, empty for nobody. expires: seconds since
    the epoch. wordings: fingerprints of what
    others say of the tools, by name, where they are others'."""

    id: str
    calls: tuple[ToolCall, ...]
    person: str
    behalf: str
    expires: float
    reply: Reply
    here: bool
    notice: Reply | None = None
    wordings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answered:
    """The state of a question about a call, and how it came to it; person: who was asked."""

    state: Literal["open", "yes", "no"]
    how: str
    person: str


@dataclass(frozen=True, slots=True)
class StandingYes:
    """A yes for good: `tool` may be called at `address` on behalf of `person`, empty for a scheduled prompt of nobody. by: who said it.
    wording: a fingerprint of what somebody else said of the tool then, empty where it is nobody else's."""

    address: str
    tool: str
    person: str
    by: str
    at: float
    wording: str = ""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The yes for good for `tool` at an address is taken back, of all people where `person` is None."""

    address: str
    tool: str
    person: str | None


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits. code: by which an answer names it. person: who was asked, at `address`. asked, until: seconds since the
    epoch. question: its words. owners: an owner was asked."""

    code: str
    tools: tuple[str, ...]
    person: str
    address: str
    asked: float
    until: float
    question: str = ""
    owners: bool = False
