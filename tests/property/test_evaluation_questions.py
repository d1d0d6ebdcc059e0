"""What counts as brought back."""

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from clew.evaluation.questions import COVERED, SLACK, covers

some = st.lists(st.sampled_from("abcd"), max_size=12)


def plainly(sought: list[str], given: list[str]) -> bool:
    size = max(len(sought), math.ceil(SLACK * len(sought)))
    stretches = [Counter(given[start : start + size]) for start in range(len(given))]
    return bool(sought) and any((Counter(sought) & each).total() >= COVERED * len(sought) for each in stretches)


@given(some, some)
def test_a_message_is_covered_by_a_stretch_that_holds_most_of_its_words(sought: list[str], given: list[str]) -> None:
    assert covers(sought, given) == plainly(sought, given)
    assert covers(sought, given + sought) == bool(sought)
