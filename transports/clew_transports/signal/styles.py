"""Signal's text and its styles, written from blocks. Pure.

Signal has no marks: styles are ranges of the text, in UTF-16 units. Of its styles BOLD, ITALIC, STRIKETHROUGH and MONOSPACE are used.
"""

from collections.abc import Sequence

from clew_transports.markup import Block, Run, by_link, columns, read
from clew_transports.text import measure

LIMIT = 2000
"""Bytes of a message; what is longer comes as a file."""
WIDEST_TABLE = 40
"""Columns; wider ones would be broken on a telephone."""

_STYLES = (("bold", "BOLD"), ("italic", "ITALIC"), ("struck", "STRIKETHROUGH"), ("code", "MONOSPACE"))


class _Writer:
    """Text that grows, and the ranges of its styles."""

    def __init__(self) -> None:
        self.text = ""
        self.ranges: list[str] = []
        self._units = 0

    def add(self, text: str, *styles: str) -> None:
        length = measure(text, "utf16")
        if text.strip():
            self.ranges += [f"{self._units}:{length}:{style}" for style in styles]
        self.text += text
        self._units += length


def rendered(markdown: str) -> tuple[str, tuple[str, ...]]:
    """`markdown` as text and its styles, each `start:length:STYLE`."""
    return written(read(markdown))


def written(blocks: Sequence[Block]) -> tuple[str, tuple[str, ...]]:
    writer = _Writer()
    for number, block in enumerate(blocks):
        writer.add("" if number == 0 else "\n\n" if block.apart else "\n")
        writer.add(("> " * block.quotes if block.kind not in ("code", "table") else "") + block.indent + block.label)
        _block(writer, block)
    return writer.text, tuple(writer.ranges)


def size(markdown: str) -> int:
    """Bytes of what is sent."""
    return measure(rendered(markdown)[0], "bytes")


def _block(writer: _Writer, block: Block) -> None:
    match block.kind:
        case "rule":
            writer.add("———")
        case "table":
            writer.add(columns(block.rows, WIDEST_TABLE), "MONOSPACE")
        case "code":
            writer.add(block.text, "MONOSPACE")
        case "heading":
            writer.add(block.text, "BOLD")
        case _:
            for link, runs in by_link(block.runs):
                _led(writer, link, runs)


def _led(writer: _Writer, link: str, runs: Sequence[Run]) -> None:
    """Signal makes links of addresses and of nothing else."""
    for run in runs:
        writer.add(run.text, *(style for name, style in _STYLES if name in run.styles))
    if link and link not in "".join(run.text for run in runs):
        writer.add(f" ({link})")
