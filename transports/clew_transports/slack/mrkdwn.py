"""Slack's mrkdwn: written from blocks, and read as the words that a person meant. Pure.

`&`, `<` and `>` are the only characters that Slack lets one escape. All that notifies somebody is written between `<` and `>`, so no text
that went through `escaped` can.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from clew_transports.markup import Block, Run, Style, by_link, columns, joined, read
from clew_transports.text import measure

LIMIT = 4000
"""Characters of a message, escaped, that Slack neither splits nor, in chat.update, refuses. Counted here in UTF-16 units, which are never
fewer than characters."""

WIDEST_TABLE = 80
"""Columns; wider ones would be broken."""

_MARKS: tuple[tuple[Style, str], ...] = (("bold", "*"), ("italic", "_"), ("struck", "~"))
_GAP = "\u200b"
"""No width: what Slack needs between a mark and a letter or another mark beside it."""
_TOKEN = re.compile(r"<([^<>]*)>|&(?:lt|gt|amp);")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}


def escaped(text: str) -> str:
    """`text` so that Slack shows it as it is and reads no mention or link in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def mrkdwn(blocks: Sequence[Block]) -> str:
    """`blocks` in Slack's mrkdwn."""
    return joined(blocks, [_block(block) for block in blocks])


def rendered(markdown: str) -> str:
    """`markdown` in Slack's mrkdwn; where nothing of it could be seen, as it is written."""
    text = mrkdwn(read(markdown))
    return text if text.strip() else _literal(markdown)


def size(markdown: str) -> int:
    """How much of LIMIT `markdown` takes, escaped and all."""
    return measure(rendered(markdown), "utf16")


def words(text: str, names: Mapping[str, str]) -> str:
    """What a message in mrkdwn says. names: of users, by their ids."""
    return _TOKEN.sub(lambda found: _ENTITIES.get(found[0]) or _said(found[1], names), text)


def _said(inside: str, names: Mapping[str, str]) -> str:
    """A mention, a link or a date, as it is read aloud."""
    target, _, label = inside.partition("|")
    target, label = unescaped(target), unescaped(label)
    match target[:1]:
        case "@":
            return f"@{names.get(target[1:]) or label or target[1:]}"
        case "#":
            return f"#{label or target[1:]}"
        case "!":
            word = target[1:].partition("^")[0]
            return label if word in ("subteam", "date") and label else f"@{label.removeprefix('@') or word}"
    address = target.removeprefix("mailto:")
    return f"{label} ({target})" if label and label not in (target, address) and not address.endswith(f"//{label}") else address


def unescaped(text: str) -> str:
    return re.sub("&(?:lt|gt|amp);", lambda found: _ENTITIES[found[0]], text)


def _block(block: Block) -> str:
    front = block.indent + escaped(block.label)
    match block.kind:
        case "rule":
            text = f"{front}———"
        case "table":
            text = front + _fenced(columns(block.rows, WIDEST_TABLE))
        case "code":
            return front + _fenced(block.text)  # a quotation mark in front of each line would be part of the code
        case "heading":
            text = front + _words([run if "code" in run.styles else replace(run, styles=run.styles | {"bold"}) for run in block.runs])
        case _:
            text = front + _words(block.runs)
    return "\n".join(f"> {line}" for line in text.split("\n")) if block.quotes and block.kind != "table" else text


def _fenced(text: str) -> str:
    return f"```\n{_literal(text)}\n```"


def _literal(text: str) -> str:
    """`text` escaped. Three ticks of its own, which would begin or end a block of code, are parted."""
    return re.sub("`{3,}", lambda found: _GAP.join(found[0]), escaped(text))


def _words(runs: Sequence[Run]) -> str:
    """The runs one behind the other, a gap between a mark and what stands beside it."""
    text, was_marked = "", False
    for link, group in by_link(runs):
        for piece, marked in [(_link(link, group), False)] if link else [_styled(run) for run in group]:
            ticks = text.endswith("`") and piece.startswith("`")  # three of them would begin a block of code
            if ticks or ((marked or was_marked) and _sticks(text[-1:]) and _sticks(piece[:1])):
                text += _GAP
            text, was_marked = text + piece, marked
    return text


def _sticks(char: str) -> bool:
    """Whether a mark beside this character would not be taken for one."""
    return char.isalnum() or char in ("*", "_", "~", "`")


def _link(link: str, runs: Sequence[Run]) -> str:
    address = "".join(_encoded(char) for char in link)
    label = " ".join(_literal("".join(run.text for run in runs)).replace("|", "¦").split())
    return f"<{address}|{label}>" if label and label != address else f"<{address}>"


def _encoded(char: str) -> str:
    """What would end the address in a link, in the form that means the same there."""
    return {"&": "&amp;", "<": "%3C", ">": "%3E", "|": "%7C"}.get(char) or ("%20" if char.isspace() else char)


def _styled(run: Run) -> tuple[str, bool]:
    """A run with its marks, line by line, and whether it has any. What holds a mark itself goes without: it cannot be escaped."""
    if "code" in run.styles:
        text = _literal(run.text)
        return (f"`{text}`", True) if "`" not in text and "\n" not in text and text.strip() else (text, False)
    marks = [mark for style, mark in _MARKS if style in run.styles and mark not in run.text]
    if not marks or not run.text.strip():
        return _literal(run.text), False
    return "\n".join(_marked(line, "".join(marks)) for line in run.text.split("\n")), True


def _marked(line: str, marks: str) -> str:
    inner = line.strip()
    if not inner:
        return line
    start = line.index(inner)
    return line[:start] + marks + _literal(inner) + marks[::-1] + line[start + len(inner) :]
