"""Which of the index's hits answer a message, and whether any does."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clew.context.query import Query
from clew.context.text import WORD, normalise, stem

NEIGHBOUR_WEIGHTS = {1: 0.3, 2: 0.1}
"""Share of its score that a message lends to those one and two places from it: answers stand beside what shares the words."""
COVERAGE_WEIGHT = 0.5
COVERAGE_REACH = 5
"""Each term found within this many messages adds its inverse document frequency once, so that a talk about all of it wins."""
SITTING_WEIGHT = 0.4
"""Share of the best score of a sitting that each of its messages gets."""
SPEAKER_FACTOR = 1.6
"""For messages of a speaker whom the question names."""
QUESTION_FACTOR = 0.9
"""For messages that end in a question mark: they ask what the one sought answers."""
MAX_MATCHED_CHARS = 8_000
"""Characters of a message that are read for terms; the index itself has ranked all of it."""
GATE_SLOPE = 3.0
GATE_FROM = 100
"""The best message must score 3 ln(messages / 100): what one shared common word scores stays below that at every size."""
RARE_SHARE = 0.6
ENOUGH_OF_QUERY = 1.6
"""Or 1.6 times the weight of all terms, if one of them is rare (a weight of 0.6 ln(messages)): one rare word is reason enough."""

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A stored message that the index found, or a neighbour of one.

    `chat` is a label for people, `at` seconds since the epoch, `rank` FTS5's bm25 (lower is better; 0 for a neighbour), `seq` its
    place in its session, `same_session` true where it was demoted from the thread that asks.
    """

    id: str
    session: str
    chat: str
    speaker: str
    role: str
    at: float
    text: str
    rank: float
    seq: int
    same_session: bool = False


@dataclass(frozen=True, slots=True)
class Scored:
    """A message with its score and the query's terms that it holds.

    The score is a share of the weight of all terms of the query, so that scores of different messages compare: about 2 for an answer to a
    question, under 1 for talk that merely shares words.
    """

    candidate: Candidate
    score: float
    why: tuple[str, ...]


def rank(
    query: Query, candidates: Sequence[Candidate], neighbours: Mapping[Place, Candidate] | Iterable[Candidate] = (), *, gate: bool = True
) -> list[Scored]:
    """Candidates and their neighbours, best first; empty where nothing is relevant enough. gate: False for who asked for a search."""
    hits = {(hit.session, hit.seq): hit for hit in candidates}
    around = neighbours.values() if isinstance(neighbours, Mapping) else neighbours
    known = {(near.session, near.seq): near for near in around} | hits
    matcher = _Matcher(query)
    matched = {place: matcher(hit.text) for place, hit in hits.items()}
    local = _local_scores(query, hits, matched, known)
    sittings = {place: _sitting(message) for place, message in known.items()}
    best: dict[tuple[str, int], float] = defaultdict(float)
    for place, sitting in sittings.items():
        best[sitting] = max(best[sitting], local[place])
    speakers = {message.speaker: _speaker_factor(query, message.speaker) for message in known.values()}
    mass = sum(query.weights)
    scored = []
    for place, message in known.items():
        score = (local[place] + SITTING_WEIGHT * best[sittings[place]]) * speakers[message.speaker]
        if message.text.endswith(("?", "？")):
            score *= QUESTION_FACTOR
        if score > 0:
            scored.append(Scored(message, score / mass, matched.get(place, ())))
    scored.sort(key=lambda item: (-item.score, item.candidate.at, item.candidate.id))
    relevant = not gate or (scored and scored[0].score * mass >= _relevant_from(query))
    return scored if relevant else []


def _relevant_from(query: Query) -> float:
    """The score below which the best message has nothing to do with the query; grows with the store, as all scores do."""
    if query.total <= GATE_FROM:
        return 0.0
    needed = GATE_SLOPE * math.log(query.total / GATE_FROM)
    if max(query.weights) >= RARE_SHARE * math.log(query.total):
        needed = min(needed, ENOUGH_OF_QUERY * sum(query.weights))
    return needed


class _Matcher:
    """Finds the terms of one query in many texts, by the stems that the document frequencies use."""

    def __init__(self, query: Query) -> None:
        self._terms = [(term, frozenset(stem(word) for word in term.split(" "))) for term in query.terms]
        stems = sorted({found for _, parts in self._terms for found in parts if found.isascii()})
        self._likely = re.compile(r"(?<![^\W_])(?:" + "|".join(map(re.escape, stems)) + r")[^\W_]*") if stems else WORD

    def __call__(self, text: str) -> tuple[str, ...]:
        plain = normalise(text[:MAX_MATCHED_CHARS])
        found = {stem(word) for word in (self._likely if plain.isascii() else WORD).findall(plain)}
        return tuple(term for term, parts in self._terms if parts <= found or (not term.isascii() and term in plain))


def _local_scores(
    query: Query, hits: Mapping[Place, Candidate], matched: Mapping[Place, tuple[str, ...]], known: Iterable[Place]
) -> dict[Place, float]:
    """What each message and those around it have in common with the query."""
    lent: dict[Place, float] = defaultdict(float)
    covered: dict[Place, set[str]] = defaultdict(set)
    for place, hit in sorted(hits.items()):  # sums of floats depend on their order
        session, seq = place
        own = max(0.0, -hit.rank)
        lent[place] += own
        for distance, share in NEIGHBOUR_WEIGHTS.items():
            lent[session, seq - distance] += share * own
            lent[session, seq + distance] += share * own
        for near in range(seq - COVERAGE_REACH, seq + COVERAGE_REACH + 1):
            covered[session, near].update(matched[place])
    weights = dict(zip(query.terms, query.weights, strict=True))
    masses: dict[frozenset[str], float] = {}
    scores = {}
    for place in known:
        terms = frozenset(covered.get(place, ()))
        if terms not in masses:
            masses[terms] = COVERAGE_WEIGHT * sum(weights[term] for term in query.terms if term in terms)
        scores[place] = lent.get(place, 0.0) + masses[terms]
    return scores


def _sitting(message: Candidate) -> tuple[str, int]:
    """A thread can run for weeks, so what belongs together is a session's day (UTC)."""
    return message.session, int(message.at // 86_400)


def _speaker_factor(query: Query, speaker: str) -> float:
    named = any(stem(word) in query.words for word in WORD.findall(normalise(speaker)))
    return SPEAKER_FACTOR if named else 1.0
