"""The marks that several platforms share, written from blocks: *bold*, _italic_, ~struck~, `code`, ```blocks```, > quotations. Pure."""

import re
from collections.abc import Callable, Sequence

from clew_transports.markup import Block, Run, by_link, columns, joined, read

_MARKS = (("bold", "*"), ("italic", "_"), ("struck", "~"))


def rendered(markdown: str, widest_table: int, guarded: Callable[[str], str] = str) -> str:
    """`markdown` with these marks.

    widest_table: columns; a wider one is not lined up. guarded: words such that no letter of theirs is taken for a mark, where the
    platform needs that.
    """
    return _Writer(widest_table, guarded).written(read(markdown))


class _Writer:
    def __init__(self, widest_table: int, guarded: Callable[[str], str]) -> None:
        self._widest_table = widest_table
        self._guarded = guarded

    def written(self, blocks: Sequence[Block]) -> str:
        return joined(blocks, [_quoted(block, block.indent + block.label + self._block(block)) for block in blocks])

    def _block(self, block: Block) -> str:
        match block.kind:
            case "rule":
                return "———"
            case "table":
                return _fenced(columns(block.rows, self._widest_table))
            case "code":
                return _fenced(block.text)
            case "heading":
                return self._styled(block.text, ("*",))
        return "".join(_led(link, "".join(map(self._run, runs))) for link, runs in by_link(block.runs))

    def _run(self, run: Run) -> str:
        if "code" in run.styles:
            return f"`{run.text}`" if "`" not in run.text and run.text.strip() == run.text else run.text
        return self._styled(run.text, tuple(mark for style, mark in _MARKS if style in run.styles))

    def _styled(self, text: str, marks: Sequence[str]) -> str:
        """Each line by itself: no mark reaches over a line's end."""
        return "\n".join(self._line(line, marks) for line in text.split("\n"))

    def _line(self, text: str, marks: Sequence[str]) -> str:
        """A mark touches the words, and is left out where they have it."""
        inner = text.strip()
        front, back = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        if not inner or any(mark in inner for mark in marks):
            marks = ()
        return front + "".join(marks) + self._guarded(inner) + "".join(reversed(marks)) + back if inner else text


def _quoted(block: Block, text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n")) if block.quotes and block.kind not in ("code", "table") else text


def _led(link: str, text: str) -> str:
    """These platforms make links of addresses and of nothing else."""
    return f"{text} ({link})" if link and link not in text else text


def _fenced(text: str) -> str:
    """Ticks in it would end the block: they are parted."""
    return "```\n" + re.sub(r"```", "``\u2060`", text) + "\n```"
