"""Who answers as no person does."""

from hypothesis import given
from hypothesis import strategies as st

from clew.context.loops import MOMENTS, Spoken, is_mechanical

texts = st.text(max_size=40)
times = st.floats(0, 1000)
replies = st.lists(st.builds(Spoken, texts, st.none() | times), max_size=5)


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


@given(texts, texts, replies, st.floats(0, 2000), st.booleans())
def test_whoever_takes_their_time_and_has_words_of_their_own_is_a_person(
    text: str, before: str, said: list[Spoken], now: float, direct: bool
) -> None:  # BO-074
    own_words = letters(text) not in {letters(each.text) for each in said} or not letters(text)
    slow = all(each.at is None or not 0 <= now - each.at < MOMENTS for each in said)
    if own_words and slow:
        assert not is_mechanical(text, lambda: before, said, now, direct=direct)


@given(texts.filter(letters), texts.filter(letters), times)
def test_in_a_direct_chat_a_quick_program_that_asks_different_things_is_none(text: str, before: str, now: float) -> None:
    reply = Spoken("§", now)
    assert is_mechanical(text, lambda: before, [reply], now, direct=True) == (letters(text) == letters(before))
    assert is_mechanical(text, lambda: before, [reply], now, direct=False)


@given(texts.filter(letters), times)
def test_clews_own_words_are_known_whatever_became_of_their_markup(text: str, now: float) -> None:  # BO-072
    assert is_mechanical(f"**{text}**", str, [Spoken(f"_{text}_\n", None)], now, direct=True)
