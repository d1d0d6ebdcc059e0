"""What to ask the full-text index for, given what a person just wrote."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain

from clew.context.redact import redact
from clew.context.sought import Sought
from clew.context.spans import Span, day_words, spans, spelled
from clew.context.stopwords import COURTESY, stop_words
from clew.context.text import (
    MAX_WORD,
    SPOKEN_BY,
    UNSPACED_RUN,
    WORD,
    clean,
    emoji,
    extra_words,
    letters,
    normalise,
    pairs,
    stem,
)

MAX_QUERY_CHARS = 8_000
"""Characters of a message that are read for terms: the first three quarters and the last quarter of this."""
MAX_TERMS = 16
ENOUGH_TERMS = 3
"""A message with fewer terms than this is a follow-up: terms of the turns before it join, up to `FOLLOW_UP_TERMS`."""
FOLLOW_UP_TERMS = 6
SPEAKS_MOST = 0.25
"""Share of all messages above which it says nothing who said one."""
DAYS_WEIGHT = 5.0
NEAR_WEIGHT = 2.0
"""What it weighs to have been written on a day that is asked about, as a rare word, and within `NEAR_DAYS` of it, as a common one."""
NEAR_DAYS = 7
SLACK_DAYS = 1
"""Days are the writer's, those of the index UTC's; and people tell of a day on the next one."""
PLANNED_DAYS = 14
"""What is to come was spoken of within so many days, as a rule."""
SPELLED = 7
"""Days to come that are looked for by their dates: a week of them."""
OTHER_YEARS = 0.5
"""Share of it for the same days of earlier years, where no year is named."""

Frequencies = Callable[[Collection[str]], Mapping[str, int]] | Mapping[str, int]
"""In how many messages words stand. A function is asked once, of all words that are to be known; what it does not name stands in none."""

_QUOTED = re.compile(r'"([^"\n]{3,100})"|“([^”\n]{3,100})”|„([^“”\n]{3,100})[“”]|«([^»\n]{3,100})»|「([^」\n]{2,100})」')
_CHUNK = re.compile(r"[^\W_]+(?:[._/:@-]{1,2}[^\W_]+){0,15}")
_ASKING = re.compile(
    r"[?？]|\b(?:why|how|what|when|where|who|which|more|continue|again|warum|wieso|wie|wann|wo|wer|was|mehr|weiter|nochmal)\b"
)
_REDACTED = re.compile(r"\[redacted[^\]]{0,30}\]")
_POSSESSIVE = re.compile(r"['’](?:s|re|ve|ll|d|m|t)\b")


@dataclass(frozen=True, slots=True)
class Days:
    """Days that a message asks about: the index's words for them, and what it weighs to have been written then.

    spoken: phrases for days to come, of which it is to speak instead. ahead: they bring nothing back that has not the words as well.
    """

    words: tuple[str, ...]
    weight: float
    spoken: tuple[str, ...] = ()
    ahead: bool = False

    @property
    def sought(self) -> Sought:
        """What the index is asked for."""
        return Sought(("text",), self.spoken) if self.spoken else Sought(("day",), self.words)


@dataclass(frozen=True, slots=True)
class Query:
    """What one message asks the index for.

    `terms` are normalised words and phrases (words parted by a space), `weights` the inverse document frequency of each, `words` the
    stemmed words of the message that say something, `total` the number of messages in the store, `days` when what is sought was written,
    `speakers` those of the terms that are names of who speaks, with the inverse document frequency of being said by them.
    """

    terms: tuple[str, ...]
    weights: tuple[float, ...]
    words: frozenset[str] = frozenset()
    total: int = 0
    days: tuple[Days, ...] = ()
    speakers: tuple[tuple[str, float], ...] = ()

    @property
    def mass(self) -> float:
        """The weight of everything that is asked for."""
        past = max((each.weight for each in self.days if not each.ahead), default=0.0)
        return sum(self.weights) + past or max((each.weight for each in self.days), default=0.0)

    def sought(self, term: int) -> Sought:
        """What the index is asked for the term of this number."""
        return Sought(("text",), (self.terms[term],))

    def spoken_by(self, speaker: int) -> Sought:
        """What the index is asked for what the speaker of this number said."""
        return Sought(("speaker",), (self.speakers[speaker][0],))


def query(
    text: str,
    previous: Sequence[str] = (),
    names: Collection[str] = (),
    frequencies: Frequencies | None = None,
    total: int = 0,
    today: date | None = None,
    *,
    sought: bool = False,
) -> Query | None:
    """The query for the user's message `text`, or None where it asks for nothing.

    `previous` are the user's messages before it, oldest first; `names` the known speakers, whose names count even
    where they are stop words too; `frequencies` gives the numbers of messages that words of `tokens` occur in;
    `total` is the number of messages in the store; `today` the writer's date, without which no day is understood; `sought` says that
    the text is a search: days in it count (in a message only where it asks something), emoji do, and so does every word where there is
    nothing else. Never raises for any `text`.
    """
    source = _bounded(text)
    named = {word for name in names for word in WORD.findall(normalise(name))}
    found = own = _sought(source, named) if sought else _terms(source, named)
    if len(found) < ENOUGH_TERMS and previous and (found or _ASKING.search(normalise(source))):
        for earlier in reversed(previous):
            found = list(dict.fromkeys(found + _terms(_bounded(earlier), named)))[:FOLLOW_UP_TERMS]
            if len(found) == FOLLOW_UP_TERMS:
                break
    days = _days(source, today) if today and (sought or _ASKING.search(normalise(source))) else ()
    if not found and not days:
        return None
    stems = {term: [stem(word) for word in term.split(" ")] for term in found}
    often = _known(stems.values(), [SPOKEN_BY + stem(term) for term in found], frequencies)
    counts = {term: min(often.get(word, 0) for word in words) for term, words in stems.items()}
    if len(found) > MAX_TERMS:
        kept = set(sorted(found, key=lambda term: (counts[term] == 0, counts[term], -len(term), term))[:MAX_TERMS])
        found = [term for term in found if term in kept]
    return Query(
        terms=tuple(found),
        weights=tuple(idf(counts[term], total) for term in found),
        words=frozenset(stem(word) for term in own for word in term.split(" ")),
        total=total,
        days=days,
        speakers=tuple(_speakers(found, often, total)),
    )


def _known(words: Iterable[Iterable[str]], names: Iterable[str], frequencies: Frequencies | None) -> Mapping[str, int]:
    if frequencies is None or isinstance(frequencies, Mapping):
        return frequencies or {}
    return frequencies({*chain.from_iterable(words), *names})


def _speakers(terms: Iterable[str], often: Mapping[str, int], total: int) -> Iterator[tuple[str, float]]:
    for term in terms:
        count = often.get(SPOKEN_BY + stem(term), 0)
        if 0 < count <= total * SPEAKS_MOST:
            yield term, idf(count, total)


def _days(source: str, today: date) -> tuple[Days, ...]:
    named = spans(source, today)
    past, ahead = [span for span in named if not span.ahead], [span for span in named if span.ahead]
    groups = (([span for span in past if span.likely], 1.0), ([span for span in past if not span.likely], OTHER_YEARS))
    reach = ((SLACK_DAYS, DAYS_WEIGHT), (NEAR_DAYS, NEAR_WEIGHT))
    days = [Days(day_words(group, around), share * weight) for group, share in groups if group for around, weight in reach]
    return (*days, *_to_come(ahead, today))


def _to_come(ahead: Sequence[Span], today: date) -> Iterator[Days]:
    """Of days to come people spoke by their dates, and lately."""
    if ahead:
        yield Days((), DAYS_WEIGHT, spelled(ahead, SPELLED), ahead=True)
        yield Days(day_words([Span(today, today)], PLANNED_DAYS), NEAR_WEIGHT, ahead=True)


def idf(count: int, total: int) -> float:
    """Inverse document frequency of a term in `count` of `total` messages; above 0 for every pair."""
    count = min(count, total)
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _bounded(text: str) -> str:
    text = clean(text)
    if len(text) > MAX_QUERY_CHARS:
        text = text[: MAX_QUERY_CHARS * 3 // 4] + " " + text[-MAX_QUERY_CHARS // 4 :]
    return redact(text)


def _terms(source: str, named: Collection[str]) -> list[str]:
    source = _REDACTED.sub(" ", source)
    plain = normalise(source)
    chosen: list[str] = []
    for groups in _QUOTED.findall(plain):
        phrase = WORD.findall(next(filter(None, groups), ""))
        if 2 <= len(phrase) <= 8:
            chosen.append(" ".join(word[:MAX_WORD] for word in phrase))
    spaced = _POSSESSIVE.sub(" ", plain)
    dropped = (stop_words(WORD.findall(spaced)) | COURTESY) - _called(source, named)
    for chunk in _CHUNK.findall(UNSPACED_RUN.sub(" ", spaced)):
        words = [word[:MAX_WORD] for word in WORD.findall(chunk)][:8]
        if len(words) > 1:
            chosen.append(" ".join(words))
        chosen.extend(word for word in words if _salient(word, dropped))
    chosen.extend(_unspaced(plain))
    chosen.extend(word for word in extra_words(source, plain) if word.isascii() and word not in dropped)
    return list(dict.fromkeys(chosen))


def _sought(source: str, named: Collection[str]) -> list[str]:
    """The terms of a search: emoji too, and where there is nothing else every word and character."""
    found = _terms(source, named) + list(dict.fromkeys(emoji(source)))
    if found:
        return found
    plain = normalise(_REDACTED.sub(" ", source))
    unspaced = [each for run in UNSPACED_RUN.findall(plain) for each in pairs(run) or letters(run)]
    return list(dict.fromkeys([*(word[:MAX_WORD] for word in WORD.findall(plain)), *unspaced]))


def _called(source: str, named: Collection[str]) -> set[str]:
    """The names in `named` that `source` writes with a capital: Will and Mark are people there, not a stop word and a verb."""
    return {normalise(word) for word in WORD.findall(source) if word[0].isupper() and normalise(word) in named} if named else set()


def _salient(word: str, dropped: Collection[str]) -> bool:
    return word not in dropped and (len(word) > 1 or not word.isascii())


def _unspaced(plain: str) -> Iterable[str]:
    for run in UNSPACED_RUN.findall(plain):
        found = pairs(run) or letters(run)
        yield from [pair for pair in found if not all("\u3040" <= c <= "\u309f" for c in pair)]
