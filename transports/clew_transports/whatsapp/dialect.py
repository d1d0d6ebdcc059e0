"""WhatsApp's marks, written from blocks. Pure.

WhatsApp has *bold*, _italic_, ~struck~, `code`, ```blocks``` and > quotations. It has no escapes: where a mark of the text itself could be
taken for one, a word joiner stands between.
"""

import re
from collections.abc import Sequence

from clew_transports.markup import Block, Run, by_link, columns, joined, read
from clew_transports.text import measure

LIMIT = 4096
"""Characters of a text message."""
WIDEST_TABLE = 40
"""Columns; wider ones would be broken on a telephone."""

_MARKS = (("bold", "*"), ("italic", "_"), ("struck", "~"))
_JOINER = "\u2060"
_TAKEN = re.compile(r"(?<!\w)([*_~`])(?=\S)")
"""A mark that begins a word, which is where WhatsApp looks for them."""


def rendered(markdown: str) -> str:
    """`markdown` as WhatsApp shows it."""
    return written(read(markdown))


def written(blocks: Sequence[Block]) -> str:
    return joined(blocks, [_quoted(block, block.indent + block.label + _block(block)) for block in blocks])


def size(markdown: str) -> int:
    """Characters of what is sent."""
    return measure(rendered(markdown), "characters")


def _quoted(block: Block, text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n")) if block.quotes and block.kind not in ("code", "table") else text


def _block(block: Block) -> str:
    match block.kind:
        case "rule":
            return "———"
        case "table":
            return _fenced(columns(block.rows, WIDEST_TABLE))
        case "code":
            return _fenced(block.text)
        case "heading":
            return _styled(block.text, ("*",))
    return "".join(_led(link, "".join(map(_run, runs))) for link, runs in by_link(block.runs))


def _led(link: str, text: str) -> str:
    """WhatsApp makes links of addresses and of nothing else."""
    return f"{text} ({link})" if link and link not in text else text


def _fenced(text: str) -> str:
    return "```\n" + text.replace("```", f"``{_JOINER}`") + "\n```"


def _run(run: Run) -> str:
    if "code" in run.styles:
        return f"`{run.text}`" if "`" not in run.text and run.text.strip() else run.text
    return _styled(run.text, tuple(mark for style, mark in _MARKS if style in run.styles))


def _styled(text: str, marks: Sequence[str]) -> str:
    """A mark touches the words: white space at the ends stays outside, and no mark reaches over a line's end."""
    lines = text.split("\n")
    return "\n".join(_line(line, marks) for line in lines)


def _line(text: str, marks: Sequence[str]) -> str:
    inner = text.strip()
    if not inner:
        return text
    front, back = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    plain = _TAKEN.sub(rf"{_JOINER}\1", inner)
    if any(mark in inner for mark in marks):
        return front + plain + back  # a mark within its own kind would end it
    return front + "".join(marks) + plain + "".join(reversed(marks)) + back
