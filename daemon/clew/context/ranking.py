"""Which of the index's hits answer a message, and whether any does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clew.context.query import Query
from clew.context.text import WORD, normalise, stem

NEIGHBOUR_WEIGHTS = {1: 0.5, 2: 0.2}
SESSION_WEIGHT = 0.6
SPEAKER_FACTOR = 1.6
QUESTION_FACTOR = 0.9
COVERAGE_WEIGHT = 0.5
COVERAGE_REACH = 3

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
    """A message with its score (higher is better) and the query's terms that it holds."""

    candidate: Candidate
    score: float
    why: tuple[str, ...]


def rank(query: Query, candidates: Sequence[Candidate], neighbours: Mapping[Place, Candidate] | Iterable[Candidate] = ()) -> list[Scored]:
    """Candidates and their neighbours, best first; empty where nothing is relevant enough."""
    hits = {(hit.session, hit.seq): hit for hit in candidates}
    around = neighbours.values() if isinstance(neighbours, Mapping) else neighbours
    known = {(near.session, near.seq): near for near in around} | hits
    base = {place: max(0.0, -hit.rank) for place, hit in hits.items()}
    matched = {place: matched_terms(query, hit.text) for place, hit in hits.items()}
    weights = dict(zip(query.terms, query.weights, strict=False))
    smooth = {place: _smoothed(place, base) + COVERAGE_WEIGHT * _coverage(place, matched, weights) for place in known}
    sittings: dict[tuple[str, int], list[float]] = defaultdict(list)
    for place, message in known.items():
        sittings[_sitting(message)].append(smooth[place])
    fused = {sitting: _top_mean(scores) for sitting, scores in sittings.items()}
    scored = []
    for place, message in known.items():
        score = (smooth[place] + SESSION_WEIGHT * fused[_sitting(message)]) * _factor(query, message)
        if score > 0:
            scored.append(Scored(message, score, matched.get(place, ())))
    scored.sort(key=lambda item: (-item.score, item.candidate.at, item.candidate.id))
    return scored


def matched_terms(query: Query, text: str) -> tuple[str, ...]:
    """The terms of `query` that `text` holds, by the same stems as the document frequencies."""
    plain = normalise(text[:8_000])
    stems = {stem(word) for word in WORD.findall(plain)}
    return tuple(term for term in query.terms if _holds(term, stems, plain))


def _holds(term: str, stems: set[str], plain: str) -> bool:
    return all(stem(word) in stems for word in term.split(" ")) or (not term.isascii() and term in plain)


def _smoothed(place: Place, base: Mapping[Place, float]) -> float:
    session, seq = place
    score = base.get(place, 0.0)
    for distance, weight in NEIGHBOUR_WEIGHTS.items():
        score += weight * (base.get((session, seq - distance), 0.0) + base.get((session, seq + distance), 0.0))
    return score


def _coverage(place: Place, matched: Mapping[Place, tuple[str, ...]], weights: Mapping[str, float]) -> float:
    session, seq = place
    terms = {term for near in range(seq - COVERAGE_REACH, seq + COVERAGE_REACH + 1) for term in matched.get((session, near), ())}
    return sum(weights.get(term, 0.0) for term in sorted(terms))


def _sitting(message: Candidate) -> tuple[str, int]:
    """A thread can run for weeks, so what belongs together is a session's day (UTC)."""
    return message.session, int(message.at // 86_400)


def _top_mean(scores: Iterable[float]) -> float:
    top = sorted(scores, reverse=True)[:3]
    return sum(top) / 3


def _factor(query: Query, message: Candidate) -> float:
    factor = QUESTION_FACTOR if message.text.rstrip().endswith(("?", "？")) else 1.0
    if any(stem(word) in query.words for word in WORD.findall(normalise(message.speaker))):
        factor *= SPEAKER_FACTOR
    return factor
