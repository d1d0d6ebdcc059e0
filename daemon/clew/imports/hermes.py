"""Hermes' transcripts: its state.db; what `hermes sessions export` writes, a session a line; older files of a session each."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from clew.errors import StoreError
from clew.imports import conversation as made
from clew.imports.conversation import ODD, Conversation, ExportError, Said, Unreadable
from clew.imports.opening import Stream, streams
from clew.imports.pulling import Pull, lines
from clew.messages import Block, Text
from clew.store import hermes as database

FILES = r".+\.(jsonl|json)"
DATABASE = "state.db"
SQLITE = b"SQLite format 3\0"


def read(path: Path) -> Iterator[Conversation | Unreadable]:
    """Raises ExportError."""
    path = path / DATABASE if (path / DATABASE).is_file() else path
    if _is_database(path):
        try:
            yield from _sessions(database.sessions(path), path.name)
        except StoreError as error:
            raise ExportError(error.message, hint=error.hint) from None
        return
    for name, stream in streams(path, FILES):
        yield from _sessions(_objects(name, stream), name)


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:  # a folder, or what cannot be opened: that is said where it is opened
        return False


def _sessions(told: Iterable[Any], name: str) -> Iterator[Conversation | Unreadable]:
    for number, each in enumerate(told, 1):
        try:
            if (found := _conversation(each)) is not None:
                yield found
        except ODD as error:
            yield Unreadable(f"session {number} of {name}", f"it is of an unknown shape ({type(error).__name__}: {error})")


def _objects(name: str, stream: Stream) -> Iterator[Any]:
    """A session for each line; of a file whose lines are messages, the one that they are of."""
    if name.lower().endswith(".json"):
        pull = Pull(name, stream)
        yield pull.value()
        return
    told = (_object(name, number, line) for number, line in enumerate(lines(name, stream), 1) if line.strip())
    first = next(told, None)
    if isinstance(first, Mapping) and "messages" not in first and "role" in first:
        yield {"id": Path(name).stem, "messages": [each for each in chain([first], told) if isinstance(each, Mapping)]}
    elif first is not None:
        yield from chain([first], told)


def _object(name: str, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ExportError(f"{name}, line {number}, is no JSON ({error}).", hint="Is it the right file, and the right --from?") from None


def _conversation(told: Any) -> Conversation | None:
    number = str(told.get("id") or told["session_id"])
    at = _time(told.get("started_at") or told.get("session_start"), 0.0)
    messages = list[Said]()
    for index, message in enumerate(told["messages"]):
        at = _time(message.get("timestamp"), at)
        if (found := _said(str(message.get("id") or index), message, at)) is not None:
            messages.append(found)
    title = made.line(told.get("title")) or made.opening(messages)
    return Conversation(number, title, tuple(messages)) if messages else None


def _time(given: Any, before: float) -> float:
    return made.instant(given, before) if isinstance(given, str) and "-" in given else made.epoch(given, before)


def _said(key: str, message: Mapping[str, Any], at: float) -> Said | None:
    words = _words(message.get("content"))
    match message.get("role"):
        case "user" if message.get("active", 1):
            return made.said(key, "user", [Text(words)], at)
        case "assistant" if message.get("active", 1):
            return made.said(key, "assistant", [Text(words), *_calls(message.get("tool_calls"))], at)
        case "tool" if message.get("active", 1) and words.strip():
            return made.said(key, "tool", [made.result(message.get("tool_call_id"), message.get("tool_name"), words)], at)
    return None  # system prompts, notes of its own, what was taken back


def _calls(told: Any) -> Iterator[Block]:
    """Calls of tools as the OpenAI API has them; the database keeps them as text."""
    for each in json.loads(told) if isinstance(told, str) and told else told or ():
        function = made.member(each, "function")
        yield made.call(each.get("id") or each.get("call_id"), function.get("name") or each.get("name"), function.get("arguments") or {})


def _words(content: Any) -> str:
    if isinstance(content, str):
        return made.text(content)
    parts = content if isinstance(content, list) else []
    return "\n".join(made.text(each.get("text")) if "text" in each else "[image]" for each in parts if isinstance(each, Mapping))
