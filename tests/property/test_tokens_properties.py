"""Token estimates for any text, and windows of any size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clew.context.tokens import GREATEST_RATIO, LEAST_RATIO, estimate, guard, learned, window

ANY_TEXT = st.text(alphabet=st.characters())


@given(ANY_TEXT)
def test_estimates_lie_between_their_bounds(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    assert -(-size // 3) <= estimate(text) <= 3 * size
    assert guard(text) >= max(estimate(text), -(-size // 2))


@given(ANY_TEXT, ANY_TEXT)
def test_more_text_is_never_fewer_tokens(text: str, more: str) -> None:
    assert estimate(text + "\n" + more) >= max(estimate(text), estimate(more)) - 1


# P9
@given(st.integers(2_800, 2_000_000), st.none() | st.integers(0, 100_000), st.none() | st.integers(1, 3_000_000))
def test_numbers_of_a_window_are_in_order(model_window: int, max_tokens: int | None, trigger: int | None) -> None:
    if max_tokens is not None and max_tokens >= model_window:
        return
    numbers = window(model_window, max_tokens, trigger)
    assert 0 <= numbers.target <= numbers.threshold <= numbers.hard_limit <= model_window
    assert trigger is not None or 0 < numbers.target <= numbers.threshold <= numbers.w


# P9
@given(st.integers(3_000, 1_000_000), st.integers(0, 1_000_000))
def test_target_never_falls_under_what_is_fixed_or_over_the_limit(model_window: int, fixed: int) -> None:
    numbers = window(model_window)
    target = numbers.target_above(fixed)
    assert numbers.target <= target <= numbers.hard_limit
    assert target >= min(fixed, numbers.hard_limit)


# P9
@given(st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 400_000)), max_size=20))
def test_a_ratio_stays_between_what_was_seen_and_within_its_bounds(calls: list[tuple[int, int]]) -> None:
    ratio: float | None = None
    for estimated, reported in calls:
        before, ratio = ratio, learned(ratio, estimated, reported)
        assert ratio is None or LEAST_RATIO <= ratio <= GREATEST_RATIO
        if ratio is not None and before is not None and estimated and reported:
            seen = min(max(reported / estimated, LEAST_RATIO), GREATEST_RATIO)
            assert min(before, seen) <= ratio <= max(before, seen)
