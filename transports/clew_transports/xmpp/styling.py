"""Message Styling (XEP-0393), written from blocks: *bold*, _italic_, ~struck~, `code`, ```blocks```, > quotations. Pure."""

import re
from collections.abc import Sequence

from clew_transports.markup import Block, Run, by_link, columns, joined, read

WIDEST_TABLE = 80
_MARKS = (("bold", "*"), ("italic", "_"), ("struck", "~"))


def rendered(markdown: str) -> str:
    """`markdown` in Message Styling."""
    return written(read(markdown))


def written(blocks: Sequence[Block]) -> str:
    return joined(blocks, [_quoted(block, block.indent + block.label + _block(block)) for block in blocks])


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
    return f"{text} ({link})" if link and link not in text else text


def _fenced(text: str) -> str:
    """A line of ticks in it would end the block: it is moved."""
    return "```\n" + re.sub(r"^```", " ```", text, flags=re.MULTILINE) + "\n```"


def _run(run: Run) -> str:
    if "code" in run.styles:
        return f"`{run.text}`" if "`" not in run.text and run.text.strip() == run.text else run.text
    return _styled(run.text, tuple(mark for style, mark in _MARKS if style in run.styles))


def _styled(text: str, marks: Sequence[str]) -> str:
    """Each line by itself: a mark reaches over no line's end, touches the words, and is left out where the words have it."""
    return "\n".join(_line(line, marks) for line in text.split("\n"))


def _line(text: str, marks: Sequence[str]) -> str:
    inner = text.strip()
    if not inner or any(mark in inner for mark in marks):
        return text
    front, back = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return front + "".join(marks) + inner + "".join(reversed(marks)) + back
