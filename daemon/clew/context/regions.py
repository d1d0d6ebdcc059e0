"""Where in a store to look closer, before any text is read.

Every message has a place, a number that counts up in its chat, so that neighbours in a chat are neighbours in number, and eight places
are a block. Each block weighs what it has of the terms of a query; the heaviest are looked at. Where a term stands is known as a list of
places or, for words that are common in a long chat, as lanes: a byte for each block of a segment, a bit for each of its places. Lanes are
weighed all blocks at once, as digits of one large number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import repeat
from operator import rshift

from clew.context.query import Query

BLOCK_BITS = 3
"""Eight places are a block: the bits of a byte."""
SEGMENT_BITS = 13
"""8,192 places of a chat are a segment."""
LANE = 1 << SEGMENT_BITS - BLOCK_BITS
"""Bytes of a lane."""
BLOCKS = 40
"""Blocks whose messages are scored: 30 lost 0.2 points of evidence recall on public data, more gained nothing."""
EDGE = 2
"""Messages in front of a block and behind it that are scored with it."""
REPEATED = 0.3
"""Share of a term's weight that each further message of a block with it adds, up to three of them."""

_FULL = 255
"""The largest digit."""
_NOWHERE = bytes(LANE)
_PLACES = tuple(tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256))
"""For each byte of a lane the places of its block that it says."""
_HOW_MANY = bytes(min(byte.bit_count(), 4) for byte in range(256))
"""For each byte of a lane the number of places that it says, as far as they count."""


@dataclass(frozen=True, slots=True)
class Hits:
    """Where the index found what a query asks for: each term, each of its days, and what each of its speakers said.

    lanes: of each term and then of each speaker, by segment, empty where there are none. What a lane covers is not among the places.
    """

    terms: tuple[Sequence[int], ...]
    days: tuple[Sequence[int], ...] = ()
    lanes: tuple[Mapping[int, bytes], ...] = ()
    speakers: tuple[Sequence[int], ...] = ()

    def __bool__(self) -> bool:
        """Whether anything was found."""
        return any(found for kind in (self.terms, self.days, self.lanes, self.speakers) for found in kind)

    def at(self, places: set[int]) -> dict[int, int]:
        """Of those of these places where terms stand which they are, a bit for each."""
        held: dict[int, int] = {}
        for number, found in enumerate(self.terms):
            for place in places.intersection(found):
                held[place] = held.get(place, 0) | 1 << number
        blocks: dict[int, int] = {}  # their places, as the bytes of a lane have them
        for place in places if any(self.lanes) else ():
            blocks[place >> BLOCK_BITS] = blocks.get(place >> BLOCK_BITS, 0) | 1 << (place & 7)
        for number, lanes in enumerate(self.lanes[: len(self.terms)]):
            for block, looked_at in blocks.items() if lanes else ():
                lane = lanes.get(block >> SEGMENT_BITS - BLOCK_BITS)
                for bit in _PLACES[lane[block & LANE - 1] & looked_at] if lane else ():
                    place = block << BLOCK_BITS | bit
                    held[place] = held.get(place, 0) | 1 << number
        return held


def lane(places: Iterable[int]) -> bytes:
    """The lane of a word that stands at these places of one segment."""
    made = bytearray(LANE)
    for place in places:
        made[place >> BLOCK_BITS & LANE - 1] |= 1 << (place & 7)
    return bytes(made)


def regions(query: Query, hits: Hits, in_view: Iterable[int] = ()) -> list[tuple[int, int]]:
    """Where to look closer: (first, last) of runs of places, in order. in_view: places that are not looked for."""
    weight: dict[int, float] = defaultdict(float)
    weights = [*query.weights, *(weight for _, weight in query.speakers)]
    sought = [(once, once * REPEATED, places) for once, places in zip(weights, (*hits.terms, *hits.speakers), strict=True)]
    sought += [(days.weight, 0.0, places) for days, places in zip(query.days, hits.days, strict=True)]
    for once, again, places in sought:
        for block, count in Counter(map(rshift, places, repeat(BLOCK_BITS))).items():
            weight[block] += once + again * (min(count, 4) - 1)
    seen = {block for block, count in Counter(place >> BLOCK_BITS for place in in_view).items() if count == 1 << BLOCK_BITS}
    if any(hits.lanes):
        _Common(weights, hits.lanes).add_to(weight, BLOCKS + len(seen))
    for block in seen & weight.keys():
        del weight[block]
    best = nlargest(BLOCKS, zip(weight.values(), weight.keys(), strict=True))
    runs: list[tuple[int, int]] = []
    for block in sorted(block for _, block in best):
        first, last = (block << BLOCK_BITS) - EDGE, (block + 1 << BLOCK_BITS) - 1 + EDGE
        if runs and first <= runs[-1][1] + 1:
            first = runs.pop()[0]
        runs.append((first, last))
    return runs


@dataclass(slots=True)
class _Common:
    """What the lanes of all terms together give each block, to within half of 1/255 of the most they can for each term."""

    weights: Sequence[float]
    lanes: Sequence[Mapping[int, bytes]]
    _segments: list[int] = field(init=False)
    _sums: bytes = field(init=False)
    _unit: float = field(init=False)

    def __post_init__(self) -> None:
        self._segments = sorted({segment for lanes in self.lanes for segment in lanes})
        used = [(weight, lanes) for weight, lanes in zip(self.weights, self.lanes, strict=True) if lanes]
        self._unit = sum(weight * (1 + 3 * REPEATED) for weight, _ in used) / (_FULL - len(used) / 2)
        total = 0
        for weight, lanes in used:
            joined = b"".join([lanes.get(segment, _NOWHERE) for segment in self._segments])
            total += int.from_bytes(joined.translate(_digits(weight / self._unit)), "little")
        self._sums = total.to_bytes(len(self._segments) * LANE, "little")

    def add_to(self, weight: dict[int, float], count: int) -> None:
        """Add what they give to the blocks of `weight`, and put in the best `count` of all others."""
        numbers = {segment: number for number, segment in enumerate(self._segments)}
        for block in weight:
            if (number := numbers.get(block >> SEGMENT_BITS - BLOCK_BITS)) is not None:
                weight[block] += self._sums[number * LANE + (block & LANE - 1)] * self._unit
        least = nlargest(count, weight.values())[-1] if len(weight) >= count else 0.0
        for block, gained in self._best():
            if gained < least or not count:
                break
            if block not in weight:
                weight[block] = gained
                count -= 1

    def _best(self) -> Iterator[tuple[int, float]]:
        """(block, what it is given), the most first, of equal ones the newest first."""
        for digit in range(_FULL, 0, -1):
            at = len(self._sums)
            while (at := self._sums.rfind(digit, 0, at)) >= 0:
                number, block = divmod(at, LANE)
                yield self._segments[number] << SEGMENT_BITS - BLOCK_BITS | block, digit * self._unit


def _digits(weight: float) -> bytes:
    """For each byte of a lane the digit that it counts as."""
    counted = [round(weight * (1 + REPEATED * further)) for further in range(4)]
    return _HOW_MANY.translate(bytes([0, *counted]).ljust(256))
