from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew_transports.text import MIN_LIMIT, Unit, measure, pieces, split

UNITS: tuple[Unit, ...] = ("characters", "utf16", "bytes")
CLUSTERS = ("é", "e\u0301\u0323", "👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "1️⃣", "각", "\r\n", "𝄞", "नि", "🏴\U000e0067\U000e0062\U000e007f")

words = st.sampled_from(["a", "word", "longer-word", "Ende.", "Was?", "。", " ", "  ", "\n", "\n\n", "\n \n", "\t", *CLUSTERS])
fence_lines = st.sampled_from(
    ["```\n", "```python\n", "~~~\n", "````js title=x\n", "```", "  ```\n", "x = 1\n", "\n", "y" * 90, "long line " * 12]
)
prose = st.lists(words, max_size=400).map("".join)
markdown = st.lists(st.one_of(fence_lines, words), max_size=120).map("".join)
texts = st.one_of(st.text(max_size=600), prose, markdown)
units = st.sampled_from(UNITS)
limits = st.integers(MIN_LIMIT, 400)


@given(texts, limits, units)
def test_each_part_fits(text: str, limit: int, unit: Unit) -> None:
    assert all(measure(part, unit) <= limit for part in split(text, limit, unit))


@given(texts, limits, units)
def test_nothing_is_lost_and_the_order_is_kept(text: str, limit: int, unit: Unit) -> None:
    found = pieces(text, limit, unit)
    assert "".join(piece.body for piece in found) == text
    assert all(piece.body for piece in found) or text == ""


@given(texts, limits, units)
def test_only_parts_of_white_space_are_left_out(text: str, limit: int, unit: Unit) -> None:
    whole = [str(piece) for piece in pieces(text, limit, unit)]
    parts = split(text, limit, unit)
    assert [part for part in whole if part.strip()] == [part for part in parts if part.strip()]
    assert len(parts) == 1 or all(part.strip() for part in parts)


@given(st.lists(st.sampled_from(CLUSTERS), max_size=200), limits, units)
def test_no_cut_inside_a_letter_an_emoji_or_a_flag(clusters: list[str], limit: int, unit: Unit) -> None:
    boundaries = set(accumulate(map(len, clusters)))
    cuts = list(accumulate(len(piece.body) for piece in pieces("".join(clusters), limit, unit)))
    assert not [cut for cut in cuts if cut and cut not in boundaries]


def open_fence(text: str) -> str | None:
    """The marker of the code fence that is open at the end of `text`, read line by line as a chat client would."""
    opened: str | None = None
    for line in text.split("\n"):
        bare = line.strip(" \r")
        marker = bare[: len(bare) - len(bare.lstrip(bare[:1]))] if bare[:1] in {"`", "~"} else ""
        if len(marker) < 3:
            continue
        if opened is None and "`" not in bare[len(marker) :]:
            opened = marker
        elif opened is not None and bare == marker and marker.startswith(opened):
            opened = None
    return opened


code_lines = st.lists(st.sampled_from(["x = 1", "", "    indented", "y" * 150, "# comment"]), min_size=1, max_size=30)
blocks = st.tuples(st.sampled_from(["```", "```python", "~~~sh", "````md"]), code_lines).map(
    lambda block: "\n".join([block[0], *block[1], block[0].rstrip("abcdefghijklmnopqrstuvwxyz")]) + "\n"
)


@given(st.lists(st.one_of(blocks, st.just("Some prose about it.\n\n")), max_size=6).map("".join), limits, units)
def test_every_part_closes_the_fence_it_opens(text: str, limit: int, unit: Unit) -> None:
    for part in split(text, limit, unit):
        assert open_fence(part) is None, part


@given(st.text(max_size=50), st.integers(max_value=MIN_LIMIT - 1))
def test_a_limit_too_small_for_a_fence_is_an_error(text: str, limit: int) -> None:
    with pytest.raises(ValueError, match="room"):
        split(text, limit)


@given(st.integers(1, 600), limits, units)
def test_a_letter_longer_than_a_part_is_still_cut(marks: int, limit: int, unit: Unit) -> None:
    text = "a" + "\u0301" * marks
    assert "".join(split(text, limit, unit)) == text
