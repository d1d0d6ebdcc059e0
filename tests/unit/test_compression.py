"""When a window is compacted and where it is cut."""

import pytest

from clew.config import Compression
from clew.context.compression import Cut, chunks, count_cut, cut_at, fitting_cut
from clew.context.view import Rendered
from tests.threads import Thread, numbered


@pytest.mark.parametrize(("count", "cut"), [(59, None), (60, Cut(52, 52, "count")), (61, Cut(53, 53, "count")), (70, Cut(62, 62, "count"))])
def test_the_count_trigger_fires_at_its_mark_and_keeps_the_newest(count: int, cut: Cut | None) -> None:  # P8
    assert count_cut(numbered(count).window(), 60, 8, None) == cut


def test_zero_is_the_stated_default() -> None:  # P8
    settings = Compression(trigger_messages=0, keep_recent=0)
    assert (settings.count_mark, settings.kept_messages) == (60, 8)


def firings(exchanges: int, mark: int, keep: int) -> list[tuple[int, int]]:
    """(messages in the window when the trigger fires, its length after it, the summary counted as one), tested before each call."""
    thread, start, found = Thread(), 0, []
    for number in range(exchanges):
        asked = thread.user(f"question {number}")
        window = thread.window()[start:]
        cut = count_cut(window, mark, keep, asked.seq)
        if cut is not None:
            found.append((len(window), len(window) - cut.index + 1))
            start += cut.index
        thread.reply(f"answer {number}")
    return found


def test_in_plain_alternation_it_fires_at_61_then_at_60_and_leaves_9() -> None:  # P8 P26
    assert firings(120, 60, 8) == [(61, 9), (60, 9), (60, 9), (60, 9)]


def test_messages_of_calls_and_of_results_count_as_one_each() -> None:  # P8
    thread = Thread()
    thread.user("find all")
    thread.round(*(f"c{n}" for n in range(11)))
    assert len(thread.window()) == 3


def test_exactly_what_is_cut_goes_and_the_rest_stays_verbatim() -> None:  # P8, BO-016
    messages = numbered(20).window()
    cut = count_cut(messages, 20, 6, None)
    assert cut is not None
    assert [row.id for kept in messages[cut.index :] for row in kept.rows] == ["m15", "m16", "m17", "m18", "m19", "m20"]
    assert cut.to_seq == 14


@pytest.mark.parametrize("extra", [0, 1, 2, 3])
def test_a_cut_between_a_call_and_its_result_moves_forward(extra: int) -> None:  # P11, BO-001
    thread = numbered(10)
    thread.user("look")
    thread.round("c1")
    thread.reply("found it")
    for number in range(3 + extra):
        (thread.user if number % 2 == 0 else thread.reply)(f"plain {number}")
    messages = thread.window()
    cut = count_cut(messages, 12, 6 + extra - 1, None)
    assert cut is not None
    assert messages[cut.index].kind == "assistant"
    assert messages[cut.index].rows[0].text == "found it"


def test_a_cut_never_reaches_into_the_running_turn() -> None:  # P11 P12
    thread = numbered(4)
    asked = thread.user("a long job")
    for number in range(40):
        thread.round(f"c{number}")
    messages = thread.window()
    cut = count_cut(messages, 60, 8, asked.seq)
    assert cut == Cut(4, 4, "count")
    assert messages[cut.index].rows == (asked,)


def test_a_cut_that_demotes_nothing_is_no_firing() -> None:  # P8
    thread = Thread()
    asked = thread.user("a long job")
    for number in range(40):
        thread.round(f"c{number}")
    assert count_cut(thread.window(), 60, 8, asked.seq) is None
    assert cut_at(numbered(5).window(), 5 - 8, None, "command") is None


def sizes(messages: tuple[Rendered, ...], size: int) -> list[int]:
    return [size] * len(messages)


def test_the_token_cut_keeps_from_the_newest_backwards_what_fits() -> None:  # P9
    messages = numbered(10).window()
    assert fitting_cut(messages, sizes(messages, 10), 35, None, "limit") == Cut(7, 7, "limit")
    assert fitting_cut(messages, sizes(messages, 10), 100, None, "limit") is None
    assert fitting_cut(messages, sizes(messages, 10), -10, None, "limit") == Cut(10, 10, "limit")


def test_the_token_cut_keeps_the_running_turn_whatever_it_takes() -> None:  # P9 P12
    thread = numbered(4)
    asked = thread.user("a long job")
    thread.round("c1")
    messages = thread.window()
    assert fitting_cut(messages, sizes(messages, 1000), 50, asked.seq, "tokens") == Cut(4, 4, "tokens")


def test_an_old_part_too_large_for_one_request_is_fed_in_consecutive_parts() -> None:  # P14
    assert chunks([3, 3, 3, 9, 1, 1], 6) == [(0, 2), (2, 3), (3, 4), (4, 6)]
    assert chunks([], 6) == []


def test_after_an_undo_the_count_trigger_starts_anew() -> None:  # P21
    for further, fires in ((51, False), (52, True)):
        messages = numbered(61 + further).window()
        assert (count_cut(messages, 60, 8, None, hold_seq=61) is not None) == fires
    assert count_cut(numbered(59).window(), 60, 8, None, hold_seq=1) is None
