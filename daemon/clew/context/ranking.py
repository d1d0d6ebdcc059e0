"""Which stored messages answer a message, and whether any does.

`regions` says where to look; each message there is scored by what it and those around it have in common with the query.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import or_
from typing import NamedTuple

from clew.context.query import Query, idf
from clew.context.regions import Hits
from clew.context.text import WORD, normalise, stem

LENT = {-2: 0.1, -1: 0.2, 1: 0.3, 2: 0.1}
"""Share of its score that a message lends to the one so many places behind it: answers follow what shares the words."""
ANSWER = 0.4
"""What a question lends to the next message beyond that."""
COVERAGE_WEIGHT = 0.5
COVERAGE_REACH = 4
"""Each term found within this many messages adds its weight once, so that a talk about all of it wins."""
_APART: tuple[None, ...] = (None,) * max(COVERAGE_REACH, *LENT)
"""What stands between lines of which neither counts for the other."""
SITTING_WEIGHT = 0.4
"""Share of the best score of a sitting that each of its messages gets."""
SPEAKER_FACTOR = 2.0
"""For messages of a speaker whom the question names."""
NAME_WEIGHT = 0.2
"""Share of its weight that the name of one who speaks there has as a word: people are called by name more often than told of."""
QUESTION_FACTOR = 0.9
"""For messages that end in a question mark: they ask what the one sought answers."""
LONG = 200
LENGTH_WEIGHT = 0.4
"""Of messages longer than this (characters as stored) a word counts less: at twice the length 1 / 1.4."""
FLOOR = 2.05
"""The best message must score so many times the weight of a word that stands in one message only: what that word scores by itself."""
ENOUGH_OF_QUERY = 1.6
"""Or this share of the weight of a query of two terms or more: all of it, near together."""
GROWN = 20_000
"""Messages from which on the floor stays: what an answer scores does not grow with the store, for its words grow more common with it."""
FEW = 100
"""In a store of fewer messages hardly a word is shared by chance, so that one will do."""
MAX_MATCHED_CHARS = 8_000
"""Characters of a message that are read for terms too common to be looked up."""


class Line(NamedTuple):
    """A stored message that may be seen, as far as ranking needs it.

    place: see `regions`. number: its row. at: seconds since the epoch. size: its length as stored. asks: whether it ends in a question
    mark. day: since the epoch, UTC; a thread can run for weeks, so what belongs together is a session's day.
    """

    place: int
    number: int
    session: str
    speaker: str
    at: float
    seq: int
    size: int
    asks: bool
    day: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored message that may be seen. `chat` is a label for people, `at` seconds since the epoch, `seq` its place in its session,
    `same_session` true where it was demoted from the thread that asks."""

    id: str
    session: str
    chat: str
    speaker: str
    role: str
    at: float
    text: str
    seq: int
    same_session: bool = False


@dataclass(frozen=True, slots=True)
class Ranked:
    """A line with its score and the numbers of the query's terms that it holds.

    The score is a share of the weight of all that the query asks for, so that scores of different messages compare: about 2 for an
    answer to a question, under 1 for talk that merely shares words.
    """

    line: Line
    score: float
    terms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    """A message with its score, see `Ranked`, and the query's terms that it holds."""

    candidate: Candidate
    score: float
    why: tuple[str, ...]


def rank(query: Query, lines: Sequence[Line], hits: Hits, limit: int) -> list[Ranked]:
    """Of the lines, in order of place, those that have to do with the query: at most `limit`, the best first."""
    names = {speaker: _named(query, speaker) for speaker in {line.speaker for line in lines}}
    named = frozenset[str]().union(*names.values())
    weights = [
        weight * NAME_WEIGHT if named.issuperset(stem(word) for word in term.split(" ")) else weight
        for term, weight in zip(query.terms, query.weights, strict=True)
    ]
    known = {line.place for line in lines}
    matched = hits.at(known)
    then: dict[int, float] = defaultdict(float)
    for days, places in zip(query.days, hits.days, strict=True):
        for place in known.intersection(places):
            then[place] += days.weight
    scored: list[tuple[Line, float, tuple[str, int]]] = []
    best: dict[tuple[str, int], float] = {}
    for line, score in _local_scores(_spread(lines), matched, then, _Mass(weights)):
        sitting = line.session, line.day
        scored.append((line, score, sitting))
        if score > best.get(sitting, 0.0):
            best[sitting] = score
    factors = {speaker: (SPEAKER_FACTOR if named_there else 1.0) / query.mass for speaker, named_there in names.items()}
    found = []
    for line, score, sitting in scored:
        total = (score + SITTING_WEIGHT * best[sitting]) * factors[line.speaker]
        found.append((-total * QUESTION_FACTOR if line.asks else -total, line.at, line.place, line))
    found.sort()
    return [Ranked(line, -score, _numbers(matched.get(place, 0))) for score, _, place, line in found[:limit]]


