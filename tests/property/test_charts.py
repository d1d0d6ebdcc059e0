"""Shapes of charts: any values stay in the frame, and parts stand on each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.web.charts import HEIGHT, chart

numbers = st.floats(-10, 1e12, allow_nan=False)
parts = st.lists(numbers, max_size=4)


@given(st.lists(parts, max_size=20), st.none() | st.floats(0, 1e9), st.lists(st.integers(-3, 25), max_size=4))
def test_bars_stay_in_their_places(values: list[list[float]], most: float | None, marks: list[int]) -> None:
    made = chart(values, [str(number) for number in range(len(values))], most=most, marks=marks)
    assert len(made.bars) == len(values)
    for number, bar in enumerate(made.bars):
        floor = HEIGHT
        for box in bar.boxes:
            assert number < box.x < box.x + box.width < number + 1
            assert box.height >= 0
            assert box.y + box.height == pytest.approx(floor, abs=0.01)
            floor = box.y
        assert floor >= -0.01
    assert all(0 <= mark < len(values) for mark in made.marks)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=10))
def test_heights_are_in_proportion(values: list[float]) -> None:
    made = chart([[value] for value in values], ["" for _ in values])
    assert made.most == max(values)
    for bar, value in zip(made.bars, values, strict=True):
        height = sum(box.height for box in bar.boxes)
        assert height == pytest.approx(HEIGHT * value / made.most if made.most else 0.0, abs=0.01)


def test_parts_keep_their_number_and_marks_their_order() -> None:
    made = chart([[1, 0, 3], [0, 2, 2]], ["a", "b"], marks=[1, 0, 1, 7])
    assert [[box.part for box in bar.boxes] for bar in made.bars] == [[0, 2], [1, 2]]
    assert made.marks == (0.0, 1.0)
    assert chart([], []).width == 1
    with pytest.raises(ValueError, match="zip"):
        chart([[1]], [])
