"""Quantised vectors keep their angles."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.context.vectors import MOST_DIMENSIONS, cosines, quantised, similarities

numbers = st.floats(-1e6, 1e6, allow_nan=False).filter(lambda number: number == 0 or abs(number) > 1e-3)
vectors = st.integers(1, 64).flatmap(lambda size: st.tuples(*(st.lists(numbers, min_size=size, max_size=size) for _ in range(2))))


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))


@given(vectors)
def test_a_cosine_survives_a_byte_for_each_dimension(pair: tuple[list[float], list[float]]) -> None:
    one, other = pair
    if not any(one) or not any(other):
        assert b"" in (quantised(one), quantised(other))
        return
    [found] = similarities(quantised(one), [quantised(other)])
    # Each number is off by half a step of 1/127 of the largest at most, so a vector by that times the root of their count.
    assert abs(found - cosine(one, other)) <= 2.1 * math.sqrt(len(one)) / 254


@given(st.lists(numbers, min_size=1, max_size=64), st.floats(0.01, 100))
def test_length_says_nothing(values: list[float], factor: float) -> None:
    ours, scaled = quantised(values), quantised([value * factor for value in values])
    assert all(abs(a - b) <= 1 for a, b in zip(memoryview(ours).cast("b"), memoryview(scaled).cast("b"), strict=True))


@example(b"\0\0", [b"\1\0", b"", b"\1"])
@example(b"\1\0", [b"\0\0"])
@given(st.binary(max_size=64), st.lists(st.binary(max_size=64), max_size=4))
def test_any_bytes_compare(one: bytes, others: list[bytes]) -> None:
    found = similarities(one, others)
    assert len(found) == len(others)
    assert all(-1.0000001 <= each <= 1.0000001 for each in found)


@given(st.integers(1, 40).flatmap(lambda size: st.lists(st.binary(min_size=size, max_size=size), min_size=1, max_size=6)), st.data())
def test_with_numpy_and_without_it_is_the_same(held: list[bytes], data: st.DataObject) -> None:
    place = st.integers(0, len(held) - 1)
    pairs = data.draw(st.lists(st.tuples(place, place), max_size=9))
    # With an empty one among them they make no matrix.
    assert cosines(held, pairs) == pytest.approx(cosines([*held, b""], pairs), abs=1e-9)


@pytest.mark.parametrize("values", [[math.nan], [1.0, math.inf], [0.5] * (MOST_DIMENSIONS + 1)])
def test_what_is_no_vector_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="no vector"):
        quantised(values)