def relevant(query: Query, best: float) -> bool:
    """Whether a message with the score `best` has to do with the query, or merely shares a word. The floor rises with a small store."""
    if not all(days.ahead for days in query.days):
        return True
    # To have been written lately is no reason to recall anything.
    weight = best * query.mass - (1 + SITTING_WEIGHT) * sum(days.weight for days in query.days if not days.spoken)
    return weight >= FLOOR * idf(1, min(query.total, GROWN)) or (
        (len(query.terms) > 1 or query.total < FEW) and weight >= ENOUGH_OF_QUERY * query.mass
    )


def _named(query: Query, speaker: str) -> frozenset[str]:
    return query.words.intersection(stem(word) for word in WORD.findall(normalise(speaker)))


def _spread(lines: Iterable[Line]) -> list[Line | None]:
    """The lines, those that do not follow one another in their session so far apart that neither counts for the other."""
    spread: list[Line | None] = []
    seq, session = 0, ""
    for line in lines:
        if line.seq != seq or line.session != session:
            spread += _APART
        spread.append(line)
        seq, session = line.seq + 1, line.session
    return spread


class _Mass(dict[int, float]):
    """The weight of a set of terms, by its bits."""

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        self._weights = weights

    def __missing__(self, bits: int) -> float:
        top = bits.bit_length() - 1
        found = self[bits] = self[bits ^ 1 << top] + self._weights[top] if bits else 0.0
        return found


def _local_scores(
    spread: Sequence[Line | None], matched: Mapping[int, int], then: Mapping[int, float], mass: _Mass
) -> Iterator[tuple[Line, float]]:
    """What messages, and those around each, have in common with the query, where that is anything. By place, matched: a message's terms,
    a bit for each; then: what it weighs when it was written."""
    terms = [matched.get(line.place, 0) if line else 0 for line in spread]
    own = [_own(line, mass[held]) if line and held else 0.0 for line, held in zip(spread, terms, strict=True)]
    asking = [ANSWER * score if line and line.asks else 0.0 for line, score in zip(spread, own, strict=True)]
    padded = [0.0, 0.0, *own, 0.0, 0.0]
    from_first, from_left, from_right, from_last = (LENT[distance] for distance in (2, 1, -1, -2))
    lent = zip(spread, _around(terms), padded, padded[1:], [0.0, *asking], own, padded[3:], padded[4:], strict=False)
    for line, near, first, left, asked, score, right, last in lent:
        if line is not None and (near or then):
            before = then.get(line.place, 0.0) + from_first * first + from_left * left + asked
            if total := before + score + from_right * right + from_last * last + COVERAGE_WEIGHT * mass[near]:
                yield line, total


def _own(line: Line, score: float) -> float:
    return score if line.size <= LONG else score / (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * line.size / LONG)


def _around(terms: Sequence[int]) -> list[int]:
    """All of the terms within `COVERAGE_REACH` of each place."""
    padding = [0] * COVERAGE_REACH
    found = padded = [*padding, *terms, *padding]
    for distance in range(1, 2 * COVERAGE_REACH + 1):
        found = list(map(or_, found, padded[distance:]))
    return found


@lru_cache(maxsize=4096)
def _numbers(bits: int) -> tuple[int, ...]:
    return tuple(number for number in range(bits.bit_length()) if bits >> number & 1)


class Matcher:
    """Finds terms in texts, by the stems that the document frequencies use."""

    def __init__(self, terms: Sequence[str]) -> None:
        self._terms = [(term, frozenset(stem(word) for word in term.split(" "))) for term in terms]
        stems = sorted({found for _, parts in self._terms for found in parts if found.isascii()})
        self._likely = re.compile(r"(?<![^\W_])(?:" + "|".join(map(re.escape, stems)) + r")[^\W_]*") if stems else WORD

    def __call__(self, text: str) -> tuple[str, ...]:
        """Those of the terms that `text` holds."""
        plain = normalise(text[:MAX_MATCHED_CHARS])
        found = {stem(word) for word in (self._likely if plain.isascii() else WORD).findall(plain)}
        return tuple(term for term, parts in self._terms if parts <= found or (not term.isascii() and term in plain))
