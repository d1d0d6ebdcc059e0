"""What both wire formats need: requests in the one shape that every API takes. Pure."""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from clew.messages import Block, Text, Thinking, ToolResult
from clew.providers import PromptMessage

PLACEHOLDER = "(empty message)"
"""Stands for a message without words where leaving it out would break the order of roles."""

Blocks = tuple[tuple[Block, bool], ...]

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Turn:
    """Neighbouring messages of one role as one: tool results first, no blank text. Each block with its cache mark."""

    role: Literal["user", "assistant"]
    blocks: Blocks


_NOTHING_SAID = Turn("user", ((Text(PLACEHOLDER), False),))


def turns(messages: tuple[PromptMessage, ...], author: str) -> list[Turn]:
    """`messages` as APIs take them: roles alternate, nothing is empty, a user's line is first and last if one was.

    author: whose thinking blocks are kept; those of others mean nothing to this model.
    """
    merged: list[Turn] = []
    for message in messages:
        blocks = _kept(message, author)
        if blocks and merged and merged[-1].role == message.role:
            blocks = (*merged.pop().blocks, *blocks)
        if blocks:
            merged.append(Turn(message.role, _results_first(blocks)))
    if messages and messages[0].role == "user" and (not merged or merged[0].role != "user"):
        merged.insert(0, _NOTHING_SAID)
    if messages and messages[-1].role == "user" and (not merged or merged[-1].role != "user"):
        merged.append(_NOTHING_SAID)
    return merged


def _kept(message: PromptMessage, author: str) -> Blocks:
    return tuple((block, index in message.marked) for index, block in enumerate(message.blocks) if _sent(block, author))


def _sent(block: Block, author: str) -> bool:
    if isinstance(block, Text):
        return bool(block.text.strip())
    return not isinstance(block, Thinking) or block.provider == author


def _results_first(blocks: Blocks) -> Blocks:
    return tuple(sorted(blocks, key=lambda each: not isinstance(each[0], ToolResult)))


def well_formed(text: str) -> str:
    """`text` as valid Unicode: halves of a surrogate pair are joined, lone ones become U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@lru_cache(maxsize=1024)
def _schema(text: str) -> dict[str, Any]:
    parsed = json.loads(text)
    if not isinstance(parsed, dict):
        raise ValueError("a tool's schema must be a JSON object")
    return parsed


def schema(text: str) -> dict[str, Any]:
    """A tool's JSON Schema, parsed once, in the order of its text; not to be changed. Raises ValueError."""
    return _schema(text)


def arguments(text: str) -> dict[str, Any]:
    """A tool call's arguments as they were written; what is not a JSON object is carried under `unparsed`."""
    try:
        parsed = json.loads(text or "{}", parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {"unparsed": well_formed(text)}
    if not isinstance(parsed, dict):
        return {"unparsed": well_formed(text)}
    if "\\ud" in text.lower():
        return json.loads(well_formed(json.dumps(parsed, ensure_ascii=False)))  # type: ignore[no-any-return]
    return parsed


def arguments_text(text: str) -> str:
    """A tool call's arguments as the text of a JSON object: `text` itself, byte for byte, wherever it is one."""
    parsed = arguments(text)
    if "unparsed" in parsed:
        return json.dumps(parsed, ensure_ascii=False)
    return well_formed(text) if text else "{}"


def words(value: Any) -> str:
    """`value` if it is a text. Raises ValueError: an SDK hands on whatever a server sends."""
    if not isinstance(value, str):
        raise ValueError(f"{type(value).__name__} where a text belongs")
    return value


def count(value: Any) -> int:
    """`value` as a number of tokens, 0 for anything that is none."""
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
