"""Discord's own Markdown, written from blocks. Pure.

It uses bold, italics, strike-through, code, links, quotations, lists and one size of headings. Every other mark that a text holds is
escaped, so that it is shown and starts nothing: Discord has marks that Markdown does not have (underlines, spoilers, mentions, times).
"""

import re
from collections.abc import Sequence
from itertools import groupby

from clew_transports.markup import Block, Run, by_link, columns, joined, read
from clew_transports.text import measure

LIMIT = 2000
"""Characters of a message, as Discord counts them: code points, marks included."""
WIDEST_TABLE = 60
"""Columns; wider ones would be broken on a telephone."""
DEEPEST = 8
"""Levels of lists that are told apart."""

_MARKS = (("bold", "**"), ("italic", "*"), ("struck", "~~"))
_GAP = "\u200b"
"""Between what would start or end something together: it is not seen."""
_SPECIAL = re.compile(r"[\\*_~`|<\[\]]")
_START = re.compile(r"^([ \t]*)(?:([0-9]{1,9})(?=[.)](?: |$))|(?=>|#{1,3}(?: |$)|[-+](?:#? |$)))", re.MULTILINE)
"""Where a line would begin a list, a heading or a quotation."""
_ADDRESS = re.compile(r"https?://[^\s<>]+")
_BEHIND_ADDRESS = ".,:;!?\"'*_~`|"
_LANGUAGE = re.compile(r"[A-Za-z0-9_+.#-]{1,20}")
_LOOKS_LIKE_ADDRESS = re.compile(r"https?:|www\.|[A-Za-z0-9-]\.[A-Za-z]{2,}", re.IGNORECASE)
"""Words that Discord does not let lead elsewhere than they say."""
_ENCODED = {ord(each): f"%{ord(each):02X}" for each in "*~`|\\()<>"}


def markdown(blocks: Sequence[Block]) -> str:
    """`blocks` in Discord's Markdown."""
    groups = [list(group) for _, group in groupby(blocks, key=_is_quoted)]
    return joined([group[0] for group in groups], [_group(group) for group in groups])


def rendered(text: str) -> str:
    """`text`, Markdown as models write it, in Discord's."""
    return markdown(read(text))


def size(text: str) -> int:
    """How much of LIMIT `text` takes."""
    return measure(rendered(text), "characters")


def _is_quoted(block: Block) -> bool:
    return block.quotes > 0 and block.kind not in ("code", "table")


def _group(blocks: Sequence[Block]) -> str:
    text = joined(blocks, [_block(block) for block in blocks])
    return "\n".join(f"> {line}" for line in text.split("\n")) if _is_quoted(blocks[0]) else text


def _block(block: Block) -> str:
    front = "  " * min(max(block.depth - 1, 0), DEEPEST) + block.label.replace("• ", "- ").replace(")", ".")
    match block.kind:
        case "rule":
            return f"{front}———"
        case "table":
            return _below(front, _fenced(columns(block.rows, WIDEST_TABLE), ""))
        case "code":
            return _below(front, _fenced(block.text, block.language))
        case "heading" if not (front or block.quotes or "\n" in block.text):
            return f"### {_words(block.runs)}"
        case "heading":
            return front + _words([_bold(run) for run in block.runs])
    return front + _words(block.runs)


def _below(front: str, fence: str) -> str:
    """Code begins a line; what a list puts in front stands above it."""
    return f"{front.rstrip()}\n{fence}" if front.strip() else fence


def _fenced(code: str, language: str) -> str:
    inside = re.sub("``(?=`)", f"``{_GAP}", code)  # three would end it, and nothing can be escaped there
    named = match[0] if (match := _LANGUAGE.fullmatch(language)) else ""
    return f"```{named}\n{inside if inside.strip() else _GAP}\n```"


def _bold(run: Run) -> Run:
    return run if "code" in run.styles else Run(run.text, run.styles | {"bold"}, run.link)


def _words(runs: Sequence[Run]) -> str:
    text = ""
    for link, group in by_link(runs):
        text = _beside(text, _linked(link, group) if link else _styled(group))
    return _START.sub(lambda match: f"{match[0]}\\", text)


def _beside(left: str, right: str) -> str:
    """Both, with a gap where the end of one and the beginning of the other would be read as one mark."""
    return left + _GAP + right if left and right and left[-1] in "*~`" and right[0] == left[-1] else left + right


def _linked(link: str, runs: Sequence[Run]) -> str:
    words = "".join(run.text for run in runs).strip()
    if not link.startswith(("http://", "https://")):
        address = link.removeprefix("mailto:")
        return _styled(runs) + ("" if words in (link, address) else f" ({_escaped(address)})")
    if words in ("", link):
        return _bare(link)
    if _LOOKS_LIKE_ADDRESS.search(words):
        return f"{_styled(runs)} ({_bare(link)})"
    label = [Run(" ".join(run.text.translate({91: "(", 93: ")"}).split("\n")), run.styles) for run in runs]
    return f"[{_styled(label)}]({link.translate(_ENCODED)})"


def _bare(address: str) -> str:
    return f"<{address.translate(_ENCODED | {40: '(', 41: ')'})}>"


def _styled(runs: Sequence[Run]) -> str:
    """Marks stand close to words, white space outside of them; styles that go on from run to run are not closed."""
    text, space = "", ""
    opened: list[str] = []
    for run in runs:
        body = run.text.strip()
        if not body:
            space += run.text
            continue
        marks = [mark for style, mark in _MARKS if style in run.styles]
        kept = 0
        while kept < min(len(opened), len(marks)) and opened[kept] == marks[kept]:
            kept += 1
        text = _beside(text, "".join(reversed(opened[kept:])))
        text += space + run.text[: len(run.text) - len(run.text.lstrip())]
        words = _code(body) if "code" in run.styles else _escaped(body)
        text = _beside(text, _beside("".join(marks[kept:]), words))
        opened, space = marks, run.text[len(run.text.rstrip()) :]
    return _beside(text, "".join(reversed(opened))) + space


def _code(text: str) -> str:
    inside = re.sub("`(?=`)", f"`{_GAP}", " ".join(text.split("\n")))
    if "`" not in inside:
        return f"`{inside}`"
    return f"``{' ' if inside[0] == '`' else ''}{inside}{' ' if inside[-1] == '`' else ''}``"


def _escaped(text: str) -> str:
    found, at = "", 0
    for match in _ADDRESS.finditer(text):
        address = _trimmed(match[0])
        found += _SPECIAL.sub(r"\\\g<0>", text[at : match.start()]) + _bare(address)
        at = match.start() + len(address)
    return found + _SPECIAL.sub(r"\\\g<0>", text[at:])


def _trimmed(address: str) -> str:
    """An address without what more likely belongs to the sentence around it."""
    while address[-1] in _BEHIND_ADDRESS or (address[-1] == ")" and address.count(")") > address.count("(")):
        address = address[:-1]
    return address
