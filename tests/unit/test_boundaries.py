"""Where a thread is best cut."""

import pytest

from clew.context.boundaries import TOPIC_BEFORE, begins_topic, boundary_cut, closes_last_task, holds_enough
from clew.context.compression import Cut
from clew.context.ledger import Entry
from tests.threads import Thread, numbered

GARDEN = [
    "The tomatoes in the greenhouse need more water in July.",
    "Yes: water the tomatoes early in the morning, and shade the greenhouse at noon.",
    "And which soil is best for the beans beside the fence?",
    "Loose soil with compost; beans dislike wet roots.",
]


def test_half_of_either_mark_is_enough() -> None:  # P22
    assert [holds_enough(count, 0, 60, 0) for count in (29, 30)] == [False, True]
    assert [holds_enough(1, tokens, 60, 1000) for tokens in (499, 500)] == [False, True]


def test_little_overlap_with_the_messages_before_is_a_new_topic() -> None:  # P22
    assert begins_topic("Please review the invoice of the plumber and transfer 480 euros to his bank account.", GARDEN)
    assert not begins_topic("How often do I water the beans and tomatoes when the soil of the greenhouse stays wet?", GARDEN)
    # One of seven terms (14 %) is below the threshold of 15 %, one of five is not.
    assert begins_topic("greenhouse invoice plumber transfer bank account letter", GARDEN)
    assert not begins_topic("greenhouse invoice plumber transfer bank", GARDEN)


def test_small_talk_and_a_thread_without_words_say_nothing_of_a_topic() -> None:  # P22
    assert not begins_topic("thanks a lot, yes please!", GARDEN)
    assert not begins_topic("Please review the invoice of the plumber and transfer 480 euros.", ["hello", "hello"])


def test_only_the_newest_messages_before_count() -> None:  # P22
    other = ["The plumber sent his invoice, and the bank wants a signature for the account."] * TOPIC_BEFORE
    assert begins_topic("How much compost and water do beans and tomatoes in the greenhouse need in July?", [*GARDEN, *other])


def test_writing_without_spaces_has_topics_too() -> None:  # P22
    assert begins_topic("請求書を確認して銀行口座に送金してください", ["温室のトマトに水をやる時間を教えて", "朝早く水をやってください"])
    assert not begins_topic("温室のトマトに水をやる時間は朝ですか", ["温室のトマトに水をやる時間を教えて", "朝早く水をやってください"])


def entries(*texts: str, status: str = "open", kind: str = "task") -> tuple[Entry, ...]:
    return tuple(Entry(kind, text, status=status) for text in texts)  # type: ignore[arg-type]


@pytest.mark.parametrize("reply", [
    "The invoice of the plumber is transferred: done.", "Die invoice für den plumber: erledigt.", "invoice and plumber: готово",
])  # fmt: skip
def test_a_reply_that_says_that_the_last_open_task_is_done_closes_it(reply: str) -> None:  # P22
    assert closes_last_task(entries("pay the invoice of the plumber"), reply)


@pytest.mark.parametrize(("tasks", "reply"), [
    (("pay the invoice of the plumber",), "The invoice of the plumber is not done yet."),
    (("pay the invoice of the plumber",), "Is the invoice of the plumber done?"),
    (("pay the invoice of the plumber",), "The beans are watered: done."),
    (("pay the invoice of the plumber",), "The invoice of the plumber came."),
    (("pay the invoice of the plumber", "water the beans"), "The invoice of the plumber is transferred: done."),
    ((), "Done."),
])  # fmt: skip
def test_anything_else_leaves_it_open(tasks: tuple[str, ...], reply: str) -> None:  # P22
    assert not closes_last_task(entries(*tasks), reply)


def test_closed_tasks_and_facts_are_no_open_tasks() -> None:  # P22
    done, fact = entries("water the beans", status="done"), entries("pay the plumber", kind="fact")
    assert not closes_last_task((*done, *fact), "Beans watered, plumber paid: done.")
    assert closes_last_task((*done, *entries("pay the plumber")), "The plumber is paid: done.")


def test_the_cut_lies_at_the_boundary_and_leaves_the_newest() -> None:  # P22, P13
    messages = numbered(40).window()
    sizes = [10] * 40
    assert boundary_cut(messages, sizes, 40, 60, 8, 10_000, None, "quiet") == Cut(32, 32, "quiet")
    assert boundary_cut(messages, sizes, 20, 60, 8, 10_000, None, "topic") == Cut(20, 20, "topic")


def test_a_boundary_that_frees_little_is_not_worth_a_call() -> None:  # P22
    messages = numbered(40).window()
    assert boundary_cut(messages, [10] * 40, 16, 60, 8, 10_000, None, "topic") is None
    assert boundary_cut(messages, [100] * 40, 16, 60, 8, 10_000, None, "topic") == Cut(16, 16, "topic")
    assert boundary_cut(numbered(8).window(), [9000] * 8, 8, 60, 8, 10_000, None, "quiet") is None
    # Half of the mark is always worth it.
    assert boundary_cut(numbered(30).window(), [10] * 30, 30, 60, 8, 10_000, None, "quiet") == Cut(22, 22, "quiet")


def test_a_pair_is_not_parted_at_a_boundary() -> None:  # P11
    thread = Thread()
    for number in range(20):
        thread.user("look")
        thread.round(f"c{number}")
        thread.reply("yes")
    messages = thread.window()
    cut = boundary_cut(messages, [10] * len(messages), messages[30].first_seq - 1, 60, 8, 10_000, None, "topic")
    assert cut is not None
    assert messages[cut.index].kind != "results"
