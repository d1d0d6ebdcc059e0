"""OpenClaw's transcripts: a file for each session, an entry a line, which are a tree by `id` and `parentId`.

What was said is the branch that ends with the newest entry; entries of the first version have no ids and stand in their order.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from clew.imports import conversation as made
from clew.imports.conversation import ODD, Conversation, ExportError, Said, Unreadable
from clew.imports.opening import Stream, streams
from clew.imports.pulling import lines
from clew.messages import Block, Text

FILES = r".+\.jsonl(\.(reset|deleted)\..+)?"
MOST_ENTRIES = 500_000
"""Of one session."""


def read(path: Path) -> Iterator[Conversation | Unreadable]:
    """Raises ExportError."""
    for name, stream in streams(path, FILES):
        entries = _entries(name, stream)
        try:
            if (found := _conversation(PurePosixPath(name).name, entries)) is not None:
                yield found
        except ODD as error:
            yield Unreadable(name, f"it is of an unknown shape ({type(error).__name__}: {error})")


def _entries(name: str, stream: Stream) -> list[Mapping[str, Any]]:
    """Its entries; a last line that breaks off was being written. Raises ExportError for a file that is none of OpenClaw's."""
    found = list[Mapping[str, Any]]()
    for number, line in enumerate(lines(name, stream), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if isinstance(entry, Mapping):
            found.append(entry)
        if number == 1 and (not found or found[0].get("type") != "session"):
            raise ExportError(f"{name} does not begin with a session of OpenClaw.", hint="Is it the right file, and the right --from?")
        if number > MOST_ENTRIES:
            raise ExportError(f"{name} has more than {MOST_ENTRIES:,} lines.")
    return found


def branch(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The entries from the root to the newest one; all of them where they have no ids. A tree that leads in a circle ends where it begins
    again."""
    by_id = {str(each["id"]): each for each in entries if each.get("id")}
    if not by_id:
        return list(entries)
    found, seen = list[Mapping[str, Any]](), set[str]()
    current = next(reversed(by_id))
    while current in by_id and current not in seen:
        seen.add(current)
        found.append(by_id[current])
        current = str(by_id[current].get("parentId") or "")
    return found[::-1]


def _conversation(name: str, entries: Sequence[Mapping[str, Any]]) -> Conversation | None:
    if not entries:
        return None
    header, *rest = entries
    at, messages = made.instant(header.get("timestamp"), 0.0), list[Said]()
    for index, entry in enumerate(branch([each for each in rest if each.get("type") != "session"])):
        if entry.get("type") != "message":
            continue
        message = entry["message"]
        at = made.instant(entry.get("timestamp"), made.epoch(message.get("timestamp"), at * 1000) / 1000)
        if (found := _said(str(entry.get("id") or index), message, at)) is not None:
            messages.append(found)
    number = str(header.get("id") or name.partition(".jsonl")[0])
    return Conversation(number, made.opening(messages), tuple(messages)) if messages else None


def _said(key: str, message: Mapping[str, Any], at: float) -> Said | None:
    blocks = list(_blocks(message.get("content")))
    match message["role"]:
        case "user":
            return made.said(key, "user", [each for each in blocks if isinstance(each, Text)], at)
        case "assistant":
            return made.said(key, "assistant", blocks, at)
        case "toolResult":
            words = "\n".join(each.text for each in blocks if isinstance(each, Text))
            answer = made.result(message.get("toolCallId"), message.get("toolName"), words, is_error=message.get("isError") is True)
            return made.said(key, "tool", [answer], at) if words.strip() else None
    return None


def _blocks(content: Any) -> Iterator[Block]:
    if isinstance(content, str):
        yield Text(made.text(content))
    for each in content if isinstance(content, list) else ():
        match each.get("type"):
            case "text":
                yield Text(made.text(each.get("text")))
            case "image":
                yield Text("[image]")
            case "toolCall":
                yield made.call(each.get("id"), each.get("name"), each.get("arguments") or {})
