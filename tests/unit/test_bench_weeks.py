"""The made-up weeks of chat that the token benchmark goes through."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from bench.weeks import AT_EASE, AT_ONCE, CHATS, DAY, HOUR, USES_TOOLS, WAKING, Pace, Turn, looked_up, weeks


def pauses(turns: Sequence[Turn]) -> list[float]:
    """Seconds between the turns of a chat, for all chats."""
    chats = [[turn.at for turn in turns if turn.chat is chat] for chat in CHATS]
    return [after - before for times in chats for before, after in pairwise(times)]


def share(values: Sequence[float], low: float, high: float) -> float:
    return sum(low <= value < high for value in values) / len(values)


def test_the_same_seed_gives_the_same_weeks_and_another_one_others() -> None:
    assert weeks(3, 5, tools=True) == weeks(3, 5, tools=True)
    assert weeks(3, 5, tools=True) != weeks(4, 5, tools=True)


def test_more_days_only_add_days() -> None:
    short, long = weeks(3, 4, tools=True), weeks(3, 9, tools=True)
    assert [turn for turn in long if turn.at < 3 * DAY] == [turn for turn in short if turn.at < 3 * DAY]
    assert max(turn.at for turn in long) > 8 * DAY


def test_tools_change_nothing_but_that_they_are_called() -> None:
    calling, plain = weeks(1, 14, tools=True), weeks(1, 14, tools=False)
    assert [replace(turn, rounds=()) for turn in calling] == plain
    used = sum(bool(turn.rounds) for turn in calling) / len(calling)
    assert used == pytest.approx(USES_TOOLS, abs=0.06)
    assert {len(turn.rounds) for turn in calling} == {0, 1, 2, 3}
    assert {len(calls) for turn in calling for calls in turn.rounds} == {1, 2, 4}


@pytest.mark.parametrize(("pace", "minutes"), [(AT_ONCE, 0.05), (AT_EASE, 0.32)])
def test_pauses_are_short_in_a_sitting_and_long_between_two(pace: Pace, minutes: float) -> None:
    found = pauses(weeks(1, 60, tools=False, pace=pace))
    assert share(found, 300, 3600) == pytest.approx(minutes, abs=0.05)
    assert share(found, 3600, float("inf")) == pytest.approx(0.18, abs=0.04)


def test_turns_are_in_order_and_a_sitting_never_begins_in_another() -> None:
    turns = weeks(2, 30, tools=False, pace=AT_EASE)
    assert all(before.at <= after.at for before, after in pairwise(turns))
    assert min(pauses(turns)) > 0


def test_nobody_begins_at_night() -> None:
    for chat in CHATS:
        times = [turn.at for turn in weeks(1, 30, tools=False) if turn.chat is chat]
        begun = [after % DAY / HOUR for before, after in pairwise(times) if after - before > 4 * HOUR]
        assert begun
        assert all(WAKING[0] <= hour <= WAKING[1] for hour in begun)


def test_everybody_of_a_chat_writes_in_it_and_nobody_else() -> None:
    for chat in CHATS:
        assert {turn.person for turn in weeks(1, 30, tools=False) if turn.chat is chat} == set(chat.people)


def test_topics_come_back_so_that_there_is_something_to_recall() -> None:
    turns = [turn for turn in weeks(1, 14, tools=False) if turn.chat.name == "ada"]
    days: dict[str, set[int]] = {}
    for turn in turns:
        for word in turn.text.replace(".", "").lower().split():
            days.setdefault(word, set()).add(int(turn.at // DAY))
    rare = Counter(len(seen) for word, seen in days.items() if len(word) > 5)
    assert sum(count for seen, count in rare.items() if seen >= 2) > 50


def test_what_is_looked_up_is_the_same_each_time() -> None:
    assert looked_up("Kelmota vosru.") == looked_up("Kelmota vosru.") != looked_up("Kelmota vos.")
    assert "kelmota" in looked_up("Kelmota vosru.").lower()
