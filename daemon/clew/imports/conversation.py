"""What readers of exports make of them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from clew.context.text import clean
from clew.errors import ClewError
from clew.messages import Block, Role, Text, ToolCall, ToolResult

LONGEST_TEXT, LONGEST_TITLE, LONGEST_NAME, LONGEST_KEY = 1_000_000, 200, 200, 500
"""Characters; what is longer is cut."""
LATEST = 32_503_680_000.0
"""Seconds since the epoch: the year 3000."""
ODD = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)
"""What comes of data of another shape than its reader knows."""


class ExportError(ClewError):
    """A file that is not the export that it was said to be."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message. key: names it in its conversation, for ever. at: seconds since the epoch. name: of whoever wrote it; empty for the
    person whose export it is. mine: that person wrote it, or an assistant; else somebody else did."""

    key: str
    role: Role
    blocks: tuple[Block, ...]
    at: float
    name: str = ""
    mine: bool = True


@dataclass(frozen=True, slots=True)
class Conversation:
    """key: names it among those of its program, for ever. messages: at least one, in order."""

    key: str
    title: str
    messages: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A conversation that cannot be brought in. where: which one."""

    where: str
    why: str


def text(given: object) -> str:
    """Words of any length, as they can be stored."""
    words = given if isinstance(given, str) else ""
    if len(words) > LONGEST_TEXT:
        words = f"{words[:LONGEST_TEXT]}\n[{len(words) - LONGEST_TEXT:,} more characters were left out]"
    return clean(words)


def line(given: object, longest: int = LONGEST_TITLE) -> str:
    """Words in one line."""
    return " ".join(text(given)[: 10 * longest].split())[:longest]


def said(key: object, role: Role, blocks: Iterable[Block], at: float, name: str = "", *, mine: bool = True) -> Said | None:
    """A message; None where it says nothing."""
    kept = tuple(each for each in blocks if not isinstance(each, Text) or each.text.strip())
    return Said(line(str(key), LONGEST_KEY) or "-", role, kept, at, line(name, LONGEST_NAME), mine) if kept else None


def opening(messages: Iterable[Said]) -> str:
    """The first words of a conversation that has no title."""
    words = (block.text for each in messages if each.role == "user" for block in each.blocks if isinstance(block, Text))
    return line(next(words, ""), 60)


def call(number: object, name: object, arguments: object) -> ToolCall:
    """A call of a tool. arguments: as JSON, or the JSON of it."""
    words = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(line(str(number or ""), 100), line(name, 64) or "tool", text(words))


def result(number: object, name: object, words: object, *, is_error: bool = False) -> ToolResult:
    return ToolResult(line(str(number or ""), 100), line(name, 64) or "tool", text(words), is_error)


def epoch(given: Any, before: float) -> float:
    """Seconds since the epoch, of a number or a text that is one; `before` where it is none or no time at all."""
    try:
        at = float(given)
    except (TypeError, ValueError, OverflowError):
        return before
    return at if 0.0 <= at < LATEST else before


def instant(given: object, before: float, zone: ZoneInfo | None = None) -> float:
    """Seconds since the epoch of a date and time as ISO 8601 has it, in `zone` (UTC if None) where it names none; else `before`."""
    try:
        moment = datetime.fromisoformat(str(given))
        return epoch((moment if moment.tzinfo else moment.replace(tzinfo=zone or UTC)).timestamp(), before)
    except (ValueError, OverflowError):
        return before


def member(given: object, key: str) -> Mapping[str, Any]:
    """The object at `key`, an empty one where there is none."""
    found = given.get(key) if isinstance(given, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def items(given: object, key: str) -> list[Any]:
    """The list at `key`, an empty one where there is none."""
    found = given.get(key) if isinstance(given, Mapping) else None
    return found if isinstance(found, list) else []
