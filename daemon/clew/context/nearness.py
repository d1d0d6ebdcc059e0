"""Words and meaning joined: what was found by its words, ranked again by how near its vectors are. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from clew.context.query import Query
from clew.context.ranking import Scored
from clew.context.text import WORD, normalise, stem

CANDIDATES = 200
"""Messages found by their words that are ranked again: with 120 too few of them had the message in front of them among the others."""
MEANING = 0.35
"""Share of the new score that comes from the vectors; the words' share is the rest. From 0.3 to 0.4 it hardly matters."""
IN_FRONT = (0.7, 0.3)
"""How much the vectors of the messages one and two places in front of a message count in its own: an answer says little without what it
answers. From 0.5 to 0.8, and from 0.15 to 0.45, it hardly matters."""
SAMENESS = 1.5
"""Power of its length by which such a sum is measured. 1 would give its cosine; more tells against messages that say what was said in
front of them, as talk without a subject does. From 1.3 to 1.6 it hardly matters."""
SITTING = 0.3
"""Share of the best nearness of a sitting, a session's day, that each of its messages gets, as among the words. From 0.1 on it hardly
matters."""
FAR = 10
"""One in so many candidates is taken for as far from the question as any text, and its cosine for what all texts have in common: hardly
anything with some models, 0.75 with others. With 4 or 20 it is the same within 0.2 points."""
NAMED = 2.0
"""For messages of a speaker whom the question names, as among the words."""
ASKING = 0.7
"""For messages that end in a question mark: they are near to a question, and answer none."""

DAY = 86_400
"""Seconds."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Nearness:
    """Cosines of vectors. asked: of a message's to the question's, by its id. between: of two messages', by their ids as `neighbours`
    names them. A message without a vector is in neither."""

    asked: Mapping[str, float] = field(default_factory=dict)
    between: Mapping[Pair, float] = field(default_factory=dict)


def neighbours(scored: Sequence[Scored]) -> list[Pair]:
    """The pairs of messages, by their ids, whose nearness to one another `joined` asks for."""
    pairs = (pair for _, parts in _sums(scored) for pair in combinations([each for _, each in parts], 2))
    return list(dict.fromkeys(pairs))


def joined(query: Query, scored: Sequence[Scored], nearness: Nearness, limit: int) -> list[Scored]:
    """The messages that were found (best first), ranked by words and nearness: at most `limit`.

    A message without a vector counts as far. Both parts are measured by their best, and the best message scores what the best by words
    did: what is relevant by its words stays so.
    """
    total = _totals(query, scored, nearness)
    nearest = max(total, default=0.0)
    if not nearest or scored[0].score <= 0:
        return list(scored[:limit])
    best = scored[0].score
    both = [(1 - MEANING) * item.score / best + MEANING * each / nearest for item, each in zip(scored, total, strict=True)]
    first = max(both)
    order = sorted(range(len(scored)), key=lambda number: (-both[number], number))
    return [replace(scored[number], score=best * both[number] / first) for number in order[:limit]]


def _totals(query: Query, scored: Sequence[Scored], nearness: Nearness) -> list[float]:
    """How near each message is, with its neighbours, its sitting and its speaker."""
    common = _common(nearness)
    named = {speaker for speaker in {each.candidate.speaker for each in scored} if _named(query, speaker)}
    alone = [_near(parts, nearness, common) * _weight(item, named) for item, parts in _sums(scored)]
    sittings = [(each.candidate.session, each.candidate.at // DAY) for each in scored]
    highest: dict[tuple[str, float], float] = defaultdict(float)
    for sitting, near in zip(sittings, alone, strict=True):
        highest[sitting] = max(highest[sitting], near)
    return [near + SITTING * highest[sitting] for near, sitting in zip(alone, sittings, strict=True)]


def _sums(scored: Sequence[Scored]) -> Iterator[tuple[Scored, list[tuple[float, str]]]]:
    """Each message, and the ids of what its vector is the sum of, itself first, each with its share."""
    places = {(each.candidate.session, each.candidate.seq): each.candidate.id for each in scored}
    for each in scored:
        session, seq = each.candidate.session, each.candidate.seq
        found = ((share, places.get((session, seq - distance))) for distance, share in enumerate(IN_FRONT, start=1))
        yield each, [(1.0, each.candidate.id), *((share, other) for share, other in found if other is not None)]


def _common(nearness: Nearness) -> float:
    """The cosine of texts that have nothing to do with one another; 0 where there are too few to say."""
    ordered = sorted(nearness.asked.values())
    return min(max(0.0, ordered[len(ordered) // FAR - 1]), 0.95) if len(ordered) >= FAR else 0.0


def _near(parts: Sequence[tuple[float, str]], nearness: Nearness, common: float) -> float:
    """How near to the question the sum of some vectors of length 1 is, the first of which is the message's own. common: to leave out."""
    if parts[0][1] not in nearness.asked:
        return 0.0
    held = [(share, each) for share, each in parts if each in nearness.asked]
    toward = sum(share * (nearness.asked[each] - common) for share, each in held)
    square = sum(share * share for share, _ in held)
    for (share, one), (other, far) in combinations(held, 2):
        square += 2 * share * other * (nearness.between.get((one, far), common) - common) / (1 - common)
    return max(0.0, toward) / math.pow(max(1.0, square), SAMENESS / 2)


def _named(query: Query, speaker: str) -> bool:
    return not query.words.isdisjoint(stem(word) for word in WORD.findall(normalise(speaker)))


def _weight(item: Scored, named: Collection[str]) -> float:
    asking = item.candidate.text.rstrip().endswith(("?", "？"))
    return (NAMED if item.candidate.speaker in named else 1.0) * (ASKING if asking else 1.0)
