"""Who speaks, what is decided about what they send, and who asks to be let in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from clew.store.records.approvals import Asked, Given
from clew.transport import Inbound

PersonRole = Literal["owner", "member", "guest"]


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may talk to clew. `timezone`: IANA name or None."""

    id: str
    role: PersonRole
    timezone: str | None = None
    identities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sender:
    """What is known about who sent something, read in the transaction that stores it.

    request: state of their access request, if they made one. queued: messages of this chat that wait; lines: those that are only kept.
    new_requests: open requests. running: the turn that runs in this chat, if one does. asked: questions that may be answered by what
    they say here. loop: they answer as no person does, and are left alone for it.
    """

    person: str | None
    role: PersonRole | None
    request: Literal["open", "approved", "denied"] | None
    queued: int
    open_requests: int
    running: str | None
    asked: "tuple[Asked, ...]" = ()
    lines: int = 0
    loop: Literal["", "begins", "goes on"] = ""


InboxKind = Literal["message", "command", "control", "answer", "edit", "delete", "notice", "job"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `inbox` decides about an arrival.

    kind: how it travels. refused: why it is not taken (the receipt's reason). again: it may come under its id again, `changed`
    or, as it is, `later`.
    reply: what the sender is told at once, empty for nothing.
    pair: the code of a new access request. stop: the turn to stop. given: answers to questions.
    """

    kind: InboxKind = "message"
    refused: str = ""
    again: Literal["", "changed", "later"] = ""
    reply: str = ""
    pair: str = ""
    stop: str | None = None
    given: tuple[Given, ...] = ()


Decide = Callable[[Inbound, Sender], Verdict]


@dataclass(frozen=True, slots=True)
class AccessRequest:
    identity: str
    address: str
    name: str
    code: str
    state: Literal["open", "approved", "denied"]
    messages: int
    created: float
