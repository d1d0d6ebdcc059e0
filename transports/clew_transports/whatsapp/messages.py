"""What Meta's webhook tells of WhatsApp. Pure."""

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.transport import Address, Attachment, Inbound
from clew_transports.buttons import ANSWERS, PRESSED
from clew_transports.reading import READABLE

_FILES = {
    "image": "image/jpeg",
    "document": "application/octet-stream",
    "audio": "audio/ogg",
    "video": "video/mp4",
    "sticker": "image/webp",
}
"""Kinds of files, and their type where none is given."""
_SILENT = frozenset({"system", "unsupported", "request_welcome", "ephemeral"})
"""Kinds in which nobody says anything."""
_UNDOCUMENTED = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)


@dataclass(frozen=True, slots=True)
class News:
    """What a notification tells.

    messages: for clew, oldest first. delivered: for each part that WhatsApp has taken, its `biz_opaque_callback_data` and the message's
    id. damaged: why some of it cannot be read; it would come again for a week, and be no better.
    """

    messages: tuple[Inbound, ...] = ()
    delivered: tuple[tuple[str, str], ...] = ()
    damaged: tuple[str, ...] = ()


def is_signed(stated: str, secret: str, body: bytes) -> bool:
    """Whether `stated` is `sha256=` and the HMAC-SHA256 of the raw body in hexadecimal digits."""
    right = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(stated.encode("utf-8", "replace"), right.encode())


def read(body: bytes, name: str, number: str) -> News:
    """What a notification tells of the telephone number with the id `number`."""
    try:
        told = json.loads(body.decode())
        values = [change["value"] for entry in told["entry"] for change in entry["changes"] if change.get("field") == "messages"]
        mine = [value for value in values if value["metadata"]["phone_number_id"] == number]
    except _UNDOCUMENTED:
        return News(damaged=("a notification of a shape that is not documented",))
    found, delivered, damaged = [], [], []
    for value in mine:
        names = _names(value)
        for message in _list(value, "messages"):
            try:
                # In a group nothing shows whom a line is for: clew stays out of it.
                if message["type"] not in _SILENT and "group_id" not in message:
                    found.append(_message(message, name, number, names.get(str(message["from"]), "")))
            except _UNDOCUMENTED:
                damaged.append("a message of a shape that is not documented")
        delivered += [key for status in _list(value, "statuses") if (key := _delivered(status))]
    return News(tuple(sorted(found, key=lambda each: each.sent_at or 0.0)), tuple(delivered), tuple(damaged))


def _list(value: Mapping[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    return found if isinstance(found, list) else []


def _names(value: Mapping[str, Any]) -> dict[str, str]:
    """What people call themselves, by their id."""
    names = {}
    for each in _list(value, "contacts"):
        if isinstance(each, Mapping) and isinstance(profile := each.get("profile"), Mapping):
            names[str(each.get("wa_id"))] = str(profile.get("name", ""))[:200]
    return names


def _message(message: Mapping[str, Any], name: str, number: str, sender_name: str) -> Inbound:
    kind, sender = message["type"], str(message["from"])
    files, text = tuple(_files(message)), _text(message)
    about = message.get("reaction") or message.get("context") or {}
    pressed = _pressed(message)
    return Inbound(
        external_id=f"{name}/{number}/{message['id']}",
        address=Address(name, sender),
        sender=sender,
        text=pressed or text,
        client_id=str(message["id"]),
        sender_name=sender_name,
        kind="reaction" if kind == "reaction" or pressed else "message",
        reply_to=str(about.get("message_id") or about.get("id") or "") or None,
        sent_at=float(message["timestamp"]),
        refused="" if text or files or kind in ("text", "reaction") else READABLE,
        attachments=files,
        context={PRESSED: str(message["id"])} if pressed else {},
    )


def _pressed(message: Mapping[str, Any]) -> str:
    """What a button below a question of clew's stands for; empty for other messages."""
    inner = message.get("interactive")
    chosen = inner.get("button_reply") if isinstance(inner, Mapping) and message["type"] == "interactive" else None
    answer = str(chosen.get("id")) if isinstance(chosen, Mapping) else ""
    return answer if answer in ANSWERS else ""


def _text(message: Mapping[str, Any]) -> str:
    kind = message["type"]
    inner = message.get(kind)
    match kind:
        case "text":
            return str(message["text"]["body"])
        case "reaction":
            return str(message["reaction"].get("emoji") or "")
        case "button":
            return str(message["button"]["text"])
        case "interactive":
            chosen = inner.get("button_reply") or inner.get("list_reply") or {} if isinstance(inner, Mapping) else {}
            return str(chosen.get("title", ""))
        case _ if kind in _FILES and isinstance(inner, Mapping):
            return str(inner.get("caption") or "")
    return ""


def _files(message: Mapping[str, Any]) -> Iterator[Attachment]:
    kind = message["type"]
    if kind in _FILES:
        file = message[kind]
        mime = str(file.get("mime_type") or _FILES[kind])[:100]
        yield Attachment(
            str(file.get("filename") or ("voice" if file.get("voice") else kind))[:200], mime, 0, str(file["id"]), bool(file.get("voice"))
        )


def _delivered(status: Any) -> tuple[str, str] | None:
    if not isinstance(status, Mapping) or status.get("status") not in ("sent", "delivered", "read"):
        return None
    key, number = status.get("biz_opaque_callback_data"), status.get("id")
    return (key, number) if isinstance(key, str) and isinstance(number, str) and key else None
