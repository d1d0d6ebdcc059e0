"""What ntfy says in a topic's stream. Pure."""

import json
import re
from collections.abc import Container
from typing import Any

from clew.transport import Address, Attachment, Inbound
from clew_transports.reading import Malformed

TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
"""What ntfy takes as the name of a topic, and as a sequence id."""

ENCODED = "I can read text, and this message holds something else."


def event(line: bytes) -> dict[str, Any]:
    """The JSON object of a line. Raises Malformed."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("event"), str):
        raise Malformed("a line that is no event of ntfy")
    return found


def read(found: dict[str, Any], name: str, topics: Container[str]) -> Inbound | None:
    """The message in an event for the transport `name`, None if it is none of `topics`. Raises Malformed.

    A message with the sequence id of an earlier one takes its place: that is an edit. ntfy tells deletions the same way.
    """
    kind, topic = found["event"], found.get("topic")
    if kind not in ("message", "message_delete") or not isinstance(topic, str) or topic not in topics:
        return None
    try:
        number, first = str(found["id"]), str(found.get("sequence_id") or found["id"])
        edits = f"{name}/{topic}/{first}" if first != number else ""
        if kind == "message_delete" and not edits:
            return None
        words = (str(found.get("title") or ""), str(found.get("message") or ""))
        return Inbound(
            external_id=f"{name}/{topic}/{number}",
            address=Address(name, str(topic)),
            sender=str(topic),
            text="" if found.get("encoding") else "\n".join(filter(None, words)),
            client_id=number,
            kind="delete" if kind == "message_delete" else "edit" if edits else "message",
            edits=edits,
            sent_at=float(found["time"]),
            refused=ENCODED if found.get("encoding") else "",
            attachments=_attachments(found.get("attachment")),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        raise Malformed("an event of a shape that is not documented") from None


def _attachments(found: Any) -> tuple[Attachment, ...]:
    if not isinstance(found, dict) or not isinstance(found.get("url"), str):
        return ()
    name, mime = str(found.get("name") or "attachment")[:200], str(found.get("type") or "application/octet-stream")[:100]
    return (Attachment(name, mime, int(found.get("size") or 0), found["url"][:2000]),)
