"""How much a sentence binds: what it does, what exact things are in it, who says it. Pure.

The points are logarithms of odds, eight to a factor of e, and add up. They were fitted by logistic regression to the sentences of the
shipped corpus, those of its key against all others, then rounded; what the corpus has too little of was set to what is like it. Rules,
corrections, tasks, decisions and goals have more than that: to lose one of them costs more than to keep some small talk.
"""

from __future__ import annotations

from collections.abc import Sequence

from clew.context import phrases
from clew.context.identifiers import Identifier
from clew.context.identifiers import Kind as IdentifierKind
from clew.context.ledger import Certainty, Kind
from clew.messages import Role

MUST = 18
"""Weight from which a statement has to survive; below it stands what is worth a line where there is room."""

_ACTS: tuple[tuple[int, Kind, int], ...] = (
    (phrases.PROHIBITION, "constraint", 38),
    (phrases.CORRECTION, "correction", 22),
    (phrases.DECISION, "decision", 16),
    (phrases.ERROR, "error", 14),
    (phrases.TASK, "task", 20),
    (phrases.DUTY, "constraint", 24),
    (phrases.LIMITS, "constraint", 7),
    (phrases.PREFERENCE, "preference", 11),
    (phrases.PROHIBITION << phrases.HINT, "constraint", 8),
    (phrases.OPEN, "question", 4),
    (phrases.GOAL, "goal", 26),
    (phrases.DUTY << phrases.HINT, "constraint", 8),
    (phrases.CORRECTION << phrases.HINT, "correction", 4),
    (phrases.DECISION << phrases.HINT, "decision", 4),
    (phrases.LIMITS << phrases.HINT, "constraint", 3),
    (phrases.PREFERENCE << phrases.HINT, "preference", 2),
    (phrases.OPEN << phrases.HINT, "question", 2),
    (phrases.NAMING, "fact", 9),
    (phrases.TASK << phrases.HINT, "task", 6),
    (phrases.GOAL << phrases.HINT, "goal", 3),
    (phrases.ERROR << phrases.HINT, "error", 3),
    (phrases.NAMING << phrases.HINT, "fact", 1),
)
"""(what a sentence does, the kind that this makes it, its points), the most telling first: the first that is there names the kind."""
_MOODS: tuple[tuple[int, int], ...] = (
    (phrases.NEGATION, 5),
    (phrases.REASON, 10),
    (phrases.PROMISE, 7),
    (phrases.PROMISE << phrases.HINT, 4),
    (phrases.WHEN, 8),
    (phrases.UNTIL, 5),
    (phrases.DEADLINE, 2),
    (phrases.OBJECTION, 4),
    (phrases.PAST, -8),
)
"""What makes no kind by itself, and its points."""
_FADING = phrases.PROHIBITION | phrases.DUTY | phrases.LIMITS
"""What a hint in a sentence about the past says nothing of."""
_EXACT: dict[IdentifierKind, int] = {
    "url": 34,
    "email": 34,
    "path": 34,
    "id": 34,
    "version": 34,
    "date": 26,
    "money": 25,
    "quantity": 24,
    "time": 18,
    "number": 14,
    "word": 8,
    "quote": 14,
    "name": 4,
}
_LONG_NUMBER = 26
_LIKE_AN_ID = 6
"""Digits from which a number is one that nobody counts to: of an account, a telephone, an order."""
_FURTHER = 0.3
"""The part of the points of each identifier but the strongest."""
_MOST_EXACT = 50
_UNSURE: dict[Certainty, int] = {"said": 0, "guessed": 19, "hypothetical": 16, "asked": 0}
_ENOUGH_TO_GUESS = 5
"""Content words of a guess that is about something."""
_PERSON, _ASSISTANT, _TOOL = -2, -24, -20
"""Where somebody's words begin."""
_CONTENT = 26
"""Points of a sentence with `_ENOUGH` content words or more, fewer in proportion."""
_ENOUGH = 8
_FEW, _BREVITY = 4, 4
"""Words below which a sentence is an exclamation or an answer, more often than not, and what that costs it."""
_FREE_LENGTH = 140
"""Characters of a sentence from which it weighs less the longer it gets: its room is that of others."""
_TELLING = 4
"""Points, content aside, from which a sentence may have to survive: many words alone are no reason."""
_ABOUT = 3
"""Content words of a sentence that says what it is about; a rule about nothing is none."""
_ASKED = 0.4
"""What remains of what a question does, unless it asks for something to be done."""
_PAIRS = 2.5
"""Pairs of characters of an unspaced script that tell as much as a content word."""
_CJK_CHARS = 2
"""Characters of an unspaced script that count as a word."""
PASSED = 0.35
"""What remains of the weight of a statement about a time that is over."""


def length(text: str) -> int:
    """Words of a sentence."""
    unspaced = 0 if text.isascii() else len(phrases.CJK.findall(text))
    return len(text.split()) + unspaced // _CJK_CHARS


def exact(identifiers: Sequence[Identifier]) -> float:
    """The points of identifiers: those of the strongest, and a part of the others."""
    points = sorted(map(_points, identifiers), reverse=True)
    return min(points[0] + _FURTHER * sum(points[1:]), _MOST_EXACT) if points else 0.0


def _points(each: Identifier) -> int:
    if each.kind == "number" and (digits := sum(map(str.isdigit, each.text))) > 2:
        return _LONG_NUMBER if digits < _LIKE_AN_ID else _EXACT["id"]
    return _EXACT[each.kind]


