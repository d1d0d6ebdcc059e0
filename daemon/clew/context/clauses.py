"""What a sentence does by how its clauses are built, where no word by itself tells it: corrections, commands, demands. Pure.

`She was ten, not nine` corrects something, `wipe the disks` is an order, `two approvals, from different teams` a demand.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from clew.context import languages, phrases
from clew.context.phrases import is_a, is_number

_Clause = Sequence[str]
_LONGEST_CONTRAST = 7
"""Words of a clause that only says what something is not."""
_LONGEST_NAME = 2
"""Words of a clause that calls somebody by name."""
_FRONT = 4
"""Words at the beginning of a clause among which its verb stands."""
_ENDING_IN_O = phrases.SPANISH | phrases.ITALIAN | phrases.PORTUGUESE
_NAMING_SUBJECTS = phrases.ALL & ~(_ENDING_IN_O | phrases.POLISH | phrases.RUSSIAN)
"""Languages in which a sentence without a verb that is known has none: their verbs come with pronouns."""
_RULE = phrases.PROHIBITION | phrases.LIMITS | phrases.DUTY
_MODAL = phrases.LEAVE | phrases.DUTY
_QUESTION = frozenset("?？")
_NOT_TO = frozenset(
    [("not", "to"), ("nicht", "zu"), ("niet", "te"), ("zeby", "nie"), ("que", "no"), ("de", "ne"), ("di", "non"), ("para", "nao")]
)
_PARTICIPLE = re.compile(r"(?:ed|en|t|d|ee?s?|[aiu][dt][oaei]s?|n[aey])\Z")
"""How participles end, folded, in the languages that have passives with them."""
_EVER = "ever"
_LEAST = 4
"""Letters of a word that carries something."""


def read(sentence: str, within: int) -> int:
    """What a sentence does, as bits of `phrases`, by its words and by its clauses. within: the languages whose words count."""
    found = phrases.read(sentence, within)
    clauses = [clause for clause in phrases.clauses(sentence) if clause]
    if not clauses:
        return found
    if sentence.rstrip()[-1:] in _QUESTION:  # whether one may or must is asked, not said
        return found if phrases.does(found, phrases.TASK) else found & ~(_RULE | phrases.HINTED_RULE)
    there = phrases.classes((word for clause in clauses for word in clause), within)
    if "denial" in there and _corrects(clauses, within):
        found |= phrases.CORRECTION
    if "object" in there and not found & phrases.TASK and _commands(clauses, within):
        found |= phrases.TASK
    if found & phrases.WHEN and not found & phrases.PAST and _is_mine(sentence, clauses, within):
        found |= phrases.PROMISE << phrases.HINT
    if not found & (phrases.DUTY | phrases.ERROR) and _demands(clauses, there, within):
        found |= phrases.DUTY | (phrases.PROHIBITION if is_a(clauses[0][0], "none", within) else 0)
    if "without" in there and phrases.denials(sentence, within) > 1:
        found |= phrases.UNTIL  # never without a key
    if "others" in there and is_a(clauses[0][0], "others", within) and not phrases.does(found, _MODAL):
        found &= ~phrases.HINTED_RULE  # what somebody else never does
    if not found & phrases.PROHIBITION and _forbids(found, clauses, there, within):
        found |= phrases.PROHIBITION | phrases.NEGATION
    return found


def _forbids(found: int, clauses: Sequence[_Clause], there: Collection[str], within: int) -> bool:
    """Whether a sentence forbids without a word that does: `please` beside a hint, somebody who asked, what is never done by nobody.

    there: the classes of its words.
    """
    if phrases.does(found, phrases.PROHIBITION) and phrases.does(found, phrases.TASK):
        return True
    if "bidding" in there and _bidden(clauses, within):
        return True
    if found & phrases.PAST:
        return False
    if "nobody" in there and is_a(clauses[0][0], "nobody", within):
        return bool(found & phrases.UNTIL) or any(_EVER in clause for clause in clauses)
    return "never" in there and any(_ordains(clause, within) for clause in clauses)


def _ordains(clause: _Clause, within: int) -> bool:
    """Whether a clause says what is never done, of nobody in particular."""
    at = next((at for at, word in enumerate(clause) if is_a(word, "never", within)), 0)
    if not at:
        return False
    turning = [word for word in clause if is_a(word, "finite", within)]
    if len(turning) == 1 and (_passive((clause[at - 1], *clause[at + 1 :]), within) or _passive(clause[at + 1 :], within)):
        return True
    behind = len(clause) - 1 - at
    return not turning and (behind > 1 or (behind == 0 and len(clause) > _FRONT))  # `the dog never barks` is no order


def _passive(words: _Clause, within: int) -> bool:
    """Whether these words begin as `is washed` does."""
    return len(words) > 1 and is_a(words[0], "passive", within) and _PARTICIPLE.search(words[1]) is not None


def _bidden(clauses: Sequence[_Clause], within: int) -> bool:
    """Whether somebody was asked not to do something."""
    words = [word for clause in clauses for word in clause]
    at = next((at for at, word in enumerate(words) if is_a(word, "bidding", within)), len(words))
    return any(pair in _NOT_TO for pair in pairwise(words[at:]))


def denies_only(sentence: str) -> bool:
    """Whether a sentence only says what is not meant: `Not a day before.`"""
    (clause, *rest) = [each for each in phrases.clauses(sentence) if each] or [()]
    return not rest and bool(clause) and _denied(clause, languages.likely(languages.counts(sentence)))


def _corrects(clauses: Sequence[_Clause], within: int) -> bool:
    """`X, not Y`, `not X, Y`, `X and not Y`."""
    if _denied_number(clauses, within):
        return True
    return any(_denied(after, within) or _replaces(before, after, within) for before, after in pairwise(clauses))


def _denied(clause: _Clause, within: int) -> bool:
    """Whether a clause only says what something is not: `not nine`, `no en la izquierda`."""
    start = 1 if len(clause) > 1 and is_a(clause[0], "joins", within) else 0
    rest = clause[start + 1 :]
    if len(rest) == 1 and not phrases.read(" ".join(clause), within) & phrases.NEGATION:
        return False  # a set phrase, as `not really` is
    return is_a(clause[start], "denial", within) and 0 < len(rest) <= _LONGEST_CONTRAST and _contrasting(rest, within)


def _contrasting(rest: _Clause, within: int) -> bool:
    """Whether what stands behind a `not` is a thing, a place or a number and nothing that is done."""
    thing = rest[1:] if is_a(rest[0], "only", within) else rest
    if not thing or any(is_a(word, "finite", within) for word in thing):
        return False
    return (
        is_a(thing[0], "leading", within)
        or any(_number(word) and (word != "one" or len(thing) == 1) for word in thing)
        or (len(thing) == 1 and len(thing[0]) >= _LEAST)
    )


def _replaces(before: _Clause, after: _Clause, within: int) -> bool:
    """Whether a clause says what is so in place of what the one before denies: `it is not the captain's brother, it's the captain`."""
    denied = next((at for at, word in enumerate(before[: _FRONT + 1]) if is_a(word, "denial", within)), -1)
    if denied < 0 or phrases.read(" ".join(after), within) & phrases.NEGATION:
        return False
    if denied == 0 and not any(is_a(word, "finite", within) for word in before):
        return 1 < len(before) <= _LONGEST_CONTRAST and _contrasting(before[1:], within)
    verb = {word for word in before[: denied + 2] if is_a(word, "copula", within)}
    again = {word for word in after[:2] if is_a(word, "copula", within)}
    if verb and again:
        return True
    carrying = {word for word in before if len(word) >= _LEAST and not phrases.is_common(word)}
    return before[0] == after[0] and any(word[:_LEAST] == other[:_LEAST] for word in carrying for other in after if len(other) >= _LEAST)


def _denied_number(clauses: Sequence[_Clause], within: int) -> bool:
    """`Two cradles not one`: a number, and one that it is not."""
    for clause in clauses:
        for at in range(1, len(clause) - 1):
            if is_a(clause[at], "denial", within) and _number(clause[at + 1]) and any(map(_number, clause[:at])):
                return True
    return False


def _number(word: str) -> bool:
    return word[:1].isdigit() or is_number(word) or word == "one"


def _commands(clauses: Sequence[_Clause], within: int) -> bool:
    """Whether a clause at the front, or behind a name, begins with a bare verb and what it is done to: `wipe the disks`.

    Of a sentence that may be in several languages that is not told: what follows a verb in one is something else in the other.
    """
    return within & (within - 1) == 0 and any(
        len(clause) > 2
        and is_a(clause[1], "object", within)
        and not phrases.is_common(clause[0])
        and not is_number(clause[0])
        and not clause[0][:1].isdigit()
        and not is_a(clause[0], "adverb", within)
        and not clause[0].endswith(("ing", "ed", "ly"))
        for clause in (clauses[:1] if len(clauses[0]) > _LONGEST_NAME else clauses[:2])
    )


def _is_mine(sentence: str, clauses: Sequence[_Clause], within: int) -> bool:
    """Whether somebody speaks of what they do: `I call him`, or a first person that its ending tells, in front of what it is done to."""
    if "我" in sentence or any(is_a(clause[0], "first", within) for clause in clauses):
        return True
    return any(
        len(word) >= _LEAST and word.endswith("o") and not phrases.is_common(word) and is_a(after, "leading", within & _ENDING_IN_O)
        for word, after in pairwise(clauses[0][:3])
    )


def _demands(clauses: Sequence[_Clause], there: Collection[str], within: int) -> bool:
    """Whether a sentence without a verb begins with a small number or with `no`, or holds `only`. there: see `_forbids`."""
    if not ("none" in there or "only" in there or is_number(clauses[0][0])):
        return False
    words = clauses[0] if len(clauses[0]) > _LONGEST_NAME else [word for clause in clauses for word in clause]
    if len(words) <= _LONGEST_NAME or any(is_a(word, "finite", within) for word in words):
        return False
    small = is_number(words[0]) and words[0] not in phrases.LARGE_NUMBERS
    counted = (
        small and len(clauses[0]) > 1 and not is_number(words[1]) and words[1] not in phrases.UNITS and not phrases.is_common(words[1])
    )
    return (
        counted
        or is_a(words[0], "none", within)
        or is_a(words[-1], "only", within)
        or any(is_a(word, "only", within & _NAMING_SUBJECTS) for word in words[1:])
    )
