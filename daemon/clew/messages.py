"""Roles, content blocks, messages and usage: the words that every room speaks."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["user", "assistant", "tool"]

OVERHEARD = "~"
"""What `Message.turn` begins with where nobody asked clew: a line of a group that was kept."""


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


@dataclass(frozen=True, slots=True)
class File:
    """A file that came with a message; its bytes lie in the store under `hash`, their SHA-256 in hex, empty where they were not got.

    mime: what it is, by its bytes. size: bytes. width, height: of an image, pixels. pages: of a PDF of which no text could be read.
    text: what could be read of it, whole; shown: how many characters of that a model is given with the message. fault: why there is no
    more of it than its name, in words for whoever sent it.
    """

    hash: str
    name: str
    mime: str
    size: int
    text: str = ""
    shown: int = 0
    width: int = 0
    height: int = 0
    pages: int = 0
    fault: str = ""

    @property
    def line(self) -> str:
        """The file in one line."""
        noun = "image" if self.mime.startswith("image/") else "file"
        pixels = [f"{self.width}×{self.height} pixels"] if self.width else []
        facts = ", ".join([self.name, self.mime, *pixels, f"{self.size:,} bytes"])
        return f"[{noun} {facts}{f': {self.fault}' if self.fault else ''}]"

    @property
    def words(self) -> str:
        """What stands for the file where only words can."""
        return f"{self.line}\n{self.text[: self.shown]}" if self.text else self.line


Block = Text | ToolCall | ToolResult | Thinking | File

_KINDS: Mapping[str, type[Block]] = {"text": Text, "call": ToolCall, "result": ToolResult, "thinking": Thinking, "file": File}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_JSON, _ONE_TEXT = json.JSONDecoder(), '[{"kind":"text","text":"'
_TYPES: Mapping[str, type] = {"is_error": bool, **dict.fromkeys(("shown", "size", "width", "height", "pages"), int)}


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
    def overheard(self) -> bool:
        """Said in a group, and not to clew."""
        return self.turn.startswith(OVERHEARD)

    @property
    def text(self) -> str:
        """The words of the message, and of its files those that stand with it; without tool calls and results."""
        if len(self.blocks) == 1 and isinstance(only := self.blocks[0], Text):  # nearly every message
            return only.text
        words = (block.text if isinstance(block, Text) else block.words for block in self.blocks if isinstance(block, Text | File))
        return "\n".join(words)

    @property
    def files(self) -> tuple[File, ...]:
        return tuple(block for block in self.blocks if isinstance(block, File))

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


def searchable(blocks: Iterable[Block]) -> str:
    """The text by which a message is found and opened: its words, the arguments of its calls, the text of its results and files."""
    pieces = []
    for block in blocks:
        match block:
            case Text(text) | ToolResult(text=text):
                pieces.append(text)
            case ToolCall(name=name, arguments=arguments):
                pieces.append(f"{name} {arguments}")
            case File(text=text):
                pieces += [block.line, text] if text else [block.line]
    return "\n".join(pieces)


def searchable_in(text: str) -> str:
    """The same of blocks as JSON; a text alone, which nearly all messages are, is not made a block. Raises ValueError for other JSON."""
    if text.startswith(_ONE_TEXT):
        words, end = _JSON.raw_decode(text, len(_ONE_TEXT) - 1)
        if text[end:] == "}]":
            return str(words)
    return searchable(blocks_from_json(text))


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