def acts(does: int, identifiers: Sequence[Identifier]) -> tuple[Kind, float]:
    """What a sentence is by what it does, and the points of that."""
    if not does:
        return "fact", 0.0
    does &= ~(_FADING << phrases.HINT) if does & phrases.PAST else -1
    for bit, _, _ in _ACTS:
        if does & bit:
            does &= ~(bit << phrases.HINT)
    found = [(kind, points) for bit, kind, points in _ACTS if does & bit]
    total = sum(points for _, points in found) + sum(points for bit, points in _MOODS if does & bit)
    kinds = [kind for kind, _ in found]
    if does & phrases.NEGATION and _contrasted(identifiers):
        return "correction" if "constraint" not in kinds[:1] or not does & phrases.PROHIBITION else kinds[0], total + 10
    if not kinds and does & phrases.OBJECTION:
        return "correction", total
    if not does & phrases.PAST and does & phrases.NEGATION and does & phrases.UNTIL and kinds[:1] in ([], ["fact"]):
        return "constraint", total + 8
    return (kinds[0] if kinds else "fact"), total


def _contrasted(identifiers: Sequence[Identifier]) -> bool:
    """Whether two identifiers of one kind stand there, as in `on the 19th, not on the 18th`."""
    kinds = [each.kind for each in identifiers if each.kind not in ("name", "quote")]
    return len(kinds) > len(set(kinds))


def fades(does: int, kind: Kind, identifiers: Sequence[Identifier]) -> tuple[bool, tuple[str, ...]]:
    """(whether it speaks of a time to come without a date, the dates it names), where nothing in a statement outlasts its time."""
    if does & phrases.RECURRING or any(each.strong for each in identifiers):
        return False, ()
    named = tuple(each.text for each in identifiers if each.kind == "date")
    lasting = kind in ("constraint", "correction", "decision") or does & phrases.DUTY
    vague = bool(does & (phrases.WHEN | phrases.DEADLINE)) and not lasting
    return vague and not named, named


def weigh(
    text: str, does: int, identifiers: Sequence[Identifier], certainty: Certainty, stems: int, role: Role, *, failed: bool = False
) -> tuple[Kind, float]:
    """Kind and weight of a sentence.

    stems: of its content words, or pairs of characters where words are not parted. failed: it is of the result of a tool that failed.
    """
    if role == "tool":
        return _resulted(does, identifiers, failed=failed)
    words = stems / (_PAIRS if phrases.unspaced(text) else 1)
    kind, points = acts(does, identifiers)
    points *= min(1.0, words / _ABOUT)
    if certainty == "asked" and not phrases.does(does, phrases.TASK):
        points *= _ASKED
    if role == "user":
        base, (kind, more) = _PERSON, _told(kind, does, certainty, words)
    else:
        base, (kind, more) = _ASSISTANT, _replied(kind, does, identifiers, certainty)
        points /= 2
    told = points + exact(identifiers) + more
    weight = base + told + _CONTENT * min(words / _ENOUGH, 1.0)
    weight -= max(0, len(text) - _FREE_LENGTH) / 8 if length(text) >= _FEW else _BREVITY
    return kind, weight if told >= _TELLING else min(weight, MUST - 1)


def _told(kind: Kind, does: int, certainty: Certainty, words: float) -> tuple[Kind, float]:
    """Kind of what a person said, by all that it does, and its further points."""
    more = _UNSURE[certainty] * min(words / _ENOUGH_TO_GUESS, 1.0)
    promised = phrases.does(does, phrases.PROMISE)
    if promised and does & phrases.REASON and kind in ("fact", "goal", "task"):
        kind, more = "decision", more + 10
    elif does & phrases.REASON and does & phrases.NEGATION and kind == "fact":
        kind, more = "decision", more + 4  # this and not that, because
    elif promised and does & phrases.WHEN and kind in ("fact", "goal"):
        kind, more = "task", more + 10
    elif does & phrases.DEADLINE and not does & phrases.PAST and kind in ("fact", "goal"):
        kind, more = "task", more + 6
    elif does & (phrases.WHEN | phrases.DEADLINE) and kind == "task":
        more += 3
    if certainty == "asked" and kind not in ("constraint", "correction"):
        binds = kind == "task" and does & phrases.TASK
        kind, more = ("request" if kind == "task" else "question"), more - (0 if binds else 2)
    return kind, more


def _replied(kind: Kind, does: int, identifiers: Sequence[Identifier], certainty: Certainty) -> tuple[Kind, float]:
    """The same of what the assistant said: its promises, what it did and found; its opinions weigh little."""
    if certainty == "asked":
        return "question", -10.0
    more = 10.0 if identifiers else 0.0
    if does & phrases.PROHIBITION:
        more += 14  # what it warns of
    if does & phrases.PROMISE:
        return "promise", more + (22 if does & (phrases.WHEN | phrases.UNTIL | phrases.DEADLINE) else 12)
    if phrases.does(does, phrases.DONE) and identifiers:
        return "outcome", more + 4
    return (kind if kind in ("error", "decision", "constraint") else "fact"), more


def _resulted(does: int, identifiers: Sequence[Identifier], *, failed: bool) -> tuple[Kind, float]:
    """The same of a line of a tool's result."""
    if failed or (phrases.does(does, phrases.ERROR) and identifiers):
        return "error", 30.0 if failed else 26.0
    return "outcome", max(0.0, _TOOL + exact(identifiers))
