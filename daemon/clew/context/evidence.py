"""The newly demoted messages as proof of what a summary says. Pure."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from clew.context import clauses, languages, phrases
from clew.context.identifiers import Identifier, identifiers
from clew.context.steps import Steps
from clew.context.survival import Heard, Said, Statement, content

BATCH = 50
"""Statements that are taken in one step."""


def gathered(heard: Heard) -> Steps[Evidence]:
    """What was heard as evidence."""
    evidence = Evidence(heard)
    for index, each in enumerate(heard.statements):
        evidence.take(index, each)
        if index % BATCH == 0:
            yield
    return evidence


class Evidence:
    """What was heard, by its source and by the words in it. Made by `gathered`."""

    def __init__(self, heard: Heard) -> None:
        self.statements = heard.statements
        self.languages = heard.languages
        self.stems: set[str] = set()
        self._said = {each.id: each for each in heard.said}
        self._texts: dict[str, tuple[str, frozenset[str]]] = {}
        self._places = {str(each.place): each.id for each in heard.said}
        self._by_source: dict[str, list[Statement]] = defaultdict(list)
        self._by_stem: dict[str, list[int]] = defaultdict(list)

    def take(self, index: int, statement: Statement) -> None:
        """File the statement that stands at `index`."""
        for source in sources(statement):
            self._by_source[source.id].append(statement)
        for stem in statement.stems:
            self._by_stem[stem].append(index)
        self.stems |= statement.stems

    def cited(self, names: Iterable[str]) -> list[Said]:
        """The messages that these positions or ids name; what names none is left out."""
        ids = dict.fromkeys(self._places.get(name, name) for name in names)
        return [self._said[each] for each in ids if each in self._said]

    def of(self, cited: Iterable[Said]) -> list[Statement]:
        """What is said in these messages."""
        return [statement for each in cited for statement in self._by_source.get(each.id, ())]

    def claim(self, text: str) -> Claim:
        """A text taken apart, in the languages of these messages."""
        within = self._spoken(text)
        does = clauses.read(text, within)
        denials = phrases.denials(text, within)
        return Claim(text, does, tuple(identifiers(text)), content(text), phrases.words(text), denials)

    def denials(self, text: str) -> int:
        """How often a text denies something, in the languages of these messages."""
        return phrases.denials(text, self._spoken(text))

    def _spoken(self, text: str) -> int:
        return languages.within(languages.counts(text), self.languages)

    def words(self, cited: Said) -> tuple[str, frozenset[str]]:
        """What was said in a message, as `normal` gives it, and its folded words with those of its speaker's name."""
        if cited.id not in self._texts:
            folded = phrases.words(f"{cited.text}\n{cited.speaker}")
            self._texts[cited.id] = normal(cited.text), frozenset(folded)
        return self._texts[cited.id]

    def nearest(self, claim: Claim) -> Statement | None:
        """The statement that shares most with a claim, of all of them; None where none shares half of it."""
        counts: Counter[int] = Counter()
        for stem in claim.stems:
            counts.update(self._by_stem.get(stem, ()))
        if not counts:
            return None
        most = max(counts.values())
        if 2 * most < len(claim.stems):
            return None
        return self.statements[min(index for index, count in counts.items() if count == most)]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a line of the summary says, taken apart as a statement is.

    folded: its words without case and accents, in order. denials: how often it denies something.
    """

    text: str
    does: int
    identifiers: tuple[Identifier, ...]
    stems: frozenset[str]
    folded: tuple[str, ...]
    denials: int


def sources(statement: Statement) -> tuple[Said, ...]:
    return (statement.said,) if statement.also is None else (statement.also, statement.said)


def nearest_of(claim: Claim, statements: Sequence[Statement]) -> Statement | None:
    """The statement that shares most words and identifiers with a claim, the first of equal ones; None where none shares any."""
    best, most = None, 0
    names = {each.text for each in claim.identifiers}
    for each in statements:
        shared = len(claim.stems & each.stems) + 2 * sum(identifier.text in names for identifier in each.identifiers)
        if shared > most:
            best, most = each, shared
    return best


def normal(text: str) -> str:
    """`text` as it is compared with another one: compatibility forms, case and runs of white space do not count."""
    return " ".join((text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold().split())


def holds(text: str, part: str) -> bool:
    """Whether `part` stands in `text` as a whole, not inside of a longer word or number. Both are `normal`."""
    start = text.find(part) if part else -1
    while start >= 0:
        if _parted(text, start, part[0], -1) and _parted(text, start + len(part) - 1, part[-1], 1):
            return True
        start = text.find(part, start + 1)
    return False


def _parted(text: str, at: int, own: str, step: int) -> bool:
    """Whether a part that begins (step -1) or ends (step 1) at `at` with the character `own` ends there."""
    beside = text[at + step] if 0 <= at + step < len(text) else ""
    if not own.isalnum() or not beside or phrases.CJK.match(own) or phrases.CJK.match(beside):
        return True
    if beside.isalnum():
        return False
    beyond = text[at + 2 * step] if 0 <= at + 2 * step < len(text) else ""
    return not (own.isdigit() and beside in ".,'" and beyond.isdigit())


def names(claim: Claim, known: Collection[str]) -> set[str]:
    """Folded words that look like names of somebody or something and are not among the folded words `known`.

    Words with a capital inside a sentence; runs of katakana. At the start of a sentence capitals mean nothing.
    """
    found: set[str] = set()
    opening = True
    for run in claim.text.split():
        core = run.strip("\"'“”„«»‹›‘’`()[]{}<>,;:!?.…*_–-")
        if core[:1].isupper() and not opening and len(core) > 1:
            found.update(word for word in phrases.words(core) if len(word) > 1 and not word.isdigit())
        opening = run[-1:] in ".!?:…" or core == "" or run[:1] in '"“„«'
    return {word for word in found if word not in known and not phrases.is_common(word)} | _katakana(claim.text, known)


def _katakana(text: str, known: Collection[str]) -> set[str]:
    if not phrases.CJK.search(text):
        return set()
    joined = "".join(known)
    return {run for run in phrases.KATAKANA.findall(text) if phrases.fold(run) not in joined}
