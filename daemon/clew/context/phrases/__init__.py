"""Words that show what a sentence does: that it forbids, decides, corrects, guesses, asks. Tables by language, and how they are read. Pure.

A table's entries are comma-separated phrases of words; `^` in front binds a phrase to the start of a clause, `^^` to that of the
sentence (as all of `refers` and `because` are), `*` at an end of a word stands for any letters, `?` in front of all marks a mere hint.
Case, accents and the kind of apostrophe do not matter. Chinese and Japanese have pieces instead, which are looked for anywhere; those
of `stated` hold a piece that would else tell a guess or a request.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from operator import or_

from clew.context.phrases import (
    chinese,
    dutch,
    english,
    french,
    german,
    italian,
    japanese,
    polish,
    portuguese,
    russian,
    spanish,
)

CATEGORIES = (
    "negation",
    "prohibition",
    "limits",
    "duty",
    "hedge",
    "hypothetical",
    "condition",
    "conditional",
    "decision",
    "correction",
    "objection",
    "task",
    "promise",
    "preference",
    "goal",
    "reason",
    "done",
    "error",
    "open",
    "when",
    "naming",
    "past",
    "until",
    "deadline",
    "recurring",
    "idle",
    "possible",
    "leave",
    "refers",
    "because",
    "more",
)
(
    NEGATION,
    PROHIBITION,
    LIMITS,
    DUTY,
    HEDGE,
    HYPOTHETICAL,
    CONDITION,
    CONDITIONAL,
    DECISION,
    CORRECTION,
    OBJECTION,
    TASK,
    PROMISE,
    PREFERENCE,
    GOAL,
    REASON,
    DONE,
    ERROR,
    OPEN,
    WHEN,
    NAMING,
    PAST,
    UNTIL,
    DEADLINE,
    RECURRING,
    IDLE,
    POSSIBLE,
    LEAVE,
    REFERS,
    BECAUSE,
    MORE,
) = (1 << place for place in range(len(CATEGORIES)))
"""What a sentence may do, as bits. IDLE phrases are set ones whose words mean nothing by themselves, as in `no problem`; POSSIBLE
ones, such as `may be`, guess or permit; LEAVE verbs forbid together with a negation, and limit
together with `only`; MORE words limit together with a negation. REFERS: it speaks of what the sentence before names;
BECAUSE: it is the reason of that."""
_BITS = tuple(1 << place for place in range(len(CATEGORIES)))
_OPENINGS = REFERS | BECAUSE
CLASSES = (
    *("finite", "copula", "denial", "never", "joins", "only", "none", "leading"),
    *("object", "adverb", "bidding", "first", "nobody", "passive", "without", "others"),
)
"""Classes of words: verbs that a sentence turns on and the pronouns in front of them; forms of `to be`; `not`; `never`; what may stand
in front of `not`; `only`; `no`; what may follow a `not` that denies no verb; what follows a bare verb; what looks like one and is none;
verbs of asking somebody; `I`; `nobody`; what stands in front of a participle; `without`; `he` and `they`."""
HINT = 32
"""A bit moved up by so many places: the sentence only hints at it."""

_SPACED = tuple(each.PHRASES for each in (english, german, french, spanish, italian, portuguese, dutch, polish, russian))
_UNSPACED = (chinese.PIECES, japanese.PIECES)
SPANISH, ITALIAN, PORTUGUESE, POLISH, RUSSIAN = (1 << place for place in (3, 4, 5, 7, 8))
ALL = (1 << len(_SPACED)) - 1
"""The bits of all languages that part their words."""
_HIRAGANA_OR_KATAKANA = re.compile("[\u3040-\u30ff]")
KATAKANA = re.compile("[\u30a0-\u30ff]{2,}")
CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[^\W_]+")
_CLAUSE = re.compile(r"[,;:–—()\[\]…«»„“”\"]|\s-\s|\.\s")
_LEADING = """and but so also please just then ok okay oh well hi hey und aber bitte dann ach et mais donc alors y pero entonces por
    favor e ma quindi poi mas entao en maar dus alsjeblieft alstublieft graag i ale wiec prosze и но а так пожалуиста"""
_LEADS = frozenset(_LEADING.split())
"""Words that may stand in front of an imperative."""
_SMALL_NUMBERS = 9
"""From two to ten: as many names of numbers stand at the beginning of each list."""
_LATIN_AND_CYRILLIC = (chr(code) for code in (*range(0xC0, 0x250), *range(0x400, 0x460)))
_PLAIN = str.maketrans(
    {c: unicodedata.normalize("NFKD", c)[0] for c in _LATIN_AND_CYRILLIC}
    | {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ł": "l", "ø": "o", "đ": "d", "’": "'", "ʼ": "'"}
)
_MARKED = re.compile("[\u00aa\u00b2-\u00be\u02b0-\u036f\u0483-\u0487\u1e00-\u1fff\ufb00-\ufb06\uff00-\uffef]")
"""What a table of letters does not take care of."""


def fold(text: str) -> str:
    """`text` without case and accents. German umlauts become two letters: `ware` is another word than `wäre`."""
    if text.isascii():
        return text.lower()
    low = unicodedata.normalize("NFC", text).lower().translate(_PLAIN)
    if low.isascii() or not _MARKED.search(low):
        return low
    return "".join(c for c in unicodedata.normalize("NFKD", low) if not unicodedata.combining(c))


@lru_cache(maxsize=256)
def words(text: str) -> tuple[str, ...]:
    """The folded words of a text."""
    return tuple(_WORD.findall(fold(text)))


_MOODS = CONDITION | CONDITIONAL | PAST | WHEN | UNTIL | DEADLINE | RECURRING
"""What a word says of its sentence even inside a phrase."""

HINTED_RULE = (PROHIBITION | DUTY | LIMITS) << HINT
_DENYING = NEGATION | PROHIBITION | PROHIBITION << HINT
_PERMITTING = NEGATION | LIMITS | CONDITION
"""In front of a POSSIBLE word, what makes a permission of it: `nobody may be`, `only members may have`, `they ask if it may be`."""

Meaning = tuple[int, int, int]
"""(bit of the language, bit of the category or of a hint at it, how far in front it has to stand)."""
_ANYWHERE, _CLAUSE_START, _SENTENCE_START = range(3)


Longer = tuple[tuple[str, ...], Meaning]
"""(the words behind the first, what they mean together)."""


class _Tables:
    """All phrases of the spaced languages: single words, and longer ones by their first and second words."""

    def __init__(self, languages: Sequence[Mapping[str, str]]) -> None:
        self.single: dict[str, list[Meaning]] = defaultdict(list)
        self.prefixes: dict[str, list[Meaning]] = defaultdict(list)
        self.suffixes: dict[str, list[Meaning]] = defaultdict(list)
        self.longer: dict[str, dict[str, list[Longer]]] = defaultdict(lambda: defaultdict(list))
        self.openings: dict[str, list[Longer]] = defaultdict(list)
        self.common: dict[str, int] = {}
        self.classes: dict[str, dict[str, int]] = {name: {} for name in CLASSES}
        self.members: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self.numbers: set[str] = set()
        self.large: set[str] = set()
        for place, language in enumerate(languages):
            for word in words(language["common"]):
                self.common[word] = self.common.get(word, 0) | 1 << place
            for name, members in self.classes.items():
                for word in words(language.get(name, "")):
                    members[word] = members.get(word, 0) | 1 << place
            numbers = words(language["numbers"])
            self.numbers.update(numbers)
            self.large.update(numbers[_SMALL_NUMBERS:])
            for category, bit in zip(CATEGORIES, _BITS, strict=True):
                for phrase in filter(str.strip, language.get(category, "").split(",")):
                    hint = HINT if phrase.strip().startswith("?") else 0
                    self._add(phrase.strip().removeprefix("?").split(), 1 << place, bit << hint)
        for name, members in self.classes.items():
            for word, spoken in members.items():
                self.members[word].append((name, spoken))

    def _add(self, phrase: Sequence[str], language: int, bit: int) -> None:
        first, *rest = (fold(word) for word in phrase)
        if bit & _OPENINGS:
            self.openings[first].append((tuple(rest), (language, bit, _SENTENCE_START)))
            return
        meaning = (language, bit, first.count("^"))
        first = first.lstrip("^")
        if rest:
            second = "" if "*" in rest[0] else rest[0]
            self.longer[first][second].append((tuple(rest), meaning))
        elif first.endswith("*"):
            self.prefixes[first[:-1]].append(meaning)
        elif first.startswith("*"):
            self.suffixes[first[1:]].append(meaning)
        else:
            self.single[first].append(meaning)


_TABLES = _Tables(_SPACED)
MONTHS: Mapping[str, int] = {
    **{word: place % 12 + 1 for language in _SPACED for place, word in enumerate(words(language["months"]))},
    "sept": 9,
    "setiembre": 9,
    "jaen": 1,
    "jaenner": 1,
}
"""The month that a folded name means."""
UNITS: frozenset[str] = frozenset(word for language in _SPACED for word in words(language["units"]))
"""Folded words behind a number that make it a quantity."""
COMMON: Mapping[str, int] = _TABLES.common
"""For each folded word that every text of some language is full of, the bits of these languages."""
NUMBERS: frozenset[str] = frozenset(_TABLES.numbers)
"""Folded names of numbers."""
LARGE_NUMBERS: frozenset[str] = frozenset(_TABLES.large)
"""Folded names of numbers above ten."""
_LONGEST_STEM = 14


@lru_cache(maxsize=8192)
def _meanings(word: str) -> tuple[Meaning, ...]:
    found = list(_TABLES.single.get(word, ()))
    for size in range(2, min(len(word), _LONGEST_STEM) + 1):
        found += _TABLES.prefixes.get(word[:size], ())
        found += _TABLES.suffixes.get(word[-size:], ())
    return tuple(found)


def _matches(pattern: Sequence[str], following: Sequence[str]) -> bool:
    if len(following) < len(pattern):
        return False
    for want, word in zip(pattern, following, strict=True):
        if want == word or (want[-1] == "*" and word.startswith(want[:-1])) or (want[0] == "*" and word.endswith(want[1:])):
            continue
        return False
    return True


def unspaced(text: str) -> bool:
    """Whether a text holds characters of a script that does not part its words."""
    return not text.isascii() and CJK.search(text) is not None


def is_common(word: str) -> bool:
    """Whether a folded word is one that every text of some language is full of."""
    return word in _TABLES.common


def is_number(word: str) -> bool:
    """Whether a folded word is the name of a number."""
    return word in NUMBERS


def is_a(word: str, name: str, within: int) -> bool:
    """Whether a folded word is in one of the `CLASSES`, in one of the languages."""
    return bool(_TABLES.classes[name].get(word, 0) & within)


def classes(words: Iterable[str], within: int) -> set[str]:
    """The `CLASSES` that folded words are in, in one of the languages."""
    known = _TABLES.members
    return {name for word in words if word in known for name, languages in known[word] if languages & within}


@lru_cache(maxsize=64)
def clauses(sentence: str) -> tuple[tuple[str, ...], ...]:
    """The folded words of each clause."""
    return tuple(tuple(_WORD.findall(clause)) for clause in _CLAUSE.split(fold(sentence)))


def read(sentence: str, within: int) -> int:
    """What a sentence does, as bits of the categories. within: the languages whose words count (`likely`)."""
    found = _of_now(_read_pieces(sentence)) if unspaced(sentence) else 0
    front = _SENTENCE_START
    for tokens in clauses(sentence):
        found |= _of_now(_read_clause(tokens, within, front))
        if front == _SENTENCE_START:
            found |= _opening(tokens, within)
        front = _CLAUSE_START if tokens else front
    if found & HINTED_RULE:
        found &= ~PAST
    return found | NEGATION if does(found, PROHIBITION) else found


def _of_now(found: int) -> int:
    """What a clause does, less the rule that it only hints at where it tells of the past: `he never came`, `she only smiled`."""
    return found & ~HINTED_RULE if found & PAST else found


def denials(text: str, within: int) -> int:
    """How often a text denies something: its words that do, in set phrases too, and its phrases and pieces."""
    negating = 0
    for clause in clauses(text):
        for bits, part in _parts(clause, within, _CLAUSE_START):
            own = sum(bool(_single(word, within, _ANYWHERE) & NEGATION) for word in part)
            negating += max(own, bool(bits & _DENYING))
    if unspaced(text):
        place = 1 if _HIRAGANA_OR_KATAKANA.search(text) else 0
        negating += len(_NEGATIONS[place].findall(_IDLE[place].sub("", text)))
    return negating


def does(found: int, bits: int) -> bool:
    """Whether a sentence does one of these, or hints at it."""
    return bool(found & (bits | bits << HINT))


def _read_clause(tokens: Sequence[str], within: int, front: int) -> int:
    """What a clause does. front: where it begins."""
    if 0 < len(tokens) <= 2 and all(any(bit == OBJECTION for _, bit, _ in _meanings(word)) for word in tokens):
        return OBJECTION
    found = 0
    for bits, _ in _parts(tokens, within, front):
        if bits & POSSIBLE and not does(found, _PERMITTING):
            bits |= HEDGE
        found |= bits
    if found & NEGATION and does(found, LEAVE):
        found |= PROHIBITION if found & LEAVE else PROHIBITION << HINT
    if (does(found, LIMITS) and does(found, LEAVE)) or (found & MORE and does(found, NEGATION | PROHIBITION)):
        found |= LIMITS
    return found & ~(IDLE | OBJECTION | POSSIBLE)


def _parts(tokens: Sequence[str], within: int, front: int) -> Iterator[tuple[int, Sequence[str]]]:
    """What each word of a clause does, or each phrase: the longest that begins somewhere, in which a word means its mood at most."""
    at, place = 0, front
    while at < len(tokens):
        word = tokens[at]
        bits, length = _phrase(tokens, at, within, place) if word in _TABLES.longer else (0, 1)
        if bits:
            bits |= _MOODS & reduce(or_, (_single(each, within, _ANYWHERE) for each in tokens[at : at + length]))
        else:
            bits = _single(word, within, place)
        yield bits, tokens[at : at + length]
        place = place if length == 1 and word in _LEADS else _ANYWHERE
        at += length


def _opening(tokens: Sequence[str], within: int) -> int:
    """How a sentence that begins with these words ties in with the one before it."""
    found = 0
    for rest, (language, bit, _) in _TABLES.openings.get(tokens[0], ()) if tokens else ():
        if language & within and _matches(rest, tokens[1 : len(rest) + 1]):
            found |= bit
    return found


def _phrase(tokens: Sequence[str], at: int, within: int, place: int) -> tuple[int, int]:
    """(what the longest phrase that begins here does, its words): what stands in it means nothing else. (0, 1) if none does."""
    by_second = _TABLES.longer[tokens[at]]
    if at + 1 == len(tokens):
        return 0, 1
    bits, length = 0, 0
    for rest, (language, bit, anchored) in (*by_second.get(tokens[at + 1], ()), *by_second.get("", ())):
        size = len(rest) + 1
        if size < length or not language & within or place < anchored:
            continue
        if _matches(rest, tokens[at + 1 : at + size]):
            bits, length = (bits | bit if size == length else bit), size
    return bits, length or 1


@lru_cache(maxsize=8192)
def _single(word: str, within: int, place: int) -> int:
    bits = 0
    for language, bit, anchored in _meanings(word):
        if language & within and place >= anchored:
            bits |= bit
    return bits


def _patterns(language: Mapping[str, str]) -> list[tuple[int, re.Pattern[str]]]:
    """For each bit, what shows it."""
    found: dict[int, list[str]] = defaultdict(list)
    for place, category in enumerate(CATEGORIES):
        for piece in language.get(category, "").split():
            found[1 << place + HINT * piece.startswith("?")].append(piece.removeprefix("?"))
    return [(bit, _any_of(pieces)) for bit, pieces in found.items()]


def _any_of(pieces: Sequence[str]) -> re.Pattern[str]:
    anywhere = map(re.escape, sorted((each for each in pieces if each[0] != "^"), key=len, reverse=True))
    in_front = (rf"\A{re.escape(each[1:])}" for each in pieces if each[0] == "^")
    return re.compile("|".join((*in_front, *anywhere)))


_PIECES = tuple(map(_patterns, _UNSPACED))
_STATED = tuple(_any_of(language["stated"].split()) for language in _UNSPACED)
"""Pieces that hold one of a guess or a request and are none."""
_UNSURE = HEDGE | TASK
_IDLE, _NEGATIONS = ([next(pattern for bit, pattern in patterns if bit == wanted) for patterns in _PIECES] for wanted in (IDLE, NEGATION))
_BARE = (NEGATION | PROHIBITION | HYPOTHETICAL | LIMITS) * (1 + (1 << HINT))
"""What is looked for without the set phrases."""


def _read_pieces(sentence: str) -> int:
    place = 1 if _HIRAGANA_OR_KATAKANA.search(sentence) else 0
    patterns = _PIECES[place]
    bare = _IDLE[place].sub("", sentence)
    stated = _STATED[place].sub("", sentence)
    found = 0
    for bit, pattern in patterns:
        if bit != IDLE and pattern.search(bare if bit & _BARE else stated if bit & _UNSURE else sentence):
            found |= bit
    return found | LIMITS if does(found, LIMITS) and does(found, LEAVE) else found
