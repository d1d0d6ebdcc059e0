"""Words that call for a skill stand in a text whole, in order and next to each other, whatever their capitals and what is between them."""

from hypothesis import given
from hypothesis import strategies as st

from clew.context.skill_triggers import LOOKED_AT, Said, words
from clew.context.templates import fenced, without_foreign

texts = st.text(max_size=200)
plain = st.lists(st.text("abcdefgh", min_size=1, max_size=6), min_size=1, max_size=4)
gaps = st.text(" ,.-!?\n", min_size=1, max_size=3)


@given(texts, texts, texts)
def test_any_text_may_be_asked_for_any_trigger(before: str, trigger: str, behind: str) -> None:
    assert Said(f"{before} {trigger} {behind}").has(trigger) == bool(words(trigger))


@given(plain, st.data())
def test_capitals_and_gaps_do_not_matter(trigger: list[str], data: st.DataObject) -> None:
    text = "".join(data.draw(gaps) + (word.upper() if data.draw(st.booleans()) else word) for word in trigger)
    assert Said(text).has(" ".join(trigger))


@given(plain, plain)
def test_words_are_whole_and_in_order(trigger: list[str], other: list[str]) -> None:
    there = any(other[at : at + len(trigger)] == trigger for at in range(len(other)))
    assert Said(" ".join(other)).has(" ".join(trigger)) == there


def test_a_trigger_may_stand_within_a_run_without_spaces() -> None:
    assert Said("我要啤酒").has("啤酒")
    assert not Said("酒啤").has("啤酒")


def test_what_stands_far_behind_the_beginning_of_a_long_text_is_not_looked_at() -> None:
    assert not Said("x " * LOOKED_AT + "beer").has("beer")


@given(st.text("ab {}", max_size=40), texts, st.text("ab {}", max_size=40))
def test_without_the_text_of_others_the_own_words_are_left(before: str, foreign: str, behind: str) -> None:
    assert without_foreign(f"{before}{fenced('output', foreign)}{behind}") == f"{before} {behind}"
