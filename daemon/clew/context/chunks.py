"""A document cut into pieces that are found and quoted by themselves: by its own structure, never inside a code fence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

LONGEST = 1200
"""Characters of a piece: two or three paragraphs, of which a prompt has room for a few."""
LONGEST_FENCE = 4000
"""Characters of a block of code that stays whole; a longer one is cut between its lines, and each part is fenced."""

_FENCE = re.compile(r"[ \t]*(?:(`{3,})[^`\n]*|(~{3,})[^\n]*)\Z")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a document under one heading or on one page.

    place: what it is cited by, such as `Watering › Roses` or `page 3`; where it is empty, pieces are cited by the number of the line
    (or paragraph, by `unit`) that they begin with. first: the number of its first one.
    """

    place: str
    text: str
    unit: Literal["line", "paragraph"] = "line"
    first: int = 1


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document. place: what it is cited by."""

    place: str
    text: str


class Fences:
    """Which lines of a text stand in a fenced block of code, fed one by one. mark: of the block that is open, empty where none is."""

    def __init__(self) -> None:
        self.mark = ""

    def inside(self, line: str) -> bool:
        """Whether `line`, the next one, belongs to a fenced block; its first and last line do."""
        mark = fence(line)
        if not self.mark:
            self.mark = mark
            return bool(mark)
        if mark and mark[0] == self.mark[0] and len(mark) >= len(self.mark) and line.strip(" \t") == mark:
            self.mark = ""
        return True


def fence(line: str) -> str:
    """The marks with which a line opens or closes a block of code, empty where it does not."""
    found = _FENCE.match(line)
    return (found[1] or found[2]) if found else ""


@dataclass(frozen=True, slots=True)
class _Block:
    """A paragraph or a whole fenced block. line: counted from the section's first one."""

    line: int
    text: str
    fenced: bool


def chunks(sections: Iterable[Section], longest: int = LONGEST) -> list[Chunk]:
    """The pieces of a document in order. Each lies in one section and has at most `longest` characters, blocks of code apart.

    Nothing but blank lines and spaces is left out.
    """
    return [piece for section in sections for piece in _of_section(section, longest)]


def _of_section(section: Section, longest: int) -> Iterator[Chunk]:
    held: list[_Block] = []
    size = 0
    for block in _fitting(section.text, longest):
        if held and size + 2 + len(block.text) > longest:
            yield _chunk(section, held)
            held, size = [], 0
        size += len(block.text) + (2 if held else 0)
        held.append(block)
    if held:
        yield _chunk(section, held)


def _chunk(section: Section, blocks: Sequence[_Block]) -> Chunk:
    place = section.place or f"{section.unit} {section.first + blocks[0].line}"
    return Chunk(place, "\n\n".join(block.text for block in blocks))


def _fitting(text: str, longest: int) -> Iterator[_Block]:
    """The blocks of a section, long ones in parts."""
    for block in _blocks(text):
        if len(block.text) <= (LONGEST_FENCE if block.fenced else longest):
            yield block
        elif block.fenced:
            yield from _fenced_parts(block)
        else:
            for line, part in _parts(block.text, longest):
                yield _Block(block.line + line, part, fenced=False)


def _blocks(text: str) -> Iterator[_Block]:
    fences = Fences()
    held: list[str] = []
    start = 0
    for number, line in enumerate(text.split("\n")):
        before = fences.mark
        inside = fences.inside(line)
        if held and ((inside and not before) or not (inside or line.strip())):
            yield _Block(start, "\n".join(held), fenced=False)
            held = []
        if inside or line.strip():
            if not held:
                start = number
            held.append(line.rstrip())
        if inside and not fences.mark:  # its last line
            yield _Block(start, "\n".join(held), fenced=True)
            held = []
    if held:
        yield _Block(start, "\n".join(held), fenced=bool(fences.mark))


def _fenced_parts(block: _Block) -> Iterator[_Block]:
    """A long block of code in parts, each with the fence around it."""
    opening, *inner = block.text.split("\n")
    mark = fence(opening)
    if inner and inner[-1].strip(" \t").startswith(mark) and fence(inner[-1]):
        inner.pop()
    opening = opening[:LONGEST]
    room = LONGEST_FENCE - len(opening) - len(mark) - 2
    for line, part in _parts("\n".join(inner), max(room, LONGEST)):
        yield _Block(block.line + 1 + line, f"{opening}\n{part}\n{mark}", fenced=True)


def _parts(text: str, longest: int) -> Iterator[tuple[int, str]]:
    """A text in parts of at most `longest` characters, each with the line it begins in: cut between lines, else sentences, else words."""
    held: list[str] = []
    start, size = 0, 0
    for number, line in enumerate(text.split("\n")):
        for piece in _cut(line, longest):
            if held and size + 1 + len(piece) > longest:
                yield start, "\n".join(held)
                held, size = [], 0
            if not held:
                start = number
            size += len(piece) + (1 if held else 0)
            held.append(piece)
    if any(held):
        yield start, "\n".join(held)


def _cut(line: str, longest: int) -> Iterator[str]:
    """A line in parts: each ends with its last sentence or, where there is none, at its last space, else anywhere."""
    start = 0
    while len(line) - start > longest:
        window = line[start : start + longest]
        ends = [found.end() for found in _SENTENCE_END.finditer(window, longest // 2)]
        at = ends[-1] if ends else max(window.rfind(" ", longest // 2), 0) or longest
        yield window[:at].rstrip()
        start += at
        while start < len(line) and line[start] == " ":
            start += 1
    yield line[start:]
