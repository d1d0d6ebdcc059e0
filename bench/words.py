"""Messages of made-up words, the same for the same number."""

import random
from collections.abc import Sequence
from itertools import accumulate

COMMON = [
    f"{a}{b}{c}"
    for a in ("ka", "lo", "mi", "tu", "re", "sa", "no", "vi", "do", "pe")
    for b in "bdfglmnprstz"
    for c in ("an", "el", "is", "or", "um")
]
"""600 made-up words; the n-th is used as often as 1/n, as in any language."""
VOCABULARY = [*COMMON, *(f"{word}{a}{b}" for a in "bdgklmnprst" for b in "aio" for word in COMMON)]
"""20,400 of them, as many as people use: most messages hold a word that few others do."""
WORDS_PER_MESSAGE = 20


def line(number: int) -> str:
    """A message of common words alone."""
    return _drawn(number, COMMON, _COMMON)


def sentence(number: int) -> str:
    """A message of common and rare words."""
    return _drawn(number, VOCABULARY, _VOCABULARY)


def _weights(words: Sequence[str]) -> list[float]:
    return list(accumulate(1 / rank for rank in range(1, len(words) + 1)))


_COMMON, _VOCABULARY = _weights(COMMON), _weights(VOCABULARY)


def _drawn(number: int, words: Sequence[str], weights: Sequence[float]) -> str:
    return " ".join(random.Random(number).choices(words, cum_weights=weights, k=WORDS_PER_MESSAGE))
