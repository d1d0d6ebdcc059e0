"""The port that transport adapters implement, and what passes through it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Address:
    """A place where messages come from and go to: `transport:chat[/thread]`. Stored for ever."""

    transport: str
    chat: str
    thread: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Raises ValueError unless `text` is `transport:chat[/thread]` with no part empty."""
        transport, colon, rest = text.partition(":")
        chat, slash, thread = rest.partition("/")
        if not (transport and colon and chat and (thread or not slash)):
            raise ValueError(f"{text!r} is not an address of the form transport:chat[/thread]")
        return cls(transport, chat, thread or None)

    def __str__(self) -> str:
        return f"{self.transport}:{self.chat}" + (f"/{self.thread}" if self.thread else "")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message.

    name, mime, size (bytes, 0 for unknown): as the platform tells them; none is believed. ref: what `Transport.fetch` takes. voice: it was
    spoken to be heard as a message.
    """

    name: str
    mime: str
    size: int
    ref: str
    voice: bool = False


@dataclass(frozen=True, slots=True)
class Inbound:
    """One thing that arrived.

    external_id: unique for ever, bot account included; redelivery has the same one.
    client_id: the id by which the sender knows the message; it comes back as `Delivery.in_reply_to`.
    sender: the sender's identity on the platform (`<transport>:<sender>` is the identity of the config).
    direct: a chat of one person with clew; False for groups. sent_at, expires_at: seconds since the epoch, UTC.
    kind: a `context` is a line of a group that is not for clew and is kept all the same, because the config says so: it is answered by
    nothing, and stands in front of the group's next turn. An `edit` has the new `text` of the message `edits`, and when it was edited as
    `sent_at`; used as long as nothing was answered. A `delete` takes the message `edits` back; its `sender` may be unknown (empty), for
    it is the platform that says so. Both may come before their message. A `reaction` is no message: `text` is its emoji, or `yes`, `no`,
    `always` for a button that somebody pressed, `reply_to` the platform's id of the message that it stands on. It is not stored, and
    nothing comes of it but the answer to a question of clew's. Where the platform does not say in which thread that message is, the
    address of the whole chat will do.
    edits: the external_id of the message that an edit or a deletion is about.
    refused: why the adapter cannot take it (malformed, too big …): stored as refused and answered with that text, without a
    model call.
    context: opaque, comes back in the `Delivery` (response topic, correlation data, reply URL).
    """

    external_id: str
    address: Address
    sender: str
    text: str
    client_id: str = ""
    sender_name: str = ""
    direct: bool = True
    kind: Literal["message", "context", "edit", "delete", "reaction"] = "message"
    edits: str = ""
    reply_to: str | None = None
    sent_at: float | None = None
    expires_at: float | None = None
    refused: str = ""
    attachments: tuple[Attachment, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        return f"{self.address.transport}:{self.sender}"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of an `Inbound`. `answer` is set where the sender is to be told something at once and nothing more will come."""

    external_id: str
    status: Literal["stored", "duplicate", "refused"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a reply that fits the platform's limit. `index` counts from 1."""

    text: str
    index: int = 1
    total: int = 1


@dataclass(frozen=True, slots=True)
class Delivery:
    """A stored reply on its way out. `sent` parts of `parts` are already with the platform. `ts` is when the reply was written.

    repeat: it may be with the platform already, an earlier attempt having ended without an answer.
    preview_ref: the message that showed what was being said, where `stream` is `edit`. As long as `sent` is 0 it is edited to the first
    part, which the platform then has; the other parts are sent behind it. No parts: that message is to be deleted, there is no reply.
    Empty: there may be such a message, of which nobody noted what the platform said; where `find` works `send` looks for it.
    asks: it is a question that is open. Where the platform has buttons the last part gets `yes`, `no` and `always`; a press is handed in as
    an `Inbound` of the kind `reaction`. claimed_by: the process that sends it; no adapter's business.
    """

    id: str
    address: Address
    text: str
    parts: tuple[Part, ...]
    ts: float
    in_reply_to: str = ""
    answers: tuple[str, ...] = ()
    context: Mapping[str, str] = field(default_factory=dict)
    sent: int = 0
    attempt: int = 1
    repeat: bool = False
    preview_ref: str | None = None
    session: str = ""
    turn: str = ""
    asks: bool = False
    claimed_by: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """The platform took a delivery, or its parts up to `upto` (None: all of them).

    ref: its id for the last part, if it gives one.
    """

    ref: str = ""
    upto: int | None = None


class Retry(Exception):
    """Nothing was sent; try again after `after` seconds (None: back off).

    Until a stated wait is over nothing more goes to that chat. everywhere: nor to any other chat of this transport.
    """

    def __init__(self, reason: str, after: float | None = None, *, everywhere: bool = False) -> None:
        super().__init__(reason)
        self.after = after
        self.everywhere = everywhere


class Refused(Exception):
    """The platform will never take this delivery."""


class Gone(Exception):
    """The preview that a delivery was to take the place of cannot be edited (any more): the reply is sent anew."""


class Unknown(Exception):
    """The request left and no answer came: it may or may not have been sent."""


@dataclass(frozen=True, slots=True)
class Typing:
    """A turn runs for this chat."""

    in_reply_to: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """What the model has said so far in turn `turn`; `delta` is what is new. A preview is not a reply.

    Where `stream` is `edit`: `text` is no longer than one part. ref: the message to edit, None for a first one, whose reference `hint`
    returns. id: of the delivery that will take its place; a platform that drops repeats by an id is given this one, for `hint` may be
    called again for a first message of which it is not known whether it was posted. context: as in that delivery.
    """

    turn: str
    text: str
    delta: str
    in_reply_to: str = ""
    ref: str | None = None
    id: str = ""
    context: Mapping[str, str] = field(default_factory=dict)


Stream = Literal["none", "edit", "ephemeral"]
"""How a platform shows what is being said: not at all; by a message that is edited, and in the end becomes the reply; by something that
goes away by itself."""


def _reachable(address: Address) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a platform can do.

    limit: the longest part, in `unit`s; None for no limit. stream: how previews are shown; stream_at: where that differs from chat to
    chat. edit_every_s: seconds between two edits of a message. per_second: what the platform takes in all its chats together, in calls of
    `send` and previews; None: no such limit. idempotent_send: the receiver drops a repeated delivery by its id. can_find: `find`
    works. merges: messages that wait may be answered together. instant: a reply counts as sent when it is committed (the page and the
    terminal fetch what they missed). typing_s: seconds after which the platform forgets that clew is typing, so that it is told again;
    None: it does not. unreachable: why nothing can ever be sent to an address, as what it must look like; empty where it may be. spread:
    several daemons on one database may run it at the same time: it is called from outside, and what it asks for itself may be handed in
    twice; any other is run by one of them (see `Called`).
    Callables are pure.
    """

    limit: int | None = None
    unit: Literal["characters", "utf16", "bytes"] = "characters"
    markup: Literal["markdown", "plain"] = "plain"
    stream: Stream = "none"
    stream_at: Callable[[Address], Stream] | None = None
    edit_every_s: float = 1.0
    per_second: float | None = None
    idempotent_send: bool = False
    can_find: bool = False
    merges: bool = False
    instant: bool = False
    typing_s: float | None = None
    unreachable: Callable[[Address], str] = _reachable
    spread: bool = False

    def streams(self, address: Address) -> Stream:
        """How previews are shown at `address`."""
        return self.stream_at(address) if self.stream_at else self.stream


@dataclass(frozen=True, slots=True)
class Route:
    """An HTTP handler mounted under `/webhooks/<name>`."""

    method: str
    path: str
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]]


PreviewRef = str

Cursor = str | Callable[[str | None], str]
"""What a transport has to remember of what it received; where several daemons receive, what makes it of the one that is stored. Pure."""


class Host(Protocol):
    """What an adapter may ask of clew."""

    async def accept(self, batch: Sequence[Inbound], cursor: Cursor | None = None) -> list[Receipt]:
        """Store `batch` and `cursor` in one commit. Only after this returns may the adapter acknowledge to its platform."""

    async def cursor(self) -> str | None:
        """What the last `accept` stored, None before the first."""

    def folder(self) -> Path:
        """A folder of this transport's own in the data directory, for the owner of the process alone: for what a library keeps in files."""

    async def known(self, sender: str) -> bool:
        """Whether `<transport>:<sender>` is somebody whom clew knows: for what comes before a message, such as an invitation."""

    def webhook(self) -> str:
        """Where platforms reach `Transport.routes` from outside, with a slash at its end; empty where `http.public_url` is not set."""

    def report(self, up: bool, detail: str = "") -> None:
        """The connection's state, for `/readyz`, metrics and the log."""


class Transport(Protocol):
    """A chat platform."""

    @property
    def capabilities(self) -> Capabilities: ...

    async def run(self, host: Host) -> None:
        """Receive until cancelled; reconnect by itself. Raises only for what a restart cannot mend."""

    def parts(self, text: str) -> list[Part]:
        """`text` in pieces that fit. Pure."""

    async def send(self, delivery: Delivery) -> Sent:
        """Send `delivery.parts[delivery.sent:]` in order, the first in the place of a preview. Raises Retry, Refused, Unknown or Gone.

        An adapter whose platform drops no repeats returns after each part, with `Sent.upto`: that is stored, and it is called again
        for the rest, so that neither a failure nor a crash sends a part twice that the platform has confirmed.
        """

    async def find(self, delivery: Delivery) -> Sent | None:
        """Ask the platform whether an `unknown` delivery arrived after all."""

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        """Show that something is going on. Lossy, never raises for a lost connection.

        For a preview where `stream` is `edit`: returns the reference of the message once the platform has it; raises Retry where the
        platform asks to wait, and Refused where this preview cannot be shown any more.
        """

    def routes(self) -> Sequence[Route]: ...

    def fetch(self, ref: str) -> AsyncIterator[bytes]:
        """An attachment's bytes, asked for again after a failure. Raises LookupError where there is none and never will be."""


@runtime_checkable
class Called(Protocol):
    """A `Transport` of a platform that may call in: any daemon on the database can be called, also where another one runs the transport."""

    @property
    def called(self) -> bool:
        """Whether it does, by the config."""

    async def attend(self, host: Host) -> None:
        """Until cancelled, in the place of `run`: take what comes to `routes`, and do nothing else that `run` does."""
