"""The emulated Messages API refuses what the real one refuses, in its words."""

from typing import Any

import pytest

from tests.emulators.anthropic_cache import chain, flatten
from tests.emulators.anthropic_models import MODELS, find_model
from tests.emulators.anthropic_rules import CLEAR_AT_BETA, check_end, check_shape, check_thinking
from tests.emulators.server import Rejected, words

HEADERS = {"anthropic-version": "2023-06-01"}
MARK = {"type": "ephemeral"}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def system(**fields: Any) -> dict[str, Any]:
    return {"role": "system", "content": "it is noon", **fields}


def text(said: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **fields}


def use(*ids: str) -> dict[str, Any]:
    return assistant([{"type": "tool_use", "id": id_, "name": "look", "input": {}} for id_ in ids])


def result(id_: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": "found"}


def check(*messages: dict[str, Any], model: str = "claude-sonnet-5-5", beta: str = "", **fields: Any) -> None:
    body = {"model": model, "max_tokens": 10, "messages": list(messages), **fields}
    check_shape(body, {**HEADERS, "anthropic-beta": beta}, MODELS[model], counting=False)


def refusal(*messages: dict[str, Any], **fields: Any) -> str:
    with pytest.raises(Rejected) as caught:
        check(*messages, **fields)
    assert (caught.value.status, caught.value.type) == (400, "invalid_request_error")
    return caught.value.message


Messages = list[dict[str, Any]]

ACCEPTED: dict[str, Messages] = {
    "one message": [user("hi")],
    "same role twice": [user("hi"), user("there"), assistant("yes"), assistant("no"), user("so")],
    "a pair": [user("hi"), use("a", "b"), user([result("b"), result("a")])],
    "a pair with text behind": [user("hi"), use("a"), user([result("a"), text("go on")])],
    "results over two user messages": [user("hi"), use("a", "b"), user([result("a")]), user([result("b")])],
    "the same tool twice": [user("hi"), use("a"), user([result("a")]), use("b"), user([result("b")])],
    "empty final assistant": [user("hi"), assistant("")],
    "a result without content": [user("hi"), use("a"), user([{"type": "tool_result", "tool_use_id": "a"}])],
}


@pytest.mark.parametrize("messages", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepts(messages: Messages) -> None:
    check(*messages)


UNANSWERED = (
    "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block "
    "must have a corresponding `tool_result` block in the next message."
)
UNASKED = (
    "messages.{}: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block must have a "
    "corresponding `tool_use` block in the previous message."
)
NO_CONTENT = "messages.1: all messages must have non-empty content except for the optional final assistant message"

REFUSED: dict[str, tuple[Messages, str]] = {
    "no message": ([], "messages: at least one message is required"),
    "assistant first": ([assistant("hi")], 'messages: first message must use the "user" role'),
    "no result": ([user("hi"), use("a", "b"), user("so?")], UNANSWERED.format(1, "a, b")),
    "no result at the end": ([user("hi"), use("a")], UNANSWERED.format(1, "a")),
    "one of two results": ([user("hi"), use("a", "b"), user([result("b")])], UNANSWERED.format(1, "a")),
    "text before results": ([user("hi"), use("a"), user([text("x"), result("a")])], UNANSWERED.format(1, "a")),
    "result too late": (
        [user("hi"), use("a"), user("x"), assistant("y"), user([result("a")])],
        UNANSWERED.format(1, "a"),
    ),
    "result first": ([user([result("x")])], UNASKED.format("0.content.0", "x")),
    "result of a finished turn": (
        [user("hi"), use("a"), user([result("a")]), assistant("so"), user([result("a")])],
        UNASKED.format("4.content.0", "a"),
    ),
    "two results": (
        [user("hi"), use("a"), user([result("a"), result("a")])],
        "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a",
    ),
    "an id twice": ([user("hi"), use("a", "a")], "messages.1.content.1: `tool_use` ids must be unique"),
    "an id again": (
        [user("hi"), use("a"), user([result("a")]), use("a"), user([result("a")])],
        "messages.3.content.0: `tool_use` ids must be unique",
    ),
    "empty text": ([user([text("")])], "messages: text content blocks must be non-empty"),
    "blank text": ([user(" \n")], "messages: text content blocks must contain non-whitespace text"),
    "marker on empty text": (
        [user("hi"), assistant([text("yes"), text("", cache_control=MARK)]), user("so")],
        "messages.1.content.1.text: cache_control cannot be set for empty text blocks",
    ),
    "empty content": ([user("hi"), assistant([]), user("so")], NO_CONTENT),
    "empty string": ([user("hi"), assistant(""), user("so")], NO_CONTENT),
    "unknown role": (
        [{"role": "tool", "content": "x"}],
        "messages.0.role: Input should be 'user', 'assistant' or 'system'",
    ),
    "a field of ours": ([{**user("hi"), "seq": 3}], "messages.0.seq: Extra inputs are not permitted"),
    "a block field of ours": (
        [user([text("x", seq=3)])],
        "messages.0.content.0.text.seq: Extra inputs are not permitted",
    ),
    "marker on thinking": (
        [user("hi"), assistant([{"type": "thinking", "thinking": "x", "signature": "s", "cache_control": MARK}])],
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    "a bad tool id": (
        [user("hi"), use("call:1")],
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "unknown lifetime": (
        [user([text("x", cache_control={"type": "ephemeral", "ttl": "2h"})])],
        "messages.0.content.0.text.cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
    ),
    "system role": ([user("hi"), system()], "role 'system' is not supported on this model"),
}


@pytest.mark.parametrize(("messages", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses(messages: Messages, message: str) -> None:
    assert refusal(*messages) == message


@pytest.mark.parametrize("name", ["model", "max_tokens", "messages"])
def test_a_required_field(name: str) -> None:
    body = {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": [user("hi")]}
    del body[name]
    with pytest.raises(Rejected, match=f"^{name}: Field required$"):
        check_shape(body, HEADERS, MODELS["claude-sonnet-5-5"], counting=False)


def test_an_unknown_field() -> None:
    assert refusal(user("hi"), session="s1") == "session: Extra inputs are not permitted"


def test_sampling_parameters_on_current_models() -> None:
    assert refusal(user("hi"), temperature=0.5) == "temperature: Extra inputs are not permitted"
    check(user("hi"), temperature=0.5, model="claude-haiku-4-5")


def test_tools_have_proper_unique_names() -> None:
    def tool(name: str) -> dict[str, Any]:
        return {"name": name, "input_schema": {"type": "object"}}

    check(user("hi"), tools=[tool("one"), tool("two")])
    assert refusal(user("hi"), tools=[tool("one"), tool("one")]) == "tools: Tool names must be unique."
    assert refusal(user("hi"), tools=[tool("mcp.one")]).startswith("tools.0.custom.name: String should match pattern")


MODERN = {"model": "claude-opus-5-5"}


def test_system_message_where_the_model_takes_it() -> None:
    check(user("hi"), system(), **MODERN)
    check(user("hi"), system(), assistant("yes"), user("so"), **MODERN)


@pytest.mark.parametrize(
    "messages",
    [
        [system(), user("hi")],
        [user("hi"), system(), user("so")],
        [user("hi"), assistant("yes"), system(), user("so")],
        [user("hi"), use("a"), system(), user([result("a")])],
    ],
)
def test_system_message_in_a_wrong_place(messages: Messages) -> None:
    assert "must follow a `user` message" in refusal(*messages, **MODERN)


def test_system_message_on_an_old_model() -> None:
    assert refusal(user("hi"), system(), model="claude-sonnet-4-0") == (
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" '
        "as an input message role."
    )


def test_turn_scoped_system_message_needs_its_header() -> None:
    scoped = system(clear_at="next_user_message")
    assert refusal(user("hi"), scoped, **MODERN) == "messages.1.clear_at: Extra inputs are not permitted"
    check(user("hi"), scoped, beta=CLEAR_AT_BETA, **MODERN)
    marked = {**scoped, "content": [text("noon", cache_control=MARK)]}
    assert "cache_control" in refusal(user("hi"), marked, beta=CLEAR_AT_BETA, **MODERN)


def end(model: str, last: dict[str, Any], *, total: int = 100, max_tokens: int = 10, **fields: Any) -> str | None:
    body = {"model": model, "max_tokens": max_tokens, "messages": [user("hi"), last], **fields}
    try:
        check_end(body, MODELS[model], total=total, window=MODELS[model].window, counting=False)
    except Rejected as error:
        return error.message
    return None


def test_prefill_only_on_old_models() -> None:
    assert end("claude-haiku-4-5", assistant("I")) is None
    assert end("claude-sonnet-5-5", assistant("I")) == (
        "This model does not support assistant message prefill. The conversation must end with a user message."
    )


def test_a_prompt_longer_than_the_window() -> None:
    assert end("claude-haiku-4-5", user("so"), total=208_310) == "prompt is too long: 208310 tokens > 200000 maximum"
    assert end("claude-haiku-4-5", user("so"), total=200_000, max_tokens=64_000) is None


def test_an_old_model_adds_the_reply_to_the_prompt() -> None:
    assert end("claude-sonnet-4-0", user("so"), total=178_959, max_tokens=32_000) == (
        "input length and `max_tokens` exceed context limit: 178959 + 32000 > 200000, decrease input length or `max_tokens` and try again"
    )


def test_more_output_than_the_model_has() -> None:
    assert end("claude-haiku-4-5", user("so"), max_tokens=64_001) == (
        "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for claude-haiku-4-5"
    )


def test_prewarming_does_not_stream() -> None:
    assert end("claude-sonnet-5-5", user("so"), max_tokens=0) is None
    assert end("claude-sonnet-5-5", user("so"), max_tokens=0, stream=True) is not None


@pytest.mark.parametrize(
    ("name", "minimum"),
    [
        ("claude-opus-5-5", 512),
        ("claude-sonnet-4-5-20250929", 1_024),
        ("claude-opus-4-7", 2_048),
        ("claude-haiku-4-5", 4_096),
    ],
)
def test_cacheable_minimum_by_model(name: str, minimum: int) -> None:
    model = find_model(name)
    assert model is not None
    assert model.minimum == minimum


def test_an_unknown_model_is_not_found() -> None:
    assert find_model("claude-nobody-9") is None


def test_replayed_thinking_is_bound_to_what_came_before_it() -> None:
    def body(first: str, signature: str) -> dict[str, Any]:
        thought = {"type": "thinking", "thinking": "hm", "signature": signature}
        return {"model": "claude-fable-5-2", "messages": [user(first), assistant([thought, text("yes")]), user("so")]}

    def replay(replayed: dict[str, Any]) -> None:
        blocks = flatten(replayed, words)
        check_thinking(blocks, chain(replayed, blocks, "key"), replayed)

    asked = {**body("hi", ""), "messages": [user("hi")]}
    signature = chain(asked, flatten(asked, words), "key")[-1]
    replay(body("hi", signature))
    with pytest.raises(Rejected, match=r"^messages\.1\.content\.0: Invalid `signature` in `thinking` block"):
        replay(body("edited", signature))
