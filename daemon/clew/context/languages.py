"""Which languages a text is in, by its common words and by letters that others have not. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from clew.context.phrases import ALL, COMMON, words

_LETTERS_OF = {1 << 1: frozenset("äöüßÄÖÜ"), 1 << 3: frozenset("ñ¿¡Ñ"), 1 << 5: frozenset("ãõÃÕ"), 1 << 7: frozenset("ąęłńśźżĄĘŁŃŚŹŻ")}
"""Letters of German, Spanish, Portuguese and Polish, by the language's place among the tables."""
_LETTER_COUNTS = 2
_ENOUGH_WORDS = 3
"""Common words from which a text tells its own language."""


def counts(text: str) -> dict[int, int]:
    """How much in a text speaks for each language, by the language's bit: its common words, and letters that others have not."""
    found: dict[int, int] = {}
    if not text.isascii():
        for bit, letters in _LETTERS_OF.items():
            if not letters.isdisjoint(text):
                found[bit] = _LETTER_COUNTS
    for mask, number in Counter([COMMON[word] for word in words(text) if word in COMMON]).items():
        rest = mask
        while rest:
            bit = rest & -rest
            found[bit] = found.get(bit, 0) + number
            rest ^= bit
    return found


def likely(counts: Mapping[int, int]) -> int:
    """The languages, as bits, of a text with these counts: those that come near the best one; all where nothing tells them apart."""
    most = max(counts.values(), default=0)
    if not most:
        return ALL
    return sum(bit for bit, count in counts.items() if 3 * count >= 2 * most or count + 1 == most)


def within(counts: Mapping[int, int], usual: int) -> int:
    """The languages, as bits, that a short text with these counts may be in, among those of the conversation around it."""
    own = likely(counts)
    return own & usual or (own if sum(counts.values()) >= _ENOUGH_WORDS else usual)


def foreign(counts: Mapping[int, int], expected: int) -> int:
    """The languages, as bits, of a sentence with these counts that is plainly in none of the expected ones; 0 where it is not."""
    if sum(counts.values()) < _ENOUGH_WORDS:
        return 0
    most = max(counts.values())
    own = sum(bit for bit, count in counts.items() if count == most)
    return 0 if own & expected else own
