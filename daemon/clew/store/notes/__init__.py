"""Notes: what is asked of them and what comes back. Who may see which is decided in `scopes`, in the transaction that reads or writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from clew.context.notes import Notes, ScopeKind

MOST_ENTITIES = 2000
"""Entities of one scope."""
MOST_FACTS = 10_000
"""Observations of one scope, those that hold no longer included; the same for relations."""
MOST_OF_ONE = 500
"""Observations of one entity that hold: each new one is compared with them."""
MOST_PREFERENCES = 100
LONGEST_NAME = 200
LONGEST_TYPE = 100
"""Characters of the type of an entity or a relation, and of a preference's key."""
LONGEST_TEXT = 1000
"""Characters of an observation or a preference's value."""
HISTORY = 1000
"""Changes of one scope that can be read and undone, the newest."""


@dataclass(frozen=True, slots=True)
class Where:
    """Whose notes are meant: those of the chat at `address` or, outside of any chat, of a person, of a project, or of both.

    project: a project's name, or the address of a chat that has its own.
    """

    address: str | None = None
    person: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class By:
    """Who changes notes, and what for. person: empty for the operator. turn: its newest user message is the source, its sender the speaker.

    source, speaker, at: where they are known otherwise; at: when it was said, None for now. hand: a person changes them themselves.
    """

    person: str = ""
    turn: str = ""
    source: str = ""
    speaker: str = ""
    at: float | None = None
    hand: bool = False


@dataclass(frozen=True, slots=True)
class PutEntity:
    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class PutFact:
    """An observation. expires: seconds since the epoch. replaces: observations of the entity that hold no longer."""

    entity: str
    text: str
    expires: float | None = None
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PutRelation:
    entity: str
    target: str
    type: str


@dataclass(frozen=True, slots=True)
class PutPreference:
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class DropEntity:
    """An entity with its observations and every relation from and to it."""

    name: str


@dataclass(frozen=True, slots=True)
class DropFact:
    entity: str
    text: str


@dataclass(frozen=True, slots=True)
class DropRelation:
    entity: str
    target: str
    type: str


@dataclass(frozen=True, slots=True)
class DropPreference:
    key: str


@dataclass(frozen=True, slots=True)
class DropAll:
    """Everything of a scope."""


Put = PutEntity | PutFact | PutRelation | PutPreference
Drop = DropEntity | DropFact | DropRelation | DropPreference | DropAll
Edit = Put | Drop


@dataclass(frozen=True, slots=True)
class Noted:
    """What became of an edit. what: it in words. closed: what held before and holds no longer. why: it was refused, or noted otherwise."""

    what: str
    state: Literal["noted", "known", "removed", "missing", "refused"]
    closed: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class NoteEffect:
    """A change that takes place with the answer of the command that asked for it. undo: the number of a change, None for `edits`."""

    where: Where
    kind: ScopeKind
    by: By
    edits: tuple[Edit, ...] = ()
    undo: int | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """A fact that a person said of themselves. source: the message; at: when it was written, seconds since the epoch, UTC."""

    person: str
    name: str
    text: str
    source: str
    at: float


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known where a turn is answered, beside what its session's prompt shows. notes: None while that may stay as it is.

    breaks: of each scope in which something was ever noted, how often something broke in it. version: grows with every change.
    """

    breaks: Mapping[str, int] = field(default_factory=dict)
    version: int = 0
    notes: Notes | None = None


NOTHING = Standing()


def shown_scopes(key: str) -> dict[str, int]:
    """Whose notes stand in a prompt, and how often something had broken in each of these scopes, from the key of its state."""
    shown: dict[str, int] = json.loads(key.partition("\n")[0] or "{}")
    return shown


def still_stands(key: str, breaks: Mapping[str, int]) -> bool:
    """Whether what a prompt shows may be seen and still holds: nothing broke in its scopes, nor was anything else changed by hand."""
    shown = shown_scopes(key)
    return all(breaks.get(scope) == count for scope, count in shown.items()) and not any(
        count for scope, count in breaks.items() if scope not in shown
    )


@dataclass(frozen=True, slots=True)
class Kept:
    """How much is noted in one scope. of: the person, or the project's name or the address of its chat."""

    kind: ScopeKind
    of: str
    preferences: int
    entities: int
    changes: int


@dataclass(frozen=True, slots=True)
class Change:
    """A change of notes. undone_by: the number of the change that undid it. damaged: it cannot be read, and not be undone."""

    number: int
    scope: ScopeKind
    summary: str
    by: str
    at: float
    undone_by: int | None = None
    damaged: bool = False


Row = Mapping[str, Any]
