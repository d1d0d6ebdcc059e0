"""Matrix' HTML, written from blocks, and the content of a message. Pure.

Of the tags that the specification lists it uses p, br, b, i, del, code, pre, a, h1 to h6, ul, ol, li, blockquote, hr and table.
"""

import json
import re
from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Any

from clew_transports.markup import Block, Run, by_link, plain, read
from clew_transports.text import measure

LIMIT = 20_000
"""Bytes of JSON that the words of a message may take, with their HTML.

An event may have 65,536 bytes (the specification, "Size limits"). An edit has the words twice, an encrypted one four thirds of that;
some kilobytes are the server's, for signatures and what the event refers to.
"""
MAX_DEPTH = 20
"""Lists and quotations inside one another; the specification lets clients show 100 levels of tags, and a list takes two."""

MOST_GROWTH = 16
"""Bytes that come of one of Markdown, but for tables, whose rows are filled up: control characters, and quotations in one another."""
FRAME = 100
"""Bytes of a content without words."""

_TAGS = (("bold", "b"), ("italic", "i"), ("struck", "del"), ("code", "code"))
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,20}")


def html(blocks: Sequence[Block]) -> str:
    """`blocks` in Matrix' HTML."""
    if len(blocks) == 1 and blocks[0].kind == "text" and not (blocks[0].depth or blocks[0].quotes):
        return _words(blocks[0].runs)
    return _nested(blocks, 0, 0)


def words(markdown: str) -> dict[str, Any]:
    """The content of a message that says `markdown`, as an event has it; without HTML where that adds nothing."""
    blocks = read(markdown)
    body, formatted = plain(blocks), html(blocks)
    if not body.strip():
        return unformatted(markdown)
    if formatted == _escaped(body):
        return unformatted(body)
    return {"msgtype": "m.text", "body": body, "format": "org.matrix.custom.html", "formatted_body": formatted}


def unformatted(text: str) -> dict[str, Any]:
    """The content of a message that says `text`, as it is written."""
    return {"msgtype": "m.text", "body": text}


def size(markdown: str) -> int:
    """How much of LIMIT `markdown` takes, at most: with its HTML or, should that be refused, as it is written."""
    most = MOST_GROWTH * measure(markdown, "bytes") + FRAME
    if most <= LIMIT and "|" not in markdown:
        return most  # reading it would take milliseconds, for each part
    return max(_bytes(words(markdown)), _bytes(unformatted(markdown)))


def _bytes(content: dict[str, Any]) -> int:
    return measure(json.dumps(content, ensure_ascii=False), "bytes")


def _nested(blocks: Sequence[Block], depth: int, quotes: int) -> str:
    """Blocks that stand in so many lists and quotations."""

    def inside(block: Block) -> str:
        if depth + quotes >= MAX_DEPTH:
            return ""
        return "quote" if block.quotes > quotes else "list" if block.depth > depth else ""

    written = []
    for kind, group in groupby(blocks, key=inside):
        held = list(group)
        if kind == "quote":
            written.append(f"<blockquote>{_nested(held, depth, quotes + 1)}</blockquote>")
        elif kind == "list":
            written.append(_lists(held, depth + 1, quotes))
        else:
            written += [_block(block, depth) for block in held]
    return "".join(written)


def _lists(blocks: Sequence[Block], depth: int, quotes: int) -> str:
    """What stands below lists of this depth, one after the other: dots and numbers do not mix."""
    items: list[list[Block]] = []
    for block in blocks:
        if not items or (block.label and block.depth == depth):
            items.append([])
        items[-1].append(block)
    return "".join(
        f"{opening}{''.join(f'<li>{_nested(item, depth, quotes)}</li>' for item in held)}{closing}"
        for opening, closing, held in _runs_of_items(items)
    )


def _runs_of_items(items: Sequence[list[Block]]) -> list[tuple[str, str, list[list[Block]]]]:
    found = []
    for ordered, group in groupby(items, key=lambda item: item[0].label[:1].isdigit()):
        held = list(group)
        number = held[0][0].label.strip(" .)")
        opening = ("<ol>" if number == "1" else f'<ol start="{number}">') if ordered else "<ul>"
        found.append((opening, "</ol>" if ordered else "</ul>", held))
    return found


def _block(block: Block, depth: int) -> str:
    """A block that stands in so many lists; one that is nested deeper has its label as text."""
    match block.kind:
        case "rule":
            return "<hr>"
        case "table":
            return _table(block.rows)
        case "code":
            return _code(block)
        case "heading":
            return f"<h3>{_words(block.runs)}</h3>"
    inner = _words(block.runs)
    if block.depth > depth:
        return f"<p>{_escaped(block.label)}{inner}</p>"
    return inner if block.label else f"<p>{inner}</p>"


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = "".join(_row("td", row) for row in body)
    return f"<table><thead>{_row('th', head)}</thead><tbody>{lines}</tbody></table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_escaped(cell)}</{tag}>" for cell in cells) + "</tr>"


def _code(block: Block) -> str:
    text = escape(block.text, quote=False)
    if language := _LANGUAGE.fullmatch(block.language):
        return f'<pre><code class="language-{language[0]}">{text}</code></pre>'
    return f"<pre><code>{text}</code></pre>"


def _words(runs: Sequence[Run]) -> str:
    return "".join(_led(link, "".join(map(_run, group))) for link, group in by_link(runs))


def _led(link: str, text: str) -> str:
    return f'<a href="{escape(link)}">{text}</a>' if link else text


def _run(run: Run) -> str:
    text = _escaped(run.text)
    for style, tag in _TAGS:
        if style in run.styles:
            text = f"<{tag}>{text}</{tag}>"
    return text


def _escaped(text: str) -> str:
    return escape(text, quote=False).replace("\n", "<br>")
