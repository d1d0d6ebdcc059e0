"""Whatever a window holds, what is shortened is read, long, and leaves a window that is as sound as before."""

from hypothesis import given
from hypothesis import strategies as st

from clew.context.prompt import message_tokens
from clew.context.shortening import FROM_CHARS, shortenings
from clew.context.view import window
from clew.messages import Message, Text, ToolResult
from tests.threads import Thread, damaged, sound

sizes = st.sampled_from([0, 20, FROM_CHARS - 1, FROM_CHARS, 5 * FROM_CHARS])
words = st.sampled_from(["harbour", "lighthouse", "灯台", "m3", "x"])


@st.composite
def tooled(draw: st.DrawFn) -> list[Message]:
    """A thread with results, and words beside calls, of all sizes."""
    thread = Thread()
    for number in range(draw(st.integers(1, 5))):
        thread.turn = f"t{number}"
        thread.user(draw(words))
        for each in range(draw(st.integers(0, 3))):
            thread.calls(f"c{number}_{each}", text=draw(words) * draw(sizes))
            thread.result(f"c{number}_{each}", f"{draw(words)} {'y' * draw(sizes)}")
        if draw(st.booleans()):
            thread.reply(draw(words))
    return thread.rows


@given(tooled() | sound() | damaged(), st.sampled_from(["", "t0", "t2", "t4"]))
def test_only_what_is_read_and_long_is_named_and_once(rows: list[Message], turn: str) -> None:  # P10 P23
    messages = window(rows, turn).messages
    found = shortenings(messages, (), (), turn)
    assert len({each.row for each in found}) == len(found)
    by_id = {row.id: row for row in rows}
    for each in found:
        row = by_id[each.row]
        assert row in messages[each.index].rows
        assert any(message.kind == "assistant" for message in messages[each.index + (row.role == "tool") :])
        assert each.size >= FROM_CHARS
        assert row.role == "tool" or row.turn != turn
    assert found == sorted(found, key=lambda each: (each.references, -each.size, each.index))


@given(tooled() | sound() | damaged(), st.data())
def test_a_shortened_window_differs_in_those_words_alone(rows: list[Message], data: st.DataObject) -> None:  # P10 P11 P23
    messages = window(rows).messages
    found = shortenings(messages, (), ())
    chosen = data.draw(st.sets(st.sampled_from(found))) if found else set()
    made = window(rows, shortened={each.row for each in chosen}).messages
    assert [(m.kind, m.rows, len(m.blocks)) for m in made] == [(m.kind, m.rows, len(m.blocks)) for m in messages]
    touched = {each.index for each in chosen}
    for index, (before, after) in enumerate(zip(messages, made, strict=True)):
        saved = sum(each.saved for each in chosen if each.index == index)
        assert message_tokens(before) - message_tokens(after) == saved >= 0
        for old, new in zip(before.blocks, after.blocks, strict=True):
            assert old == new or (index in touched and isinstance(old, Text | ToolResult))
            if isinstance(old, ToolResult) and isinstance(new, ToolResult):
                assert (old.call_id, old.name, old.is_error) == (new.call_id, new.name, new.is_error)
    assert not {each.row for each in chosen} & {each.row for each in shortenings(made, {each.row for each in chosen}, ())}
