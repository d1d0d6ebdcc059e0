"""Printing: tables, JSON, times, and text of others made harmless for a terminal."""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import click

WIDEST_COLUMN = 60
"""Columns of a table's cell; longer text is cut."""
LONGEST_SEQUENCE = 256
"""Characters that an unfinished control sequence is waited for."""

# ECMA-48: CSI with parameters; OSC, DCS, SOS, PM and APC up to their terminator; other escapes of two or three characters.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
)
_UNFINISHED = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*\Z|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*\x1b?\Z|\x1b[ -/]*\Z")
# Controls but tab and newline; marks that turn the direction of what follows; lone surrogates.
_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NOT_IN_A_NAME = re.compile(f"{_UNWANTED.pattern}|[\t\n\u2028\u2029]")


def harmless(text: str) -> str:
    """`text` without control sequences, so that nothing written by others moves the cursor, sets titles or hides words."""
    return _UNWANTED.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n")))


def escaped(name: str) -> str:
    """`name` on one line, as `harmless`, with an escape such as `\\x1b` for each character that has no place in it: names stay apart."""
    return _NOT_IN_A_NAME.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), name)


class Filter:
    """`harmless` for text that comes in pieces: a sequence that is cut in two is removed too."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What may be shown now that `piece` came."""
        text = self._held + piece
        cut = _UNFINISHED.search(text)
        self._held = text[cut.start() :] if cut and len(text) - cut.start() <= LONGEST_SEQUENCE else ""
        return harmless(text[: len(text) - len(self._held)])


def width(text: str) -> int:
    """Columns of a terminal that `text` takes."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns with their headings. Nothing is printed without rows."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        return
    widths = [max(map(width, column)) for column in zip(headings, *cells, strict=True)]
    for row in [list(headings), *cells]:
        padded = (cell + " " * (size - width(cell)) for cell, size in zip(row, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def _cell(value: object) -> str:
    text = value.strftime("%Y-%m-%d %H:%M") if isinstance(value, datetime) else "" if value is None else str(value)
    line = " ".join(harmless(text).split())
    return line if len(line) <= WIDEST_COLUMN else line[: WIDEST_COLUMN - 1] + "…"


def nothing(text: str) -> None:
    """Say on stderr that a listing is empty, so that stdout stays empty for scripts."""
    click.echo(text, err=True)


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
