"""Transcripts to measure with: those that ship with clew, files of one's own, sessions of one's own."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import IO, Any

from clew.errors import UsageError
from clew.evaluation.key import Item, item_of
from clew.messages import Block, Message, Role, Text, ToolCall, ToolResult, blocks_from_json

LONGEST_FILE = 64 * 2**20
"""Bytes of a file that is read."""
KEY = ".key.jsonl"
"""The end of the name of a transcript's key."""
SUFFIXES = (".jsonl", ".json")
_ROLES: Mapping[str, Role] = {"user": "user", "human": "user", "assistant": "assistant", "model": "assistant", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class Transcript:
    """A chat and what of it must survive.

    messages: numbered from 1; a message's id is its number. key: empty where nobody wrote one. direct: a chat of one person.
    fits: whether what must survive fits the default `summary_tokens`; where it doesn't, what a report lists as dropped counts as kept.
    """

    name: str
    messages: tuple[Message, ...]
    key: tuple[Item, ...] = ()
    language: str = ""
    about: str = ""
    zone: str = "UTC"
    direct: bool = True
    fits: bool = True

    @property
    def speakers(self) -> frozenset[str]:
        """The names of the people in it."""
        return frozenset(message.sender_name or message.sender for message in self.messages if message.role == "user")


def shipped(names: Sequence[str] = ()) -> list[Transcript]:
    """The corpus that ships with clew, or those threads of it. Raises UsageError for a name that is not there."""
    folder = files("clew.evaluation").joinpath("corpus")
    found = {each.name.removesuffix(".jsonl"): each for each in folder.iterdir() if each.name.endswith(".jsonl") and KEY not in each.name}
    if unknown := [name for name in names if name not in found]:
        raise UsageError(f"There is no thread {unknown[0]!r} in the corpus.", hint=f"There are {', '.join(sorted(found))}.")
    return [_read(found[name], folder.joinpath(name + KEY)) for name in sorted(names or found)]


def in_folder(folder: Path) -> list[Transcript]:
    """The transcripts in a folder: NAME.jsonl with or without NAME.key.jsonl, and exports of sessions. Raises UsageError."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder.", hint="Name a folder with transcripts, or none for the corpus that ships with clew.")
    paths = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and not path.name.endswith(KEY))
    if not paths:
        raise UsageError(f"{folder} holds no transcript.", hint="Transcripts are NAME.jsonl, or what `clew session export` writes.")
    return [_read(path, folder / f"{path.stem}{KEY}") for path in paths]


def _read(path: Traversable, key: Traversable) -> Transcript:
    text = _text(path)
    if path.name.endswith(".json"):
        return exported(path.name.removesuffix(".json"), _json(text, path.name))
    return of_lines(path.name.removesuffix(".jsonl"), text.split("\n"), _text(key).split("\n") if key.is_file() else ())


def _text(path: Traversable) -> str:
    with path.open("rb") as file:
        return read_text(file, path.name)


def read_text(file: IO[bytes], name: str) -> str:
    """What stands in a file. Raises UsageError where it is too large or not UTF-8."""
    raw = file.read(LONGEST_FILE + 1)
    if len(raw) > LONGEST_FILE:
        raise UsageError(f"{name} is larger than {LONGEST_FILE // 2**20} MiB.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8.") from None


def _json(text: str, where: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{where} is not JSON.") from None
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UsageError(f"{where} holds half a character, which is not valid Unicode.") from None
    return value


def of_lines(name: str, lines: Iterable[str], key: Iterable[str] = ()) -> Transcript:
    """A transcript of one JSON object a line, each a message with `role`, `text` (or `content`), `name` and `at`.

    key: the lines of its key, the first of which describes the thread. Raises UsageError that names the line.
    """
    messages = tuple(
        _message(_object(line, f"{name}, line {at}"), number, f"{name}, line {at}") for number, (at, line) in enumerate(_numbered(lines), 1)
    )
    if not messages:
        raise UsageError(f"{name} holds no message.")
    if messages[0].role != "user":
        raise UsageError(f"{name} must begin with a message of a person.")
    described, *items = [_object(line, f"the key of {name}, line {at}") for at, line in _numbered(key)] or [{}]
    return Transcript(
        name,
        messages,
        tuple(item_of(item, f"the key of {name}") for item in items),
        str(described.get("language", "")),
        str(described.get("about", "")),
        str(described.get("zone", "UTC")),
        bool(described.get("direct", True)),
        bool(described.get("fits", True)),
    )


def exported(name: str, data: Any) -> Transcript:
    """A session as `clew session export` writes it. Raises UsageError."""
    if not isinstance(data, dict) or not isinstance(data.get("messages"), list) or not isinstance(data.get("session"), dict):
        raise UsageError(f"{name} is no export of a clew session.")
    try:
        messages = tuple(
            Message(
                str(at), at, each["role"], blocks_from_json(json.dumps(each["blocks"])), each["at"], each["sender"], each["sender_name"]
            )
            for at, each in enumerate(data["messages"], 1)
        )
    except (KeyError, TypeError, ValueError):
        raise UsageError(f"{name} is no export of a clew session.") from None
    return of_session(name, messages, direct=bool(data["session"].get("direct", True)))


def of_session(name: str, messages: Sequence[Message], *, direct: bool) -> Transcript:
    """A stored session; what stands in front of the first message of a person is left out."""
    first = next((at for at, message in enumerate(messages) if message.role == "user"), len(messages))
    kept = tuple(
        Message(str(at), at, each.role, each.blocks, each.at, each.sender, each.sender_name) for at, each in enumerate(messages[first:], 1)
    )
    if not kept:
        raise UsageError(f"{name} holds no message of a person.")
    return Transcript(name, kept, direct=direct)


def _numbered(lines: Iterable[str]) -> list[tuple[int, str]]:
    return [(at, line) for at, line in enumerate(lines, 1) if line.strip()]


def _object(line: str, where: str) -> dict[str, Any]:
    value = _json(line, where)
    if not isinstance(value, dict):
        raise UsageError(f"{where} is no JSON object.")
    return value


def _message(value: Mapping[str, Any], number: int, where: str) -> Message:
    role = _ROLES.get(str(value.get("role")))
    if role is None:
        raise UsageError(f"{where}: `role` must be user, assistant or tool.")
    text = value.get("text", value.get("content", ""))
    if not isinstance(text, str):
        raise UsageError(f"{where}: `text` must be a text.")
    name = str(value.get("name", "")) if role == "user" else ""
    return Message(str(number), number, role, _blocks(value, role, text, where), _at(value.get("at", number * 60.0), where), name, name)


def _blocks(value: Mapping[str, Any], role: Role, text: str, where: str) -> tuple[Block, ...]:
    if role == "tool":
        return (ToolResult(str(value.get("call", "")), str(value.get("name", "")), text, bool(value.get("error", False))),)
    calls = value.get("calls", [])
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise UsageError(f"{where}: `calls` must be a list of calls.")
    made = [
        ToolCall(str(call.get("id", "")), str(call.get("name", "")), json.dumps(call.get("arguments", {}), ensure_ascii=False))
        for call in calls
    ]
    return (*([Text(text)] if text else []), *made)


def _at(value: object, where: str) -> float:
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{where}: `at` must be a time, as 2026-03-01T08:30+01:00 or in seconds since the epoch.") from None
