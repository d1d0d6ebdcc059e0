"""A YAML reader for configuration: a small, strict part of YAML, with the place of every value.

Only mappings, lists and plain values exist. `yes`, `no`, `on`, `off`, `12:30` and dates stay text; duplicate keys and
tags are faults; nesting, size and the growth by aliases are bounded.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from clew.errors import ConfigError, Finding

MAX_BYTES = 2**20
"""Largest file; 500 schedules take 48 KB."""
MAX_DEPTH = 32
"""Deepest nesting; the deepest key of ours is at 5."""
LONGEST_NAME = 1000
"""Characters of a key that is compared however its accents were typed; normalising takes quadratic time where it is all accents."""
MAX_NODES = 50_000
"""Most values, those repeated by aliases counted each time."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?", re.ASCII)
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}


class Mark(NamedTuple):
    """A place in the file, counted from 1. (0, 0): not in the file."""

    line: int
    column: int


NOWHERE = Mark(0, 0)

Path = tuple[str | int, ...]
Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value."""

    mark: Mark
    value: Value


@dataclass(frozen=True, slots=True)
class List:
    """A list of nodes."""

    mark: Mark
    items: list[Node]


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys in the order of the file, each with its own mark."""

    mark: Mark
    items: dict[str, Node]
    keys: dict[str, Mark] = field(default_factory=dict)


Node = Scalar | List | Mapping


def parse(raw: bytes, file: str) -> tuple[Mapping, list[Finding]]:
    """The mapping in `raw` and what is wrong with it; `file` is the name for the findings.

    Duplicate keys, tags and the like are listed and reading goes on. Raises ConfigError where it cannot.
    """
    reader = _Reader(file)
    try:
        return reader.read(_text(raw, file)), reader.findings
    except ConfigError as err:
        raise ConfigError(findings=[*reader.findings, *err.findings]) from None


def tree(value: Any) -> Node:
    """The node of a plain value that stands in no file."""
    if isinstance(value, dict):
        return section(value)
    if isinstance(value, list):
        return List(NOWHERE, [tree(item) for item in value])
    return Scalar(NOWHERE, value)


def section(values: dict[str, Any]) -> Mapping:
    """The mapping of plain values that stand in no file."""
    return Mapping(NOWHERE, {key: tree(item) for key, item in values.items()}, dict.fromkeys(values, NOWHERE))


def nodes(root: Node, path: Path) -> Iterator[tuple[Path, Node]]:
    """The nodes from `root` along `path` with their own paths. Parts of `path` that name no node are passed over."""
    yield (), root
    found: Path = ()
    for part in path:
        below: Node | None = None
        if isinstance(root, Mapping) and isinstance(part, str):
            below = root.items.get(part)
        elif isinstance(root, List) and isinstance(part, int) and 0 <= part < len(root.items):
            below = root.items[part]
        if below is not None:
            root, found = below, (*found, part)
            yield found, root


