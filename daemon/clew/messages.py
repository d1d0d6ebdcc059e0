"""Roles, content blocks, messages and usage: the words that every room speaks."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text, as written."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asked for. `arguments` is the JSON text as the model wrote it: re-rendering it would break a prompt cache."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered to the call `call_id`. `shown`: characters of it that a model sees, None for all."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    shown: int | None = None


@dataclass(frozen=True, slots=True)
class Thinking:
    """A block only its own provider understands (JSON in `data`). Replayed inside its turn, never after it."""

    provider: str
    data: str


Block = Text | ToolCall | ToolResult | Thinking

_KINDS: Mapping[str, type[Block]] = {"text": Text, "call": ToolCall, "result": ToolResult, "thinking": Thinking}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_TYPES: Mapping[str, type] = {"is_error": bool, "shown": int}


@dataclass(frozen=True, slots=True)
class Message:
    """One row of a transcript.

    id: 12 base32 characters, unique in the store. seq: position in its session, from 1. at: seconds since the epoch, UTC.
    sender: the person's id, empty for the model. sender_name: what to call them. turn: id of the turn that wrote it.
    damaged: some of its blocks could not be read and are left out.
    """

    id: str
    seq: int
    role: Role
    blocks: tuple[Block, ...]
    at: float
    sender: str = ""
    sender_name: str = ""
    turn: str = ""
    damaged: bool = False

    @property
    def text(self) -> str:
        """The words of the message, without tool calls and results."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolResult))


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more model calls. `input` is what was neither read from nor written to a prompt cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def prompt(self) -> int:
        """All tokens that were sent."""
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


def blocks_to_json(blocks: Iterable[Block]) -> str:
    """Blocks as one line of JSON, the form they are stored in."""
    return json.dumps(
        [{"kind": _NAMES[type(block)], **_fields(block)} for block in blocks],
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _fields(block: Block) -> dict[str, object]:
    return {name: value for name in block.__slots__ if (value := getattr(block, name)) is not None}


def blocks_from_json(text: str) -> tuple[Block, ...]:
    """The inverse of `blocks_to_json`. Raises ValueError for anything else."""
    return tuple(map(_block, _items(text)))


def readable_blocks(text: str) -> tuple[Block, ...]:
    """What can be read of damaged blocks: any text gives some or none."""
    kept: list[Block] = []
    with suppress(ValueError):
        for item in _items(text):
            with suppress(ValueError):
                kept.append(_block(item))
    return tuple(kept)


def _items(text: str) -> list[Any]:
    try:
        items = json.loads(text)
    except RecursionError:
        raise ValueError("content blocks are nested too deeply") from None
    if not isinstance(items, list):
        raise ValueError("content blocks are a list")
    return items


def _block(item: Any) -> Block:
    match item:
        case {"kind": "text", "text": str(words)} if len(item) == 2:  # nearly every block
            return Text(words)
    name = item.pop("kind", None) if isinstance(item, dict) else None
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError("unknown kind of content block")
    if not all(type(value) is _TYPES.get(field, str) for field, value in item.items()):
        raise ValueError("a content block of another shape")
    try:
        return kind(**item)
    except TypeError:
        raise ValueError("a content block of another shape") from None
