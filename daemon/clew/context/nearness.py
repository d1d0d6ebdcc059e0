"""Words and meaning joined: what was found by its words, ranked again by how near its vectors are. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from clew.context.query import Query
from clew.context.ranking import Scored
from clew.context.text import WORD, normalise, stem

CANDIDATES = 120
"""Messages found by their words that are ranked again. With 400 evidence recall was the same within 0.2 points."""
MEANING = 0.3
"""Share of the new score that comes from the vectors; the words' share is the rest. From 0.2 to 0.35 it hardly matters."""
LENT = {1: 0.5, 2: 0.1, -1: 0.2}
"""Share of its nearness that a message lends to the one so many places behind it: an answer is near to what was asked in front of it."""
NAMED = 2.0
"""For messages of a speaker whom the question names, as among the words."""
ASKING = 0.7
"""For messages that end in a question mark: they are near to a question, and answer none."""


def joined(query: Query, scored: Sequence[Scored], nearness: Mapping[str, float], limit: int) -> list[Scored]:
    """The messages that were found (best first), ranked by words and nearness: at most `limit`.

    nearness: by a message's id, the cosine to the question; a message without one counts as far. Both parts are measured by their best,
    and the best message scores what the best by words did: what is relevant by its words stays so.
    """
    near = [max(0.0, nearness.get(each.candidate.id, 0.0)) for each in scored]
    places = {(each.candidate.session, each.candidate.seq): number for number, each in enumerate(scored)}
    total = list(near)
    for number, each in enumerate(scored):
        for distance, share in LENT.items():
            other = places.get((each.candidate.session, each.candidate.seq + distance))
            if other is not None:
                total[other] += share * near[number]
    total = [each * _weight(query, item) for each, item in zip(total, scored, strict=True)]
    nearest = max(total, default=0.0)
    if not nearest or scored[0].score <= 0:
        return list(scored[:limit])
    best = scored[0].score
    both = [(1 - MEANING) * item.score / best + MEANING * each / nearest for item, each in zip(scored, total, strict=True)]
    first = max(both)
    order = sorted(range(len(scored)), key=lambda number: (-both[number], number))
    return [replace(scored[number], score=best * both[number] / first) for number in order[:limit]]


def _weight(query: Query, item: Scored) -> float:
    speaker = {stem(word) for word in WORD.findall(normalise(item.candidate.speaker))}
    asking = item.candidate.text.rstrip().endswith(("?", "？"))
    return (1.0 if query.words.isdisjoint(speaker) else NAMED) * (ASKING if asking else 1.0)
