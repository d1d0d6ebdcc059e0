"""Telegram's HTML, written from blocks. Pure.

Of the tags of the Bot API it uses b, i, s, code, pre, a and blockquote, nested only as the API allows: code and pre in no other style,
pre in no quotation, quotations not in one another.
"""

import re
from collections.abc import Sequence
from html import escape, unescape
from itertools import groupby

from clew_transports.markup import Block, Run, by_link, columns, joined, read
from clew_transports.text import measure

LIMIT = 4096
"""UTF-16 code units of a message, counted after its entities are parsed."""

WIDEST_TABLE = 60
"""Columns; wider ones would be broken on a telephone."""

_TAGS = (("bold", "b"), ("italic", "i"), ("struck", "s"), ("code", "code"))
_TAG = re.compile(r"<[^<>]*>")
_MARKER = r"(?:[-*+]|[0-9]{1,9}[.)])(?= |$)"
_MAY_GROW = re.compile(rf"[|\t]|^[ >]*{_MARKER} *(?:$|{_MARKER}|[>#`~])", re.MULTILINE)
"""Tables, tabs, and items that are empty or begin with another block: all that can be longer on Telegram than as it is written."""
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,20}")


def html(blocks: Sequence[Block]) -> str:
    """`blocks` in Telegram's HTML."""
    groups = [list(group) for _, group in groupby(blocks, key=lambda block: block.quotes > 0 and block.kind not in ("code", "table"))]
    firsts = [group[0] for group in groups]
    return joined(firsts, [_group(group) for group in groups])


def rendered(markdown: str) -> str:
    """`markdown` in Telegram's HTML."""
    return html(read(markdown))


def visible(text: str) -> str:
    """The text of a message in HTML as Telegram counts and shows it."""
    return unescape(_TAG.sub("", text))


def size(markdown: str) -> int:
    """How much of LIMIT `markdown` takes: as it is shown, or, should its markup be refused, as it is written."""
    written = measure(markdown, "utf16")
    if not _MAY_GROW.search(markdown):
        return written  # reading it would take milliseconds, for each part
    return max(measure(visible(rendered(markdown)), "utf16"), written)


def _group(blocks: Sequence[Block]) -> str:
    text = joined(blocks, [_block(block) for block in blocks])
    quoted = blocks[0].quotes > 0 and blocks[0].kind not in ("code", "table")
    return f"<blockquote>{text}</blockquote>" if quoted else text


def _block(block: Block) -> str:
    front = block.indent + escape(block.label, quote=False)
    match block.kind:
        case "rule":
            return f"{front}———"
        case "table":
            return f"{front}<pre>{escape(columns(block.rows, WIDEST_TABLE), quote=False)}</pre>"
        case "code":
            return front + _code(block)
        case "heading":
            return front + _words([_bold(run) for run in block.runs])
    return front + _words(block.runs)


def _words(runs: Sequence[Run]) -> str:
    return "".join(_led(link, "".join(map(_run, group))) for link, group in by_link(runs))


def _led(link: str, text: str) -> str:
    return f'<a href="{escape(link)}">{text}</a>' if link else text


def _code(block: Block) -> str:
    text = escape(block.text, quote=False)
    if language := _LANGUAGE.fullmatch(block.language):
        return f'<pre><code class="language-{language[0]}">{text}</code></pre>'
    return f"<pre>{text}</pre>"


def _bold(run: Run) -> Run:
    return run if "code" in run.styles else Run(run.text, run.styles | {"bold"}, run.link)


def _run(run: Run) -> str:
    text = escape(run.text, quote=False)
    for style, tag in _TAGS:
        if style in run.styles:
            text = f"<{tag}>{text}</{tag}>"
    return text
