"""How much a sentence binds: what it does, what exact things are in it, who says it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from clew.context import phrases
from clew.context.identifiers import Identifier
from clew.context.identifiers import Kind as IdentifierKind
from clew.context.ledger import Certainty, Kind

MUST = 18
"""Weight from which a statement has to survive; below it stands what is worth a line where there is room."""

_ACTS: tuple[tuple[int, Kind, int, int], ...] = (
    (phrases.PROHIBITION, "constraint", 60, 38),
    (phrases.CORRECTION, "correction", 56, 20),
    (phrases.DECISION, "decision", 50, 20),
    (phrases.TASK, "task", 44, 18),
    (phrases.DUTY, "constraint", 42, 22),
    (phrases.LIMITS, "constraint", 40, 20),
    (phrases.PREFERENCE, "preference", 40, 20),
    (phrases.OPEN, "question", 36, 20),
    (phrases.GOAL, "goal", 34, 12),
    (phrases.ERROR, "error", 26, 12),
    (phrases.NAMING, "fact", 20, 10),
)
"""(what it does, the kind that this makes it, its weight, the weight of a mere hint at it), most binding first."""
_FADING = phrases.PROHIBITION | phrases.DUTY | phrases.LIMITS
"""What a hint in a sentence about the past says nothing of."""
_EXACT: dict[IdentifierKind, int] = {
    "url": 48,
    "email": 48,
    "path": 48,
    "id": 48,
    "version": 48,
    "money": 48,
    "date": 38,
    "time": 34,
    "quantity": 30,
    "quote": 18,
    "word": 18,
    "number": 14,
    "name": 8,
}
PASSED = 0.35
"""What remains of the weight of a statement about a time that is over."""
_LONG_NUMBER = 28
_QUESTION = 18
_LIKE_AN_ID = 6
"""Digits from which a number is one that nobody counts to: of an account, a telephone, an order."""
_MOST_EXACT = 70
_FREE_LENGTH = 140
"""Characters of a sentence from which it weighs less the longer it gets: its room is that of others."""
_FULL_WORDS = 6
"""Words of a sentence that may bind in full: shorter ones are exclamations, more often than not."""
_CJK_CHARS = 2
"""Characters of an unspaced script that count as a word."""


def exact(identifiers: Sequence[Identifier]) -> float:
    """The weight of identifiers: that of the strongest, and a part of the others."""
    weights = sorted((_weight(each) for each in identifiers), reverse=True)
    return min(weights[0] + 0.3 * sum(weights[1:]), _MOST_EXACT) if weights else 0.0


def _weight(each: Identifier) -> int:
    if each.kind == "number" and (digits := sum(map(str.isdigit, each.text))) > 2:
        return _LONG_NUMBER if digits < _LIKE_AN_ID else _EXACT["id"]
    return _EXACT[each.kind]


def length(text: str) -> int:
    """Words of a sentence."""
    unspaced = len(phrases.CJK.findall(text))
    return len(text.split()) + unspaced // _CJK_CHARS


def acts(text: str, does: int, identifiers: Sequence[Identifier]) -> tuple[Kind, float]:
    """What a sentence is by what it does, and how much that binds."""
    hints = does & ~(_FADING << phrases.HINT) if does & phrases.PAST else does
    found = [(weight, kind) for bit, kind, weight, _ in _ACTS if hints & bit]
    found += [(hint, kind) for bit, kind, _, hint in _ACTS if hints & bit << phrases.HINT and not hints & bit]
    if does & phrases.OBJECTION and not any(kind == "correction" for _, kind in found):
        found.append((24, "correction"))
    if does & phrases.NEGATION and _contrasted(identifiers):
        found.append((50, "correction"))
    if does & phrases.NEGATION and does & phrases.UNTIL and not does & phrases.PAST:
        found.append((36, "constraint"))
    found.sort(key=lambda each: -each[0])
    if not found:
        return "fact", 0.0
    weights = [weight for weight, _ in found]
    full = weights[0] + 0.4 * sum(weights[1:2]) + 0.2 * sum(weights[2:])
    return found[0][1], full * min(1.0, length(text) / _FULL_WORDS)


def _contrasted(identifiers: Sequence[Identifier]) -> bool:
    """Whether two identifiers of one kind stand there, as in `on the 19th, not on the 18th`."""
    kinds = [each.kind for each in identifiers if each.kind not in ("name", "quote")]
    return len(kinds) > len(set(kinds))


def fades(does: int, kind: Kind, identifiers: Sequence[Identifier]) -> tuple[bool, tuple[str, ...]]:
    """(whether it speaks of a time to come without a date, the dates it names), where nothing in a statement outlasts its time."""
    if does & phrases.RECURRING or any(each.strong for each in identifiers):
        return False, ()
    named = tuple(each.text for each in identifiers if each.kind == "date")
    vague = bool(does & (phrases.WHEN | phrases.DEADLINE)) and kind not in ("constraint", "correction", "decision")
    return vague and not named, named


def told(text: str, does: int, identifiers: Sequence[Identifier], certainty: Certainty, words: int) -> tuple[Kind, float]:
    """Kind and weight of what a person said. words: of content, in the sentence."""
    kind, weight = acts(text, does, identifiers)
    weight += exact(identifiers)
    promised = phrases.does(does, phrases.PROMISE)
    if promised and does & phrases.REASON and kind in ("fact", "goal", "task"):
        kind, weight = "decision", weight + 40
    elif does & phrases.REASON and does & phrases.NEGATION and kind == "fact":
        kind, weight = "decision", weight + 24  # this and not that, because
    elif promised and does & phrases.WHEN and kind in ("fact", "goal"):
        kind, weight = "task", weight + 26
    elif does & phrases.DEADLINE and not does & phrases.PAST and kind in ("fact", "goal"):
        kind, weight = "task", weight + 24
    elif does & (phrases.WHEN | phrases.DEADLINE) and kind == "task":
        weight += 14
    if does & phrases.REASON and weight:
        weight += 10
    if certainty in ("guessed", "hypothetical"):
        weight += (34 if certainty == "hypothetical" else 22) * min(1.0, length(text) / _FULL_WORDS)
    if does & phrases.NEGATION and kind not in ("constraint", "correction"):
        weight += 4 if does & phrases.PAST else 10
    if certainty == "asked":
        binds = kind in ("constraint", "correction") or (kind == "task" and bool(does & phrases.TASK))
        kind = "request" if kind == "task" else kind if binds else "question"
        weight = weight * (0.7 if binds else 0.4) + (_QUESTION if kind == "question" and words > 2 else 0)
    if words < 2 and not identifiers:
        weight *= 0.3
    return kind, weight - max(0, len(text) - _FREE_LENGTH) / 8


def replied(text: str, does: int, identifiers: Sequence[Identifier], certainty: Certainty, words: int) -> tuple[Kind, float]:
    """The same of what the assistant said: its promises, what it did and found; its opinions weigh little."""
    kind, weight = acts(text, does, identifiers)
    weight = 0.5 * weight + (0.8 if len(text) < _FREE_LENGTH else 0.6) * exact(identifiers)
    if does & phrases.PROMISE and words > 1:
        kind, weight = "promise", weight + 24
    elif phrases.does(does, phrases.DONE) and identifiers:
        kind, weight = "outcome", weight + 8
    elif kind not in ("error", "decision", "constraint"):
        kind = "fact"
    if certainty == "asked":
        kind, weight = "question", weight * 0.3
    return kind, weight - max(0, len(text) - _FREE_LENGTH) / 8


def resulted(does: int, identifiers: Sequence[Identifier], *, failed: bool) -> tuple[Kind, float]:
    """The same of a line of a tool's result."""
    if failed or (phrases.does(does, phrases.ERROR) and identifiers):
        return "error", 30.0 if failed else 26.0
    return "outcome", 0.4 * exact(identifiers)
