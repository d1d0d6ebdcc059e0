"""Vectors of texts, as small whole numbers: kept in a byte each, compared by their angle. Pure."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from operator import mul
from typing import Any

from clew.context.redact import redact

MOST_DIMENSIONS = 8192
"""More than any model in use gives."""
_LARGEST = 127


def quantised(values: Iterable[float]) -> bytes:
    """A vector in a byte for each dimension, its largest number as 127. One that points nowhere is empty.

    Raises ValueError where a value is not finite, or there are more than `MOST_DIMENSIONS`.
    """
    numbers = [float(value) for value in values]
    if len(numbers) > MOST_DIMENSIONS or not all(map(math.isfinite, numbers)):
        raise ValueError("no vector: too long, or with a number that is not finite")
    largest = max(map(abs, numbers), default=0.0)
    if largest == 0:
        return b""
    return bytes(round(number / largest * _LARGEST) & 0xFF for number in numbers)


def embeddable(text: str, names: Collection[str], known: Collection[str] = ()) -> str:
    """What of a text is turned into a vector: all of it, without credentials, without `known` secrets, and without the names of those who
    speak (`names`), which say nothing of what it is about. On public two-person chats the names cost 0.8 points of evidence recall."""
    words = sorted({word for name in names for word in name.split()}, key=lambda word: (-len(word), word))
    plain = redact(text, known)
    if not words:
        return plain
    return re.sub(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?:['’]s)?(?!\w)", " ", plain)


def similarities(one: bytes, others: Sequence[bytes]) -> list[float]:
    """The cosine of the angle between a vector and each of the others; 0 for an empty one and for one of another length."""
    return cosines([one, *others], [(0, number) for number in range(1, len(others) + 1)])


def cosines(vectors: Sequence[bytes], pairs: Iterable[tuple[int, int]]) -> list[float]:
    """The same for pairs of vectors, each named by its place in `vectors`. With numpy, where it is installed, ten times as fast."""
    compared = list(pairs)
    numpy = _numpy() if compared and len(set(map(len, vectors))) == 1 else None
    if numpy is not None:
        rows = numpy.frombuffer(b"".join(vectors), numpy.int8).reshape(len(vectors), -1).astype(numpy.float64)
        rows /= numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1)  # whole numbers: shorter than 1 is 0
        one, other = numpy.array(compared).T
        return list((rows[one] * rows[other]).sum(axis=1).tolist())
    numbers = [memoryview(each).cast("b").tolist() for each in vectors]
    lengths = [math.sqrt(sum(map(mul, each, each))) for each in numbers]
    return [_cosine(numbers[one], numbers[other], lengths[one] * lengths[other]) for one, other in compared]


@cache
def _numpy() -> Any:
    """numpy, None where it is not installed."""
    try:
        return importlib.import_module("numpy")
    except ImportError:
        return None


def _cosine(one: Sequence[int], other: Sequence[int], lengths: float) -> float:
    return sum(map(mul, one, other)) / lengths if lengths and len(one) == len(other) else 0.0
