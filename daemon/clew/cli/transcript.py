"""A transcript as people read it. All words of others are indented, so that none of them can pass for a line of ours."""

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Any

from clew.cli.options import local
from clew.cli.output import harmless
from clew.messages import Message
from clew.store import Compaction

SUMMARY = "[compressed summary]"
MODEL = "clew"
_INDENT = "    "


def speaker(message: Message) -> str:
    """Who said it, in one word or two."""
    if message.role == "tool":
        return "tool"
    return message.sender_name or message.sender or (MODEL if message.role == "assistant" else message.role)


def rendered(messages: Sequence[Message], summary: Compaction | None, zone: tzinfo | None) -> Iterator[str]:
    """Lines: each message under its place, time and speaker; the summary as metadata behind the messages that it covers."""
    for message in messages:
        if summary and message.seq > summary.to_seq:
            yield from _summary(summary, zone)
            summary = None
        yield from _message(message, zone)
    if summary:
        yield from _summary(summary, zone)


def _summary(summary: Compaction, zone: tzinfo | None) -> Iterator[str]:
    at = local(summary.created, zone)
    yield f"{SUMMARY} of messages 1-{summary.to_seq}, made {at:%Y-%m-%d %H:%M} ({summary.trigger}), {summary.id}"
    yield from _indented(summary.text)


def _message(message: Message, zone: tzinfo | None) -> Iterator[str]:
    name = " ".join(harmless(speaker(message)).split())
    if message.role != "tool":
        yield f"#{message.seq} {local(message.at, zone):%Y-%m-%d %H:%M:%S} {name}"
        yield from _indented(message.text)
    for call in message.calls:
        yield f"[tool call] {_one_line(call.name)} {_one_line(call.arguments)}"
    for result in message.results:
        yield f"[tool {'error' if result.is_error else 'result'}] {_one_line(result.name)}"
        yield from _indented(result.text)


def _indented(text: str) -> Iterator[str]:
    for line in harmless(text).splitlines():
        yield (_INDENT + line).rstrip()


def _one_line(text: str) -> str:
    return " ".join(harmless(text).split())


def as_values(message: Message) -> dict[str, Any]:
    """A message as plain values for JSON. `at`: seconds since the epoch, UTC."""
    return {
        "id": message.id,
        "seq": message.seq,
        "role": message.role,
        "speaker": speaker(message),
        "at": message.at,
        "text": message.text,
        "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.calls],
        "results": [{"call": each.call_id, "name": each.name, "text": each.text, "is_error": each.is_error} for each in message.results],
    }


def summary_values(summary: Compaction | None) -> dict[str, Any] | None:
    """A summary as plain values for JSON."""
    if summary is None:
        return None
    return {
        "id": summary.id,
        "to_seq": summary.to_seq,
        "created": summary.created,
        "trigger": summary.trigger,
        "messages": summary.messages,
        "covered": summary.covered,
        "text": summary.text,
        "undone_at": summary.undone_at,
    }