def plain(text: str) -> Value:
    """What an unquoted text means. Raises ValueError for a number that is too large."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        if len(text) > 18:
            raise ValueError("the number is too large")
        return int(text)
    if _FLOAT.fullmatch(text):
        if not math.isfinite(float(text)):
            raise ValueError("the number is too large")
        return float(text)
    return text


def _stop(file: str, mark: Mark, message: str) -> ConfigError:
    return ConfigError(findings=[Finding(file, mark.line, mark.column, "", message)])


def _text(raw: bytes, file: str) -> str:
    if len(raw) > MAX_BYTES:
        raise _stop(file, NOWHERE, f"is larger than {MAX_BYTES // 2**20} MiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        at = _place(raw[: err.start].decode("utf-8-sig", "replace"))
        raise _stop(file, at, "is not UTF-8 here; save the file as UTF-8") from None
    if found := _UNPRINTABLE.search(text):
        raise _stop(file, _place(text[: found.start()]), f"has the control character U+{ord(found[0]):04X}")
    return text


def _place(before: str) -> Mark:
    lines = before.split("\n")
    return Mark(len(lines), len(lines[-1]) + 1)


def _mark(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)


_MEANINGS = (
    (
        "cannot start any token",
        "a character that cannot stand here (tabs cannot indent; quote text that begins with @ % `)",
    ),
    (
        "mapping values are not allowed",
        "a colon that cannot stand here; quote text with `: ` in it and check the indentation",
    ),
    ("undefined alias", "text that begins with * must stand in quotes"),
    ("anchor", "text that begins with & must stand in quotes"),
    ("tag", "text that begins with ! must stand in quotes"),
    ("simple key", "a colon is missing, or the indentation is wrong"),
    ("found unexpected end of stream", "a quote is not closed"),
    (
        "did not find expected",
        'the indentation, a comma or a bracket is wrong here (between { } write "${NAME}" in quotes)',
    ),
    ("expected <block end>", "the indentation is wrong here"),
    ("depth", "it is nested too deeply"),
    ("unknown escape", "a backslash in double quotes that means nothing; use single quotes"),
)


def _meaning(problem: str) -> str:
    """Plain words. The parser's own are never shown: they may quote a part of a secret."""
    return next((words for sign, words in _MEANINGS if sign in problem), "the syntax is wrong here")


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.findings: list[Finding] = []
        self.count = 0
        self.trail: list[str | int] = []
        self.anchors: dict[str, tuple[Node, int, int]] = {}
        self.events: Iterator[Any] = iter(())

    def read(self, text: str) -> Mapping:
        self.events = self._parsed(text)
        next(self.events)
        if isinstance(next(self.events), yaml.StreamEndEvent):
            return Mapping(Mark(1, 1), {})
        root, _ = self._node(next(self.events), 1)
        next(self.events)
        extra = next(self.events)
        if not isinstance(extra, yaml.StreamEndEvent):
            raise _stop(self.file, _mark(extra), "a second document begins; there must be only one")
        if isinstance(root, Scalar) and root.value is None:
            return Mapping(root.mark, {})
        if not isinstance(root, Mapping):
            raise _stop(self.file, root.mark, "must be `key: value` lines")
        return root

    def _parsed(self, text: str) -> Iterator[Any]:
        try:
            yield from yaml.parse(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as err:
            mark = err.problem_mark or err.context_mark
            at = Mark(mark.line + 1, mark.column + 1) if mark else NOWHERE
            raise _stop(self.file, at, f"not valid YAML: {_meaning(err.problem or '')}") from None
        except (yaml.YAMLError, ValueError, OverflowError):
            raise _stop(self.file, NOWHERE, "not valid YAML") from None

    def _fault(self, mark: Mark, message: str) -> None:
        self.findings.append(Finding(self.file, mark.line, mark.column, shown(tuple(self.trail)), message))

    def _node(self, event: Any, depth: int) -> tuple[Node, int]:
        """The node that begins with `event` and its height."""
        mark = _mark(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        self._grow(1, mark)
        if depth > MAX_DEPTH:
            raise _stop(self.file, mark, f"is nested deeper than {MAX_DEPTH} levels")
        if event.tag not in (None, "tag:yaml.org,2002:str"):
            self._fault(mark, "tags are not supported; text that begins with ! must stand in quotes")
        before = self.count
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node, height = self._scalar(event, mark), 1
        elif isinstance(event, yaml.SequenceStartEvent):
            node, height = self._list(mark, depth)
        else:
            node, height = self._mapping(mark, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = (node, self.count - before + 1, height)
        return node, height

    def _grow(self, by: int, mark: Mark) -> None:
        self.count += by
        if self.count > MAX_NODES:
            raise _stop(self.file, mark, f"has more than {MAX_NODES} values, those repeated by aliases included")

    def _alias(self, event: Any, depth: int) -> tuple[Node, int]:
        mark = _mark(event)
        if event.anchor not in self.anchors:
            raise _stop(self.file, mark, "text that begins with * must stand in quotes (or the anchor is missing)")
        node, size, height = self.anchors[event.anchor]
        if depth + height > MAX_DEPTH + 1:
            raise _stop(self.file, mark, f"is nested deeper than {MAX_DEPTH} levels")
        self._grow(size, mark)
        return node, height

    def _scalar(self, event: Any, mark: Mark) -> Scalar:
        text: str = event.value
        if "\0" in text or (not text.isascii() and _UNPRINTABLE.search(text)):
            self._fault(mark, "has a character that no setting can hold")
            return Scalar(mark, "")
        if event.style or event.tag:
            return Scalar(mark, text)
        try:
            return Scalar(mark, plain(text))
        except ValueError as err:
            self._fault(mark, str(err))
            return Scalar(mark, 0)

    def _list(self, mark: Mark, depth: int) -> tuple[List, int]:
        items: list[Node] = []
        tallest = 0
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            self.trail.append(len(items))
            node, height = self._node(event, depth + 1)
            self.trail.pop()
            items.append(node)
            tallest = max(tallest, height)
        return List(mark, items), tallest + 1

    def _mapping(self, mark: Mark, depth: int) -> tuple[Mapping, int]:
        found = Mapping(mark, {})
        written: dict[str, str] = {}  # keys that look alike are one, however their accents were typed
        tallest = 0
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._key(event, depth)
            self.trail.append(key or "?")
            alike = written.setdefault(_composed(key), key) if key else ""
            if alike in found.items:
                self._fault(_mark(event), f"is written twice in one section, first in line {found.keys[alike].line}")
            node, height = self._node(next(self.events), depth + 1)
            self.trail.pop()
            tallest = max(tallest, height)
            if key is not None and alike not in found.items:
                found.items[key], found.keys[key] = node, _mark(event)
        return found, tallest + 1

    def _key(self, event: Any, depth: int) -> str | None:
        node, _ = self._node(event, depth + 1)
        key: str = event.value if isinstance(event, yaml.ScalarEvent) and isinstance(node, Scalar) else ""
        if not key or _UNPRINTABLE.search(key):
            self._fault(_mark(event), "a key must be plain text")
            return None
        return key


def shown(path: Path) -> str:
    """`path` with dots, as people read it, control characters and excess length taken out."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part[:80]}" for part in path)
    return "".join(char if char.isprintable() else "?" for char in "".join(parts).removeprefix("."))


def _composed(key: str) -> str:
    return unicodedata.normalize("NFC", key) if len(key) <= LONGEST_NAME else key
