"""The JSON of an incoming webhook as a message. Pure."""

import json
from collections.abc import Set
from typing import Any

from clew.transport import Address, Inbound
from clew_transports.reading import Malformed
from clew_transports.webhook.origin import Origin, origin

MAX_NAME_CHARS = 200
"""The longest `id`, `chat` and `sender`."""

REPLY_URL = "reply_url"


def read(body: bytes, transport: str, allowed: Set[Origin]) -> Inbound:
    """The message in `body`.

    transport: the section's name. allowed: where `reply_url` may lead. Raises Malformed.
    """
    fields = _object(body)
    identifier, chat, sender = (_name(fields, key) for key in ("id", "chat", "sender"))
    text = fields.get("text")
    if not isinstance(text, str):
        raise Malformed("text: must be a string")
    try:
        address = Address.parse(f"{transport}:{chat}")
    except ValueError:
        raise Malformed("chat: must be a name, or name/thread") from None
    return Inbound(
        external_id=f"{transport}/{identifier}",
        address=address,
        sender=sender,
        text=text,
        client_id=identifier,
        # Somebody else's words in a chat, or a chat of another name, could be anybody's: such a chat sees what was said in it alone.
        direct=address.chat == sender,
        context=_reply_url(fields.get(REPLY_URL), allowed),
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise Malformed("the body is not JSON in UTF-8") from None
    if not isinstance(fields, dict):
        raise Malformed("the body is not a JSON object")
    return fields


def _name(fields: dict[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_NAME_CHARS or not value.isprintable():
        raise Malformed(f"{key}: must be a string of 1 to {MAX_NAME_CHARS} printable characters")
    return value


def _reply_url(value: object, allowed: Set[Origin]) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, str):
        raise Malformed("reply_url: must be a string")
    try:
        found = origin(value)
    except ValueError as wrong:
        raise Malformed(f"reply_url: {wrong}") from None
    if found not in allowed:
        raise Malformed(f"reply_url: {found} is not among the reply_hosts of this clew")
    return {REPLY_URL: value}
