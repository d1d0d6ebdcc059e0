"""One model call, in nobody's wire format."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from clew.messages import Block

Purpose = Literal["reply", "summary", "notes"]
SystemKind = Literal["base", "notes", "summary", "recall"]
Ttl = Literal["5m", "1h"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it. `schema` is a JSON Schema of its arguments, as JSON text."""

    name: str
    description: str
    schema: str


@dataclass(frozen=True, slots=True)
class SystemBlock:
    """A part of the system prompt. Every part but the first begins with one blank line, so that joining them is concatenation."""

    kind: SystemKind
    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message as it is sent: `user` (words, or tool results first) or `assistant`.

    marked: indexes of blocks that carry a cache marker. recall: index of the block that holds recalled text, if one does.
    """

    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]
    marked: tuple[int, ...] = ()
    recall: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One model call, in nobody's wire format.

    tools are sorted by name. max_tokens: upper bound of the reply, tokens. cache_ttl: lifetime of every marker, None for none.
    cache_key: stable name of the conversation for providers that route by it. files: bytes in base64 of its files, by their hash, put in
    when it is sent.
    """

    system: tuple[SystemBlock, ...]
    messages: tuple[PromptMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = 4096
    purpose: Purpose = "reply"
    cache_ttl: Ttl | None = None
    cache_key: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def system_text(self) -> str:
        """The system prompt for providers without blocks."""
        return "".join(block.text for block in self.system)
