"""From what the index gave of the documents to the block that the model reads, and when a shown block gives way. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.context.fusion import fused
from clew.context.query import Query, idf
from clew.context.quoting import CLOSE, HEADING_DOCUMENTS, OPEN, QUOTE, SHORTEST, harmless, harmless_lines, shortened

PASSAGES = 4
"""Passages in a prompt."""
OF_ONE_DOCUMENT = 2
"""Of them from one document, so that a long one does not crowd out the others."""
ENOUGH = 0.4
"""Share of a query's weight that a passage must hold in two terms or more to be shown without being asked for."""
ENOUGH_ALONE = 0.5
"""And in one."""
ENOUGH_AGREED = 0.25
"""And where both rankings, by words and by meaning, have it first."""
RARE = 0.02
"""One term brings a passage by itself where at most this share of all pieces has it, or `FEW` of them."""
FEW = 3
MARGIN = 0.25
"""Share of the query's weight by which a new passage must beat every shown one before the block is replaced."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that may be seen. document: its document's id. name, place: what it is cited by."""

    id: int
    document: str
    name: str
    source: str
    place: str
    text: str

    @property
    def cited(self) -> str:
        """File and place, as in `[garden.md, Watering › Roses]`."""
        return f"[{harmless(self.name)[:100]}, {harmless(self.place)[:200]}]"


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that answers a query. score: the share of the query's weight that it holds; why: the terms that it holds."""

    passage: Passage
    score: float
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A passage as it stands in a block. text: its heading and its quoted lines."""

    id: int
    document: str
    text: str
    score: float
    why: tuple[str, ...]


def ranked(
    query: Query,
    counts: Sequence[int],
    total: int,
    rankings: Sequence[Sequence[int]],
    passages: Mapping[int, Passage],
    holding: Mapping[int, Sequence[int]],
) -> list[Found]:
    """The passages that rankings (of ids, best first, each by another way of looking) name, best first.

    counts: in how many of `total` pieces each of the query's terms stands. holding: of each passage the numbers of the terms it holds.
    """
    weights = [idf(count, total) for count in counts]
    mass = sum(weights) or 1.0
    return [
        Found(
            passages[each],
            sum(weights[number] for number in holding[each]) / mass,
            tuple(query.terms[number] for number in holding[each]),
        )
        for each in fused(rankings)
    ]


def relevant(query: Query, counts: Sequence[int], total: int, found: Sequence[Found], rankings: Sequence[Sequence[int]]) -> list[Found]:
    """Of what was found that which has to do with a message that did not ask for it: enough of what the message says, a rare word, or what
    several rankings agree on."""
    rare = {term for term, count in zip(query.terms, counts, strict=True) if 0 < count <= max(FEW, RARE * total)}
    firsts = [ranking[0] for ranking in rankings if ranking]
    agreed = firsts[0] if len(firsts) > 1 and len(set(firsts)) == 1 else None

    def enough(each: Found) -> bool:
        if each.passage.id == agreed and each.score >= ENOUGH_AGREED:
            return True
        return each.score >= ENOUGH if len(each.why) > 1 else each.score >= ENOUGH_ALONE and rare.issuperset(each.why)

    return list(filter(enough, found))


def chosen(found: Sequence[Found]) -> list[Found]:
    """The passages for a prompt: the best, not too many of one document."""
    taken: list[Found] = []
    for each in found:
        if sum(other.passage.document == each.passage.document for other in taken) < OF_ONE_DOCUMENT:
            taken.append(each)
    return taken[:PASSAGES]


def shown(query: Query, found: Sequence[Found], *, budget_chars: int) -> list[Shown]:
    """Passages as they are quoted, as many as a block of `budget_chars` code points holds: whole, or the part that matched."""
    longest = max(SHORTEST, budget_chars * 2 // 5)
    left = budget_chars - len(_framed([]))
    quoted: list[Shown] = []
    for each in found:
        room = min(longest, left - 1)
        text = _quoted(query, each.passage, room)
        if room < SHORTEST or len(text) > room:
            break
        left -= len(text) + 1
        quoted.append(Shown(each.passage.id, each.passage.document, text, each.score, each.why))
    return quoted


def block(passages: Sequence[Shown]) -> str:
    """The block for the prompt, empty where there are no passages. They stand in the order of their ids, so that the bytes depend on
    which they are and not on their scores."""
    return _framed([each.text for each in sorted(passages, key=lambda each: each.id)]) if passages else ""


def replaces(before: Sequence[Shown], fresh: Sequence[Shown], scores: Mapping[int, float], margin: float = MARGIN) -> bool:
    """Whether fresh passages replace those shown before: the best new one must beat every shown one by more than `margin`.

    scores: of the shown ones for the current message, by id; 0 for those that are not there. Nothing new changes nothing.
    """
    known = {each.id for each in before}
    new = [each.score for each in fresh if each.id not in known]
    if not new or not before:
        return bool(new)
    return max(new) - max(scores.get(each.id, 0.0) for each in before) > margin


def _framed(texts: Sequence[str]) -> str:
    return "\n".join([HEADING_DOCUMENTS, OPEN, *texts, CLOSE])


def _quoted(query: Query, passage: Passage, most: int) -> str:
    """A passage with its heading, of at most `most` code points where that is possible at all."""
    room = most - len(passage.cited) - 1
    lines = harmless_lines(passage.text)
    while True:
        text = "\n".join(f"{QUOTE}{line}" for line in lines)
        if len(text) <= room or room < SHORTEST // 2:
            return f"{passage.cited}\n{text}"
        plain = "\n".join(lines)
        size = min(len(plain) - 1, max(room - len(QUOTE) * len(lines), room // 2))
        lines = [line for line in shortened(query, plain, size).split("\n") if line.strip()]
