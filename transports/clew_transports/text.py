"""Cutting a text into parts that fit a platform."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from clew.transport import Part

Unit = Literal["characters", "utf16", "bytes"]

MIN_LIMIT = 100
"""The smallest limit, in any unit: room for a code fence's first and last line (64) and for some text between them."""

_SEPARATORS = (
    re.compile(r"\n[ \t]*\n+"),  # blank line
    re.compile(r"\n"),
    re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？]"),  # sentence
    re.compile(r"[^\S\n]+"),
)
# Longer ones are treated as text: what is repeated in every part has to be small.
_OPENING = re.compile(r" {0,3}(?P<marker>`{3,8}(?!`)|~{3,8}(?!~))[ \t]{0,4}(?P<info>[^`\n]{0,24})", re.ASCII)
_CLOSING = re.compile(r" {0,3}(?P<marker>`{3,8}|~{3,8})[ \t]{0,8}")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,20}")
_HELD = re.compile(
    r"!?\[[^\[\]\n]{1,500}\]\([^()\s]{1,1000}(?:\([^()\s]{0,200}\)[^()\s]{0,200}){0,4}(?: \"[^\"\n]{0,200}\")?\)"  # link, image
    r"|(?<!`)(?P<ticks>`{1,3})(?!`)[^\n]{1,500}?(?<!`)(?P=ticks)(?!`)"  # code
    r"|<?https?://[^\s<>]{1,1000}>?"
    r"|(?P<marks>\*{1,3}|__|~~)(?=\S)[^*_~\n]{1,500}(?<=\S)(?P=marks)"  # emphasis
)
"""What is not cut as long as it takes at most half a part."""

Size = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part: `body` is the text's own; `before` and `after` open again and close a code fence that runs on."""

    before: str
    body: str
    after: str

    def __str__(self) -> str:
        return self.before + self.body + self.after


@dataclass(frozen=True, slots=True)
class _Fence:
    """A code block as indices into the text: first line, inside, last line (empty where it is never closed)."""

    start: int
    inside: int
    close: int
    end: int
    marker: str
    language: str


def split(text: str, limit: int, unit: Unit = "characters", size: Size | None = None) -> list[str]:
    """`text` in parts of at most `limit` units, in order.

    unit: `characters` are code points, `utf16` are 16-bit code units, `bytes` are those of UTF-8. size: what a part takes of `limit`
    once it is rendered, escaped and all; a part fits by both.

    A part ends at a blank line, else a line, a sentence, a space, a grapheme; a grapheme is cut only if it is longer
    than a part, a link, inline code or emphasis only if it takes more than half of one. A code fence that runs on is closed and
    opened again with its language. White space at a cut stays at the end of the part in front of it; parts of white space alone are
    left out.

    Raises ValueError for a limit below MIN_LIMIT.
    """
    parts = [str(piece) for piece in pieces(text, limit, unit, size)]
    return [part for part in parts if not part.isspace()] or parts[:1]


def parts(text: str, limit: int, unit: Unit = "characters", size: Size | None = None) -> list[Part]:
    """What `split` makes of `text`, as the parts of a reply."""
    texts = split(text, limit, unit, size)
    return [Part(each, index, len(texts)) for index, each in enumerate(texts, 1)]


def pieces(text: str, limit: int, unit: Unit = "characters", size: Size | None = None) -> list[Piece]:
    """Like `split`, with what was added kept apart: the bodies joined are `text` (lone surrogates become `?`)."""
    if limit < MIN_LIMIT:
        raise ValueError(f"a part needs room for at least {MIN_LIMIT} {unit}, not {limit}")
    text = text.encode("utf-8", "replace").decode()
    if measure(text, unit) <= limit and (size is None or size(text) <= limit):
        return [Piece("", text, "")]
    return list(_pieces(text, limit, unit, size))


def measure(text: str, unit: Unit) -> int:
    """The length of `text` in `unit`s."""
    if unit == "bytes":
        return len(text.encode())
    return len(text) if unit == "characters" else len(text.encode("utf-16-le")) // 2


