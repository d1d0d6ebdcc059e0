"""Who speaks, what is decided about what they send, and who asks to be let in."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from clew.store.records.approvals import Asked, Given
from clew.store.records.replies import Reply
from clew.transport import Inbound

PersonRole = Literal["owner", "member", "guest"]
Origin = Literal["config", "local", "paired", "linked"]
"""Where somebody or an identity comes from: the config, this machine's user, a request that was approved, a link."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may talk to clew. `timezone`: IANA name or None."""

    id: str
    role: PersonRole
    timezone: str | None = None
    identities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """An account of somebody's. seen: when it wrote last, to the hour, in seconds since the epoch; None where it never did."""

    identity: str
    origin: Origin
    created: float
    seen: float | None


@dataclass(frozen=True, slots=True)
class Known:
    """A person as the owner sees them. name: what they are called, empty where nobody gave them a name. seen: see `Identity`."""

    id: str
    name: str
    role: PersonRole
    origin: Origin
    identities: tuple[Identity, ...]
    seen: float | None

    @property
    def called(self) -> str:
        return self.name or self.id


@dataclass(frozen=True, slots=True)
class Offer:
    """A link code that is open: whoever sends it is `person` too. address: where it was asked for. instant: see `Reply`."""

    hash: str
    person: str
    called: str
    address: str
    instant: bool


@dataclass(frozen=True, slots=True)
class Sender:
    """What is known about who sent something, read in the transaction that stores it.

    request: state of their access request, if they made one. queued: messages of this chat that wait; lines: those that are only kept.
    new_requests: open requests. running: the turn that runs in this chat, if one does. asked: questions that may be answered by what
    they say here. loop: they answer as no person does, and are left alone for it. offer: the link code that they sent. past: somebody
    else spoke in this direct chat before.
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
    offer: Offer | None = None
    past: bool = False


InboxKind = Literal["message", "command", "control", "answer", "edit", "delete", "notice", "job"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `inbox` decides about an arrival.

    kind: how it travels. refused: why it is not taken (the receipt's reason). again: it may come under its id again, `changed`
    or, as it is, `later`.
    reply: what the sender is told at once, empty for nothing.
    pair: the code of a new access request. stop: the turn to stop. given: answers to questions.
    spent: a link code that is closed by this. links: the sender is its person from now on. confirm: what is said where it was asked for.
    """

    kind: InboxKind = "message"
    refused: str = ""
    again: Literal["", "changed", "later"] = ""
    reply: str = ""
    pair: str = ""
    stop: str | None = None
    given: tuple[Given, ...] = ()
    spent: Offer | None = None
    links: bool = False
    confirm: str = ""


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


NO_REQUEST = AccessRequest("", "", "", "", "open", 0, 0.0)
AccessKind = Literal["approve", "deny", "role", "rename", "remove", "link", "unlink"]


@dataclass(frozen=True, slots=True)
class AccessEffect:
    """What an owner does about who may: `key` is the code of a request or an identity (approve, deny), a person by id, name or identity
    (role, rename, remove, link), an identity (unlink). identity: the one to be linked. by: only this person's identities may be unlinked.
    notices: what others are told with it."""

    kind: AccessKind
    key: str
    role: PersonRole = "member"
    name: str = ""
    identity: str = ""
    by: str | None = None
    notices: tuple[Reply, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkCode:
    """A code to be given out with the answer in which it stands; it takes the place of an earlier one of the same person."""

    hash: str
    person: str
    address: str
    instant: bool
    expires: float


@dataclass(frozen=True, slots=True)
class Changed:
    """What an effect comes to. person: whom it is about, as they were before it; None for one who is new. request: the one that is
    answered, as it was. identity: the account. jobs: those of theirs that are turned off."""

    kind: AccessKind
    person: Known | None
    request: AccessRequest = NO_REQUEST
    identity: str = ""
    role: PersonRole = "member"
    name: str = ""
    jobs: int = 0

    @property
    def answered(self) -> AccessRequest:
        """The request that is answered, as it is then."""
        return replace(self.request, state="approved" if self.kind == "approve" else "denied")
