"""What recall leaves out because it is there already, or was a moment ago."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from clew.context.query import Query
from clew.context.ranking import Candidate, Scored
from clew.context.recall import MARGIN
from clew.context.repeats import COMPARED, WORTH, without_repeats

ASKED = Query(("boat", "pier"), (2.0, 2.0), frozenset({"boat", "pier"}), 10)
ABOVE, BELOW = 2.5, 0.2
"""Of a query of two terms in a small store: scores above the floor, and below it."""


def found(*texts: str, scores: Sequence[float] = (), ids: str = "abcdefgh") -> list[Scored]:
    scores = scores or [ABOVE] * len(texts)
    return [
        Scored(Candidate(name, "s", "desk:ada", "Ada", "user", 0.0, text, seq), score, ("boat",))
        for seq, (name, text, score) in enumerate(zip(ids, texts, scores, strict=False), 1)
    ]


def names(left: Sequence[Scored]) -> str:
    return "".join(each.candidate.id for each in left)


def test_words_that_stand_in_view_are_left_out_however_they_are_spaced() -> None:  # P36
    scored = found("Where is  the boat?", "the boat is at pier nine")
    assert names(without_repeats(ASKED, scored, ["where is the BOAT?\n"])) == "b"
    assert names(without_repeats(ASKED, scored, ["where is the boat"])) == "ab"


def test_what_was_said_twice_is_quoted_once_and_the_best_of_it() -> None:  # P31, BO-032
    assert names(without_repeats(ASKED, found("the boat is at pier nine", "no", "The boat is at pier nine"), [])) == "ab"
    assert names(without_repeats(ASKED, found("船在九号码头那边", "不", "船在九号码头那边", "不"), [])) == "abd"


def test_a_short_answer_is_no_repeat_of_another() -> None:
    assert names(without_repeats(ASKED, found("Is the boat at the pier?", "yes"), ["yes", "no"], "- yes")) == "ab"


def test_words_that_stand_in_the_summary_are_left_out_unless_they_are_a_chance() -> None:  # P36
    summary = "## Facts\n- The boat is at pier nine, they said, no more"
    scored = found("the boat is at  pier nine", "no", "the boat is at pier ten")
    assert names(without_repeats(ASKED, scored, [], summary)) == "bc"


def test_long_texts_are_told_apart_by_how_long_they_are() -> None:
    first, second = "boat " * COMPARED + "one", "boat " * COMPARED + "another"
    assert names(without_repeats(ASKED, found(first, second), [])) == "ab"
    assert names(without_repeats(ASKED, found(first, second), [first])) == "b"


def test_what_was_recalled_a_moment_ago_gives_way_to_what_is_as_good() -> None:
    scored = found("the boat", "the pier", scores=(ABOVE, ABOVE - MARGIN))
    assert names(without_repeats(ASKED, scored, [], lately={"a"})) == "b"
    assert names(without_repeats(ASKED, scored, [], lately={"b"})) == "a"


def test_it_comes_again_where_nothing_is_as_good() -> None:
    better = found("the boat", "the pier", scores=(ABOVE + 0.01, ABOVE - MARGIN))
    assert names(without_repeats(ASKED, better, [], lately={"a"})) == "ab"
    assert names(without_repeats(ASKED, found("the boat"), [], lately={"a"})) == "a"
    poor = found("the boat", "the pier", scores=(BELOW + 0.1, BELOW))
    assert names(without_repeats(ASKED, poor, [], lately={"a"})) == "ab"


texts = st.lists(st.sampled_from(["the boat is at pier nine", "The  boat is at pier nine", "no", "ja", "boat?", ""]), max_size=8)


@given(
    texts,
    st.lists(st.sampled_from([0.2, 1.0, 2.0, 2.5]), min_size=8, max_size=8),
    texts,
    st.sampled_from(["", "boat?"]),
    st.sets(st.sampled_from("abcdefgh")),
)
def test_what_is_left_is_in_order_and_nothing_is_left_twice(
    said: list[str], scores: list[float], in_view: list[str], summary: str, lately: set[str]
) -> None:  # P36
    scored = found(*said, scores=sorted(scores, reverse=True))
    left = without_repeats(ASKED, scored, in_view, summary, lately)
    assert [each for each in scored if each in left] == left
    words = [text for each in left if len(text := " ".join(each.candidate.text.split()).casefold()) >= WORTH]
    assert len(words) == len(set(words))
    assert set(words).isdisjoint(" ".join(text.split()).casefold() for text in in_view)
    assert without_repeats(ASKED, left, in_view, summary, lately) == left
