"""Markdown as models write it, read into blocks of styled runs, from which each platform's dialect is written. Pure.

A dialect is a function from blocks to a string: `plain` here, `telegram.html` for Telegram. It writes what its platform can show
and nothing else, so that no mark of the model's reaches a platform unescaped.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_NESTING = 100
"""Lists and quotes inside one another. What is nested deeper is taken as text without markup."""

SAFE_LINKS = ("http://", "https://", "mailto:")
"""Addresses that stay links. Others could notify people (tg://user) or start programs; their text stays."""

Style = Literal["bold", "italic", "struck", "code"]

# Off: indented code, so that a nested item at the head of a part is no code; definitions of links, which would vanish from parts that
# do not use them; HTML, which is text.
_PARSER = (
    MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING})
    .enable(["table", "strikethrough"])
    .disable(["code", "reference", "html_block", "html_inline"])
)
_STYLES: dict[str, Style] = {"strong": "bold", "em": "italic", "s": "struck"}


@dataclass(frozen=True, slots=True)
class Run:
    """Words of one look. `link`: where they lead; empty for nowhere. Code is never part of a link or of another style."""

    text: str
    styles: frozenset[Style] = frozenset()
    link: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a heading, a piece of code, a table or a rule.

    runs: its words (of code one run). rows: a table's cells. label: what a list puts in front, such as `• ` or `3. `. depth: in how
    many lists, quotes: in how many quotations it stands. language: of code. apart: a blank line is in front of it.
    """

    kind: Literal["text", "heading", "code", "table", "rule"]
    runs: tuple[Run, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    label: str = ""
    depth: int = 0
    quotes: int = 0
    language: str = ""
    apart: bool = True

    @property
    def indent(self) -> str:
        return "  " * max(self.depth - 1, 0)

    @property
    def text(self) -> str:
        """The words without their looks."""
        return "".join(run.text for run in self.runs)


def read(markdown: str) -> tuple[Block, ...]:
    """The blocks of `markdown`, in order."""
    tokens = _PARSER.parse(markdown)
    if any(token.level >= MAX_NESTING - 2 for token in tokens):
        return (Block("text", (Run(markdown),)),)
    reader = _Reader()
    for token in tokens:
        reader.take(token)
    return tuple(reader.blocks)


def plain(blocks: Sequence[Block]) -> str:
    """The dialect of platforms without markup: words, labels of lists, addresses behind the words that led to them."""
    return joined(blocks, [block.indent + block.label + _plain(block) for block in blocks])


def joined(blocks: Sequence[Block], written: Sequence[str]) -> str:
    """`written`, one for each block, with the blank lines that stood between them."""
    gaps = ["" if number == 0 else "\n\n" if block.apart else "\n" for number, block in enumerate(blocks)]
    return "".join(gap + text for gap, text in zip(gaps, written, strict=True))


def columns(rows: Sequence[Sequence[str]], widest: int) -> str:
    """A table in letters of one width; with bars only where it would be wider than `widest` columns."""
    count = max(map(len, rows))
    full = [[*row, *[""] * (count - len(row))] for row in rows]
    widths = [max(_width(row[index]) for row in full) for index in range(count)]
    if sum(widths) + 3 * (count - 1) > widest:
        return "\n".join(" | ".join(row).rstrip() for row in full)
    return "\n".join(
        " | ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip() for row in full
    )


def _width(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in text if unicodedata.category(char)[0] != "M")


def _plain(block: Block) -> str:
    match block.kind:
        case "rule":
            return "———"
        case "table":
            return "\n".join(" | ".join(row) for row in block.rows)
    return "".join(_led(link, "".join(run.text for run in runs)) for link, runs in by_link(block.runs))


def by_link(runs: Sequence[Run]) -> list[tuple[str, list[Run]]]:
    """Neighbouring `runs` that lead to the same place, empty for nowhere."""
    return [(link, list(group)) for link, group in groupby(runs, key=lambda run: run.link)]


def _led(link: str, text: str) -> str:
    return f"{text} ({link})" if link and link not in text else text


@dataclass
class _Reader:
    """Takes the parser's tokens one after the other."""

    blocks: list[Block] = field(default_factory=list)
    _depth: int = 0
    _quotes: int = 0
    _label: str = ""
    _heading: bool = False
    _rows: list[list[str]] | None = None
    _place: list[int] | None = None
    _end: int = 0

    def take(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self._flush_label()
                self._depth += 1
            case "bullet_list_close" | "ordered_list_close":
                self._depth -= 1
            case "list_item_open":
                self._label = f"{token.info}{token.markup} " if token.info else "• "
                self._place = [token.map[0], token.map[0] + 1] if token.map else None
            case "list_item_close":
                self._flush_label()
            case "blockquote_open":
                self._quotes += 1
            case "blockquote_close":
                self._flush_label()
                self._quotes -= 1
            case "heading_open":
                self._heading = True
            case "heading_close":
                self._heading = False
            case "table_open":
                self._rows, self._place = [], token.map
            case "tr_open" if self._rows is not None:
                self._rows.append([])
            case "table_close" if self._rows is not None:
                self._add(Block("table", rows=tuple(map(tuple, self._rows))), self._place)
                self._rows = None
            case "inline":
                self._inline(token)
            case "fence" | "code_block":
                language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
                self._add(Block("code", (Run(token.content.removesuffix("\n")),), language=language), token.map)
            case "hr":
                self._add(Block("rule"), token.map)

    def _inline(self, token: Token) -> None:
        runs = _runs(token.children or [])
        if self._rows is not None:
            self._rows[-1].append("".join(run.text for run in runs).replace("\n", " "))
        else:
            self._add(Block("heading" if self._heading else "text", runs), token.map)

    def _flush_label(self) -> None:
        """An item that begins with another list, or with nothing, keeps its label."""
        if self._label:
            self._add(Block("text"), self._place)

    def _add(self, block: Block, place: list[int] | None) -> None:
        """`place`: the block's first line, and the one behind its last."""
        start, end = place or (self._end, self._end)
        block = replace(block, label=self._label, depth=self._depth, quotes=self._quotes, apart=start > self._end)
        self.blocks.append(block)
        self._label, self._end = "", end


def _runs(tokens: Sequence[Token]) -> tuple[Run, ...]:
    found: list[Run] = []
    styles: list[Style] = []
    link = ""
    for token in tokens:
        name, _, edge = token.type.rpartition("_")
        if name in _STYLES:
            styles.append(_STYLES[name]) if edge == "open" else styles.remove(_STYLES[name])
        elif token.type == "link_open":
            link = _safe(str(token.attrs.get("href", "")))
        elif token.type == "link_close":
            link = ""
        elif token.type == "image":
            address = str(token.attrs.get("src", ""))
            found.append(Run(token.content or address, frozenset(styles), link or _safe(address)))
        elif token.type == "code_inline":
            found.append(Run(token.content, frozenset(), link) if link else Run(token.content, frozenset({"code"})))
        else:
            text = "\n" if token.type in ("softbreak", "hardbreak") else token.content
            found.append(Run(text, frozenset(styles), link))
    return tuple(run for run in found if run.text)


def _safe(address: str) -> str:
    return address if address.lower().startswith(SAFE_LINKS) else ""
