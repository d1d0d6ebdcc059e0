"""What the summariser is given. Pure."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime, tzinfo

from clew.context.redact import redact
from clew.context.tokens import estimate
from clew.context.view import Rendered
from clew.messages import File, Message, Text, ToolCall, ToolResult

GLIMPSE = 40
"""Characters by which a message is told from its neighbours where all of it stands in front of the request."""

_OWN_TAG = re.compile(r"<\s*(/?\s*(?:current_summary|new_messages|format|keep))\s*>", re.IGNORECASE)


def material(
    summary: str,
    demoted: Sequence[Rendered],
    zone: tzinfo,
    output_format: str,
    focus: str = "",
    limit: int | None = None,
    known: Collection[str] = (),
) -> str:
    """The user message of a summary request: the current summary, the newly demoted messages, the output format.

    Each message begins with a line `[#position date time speaker] text`. focus: what the person asked to keep. limit: characters of one
    message, which is cut in its middle beyond it. known: secrets of this installation.
    """
    lines = [_line(row, zone, limit, known) for message in demoted for row in message.rows]
    return _sections(summary, lines, output_format, focus, known)


def pointers(summary: str, demoted: Sequence[Rendered], output_format: str, focus: str = "", known: Collection[str] = ()) -> str:
    """What `material` gives, where the messages themselves stand in front of it: the number, speaker and first words of each."""
    lines = [f"[#{row.seq} {speaker(row)}] {_glimpse(row, known)}" for message in demoted for row in message.rows]
    return _sections(summary, ["(all of them stand above, in this order)", *lines], output_format, focus, known)


def _sections(summary: str, lines: Sequence[str], output_format: str, focus: str, known: Collection[str]) -> str:
    parts = [
        f"<current_summary>\n{_harmless(summary) or '(none yet)'}\n</current_summary>",
        f"<new_messages>\n{chr(10).join(lines)}\n</new_messages>",
    ]
    if focus:
        parts.append(f"<keep>\nThe person asked to keep in particular: {_harmless(redact(focus, known))}\n</keep>")
    parts.append(f"<format>\n{output_format}\n</format>")
    return "\n\n".join(parts)


def message_tokens(message: Rendered, zone: tzinfo) -> int:
    """Estimated tokens of a rendered message in `material`."""
    return sum(estimate(_line(row, zone, None, ())) + 1 for row in message.rows)


def _line(row: Message, zone: tzinfo, limit: int | None, known: Collection[str]) -> str:
    stamp = datetime.fromtimestamp(row.at, zone).strftime("%Y-%m-%d %H:%M")
    text = _told(row, known)
    if limit is not None and len(text) > limit:
        half = max(limit // 2, 1)
        text = f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
    return f"[#{row.seq} {stamp} {speaker(row)}] {text}"


def _told(row: Message, known: Collection[str]) -> str:
    return _harmless(redact("\n".join(piece for piece in map(_words, row.blocks) if piece), known))


def _glimpse(row: Message, known: Collection[str]) -> str:
    words = " ".join(_told(row, known).split())
    return words if len(words) <= GLIMPSE else f"{words[:GLIMPSE]}…"


def speaker(row: Message) -> str:
    """Who a message is by: a person's name, `assistant` or `tool`."""
    if row.role == "user":
        name = row.sender_name or row.sender or "user"
        return f"{name} (to the group)" if row.overheard else name
    return "assistant" if row.role == "assistant" else "tool"


def _words(block: object) -> str:
    match block:
        case Text(text):
            return text
        case ToolCall(_, name, arguments):
            return f"(called {name} with {arguments})"
        case ToolResult(_, name, text, is_error):
            return f"({name} {'failed' if is_error else 'answered'}: {text})"
        case File():
            return block.words
    return ""


def _harmless(text: str) -> str:
    """Text that cannot close the section it stands in."""
    return _OWN_TAG.sub(r"‹\1›", text)