def _pieces(text: str, limit: int, unit: Unit, size: Size | None) -> Iterator[Piece]:
    fences = _fences(text)
    held = _held(text, limit // 2, fences)
    start, before = 0, ""
    while start < len(text):
        room = limit
        piece, fence = _piece(text, start, before, room, unit, fences, held)
        while size and room > MIN_LIMIT and size(str(piece)) > limit:
            room = max(room * 3 // 4, MIN_LIMIT)
            piece, fence = _piece(text, start, before, room, unit, fences, held)
        yield piece
        start += len(piece.body)
        before = f"{fence.marker}{fence.language}\n" if fence else ""


def _piece(
    text: str, start: int, before: str, limit: int, unit: Unit, fences: list[_Fence], held: Sequence[tuple[int, int]]
) -> tuple[Piece, _Fence | None]:
    """The part that begins at `start`, and the fence that runs on behind it."""
    room = limit - len(before)
    stop = _reach(text, start, room, unit)
    if stop == len(text):
        return Piece(before, text[start:], ""), None
    end, fence = _cut(text, start, stop, fences, held)
    after = _closing(text, end, fence)
    if _reach(text, start, room - len(after), unit) < end:
        end, fence = _cut(text, start, _reach(text, start, room - len("\n") - _longest_marker(fences), unit), fences, held)
        after = _closing(text, end, fence)
    return Piece(before, text[start:end], after), fence


def _closing(text: str, end: int, fence: _Fence | None) -> str:
    if not fence:
        return ""
    return fence.marker if text[end - 1] == "\n" else f"\n{fence.marker}"


def _longest_marker(fences: list[_Fence]) -> int:
    return max((len(fence.marker) for fence in fences), default=0)


def _reach(text: str, start: int, room: int, unit: Unit) -> int:
    """The largest index up to which `text[start:]` fits into `room` units."""
    window = text[start : start + room]
    if unit == "bytes":
        window = window.encode()[:room].decode("utf-8", "ignore")
    elif unit == "utf16":
        window = window.encode("utf-16-le")[: 2 * room].decode("utf-16-le", "ignore")
    return start + len(window)


def _cut(text: str, start: int, stop: int, fences: list[_Fence], held: Sequence[tuple[int, int]]) -> tuple[int, _Fence | None]:
    """Where in (start, stop] the part that begins at `start` ends best, and the fence that is open there."""

    def allowed(index: int) -> bool:
        return start < index and _between_graphemes(text, start, index) and not (_on_fence_line(index, fences) or _inside(index, held))

    end = _last_separator(text, start, stop, allowed) or _last_allowed(start, stop, allowed)
    end = end or _last_allowed(start, stop, lambda index: _between_graphemes(text, start, index)) or stop
    fence = _fence_before(end, fences)
    return end, fence if fence and fence.inside <= end <= fence.close else None


def _last_separator(text: str, start: int, stop: int, allowed: Callable[[int], bool]) -> int | None:
    """The end of the last separator of the best kind that leaves the part at least half full."""
    for separator in _SEPARATORS:
        ends = [match.end() for match in separator.finditer(text, start + (stop - start) // 2, stop)]
        if end := next((index for index in reversed(ends) if allowed(index)), None):
            return end
    return None


def _last_allowed(start: int, stop: int, allowed: Callable[[int], bool]) -> int | None:
    return next((index for index in range(stop, start, -1) if allowed(index)), None)


def _on_fence_line(index: int, fences: list[_Fence]) -> bool:
    """Whether a cut here would part a fence's first line from its inside, or its inside from its last line."""
    fence = _fence_before(index, fences)
    return fence is not None and (index <= fence.inside or fence.close <= index < fence.end)


def _held(text: str, longest: int, fences: list[_Fence]) -> list[tuple[int, int]]:
    """Where links, inline code and emphasis stand outside of code blocks, those of at most `longest` characters."""
    spans = [match.span() for match in _HELD.finditer(text)]
    return [(start, end) for start, end in spans if end - start <= longest and not _in_fence(start, fences)]


def _in_fence(index: int, fences: list[_Fence]) -> bool:
    fence = _fence_before(index + 1, fences)
    return fence is not None and index < fence.end


def _inside(index: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a cut here would go through one of `spans`."""
    count = bisect_left(spans, index, key=lambda span: span[0])
    return count > 0 and index < spans[count - 1][1]


def _fence_before(index: int, fences: list[_Fence]) -> _Fence | None:
    """The last fence that begins in front of `index`."""
    count = bisect_left(fences, index, key=lambda fence: fence.start)
    return fences[count - 1] if count else None


def _between_graphemes(text: str, start: int, index: int) -> bool:
    """Whether `index` is not inside an accented letter, an emoji, a flag or CR LF; `start`, before it, is not either."""
    if index >= len(text):
        return True
    left, right = text[index - 1], text[index]
    if left == "\u200d" or _extends(right) or (left == "\r" and right == "\n"):
        return False
    return not (_is_regional(left) and _is_regional(right) and _regionals_before(text, start, index) % 2)


def _extends(char: str) -> bool:
    """Whether `char` belongs to the one in front of it (variation selectors and keycaps are marks too)."""
    return (
        unicodedata.category(char)[0] == "M"
        or char in "\u200c\u200d"
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # tags, in the flags of regions
        or "\u1160" <= char <= "\u11ff"  # Hangul vowels and finals
    )


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _regionals_before(text: str, start: int, index: int) -> int:
    first = index
    while first > start and _is_regional(text[first - 1]):
        first -= 1
    return index - first


def _fences(text: str) -> list[_Fence]:
    found: list[_Fence] = []
    opened: tuple[int, int, str, str] | None = None
    at = 0
    for line in text.split("\n") if "```" in text or "~~~" in text else ():
        end = min(at + len(line) + 1, len(text))
        bare = line.rstrip("\r")
        if opened and _closes(bare, opened[2]):
            found.append(_Fence(opened[0], opened[1], at, end, opened[2], opened[3]))
            opened = None
        elif not opened and (match := _OPENING.fullmatch(bare)):
            language = _LANGUAGE.match(match["info"])
            opened = (at, end, match["marker"], language[0] if language else "")
        at = end
    if opened:
        found.append(_Fence(opened[0], opened[1], at, at, opened[2], opened[3]))
    return found


def _closes(line: str, marker: str) -> bool:
    match = _CLOSING.fullmatch(line)
    return match is not None and match["marker"].startswith(marker)
