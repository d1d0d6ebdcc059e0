"""Whether an entry says what its sources say: no lost "not", no guess made a fact, nobody else's words, nothing invented. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from clew.context import phrases
from clew.context.evidence import Claim, Evidence, holds, names, nearest_of, normal, sources
from clew.context.ledger import Certainty, Entry, Kind
from clew.context.sentences import sentences
from clew.context.survival import Said, Statement
from clew.context.weighing import length

BINDING = phrases.NEGATION | phrases.LIMITS | phrases.DUTY
"""What a rendering of a statement must neither lose nor add."""
_TURNING = phrases.PROHIBITION | phrases.CORRECTION
"""What a sentence may do without a "not" of its own, so that it is lost with another word."""
LEAST_WEIGHT = 10
"""Of a statement that takes the place of an entry which misrepresents it; what weighs less is small talk."""

REPEATED = 0.6
"""The part of a sentence's content words that a claim has which says it again."""
LONGEST_NARRATIVE = 3_000
"""Characters of an answer without a list that are read."""

_FEWEST_WORDS = 3
"""Words of a sentence that tells something: a single word is the answer to an order that stood in a message."""
_FACTS = frozenset({"fact", "identifier", "outcome", "preference", "narrative"})
"""Kinds under which a summariser may have filed what binds more."""


def fault(claim: Claim, cited: Sequence[Said], evidence: Evidence, proven: str = "") -> str:
    """What a claim holds that its sources do not, in words; empty if there is nothing.

    cited: the messages that it stands on. proven: what else is known to be true.
    """
    texts = [normal(proven)] if proven else []
    known = set(phrases.words(proven))
    for each in cited:
        text, words = evidence.words(each)
        texts.append(text)
        known |= words
    for identifier in claim.identifiers:
        if not any(holds(text, normal(identifier.text)) for text in texts):
            return f"its sources do not hold {identifier.text}"
    strange = {word for word in claim.folded if phrases.is_number(word)} - known | names(claim, known)
    return f"its sources do not hold {min(strange)}" if strange else ""


def differs(claim: Claim, near: Sequence[Statement]) -> str:
    """How a claim binds otherwise than the statements that it renders, in words; empty if it does not."""
    does = 0
    for each in near:
        does |= each.does
    if claim.does & ~does & BINDING:
        return "its sources do not bind so"
    return "a condition of its source is lost" if does & ~claim.does & BINDING else ""


def grounded(entry: Entry, cited: Sequence[Said], stated: Certainty | Literal[""], evidence: Evidence) -> tuple[Entry | None, str]:
    """An entry of the summariser's, as its sources bear it out, and what was wrong with it, in words.

    An entry that says something else than its source gets the words of the source; None: there is no source for it. Speaker, date and
    certainty are always the source's. cited: the messages it names; where they have nothing to do with it, the one that has is found.
    stated: the certainty it was given, empty if none.
    """
    claim = evidence.claim(f"{entry.text} {entry.reason}".strip())
    source = nearest_of(claim, evidence.of(cited))
    why = "" if cited else "it names no source"
    if source is None or not claim.stems <= source.stems:
        elsewhere = evidence.nearest(claim)
        if elsewhere is not None and (source is None or len(elsewhere.stems & claim.stems) > len(source.stems & claim.stems)):
            source, cited = elsewhere, sources(elsewhere)
            why = why or "another message says it"
    if source is None:
        return None, "no message says so"
    wrong = _wrong(claim, source, cited, stated, evidence)
    if wrong and source.weight < LEAST_WEIGHT:
        return None, wrong
    if wrong:
        return word_for_word(entry, source), wrong
    return replace(_dated(entry, source, cited), kind=_kind(entry, source)), why


def _wrong(claim: Claim, source: Statement, cited: Sequence[Said], stated: str, evidence: Evidence) -> str:
    least = len(source.stems & claim.stems) / 2
    near = [each for each in evidence.of(cited) if len(each.stems & claim.stems) > least] or [source]
    if wrong := fault(claim, cited, evidence):
        return wrong
    if 2 * len(claim.stems & frozenset().union(*(each.stems for each in near))) < len(claim.stems):
        return "its sources say something else"
    if wrong := differs(claim, near) or _undenied(claim, source, evidence):
        return wrong
    return f"its source is {source.certainty}, not said" if source.certainty != "said" and stated in ("", "said") else ""


def _undenied(claim: Claim, source: Statement, evidence: Evidence) -> str:
    """That a claim which repeats a sentence lacks what makes it a rule, or one of its negations, in words; empty if it does not."""
    if len(claim.stems & source.stems) < REPEATED * len(source.stems):
        return ""
    if source.does & ~claim.does & _TURNING:
        return "what its source forbids or corrects is lost"
    return "a negation of its source is lost" if claim.denials < evidence.denials(source.text) else ""


def word_for_word(entry: Entry, source: Statement) -> Entry:
    """The entry with the words of a statement."""
    kind = source.kind if entry.kind in _FACTS and source.must else _kind(entry, source)
    return replace(_dated(entry, source, sources(source)), kind=kind, text=source.text, reason="")


def _dated(entry: Entry, source: Statement, cited: Sequence[Said]) -> Entry:
    return replace(
        entry,
        speaker=source.said.speaker,
        certainty=source.certainty,
        date=source.said.at,
        sources=tuple(each.id for each in cited),
        places=tuple(each.place for each in cited),
    )


def _kind(entry: Entry, source: Statement) -> Kind:
    """The entry's kind, unless its source binds more than that, or a constraint binds to nothing."""
    if entry.kind in _FACTS and source.kind in ("constraint", "correction", "goal"):
        return source.kind
    return source.kind if entry.kind == "constraint" and not source.does & BINDING else entry.kind


def narrated(text: str, evidence: Evidence, conversation: Sequence[Said]) -> str:
    """What may stand of a text that is no list of entries: its sentences that hold nothing which was not said."""
    kept = []
    for sentence in sentences(text[:LONGEST_NARRATIVE]):
        claim = evidence.claim(sentence)
        near = evidence.nearest(claim)
        if length(sentence) < _FEWEST_WORDS:
            continue
        free = not claim.does & ~(near.does if near else 0) & BINDING
        if free and 2 * len(claim.stems & evidence.stems) >= len(claim.stems) and not fault(claim, conversation, evidence):
            kept.append(sentence)
    return " ".join(dict.fromkeys(kept))
