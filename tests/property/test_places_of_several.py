"""What several daemons remember of one platform at the same time: none takes from the other what it noted."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from clew_transports.slack import place as slack
from clew_transports.telegram import updates as telegram

SPOKEN = st.lists(st.tuples(st.sampled_from("CD"), st.sampled_from(["1.0", "2.0", "3.0"])), max_size=4)
MOVES = st.lists(st.tuples(st.integers(1, 3), st.integers(11, 19)), max_size=4)


@given(SPOKEN, SPOKEN, SPOKEN, st.integers(0, 9))
def test_threads_and_channels_of_slack_that_two_met_are_both_kept(
    before: list[tuple[str, str]], one: list[tuple[str, str]], two: list[tuple[str, str]], read: int
) -> None:  # P48
    def met(place: slack.Place, threads: list[tuple[str, str]]) -> slack.Place:
        for channel, thread in threads:
            place = place.met(channel).joined(channel, thread)
        return place

    begun = replace(met(slack.Place("T/U", "1.0", "1.0"), before), spoken=())
    first, second = met(begun, one), met(begun, two).read(f"{read}.0")
    stored = slack.Place.load(second.onto(first.onto(str(begun))))
    assert stored == met(met(begun, one), two).read(f"{read}.0")


@given(MOVES, MOVES, MOVES)
def test_moves_of_telegram_that_two_heard_of_are_both_kept(
    before: list[tuple[int, int]], one: list[tuple[int, int]], two: list[tuple[int, int]]
) -> None:  # P48
    def heard(place: telegram.Place, moves: list[tuple[int, int]]) -> telegram.Place:
        for old, new in moves:
            place = place.with_move(old, new)
        return place

    begun = heard(telegram.Place(7), before)
    first, second = heard(begun, one), heard(begun, two)
    stored = telegram.Place.load(second.onto(first.onto(str(begun))))
    assert set(stored.moved) == {*first.moved, *second.moved}
    assert telegram.Place.load(first.onto(str(telegram.Place(8)))) == first  # another bot's is none of ours
