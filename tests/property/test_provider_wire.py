import json
from functools import partial
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clew.messages import Block, Text, Thinking, ToolCall, ToolResult
from clew.providers import PromptMessage, Request, SystemBlock
from clew.providers import anthropic as anthropic_api
from clew.providers import ollama as ollama_api
from clew.providers import openai as openai_api
from clew.providers.failures import Answer, failure, retry_after
from clew.providers.overflow import overflow_in
from clew.providers.wire import arguments, arguments_text, turns, well_formed

any_text = st.text(st.characters(), max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
json_objects = st.dictionaries(st.text(max_size=5), json_values, max_size=5)
user_blocks = st.builds(Text, any_text) | st.builds(ToolResult, any_text, any_text, any_text, st.booleans())
model_blocks = (
    st.builds(Text, any_text)
    | st.builds(ToolCall, any_text, any_text, any_text | json_objects.map(json.dumps))
    | st.builds(Thinking, st.sampled_from(["anthropic/m", "other/m"]), st.just('{"type": "thinking"}'))
)


def message(role: Any, blocks: st.SearchStrategy[Block]) -> st.SearchStrategy[PromptMessage]:
    lists = st.lists(blocks, max_size=4).map(tuple)
    return st.builds(PromptMessage, st.just(role), lists, st.sampled_from([(), (0,), (0, 1)]))


messages = st.lists(message("user", user_blocks) | message("assistant", model_blocks), max_size=8).map(tuple)


@given(messages)
def test_roles_alternate_and_no_block_is_lost_but_the_thinking_of_others(given: tuple[PromptMessage, ...]) -> None:  # P11
    made = turns(given, "anthropic/m")
    assert all(one.role != other.role for one, other in pairwise(made))
    kept = [block for each in given for block in each.blocks if not (isinstance(block, Thinking) and block.provider == "other/m")]
    assert [block for turn in made for block, _ in turn.blocks] == kept


@given(messages, any_text)
def test_bodies_are_the_same_bytes_every_time_whatever_is_in_them(given: tuple[PromptMessage, ...], base: str) -> None:
    # P29
    request = Request((SystemBlock("base", base, marked=True),), given, cache_ttl="1h")
    bodies = (
        partial(anthropic_api.payload, request, "m"),
        partial(openai_api.payload, request, "m", official=False),
        partial(ollama_api.payload, request, "m", 8192),
    )
    for body in bodies:
        encoded = json.dumps(body(), ensure_ascii=False, allow_nan=False).encode()
        assert encoded == json.dumps(body(), ensure_ascii=False).encode()


@given(messages, messages)
def test_a_longer_thread_keeps_the_bytes_of_its_beginning(start: tuple[PromptMessage, ...], more: tuple[PromptMessage, ...]) -> None:  # P29
    answered = (*start, PromptMessage("assistant", (Text("an answer"),)))
    short = turns(answered, "m")
    assert turns((*answered, PromptMessage("user", (Text("next"),)), *more), "m")[: len(short)] == short


@given(json_objects)
def test_arguments_keep_their_values_and_order(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    assert json.dumps(arguments(text)) == text
    assert arguments_text(text) == text


@given(any_text | st.sampled_from(['{"a": NaN}', "[1]", "null", '{"a": "\\ud800"}', "{" * 2000, "[" * 100_000]))
def test_any_arguments_become_a_json_object(text: str) -> None:
    json.dumps(arguments(text), ensure_ascii=False, allow_nan=False).encode()
    assert isinstance(json.loads(arguments_text(text).encode()), dict)


@given(st.text(st.characters(), max_size=60))
def test_well_formed_text_keeps_every_whole_character(text: str) -> None:
    mended = well_formed(text)
    mended.encode()
    assert well_formed(mended) == mended
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    assert mended.replace("\ufffd", "") == whole.replace("\ufffd", "")


@given(st.text(max_size=200) | st.lists(st.integers(0, 10**14).map(str), max_size=6).map(" ".join))
def test_an_overflow_sends_more_than_is_allowed(text: str) -> None:
    for sign in ("prompt is too long: ", "this model's maximum context length is ", "exceed context limit: "):
        found = overflow_in(sign + text)
        assert found is not None
        if found.tokens is not None:
            sent, allowed = found.tokens
            assert sent > allowed > 0


@given(st.integers(200, 599), st.text(max_size=100), st.text(max_size=20), st.text(max_size=20), st.text(max_size=30))
def test_every_answer_of_a_server_is_an_error_of_ours(status: int, message: str, type: str, code: str, wait: str) -> None:
    error = failure(Answer(status, message, type, code, {"retry-after": wait}), 0.0, secret="k3y-k3y")
    assert "k3y-k3y" not in str(error)
    assert error.retry_after is None or error.retry_after >= 0


@given(st.text(max_size=40), st.floats(0, 4e9))
def test_any_retry_after_header_is_a_wait_or_none(value: str, now: float) -> None:
    seconds = retry_after({"retry-after": value}, now)
    assert seconds is None or 0 <= seconds < 1e13
