"""What both wire formats need: requests in the one shape that every API takes. Pure."""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from clew.messages import Block, Thinking
from clew.providers import PromptMessage

Blocks = tuple[tuple[Block, bool], ...]

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Turn:
    """Neighbouring messages of one role as one. Each block with its cache mark."""

    role: Literal["user", "assistant"]
    blocks: Blocks


def turns(messages: tuple[PromptMessage, ...], author: str) -> list[Turn]:
    """The messages of a sound request (see `context.rules`), so that roles alternate.

    author: whose thinking blocks are kept; those of others mean nothing to this model.
    """
    merged: list[Turn] = []
    for message in messages:
        blocks = tuple((block, index in message.marked) for index, block in enumerate(message.blocks) if _is_for(author, block))
        if merged and merged[-1].role == message.role:
            blocks = (*merged.pop().blocks, *blocks)
        merged.append(Turn(message.role, blocks))
    return merged


def _is_for(author: str, block: Block) -> bool:
    return not isinstance(block, Thinking) or block.provider == author


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
