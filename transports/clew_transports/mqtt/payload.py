"""Topics and payloads of the MQTT transport. Pure: bytes in, values out, and back."""

import base64
import binascii
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from clew.transport import Address, Attachment, Delivery, Inbound, Part

MAX_PAYLOAD_BYTES = 1024 * 1024
"""Longer payloads are refused. The host's limit for a message is smaller; this one bounds what is decoded at all."""

MAX_ID_CHARS = 200
MAX_NAME_CHARS = 200
MAX_ATTACHMENTS = 16
MAX_ATTACHMENT_BYTES = 256 * 1024
KEPT_OF_REFUSED_CHARS = 4096
"""How much of a payload that cannot be taken is stored with the refusal."""

NAME = r"[A-Za-z0-9_.-]{1,64}"
NO_THREAD = "-"
"""Stands for "no thread" in `Inbound.external_id`, and is therefore no name for a thread."""

_NAME = re.compile(NAME)
_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}")
_DATA = "data:;base64,"


class Ignored(ValueError):
    """Nobody's message: it is neither stored nor answered. The text says why."""


class _Malformed(ValueError):
    """Somebody's message, but clew cannot take it. The text is what the sender is told."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A PUBLISH that arrived.

    payload: at most MAX_PAYLOAD_BYTES of it. size: its true length in bytes. id: the user property `id`.
    correlation: None if absent, which is not the same as empty. expiry: seconds left of its message expiry interval.
    mid: the packet identifier; the broker uses it again once it is acknowledged.
    """

    topic: str
    payload: bytes
    size: int
    qos: int = 1
    mid: int = 0
    retain: bool = False
    dup: bool = False
    id: str | None = None
    response_topic: str | None = None
    correlation: bytes | None = None
    expiry: int | None = None


def unreachable(to: Address) -> str:
    """Why no topic can name `to`; empty where one can."""
    levels = (to.chat, to.thread) if to.thread else (to.chat,)
    return "" if all(map(_NAME.fullmatch, levels)) else "user and thread must be 1 to 64 of A-Z a-z 0-9 _ . -"


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one bot, all below `chat/v1/<bot>`."""

    bot: str

    @property
    def base(self) -> str:
        return f"chat/v1/{self.bot}"

    @property
    def inbox(self) -> str:
        """The one filter to subscribe to. (Two that overlap would bring messages twice.)"""
        return f"{self.base}/in/#"

    @property
    def status(self) -> str:
        return f"{self.base}/status"

    def sender(self, transport: str, topic: str) -> Address:
        """Whose inbox `topic` is. Raises Ignored unless it is `…/in/<user>[/<thread>]`."""
        levels = topic.removeprefix(f"{self.base}/in/").split("/")
        if not topic.startswith(f"{self.base}/in/") or len(levels) > 2:
            raise Ignored("the topic is not in/<user> or in/<user>/<thread>")
        if not all(_NAME.fullmatch(level) for level in levels) or levels[1:] == [NO_THREAD]:
            raise Ignored("user and thread in the topic must be 1 to 64 of A-Z a-z 0-9 _ . - (and a thread not just -)")
        return Address(transport, *levels)

    def replies(self, to: Address) -> str:
        """Where `to` reads replies. Raises Ignored for an address that no topic can name."""
        return self._topic("out", to)

    def events(self, to: Address) -> str:
        """Where `to` reads typing, previews and receipts. Raises Ignored for an address that no topic can name."""
        return self._topic("ev", to)

    def allows_reply(self, user: str, topic: str) -> bool:
        """Whether `topic` is inside the user's own `out/`; clew publishes to no other response topic."""
        own = f"{self.base}/out/{user}"
        levels = topic.removeprefix(f"{own}/").split("/")
        return topic == own or (topic.startswith(f"{own}/") and len(levels) <= 8 and all(map(_NAME.fullmatch, levels)))

    def _topic(self, direction: str, to: Address) -> str:
        levels = (to.chat, to.thread) if to.thread else (to.chat,)
        if fault := unreachable(to):
            raise Ignored(f"{to} cannot be a topic: {fault}")
        return "/".join((self.base, direction, *levels))


@dataclass(frozen=True, slots=True)
class _Message:
    client_id: str
    text: str
    refused: str = ""
    reply_to: str | None = None
    sender_name: str = ""
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """A packet as a message, and what its sender's operator may want to know about it."""

    inbound: Inbound
    warnings: tuple[str, ...] = field(default=())


def read(packet: Packet, topics: Topics, transport: str, made_id: str, now: float) -> Reading:
    """The message in `packet`; a malformed one comes with `refused` set.

    made_id: names the message if it brings no id of its own. now: seconds since the epoch.

    Raises Ignored for a retained message and for a topic that is nobody's.
    """
    if packet.retain:
        raise Ignored("retained messages are not read: they would come again with every connection")
    address = topics.sender(transport, packet.topic)
    message = _message(packet)
    context, warnings = _context(packet, topics, address.chat)
    place = f"{transport}/{topics.bot}/{address.chat}/{address.thread or NO_THREAD}"
    inbound = Inbound(
        external_id=f"{place}/{message.client_id or made_id}",
        address=address,
        sender=address.chat,
        text=message.text,
        client_id=message.client_id,
        sender_name=message.sender_name,
        reply_to=message.reply_to,
        expires_at=None if packet.expiry is None else now + packet.expiry,
        refused=message.refused,
        attachments=message.attachments,
        context=context,
    )
    return Reading(inbound, warnings)


