"""Markdown by its headings, and plain text."""

import re
from collections.abc import Iterator

from clew.context.chunks import Fences, Section
from clew.documents import Contents

PARTED = " › "
"""Between the headings that a place is under."""
LONGEST_HEADING = 120

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*\Z")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*\Z")
_LINK = re.compile(r"!?\[([^\]\n]{0,200})\]\([^)\s]{0,500}\)")


class Headings:
    """The headings that a place of a document is under, from the outermost to the innermost."""

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []

    def enter(self, level: int, heading: str) -> None:
        """Go on below a heading of this level, 1 for the outermost."""
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._path.append((level, _named(heading)))

    def name(self, heading: str) -> None:
        """Give the innermost heading, which was entered without them, its words."""
        self._path[-1] = (self._path[-1][0], _named(heading))

    @property
    def place(self) -> str:
        return PARTED.join(heading for _, heading in self._path if heading)

    def above(self, level: int) -> bool:
        """Whether a heading of this level would be a part of the innermost one."""
        return bool(self._path) and level > self._path[-1][0]

    @property
    def innermost(self) -> str:
        return self._path[-1][1] if self._path else ""


def _named(heading: str) -> str:
    return " ".join(_LINK.sub(r"\1", heading).split())[:LONGEST_HEADING]


def markdown(text: str) -> Contents:
    """The sections of a Markdown text, one for each heading; the first heading is its title."""
    sections = tuple(_sections(text.split("\n")))
    title = next((section.place.partition(PARTED)[0] for section in sections if section.place), "")
    return Contents(title, sections)


def _sections(lines: list[str]) -> Iterator[Section]:
    fences, headings = Fences(), Headings()
    held: list[str] = []
    first = 1
    for number, line in enumerate(lines, start=1):
        heading = None if fences.inside(line) else _heading(line, held)
        if heading is None:
            held.append(line)
            continue
        level, text, taken = heading
        if taken:
            held.pop()
        yield from _section(headings, held, first, alone=not headings.above(level))
        headings.enter(level, text)
        held, first = [], number + 1
    yield from _section(headings, held, first, alone=True)


def _heading(line: str, before: list[str]) -> tuple[int, str, bool] | None:
    """(level, text, whether the line before is its text) of a heading."""
    if found := _ATX.match(line):
        return len(found[1]), found[2] or "", False
    found = _SETEXT.match(line)
    if found and before and before[-1].strip() and (len(before) == 1 or not before[-2].strip()) and not _ATX.match(before[-1]):
        return (1 if found[1][0] == "=" else 2), before[-1].strip(), True
    return None


def _section(headings: Headings, lines: list[str], first: int, *, alone: bool) -> Iterator[Section]:
    """What stands below a heading; a heading with nothing below it at all is what can be found of it."""
    if any(line.strip() for line in lines):
        yield Section(headings.place, "\n".join(lines), first=first)
    elif alone and headings.innermost:
        yield Section(headings.place, headings.innermost, first=first)


def plain(text: str) -> Contents:
    """A text without headings: its places are lines."""
    return Contents("", (Section("", text),) if text.strip() else ())
