"""Messages as they are stored."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.messages import (
    Block,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    blocks_from_json,
    blocks_to_json,
    searchable,
    searchable_in,
)

words = st.text(st.characters(exclude_categories=["Cs"]))
blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, words),
    st.builds(ToolCall, words, words, words),
    st.builds(ToolResult, words, words, words, st.booleans()),
    st.builds(Thinking, words, words),
)


@given(st.lists(blocks, max_size=5).map(tuple))
def test_any_blocks_are_read_back_as_they_were_stored(given_: tuple[Block, ...]) -> None:  # P1 P49
    stored = blocks_to_json(given_)
    assert blocks_from_json(stored) == given_
    assert "\n" not in stored
    assert stored.encode("utf-8").decode("utf-8") == stored
    assert searchable_in(stored) == searchable(given_)


@pytest.mark.parametrize("rest", ["}", '"}', '"}],[]', '"},7]', '","text":"b"}', '","kind":"x"}]', '\n"}]'])
def test_what_begins_like_a_text_may_be_something_else(rest: str) -> None:  # P20
    with pytest.raises(ValueError):  # noqa: PT011
        searchable_in('[{"kind":"text","text":"a' + rest)


def test_the_arguments_of_a_call_are_kept_as_the_model_wrote_them() -> None:  # P29
    written = '{"b": 1,  "a":2}'
    (call,) = blocks_from_json(blocks_to_json((ToolCall("c1", "find", written),)))
    assert isinstance(call, ToolCall)
    assert call.arguments == written


def test_a_kind_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        blocks_from_json(json.dumps([{"kind": "hologram", "text": "x"}]))


def test_a_message_knows_its_words_calls_and_results() -> None:
    call, result = ToolCall("c1", "find", "{}"), ToolResult("c1", "find", "here")
    message = Message("m1", 1, "assistant", (Text("one"), call, result, Text("two")), 0.0)
    assert (message.text, message.calls, message.results) == ("one\ntwo", (call,), (result,))


def test_usage_adds_up() -> None:
    total = Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40)
    assert total == Usage(11, 22, 33, 44)
    assert total.prompt == 11 + 33 + 44
