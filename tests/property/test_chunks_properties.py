"""Any text at all is cut into pieces that hold all of it, and of any rankings one is made."""

import re

from hypothesis import given
from hypothesis import strategies as st

from clew.context.chunks import LONGEST_FENCE, Fences, Section, chunks
from clew.context.fusion import K, fused
from clew.documents.html import html
from clew.documents.markdown import markdown

lines = st.one_of(
    st.sampled_from(
        ["", "```", "```sh", "~~~", "~~~~", "# One", "## Two", "---", "===", "    ```", "word " * 300, "x" * 3000, "- a", "````"]
    ),
    st.text(max_size=40),
    st.text(alphabet="ab.。 ", max_size=400),
)
texts = st.lists(lines, max_size=30).map("\n".join)
longest = st.integers(40, 1200)


def words(text: str) -> str:
    """All that is written, without spaces and the marks of code."""
    return re.sub(r"\s|```+|~~~+", "", text)


@given(texts, longest)
def test_pieces_hold_all_of_a_text_in_its_order(text: str, most: int) -> None:  # P41
    kept = words("".join(each.text for each in chunks([Section("", text)], most)))
    if "```" in text or "~~~" in text:  # parts of a long block of code repeat its first line
        assert set(words(text)) <= set(kept)
    else:
        assert kept == words(text)


@given(texts, longest)
def test_pieces_are_bounded_and_none_begins_or_ends_inside_of_code(text: str, most: int) -> None:  # P41
    found = chunks([Section("", text)], most)
    for number, each in enumerate(found):
        assert each.text.strip()
        fences = Fences()
        inside = [fences.inside(line) for line in each.text.split("\n")]
        assert len(each.text) <= (LONGEST_FENCE + most if any(inside) else most)
        # Only a block that its own text never closes stays open, to the end of it.
        assert not fences.mark or number == len(found) - 1


@given(texts)
def test_any_text_is_markdown_and_a_page(text: str) -> None:  # P41
    for contents in (markdown(text), html(text)):
        assert len(contents.title) <= 200
        for section in contents.sections:
            assert section.text.strip()
            assert len(section.place) <= 6 * 120 + 5 * 3


rankings = st.lists(st.lists(st.integers(0, 20), unique=True, max_size=12), max_size=4)


@given(rankings)
def test_every_thing_of_every_ranking_is_in_the_fused_one_once(each: list[list[int]]) -> None:  # P41
    found = fused(each)
    assert sorted(found) == sorted({thing for ranking in each for thing in ranking})
    assert fused(each) == found


@given(st.lists(st.integers(), unique=True, max_size=12))
def test_one_ranking_alone_and_one_that_agrees_stay_as_they_are(ranking: list[int]) -> None:
    assert fused([ranking]) == fused([ranking, ranking]) == fused([ranking, []]) == ranking


@given(rankings, st.integers(0, 20))
def test_what_stands_in_front_everywhere_stands_in_front(each: list[list[int]], first: int) -> None:
    led = [[first, *(thing for thing in ranking if thing != first)] for ranking in each]
    assert not led or fused(led)[0] == first


def test_two_middling_ranks_beat_a_first_one_alone() -> None:
    assert fused([["a", "b"], ["c", "b"]])[0] == "b"
    assert fused([["a"], ["b"]]) == ["a", "b"]
    assert K == 60
