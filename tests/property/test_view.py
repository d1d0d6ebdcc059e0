"""What `window` gives is fit to be sent, whatever rows it is given."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from clew.context.view import Rendered, window
from clew.messages import Message, Text, Thinking, ToolCall, ToolResult
from tests.threads import as_rows, damaged, sound

any_rows = damaged() | sound()


def called(message: Rendered) -> list[str]:
    return [block.id for block in message.blocks if isinstance(block, ToolCall)]


def answered(message: Rendered) -> list[str]:
    return [block.call_id for block in message.blocks if isinstance(block, ToolResult)]


@given(any_rows)
def test_every_call_has_exactly_one_result_right_behind_it(rows: list[Message]) -> None:
    # P11, BO-001, BO-003, BO-004
    messages = window(rows, "t1").messages
    for before, after in pairwise([Rendered("user", (), ()), *messages, Rendered("user", (), ())]):
        assert called(before) == answered(after)
        assert bool(answered(after)) == (after.kind == "results")
        if called(before):
            assert before.kind == "assistant"


@given(any_rows)
def test_no_id_is_used_twice(rows: list[Message]) -> None:  # P11
    ids = [each for message in window(rows, "t1").messages for each in called(message)]
    assert len(ids) == len(set(ids))


@given(any_rows)
def test_nothing_is_blank(rows: list[Message]) -> None:  # P11, BO-113
    for message in window(rows, "t1").messages:
        assert any(not isinstance(block, Thinking) for block in message.blocks)
        assert all(block.text.strip() for block in message.blocks if isinstance(block, Text))


@given(any_rows)
def test_each_kind_holds_its_own_blocks(rows: list[Message]) -> None:  # P11
    allowed: dict[str, set[type]] = {"user": {Text}, "assistant": {Text, ToolCall, Thinking}, "results": {ToolResult}}
    for message in window(rows, "t1").messages:
        assert {type(block) for block in message.blocks} <= allowed[message.kind]


@given(any_rows)
def test_rows_stay_in_order_and_no_words_are_lost(rows: list[Message]) -> None:  # P6
    messages = window(rows, "t1").messages
    shown = [block.text for message in messages for block in message.blocks if isinstance(block, Text)]
    assert shown == [b.text for row in rows if row.role != "tool" for b in row.blocks if isinstance(b, Text) and b.text.strip()]
    assert all(one.last_seq <= other.last_seq for one, other in pairwise(messages))


@given(any_rows)
def test_a_repaired_window_needs_no_repair(rows: list[Message]) -> None:  # P29
    repaired = window(rows, "t1")
    again = window(as_rows(repaired.messages))
    assert again.repairs == ()
    assert [(m.kind, m.blocks) for m in again.messages] == [(m.kind, m.blocks) for m in repaired.messages]


@given(sound())
def test_sound_rows_come_through_as_they_are(rows: list[Message]) -> None:  # P11
    made = window(rows)
    assert made.repairs == ()
    blocks = [block for message in made.messages for block in message.blocks]
    calls = [call for row in rows for call in row.calls]
    results = {result.call_id: result for row in rows for result in row.results}
    expected = [block for row in rows if row.role != "tool" for block in row.blocks]
    assert [block for block in blocks if not isinstance(block, ToolResult)] == expected
    assert [block for block in blocks if isinstance(block, ToolResult)] == [results[call.id] for call in calls]


@given(sound(), sound())
def test_more_rows_change_nothing_in_front_of_them(rows: list[Message], more: list[Message]) -> None:  # P29
    renamed = [Message(f"n{r.seq}", len(rows) + r.seq, r.role, r.blocks, r.at, r.sender, r.sender_name) for r in more]
    assert window([*rows, *renamed]).messages[: len(window(rows))] == window(rows).messages


@given(any_rows, st.sampled_from(["", "t1", "t2"]))
def test_thinking_is_shown_in_its_own_turn_alone(rows: list[Message], turn: str) -> None:  # P29
    for message in window(rows, turn).messages:
        if any(isinstance(block, Thinking) for block in message.blocks):
            assert message.rows[0].turn == turn
    assert window(rows, turn) == window(list(rows), turn)


@given(any_rows, any_rows, st.integers(0, 12), st.sampled_from(["t1", "t2"]), st.data())
def test_a_window_is_the_same_whatever_window_it_goes_on_from(
    rows: list[Message], others: list[Message], cut: int, turn: str, data: st.DataObject
) -> None:  # P29
    short = data.draw(st.sets(st.sampled_from([row.id for row in rows]))) if rows else set()
    alone = window(rows, "t1", short)
    for before in (window(rows[:cut], turn, short), window(rows, turn), window(others, turn, short), alone):
        gone_on = window(rows, "t1", short, before)
        assert gone_on == alone
        assert window(rows, "t1", short, gone_on) == alone  # what it went on from was not changed by it
