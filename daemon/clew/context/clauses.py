"""What a sentence does by how its clauses are built, where no word by itself tells it: corrections, commands, demands. Pure.

`She was ten, not nine` corrects something, `wipe the disks` is an order, `two approvals, from different teams` a demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from clew.context import phrases
from clew.context.phrases import is_a, is_number

_Clause = Sequence[str]
_LONGEST_CONTRAST = 7
"""Words of a clause that only says what something is not."""
_LONGEST_NAME = 2
"""Words of a clause that calls somebody by name."""
_FRONT = 4
"""Words at the beginning of a clause among which its verb stands."""
_LEAST = 4
"""Letters of a word that carries something."""


def read(sentence: str, within: int) -> int:
    """What a sentence does, as bits of `phrases`, by its words and by its clauses. within: the languages whose words count."""
    found = phrases.read(sentence, within)
    clauses = [clause for clause in phrases.clauses(sentence) if clause]
    if not clauses:
        return found
    if any(phrases.has(clause, "denial") for clause in clauses) and _corrects(clauses, within):
        found |= phrases.CORRECTION
    if not phrases.does(found, phrases.TASK) and _commands(clauses, within):
        found |= phrases.TASK << phrases.HINT
    if not found & phrases.DUTY and _demands(clauses, within):
        found |= phrases.DUTY
    if not found & (phrases.PROHIBITION | phrases.PAST) and any(_ordains(clause, within) for clause in clauses):
        found |= phrases.PROHIBITION | phrases.NEGATION
    return found


def _ordains(clause: _Clause, within: int) -> bool:
    """Whether a clause says what is never done, of nobody in particular, or that somebody asked not to do it."""
    at = next((at for at, word in enumerate(clause) if is_a(word, "never", within)), 0)
    if at and not any(is_a(word, "finite", within) for word in clause):
        return at + 1 < len(clause)
    bidden = next((at for at, word in enumerate(clause) if is_a(word, "bidding", within)), len(clause))
    return any(pair == ("not", "to") for pair in pairwise(clause[bidden:]))


def denies_only(sentence: str) -> bool:
    """Whether a sentence only says what is not meant: `Not a day before.`"""
    (clause, *rest) = [each for each in phrases.clauses(sentence) if each] or [()]
    return not rest and bool(clause) and _denied(clause, phrases.likely(phrases.languages(sentence)))


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
    return is_a(thing[0], "leading", within) or any(map(_number, thing)) or (len(thing) == 1 and len(thing[0]) >= _LEAST)


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
    """Whether a clause at the front, or behind a name, begins with a bare verb and what it is done to: `wipe the disks`."""
    return any(
        len(clause) > 2
        and is_a(clause[1], "object", within)
        and not phrases.is_common(clause[0])
        and not is_number(clause[0])
        and not clause[0][:1].isdigit()
        and not is_a(clause[0], "adverb", within)
        and not clause[0].endswith(("ing", "ed", "ly"))
        for clause in (clauses[:1] if len(clauses[0]) > _LONGEST_NAME else clauses[:2])
    )


def _demands(clauses: Sequence[_Clause], within: int) -> bool:
    """Whether a sentence without a verb begins with a number or with `no`, or ends with `only`: `wood pegs only`."""
    words = clauses[0] if len(clauses[0]) > _LONGEST_NAME else [word for clause in clauses for word in clause]
    if len(words) <= _LONGEST_NAME or any(is_a(word, "finite", within) for word in words):
        return False
    counted = len(clauses[0]) > 1 and is_number(words[0]) and not is_number(words[1]) and words[1] not in phrases.UNITS
    return counted or is_a(words[0], "none", within) or is_a(words[-1], "only", within)
