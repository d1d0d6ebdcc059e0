"""From rows to rendered messages: repairs, heads, thinking."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from clew.context.view import LOST, head, strip_head, window
from clew.messages import Message, Text, Thinking, ToolCall, ToolResult
from tests.threads import Thread

BERLIN = ZoneInfo("Europe/Berlin")


def test_results_come_behind_their_calls_in_call_order_as_one_message() -> None:  # P11
    thread = Thread()
    thread.user("find both")
    thread.calls("c1", "c2")
    thread.result("c2", "second")
    thread.result("c1", "first")
    user, calls, results = thread.window()
    assert (user.kind, calls.kind, results.kind) == ("user", "assistant", "results")
    assert [block.text for block in results.blocks if isinstance(block, ToolResult)] == ["first", "second"]
    assert (results.first_seq, results.last_seq) == (3, 4)


def test_a_result_without_its_call_is_left_out_and_a_call_without_its_result_is_stubbed() -> None:  # P11, BO-003, BO-004
    thread = Thread()
    thread.result("gone")
    thread.calls("lost")
    thread.exchange("one")
    thread.exchange("two")
    made = window(thread.rows)
    assert [each.kind for each in made.messages] == ["assistant", "results", "user", "assistant", "user", "assistant"]
    assert made.messages[1].blocks == (ToolResult("lost", "find", LOST, is_error=True),)
    assert made.repairs == ("message m1: a result without its call", "message m2: a call without its result")


def test_a_result_that_comes_after_other_words_is_too_late() -> None:  # P11
    thread = Thread()
    thread.calls("c1")
    thread.user("never mind")
    thread.result("c1", "late")
    made = window(thread.rows)
    assert [each.kind for each in made.messages] == ["assistant", "results", "user"]
    assert made.messages[1].blocks == (ToolResult("c1", "find", LOST, is_error=True),)


def test_the_same_id_twice_in_a_thread_is_made_unique() -> None:  # P11
    thread = Thread()
    for _ in range(3):
        thread.round("c")
    sent = [block.id for message in thread.window() for block in message.blocks if isinstance(block, ToolCall)]
    answered = [block.call_id for message in thread.window() for block in message.blocks if isinstance(block, ToolResult)]
    assert sent == answered == ["c", "c_3", "c_5"]


def test_an_id_that_was_made_unique_is_not_taken_by_another() -> None:  # P11
    thread = Thread()
    for call_id in ("c", "c_5", "c"):
        thread.round(call_id)
    sent = [block.id for message in thread.window() for block in message.blocks if isinstance(block, ToolCall)]
    assert sent == ["c", "c_5", "c_5_5"]


def test_the_first_of_two_results_counts() -> None:  # P11
    thread = Thread()
    thread.calls("c")
    thread.result("c", "first")
    thread.result("c", "second")
    made = window(thread.rows)
    assert made.messages[1].blocks == (ToolResult("c", "find", "first"),)
    assert made.repairs == ("message m3: a result without its call",)


def test_two_calls_with_one_id_in_a_message_are_one_call() -> None:  # P11
    thread = Thread()
    thread.calls("c", "c")
    thread.result("c", "once")
    calls, results = thread.window()
    assert len(calls.blocks) == 1
    assert results.blocks == (ToolResult("c", "find", "once"),)


def test_an_empty_row_is_not_sent() -> None:  # P11, BO-113
    thread = Thread()
    thread.user("hello")
    thread.reply("  \n")
    thread.user("hi")
    assert [each.rows[0].id for each in thread.window()] == ["m1", "m3"]


def test_a_window_goes_on_from_another_only_where_that_would_be_the_same() -> None:  # P29
    thread = Thread(turn="t1")
    thread.user("please look")
    thread.calls("a", thinking='{"type":"thinking"}')
    found = thread.result("a", "word " * 100)
    thread.reply("found")
    thread.turn = "t2"
    thread.user("again")
    thread.round("a")
    thread.reply("found it again")
    rows, short = thread.rows, {found.id}
    for turn, shortened in (("t1", set()), ("t2", set()), ("t2", short), ("", short)):
        for earlier in ("t1", "t2"):
            for before in (window(rows[:4], earlier), window(rows[:4], earlier, short), window(rows[:6], earlier)):
                assert window(rows, turn, shortened, before) == window(rows, turn, shortened)
    thought = window(rows[:5], "t1", (), window(rows[:4], "t1"))
    assert window(rows, "t2", (), thought) == window(rows, "t2")
    first = window(rows[:5], "t2")
    assert window(rows, "t2", (), first).messages[0] is first.messages[0]


def test_thinking_stays_for_the_turn_that_runs() -> None:  # P29
    thread = Thread(turn="t1")
    thread.calls("c1", thinking='{"type":"thinking"}')
    thread.result("c1")
    assert isinstance(window(thread.rows, "t1").messages[0].blocks[0], Thinking)
    assert not any(isinstance(block, Thinking) for block in window(thread.rows, "t2").messages[0].blocks)


def row(at: float, sender: str = "p1", name: str = "") -> Message:
    return Message("m1", 1, "user", (Text("hi"),), at, sender, name)


@pytest.mark.parametrize(
    ("utc", "stamp"),
    [
        (datetime(2026, 3, 29, 0, 59, tzinfo=UTC), "[Sun 2026-03-29 01:59 +01:00]"),
        (datetime(2026, 3, 29, 1, 0, tzinfo=UTC), "[Sun 2026-03-29 03:00 +02:00]"),
        (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), "[Sun 2026-10-25 02:30 +02:00]"),
        (datetime(2026, 10, 25, 1, 30, tzinfo=UTC), "[Sun 2026-10-25 02:30 +01:00]"),
    ],
)
def test_a_head_is_the_messages_own_time_in_the_zone(utc: datetime, stamp: str) -> None:  # P29
    assert head(BERLIN, "", direct=True)(row(utc.timestamp())) == stamp


def test_a_head_names_the_zone_where_the_base_does_not_and_the_sender_in_groups() -> None:
    at = datetime(2026, 5, 1, 10, 0, tzinfo=UTC).timestamp()
    assert head(BERLIN, "Europe/Berlin", direct=True)(row(at, name="Ada")) == "[Fri 2026-05-01 12:00 +02:00 Europe/Berlin]"
    assert head(BERLIN, "", direct=False)(row(at, name="Ada")) == "[Fri 2026-05-01 12:00 +02:00] Ada:"
    assert head(BERLIN, "", direct=False)(row(at)) == "[Fri 2026-05-01 12:00 +02:00] p1:"


def test_a_head_that_the_model_copied_is_taken_off_its_reply() -> None:
    stamp = head(BERLIN, "Europe/Berlin", direct=True)(row(0.0))
    assert strip_head(f"{stamp} {stamp} Good morning [Fri]") == "Good morning [Fri]"
    assert strip_head("[Fri] is a day") == "[Fri] is a day"