def _context(packet: Packet, topics: Topics, user: str) -> tuple[dict[str, str], tuple[str, ...]]:
    context: dict[str, str] = {}
    warnings: tuple[str, ...] = ()
    if packet.response_topic and topics.allows_reply(user, packet.response_topic):
        context["response_topic"] = packet.response_topic
    elif packet.response_topic:
        warnings = ("the response topic is outside the sender's own out/ and is not used",)
    if packet.correlation is not None:
        context["correlation"] = base64.b64encode(packet.correlation).decode()
    return context, warnings


def _message(packet: Packet) -> _Message:
    client_id = ""
    try:
        client_id = _checked_id(packet.id, "the user property id")
        body = _body(packet)
        client_id = _checked_id(body.get("id"), "id") or client_id
        attachments = _attachments(body.get("attachments"))
        text = _text(body, may_be_blank=bool(attachments))
        reply_to = _checked_id(body.get("reply_to"), "reply_to") or None
        return _Message(client_id, text, "", reply_to, _sender_name(body.get("sender")), attachments)
    except _Malformed as wrong:
        return _Message(
            client_id,
            _clean(packet.payload[: 4 * KEPT_OF_REFUSED_CHARS].decode("utf-8", "replace"))[:KEPT_OF_REFUSED_CHARS],
            str(wrong),
        )


def _body(packet: Packet) -> dict[str, Any]:
    if packet.size > MAX_PAYLOAD_BYTES:
        raise _Malformed(f"The message is too long: {packet.size} bytes, {MAX_PAYLOAD_BYTES} are allowed.")
    try:
        text = packet.payload.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise _Malformed(f"The message is not UTF-8 text (byte {wrong.start + 1}).") from None
    if not text.lstrip().startswith("{"):
        return {"text": text}
    try:
        body: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        raise _Malformed('The message begins with "{" but is not a JSON object.') from None
    return body


def _text(body: Mapping[str, Any], *, may_be_blank: bool) -> str:
    text = body.get("text")
    if not isinstance(text, str):
        raise _Malformed('The message has no "text" that is a string.')
    text = _clean(text)
    if not (text.strip() or may_be_blank):
        raise _Malformed("The message is empty.")
    return text


def _clean(text: str) -> str:
    """Without NUL, and with U+FFFD for each lone surrogate: neither can be stored and sent everywhere."""
    return text.replace("\0", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _checked_id(value: object, what: str) -> str:
    """`value`, or "" for None."""
    if value is None:
        return ""
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_ID_CHARS or not value.isprintable():
        raise _Malformed(f"{what} must be a string of 1 to {MAX_ID_CHARS} printable characters.")
    return value


def _sender_name(sender: object) -> str:
    name = sender.get("name", "") if isinstance(sender, dict) else sender
    if name is None:
        return ""
    if not isinstance(name, str) or (sender is not None and not isinstance(sender, dict)):
        raise _Malformed('sender must be an object with a string "name".')
    return "".join(char for char in _clean(name) if unicodedata.category(char) != "Cc")[:MAX_NAME_CHARS]


def _attachments(value: object) -> tuple[Attachment, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_ATTACHMENTS:
        raise _Malformed(f"attachments must be a list of at most {MAX_ATTACHMENTS} objects.")
    return tuple(_attachment(item) for item in value)


def _attachment(item: object) -> Attachment:
    if not isinstance(item, dict) or not isinstance(item.get("data"), str):
        raise _Malformed('Each attachment must be an object with its content, in base64, in "data".')
    name, mime = item.get("name", ""), item.get("mime", "application/octet-stream")
    if not isinstance(name, str) or not isinstance(mime, str) or not _MIME.fullmatch(mime):
        raise _Malformed('An attachment\'s "name" must be a string and its "mime" a media type such as image/png.')
    try:
        size = len(base64.b64decode(item["data"], validate=True))
    except (binascii.Error, ValueError):
        raise _Malformed('An attachment\'s "data" is not base64.') from None
    if size > MAX_ATTACHMENT_BYTES:
        raise _Malformed(f"An attachment has {size} bytes; {MAX_ATTACHMENT_BYTES} are allowed.")
    name = "".join(char for char in _clean(name) if unicodedata.category(char) != "Cc")[:MAX_NAME_CHARS]
    return Attachment(name, mime, size, _DATA + item["data"])


def attachment_bytes(ref: str) -> bytes:
    """The content of an attachment that came inside its message. Raises LookupError for any other `ref`."""
    if not ref.startswith(_DATA):
        raise LookupError(f"{ref[:40]!r} is no attachment of this transport")
    return base64.b64decode(ref.removeprefix(_DATA))


def correlation(context: Mapping[str, str]) -> bytes | None:
    """The correlation data that the question came with, byte for byte."""
    return base64.b64decode(context["correlation"]) if "correlation" in context else None


def reply(delivery: Delivery, part: Part) -> bytes:
    """The payload of one part of a reply. Its `id` is the same whenever it is sent again."""
    return _json(
        {
            "v": 1,
            "id": delivery.id if part.total == 1 else f"{delivery.id}.{part.index}",
            "in_reply_to": delivery.in_reply_to or None,
            "answers": list(delivery.answers),
            "text": part.text,
            "part": part.index,
            "parts": part.total,
            "final": part.index == part.total,
            "ts": datetime.fromtimestamp(delivery.ts, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
    )


def typing() -> bytes:
    return _json({"type": "typing"})


def partial(turn: str, seq: int, text: str) -> bytes:
    """All of what the model has said so far: a lost event costs nothing."""
    return _json({"type": "partial", "turn": turn, "seq": seq, "text": text})


def stored(client_id: str) -> bytes:
    return _json({"type": "stored", "id": client_id})


def first_id(properties: Iterable[tuple[str, str]]) -> str | None:
    """The user property `id`; the first one if there are several."""
    return next((value for key, value in properties if key == "id"), None)


def _json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
