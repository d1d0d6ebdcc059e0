import json
from typing import Any

import pytest
from pydantic import ValidationError

from clew.context.rules import mended
from clew.messages import Text, Thinking, ToolCall, ToolResult, Usage
from clew.providers import Began, Delta, PromptMessage, Provider, ProviderError, Request, SystemBlock, ToolSpec
from clew.providers.ollama import JUDGED_TOKENS, Ollama, Reply, Settings, listed, looks_cut, payload, plugin, window_of


def user(*texts: str) -> PromptMessage:
    return PromptMessage("user", tuple(Text(text) for text in texts))


def sent(request: Request) -> dict[str, Any]:
    return payload(request, "qwen3", 8192)


def test_one_leading_system_message_holds_all_parts() -> None:  # P27
    system = (SystemBlock("base", "base", marked=True), SystemBlock("summary", "\n\nsummary"), SystemBlock("recall", "\n\nr"))
    body = sent(Request(system, (user("hi", "recalled"),), cache_ttl="1h"))
    assert body["messages"] == [
        {"role": "system", "content": "base\n\nsummary\n\nr"},
        {"role": "user", "content": "hi\n\nrecalled"},
    ]


def test_nothing_is_ever_cut_in_silence() -> None:
    body = sent(Request((), (user("hi"),), max_tokens=99))
    assert (body["truncate"], body["shift"], body["stream"]) == (False, False, True)
    assert body["options"] == {"num_ctx": 8192, "num_predict": 99}


def test_tool_messages_follow_their_calls_at_once() -> None:  # P11
    messages = (
        user("go"),
        PromptMessage("assistant", (ToolCall("a", "t", '{"z" : 1}'), ToolCall("b", "u", "{broken"))),
        PromptMessage("user", (Text("and?"), ToolResult("a", "t", "one"), ToolResult("b", "u", ""))),
    )
    said = sent(Request((), messages))["messages"]
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "tool", "user"]
    assert [call["function"]["arguments"] for call in said[1]["tool_calls"]] == [{"z": 1}, {"unparsed": "{broken"}]
    assert said[3] == {"role": "tool", "tool_name": "u", "content": ""}


def test_blank_rows_and_thinking_are_left_out() -> None:  # BO-113, BO-115
    messages = (user("hi"), PromptMessage("assistant", (Text(" "), Thinking("anthropic/x", "{}"))), user("you?"))
    assert sent(mended(Request((), messages))[0])["messages"] == [{"role": "user", "content": "hi\n\nyou?"}]


def test_the_same_request_gives_the_same_bytes() -> None:
    request = Request((SystemBlock("base", "b"),), (user("hi"),), (ToolSpec("t", "does", '{"type":"object"}'),))
    assert json.dumps(sent(request)) == json.dumps(sent(request))
    function = {"name": "t", "description": "does", "parameters": {"type": "object"}}
    assert sent(request)["tools"] == [{"type": "function", "function": function}]


LOADED = {"models": [{"name": "qwen3:latest", "model": "qwen3:latest", "context_length": 4096}]}
SHOWN = {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960, "clip.context_length": 77}}


@pytest.mark.parametrize(
    ("loaded", "shown", "window"),
    [
        (LOADED, SHOWN, 4096),
        ({"models": []}, SHOWN, 8192),
        ({"models": [{"name": "qwen3:8b", "context_length": 4096}]}, SHOWN, 8192),
        ({"models": [{"name": "qwen3:latest", "context_length": 262144}]}, SHOWN, 40960),
        ({"models": []}, {"model_info": {"general.architecture": "bert", "bert.context_length": 2048}}, 2048),
        ({"models": [{"name": "qwen3", "context_length": 5}]}, None, 8192),
        ({"models": [{"name": "qwen3", "context_length": "4096"}]}, {"model_info": {"general.architecture": []}}, 8192),
        ({"models": "text"}, {"model_info": ["list"]}, 8192),
        ("text", "text", 8192),
    ],
)
def test_the_window_is_read_from_what_the_server_tells(loaded: Any, shown: Any, window: int) -> None:
    assert window_of(loaded, shown, "qwen3") == window


def test_a_name_without_a_tag_is_the_latest() -> None:
    listing = {"models": [{"name": "qwen3:8b"}, {"name": "qwen3:latest", "size": 1}, {"model": "hf.co/x/y:Q4"}, "text", {}]}
    assert listed(listing, "qwen3") == {"name": "qwen3:latest", "size": 1}
    assert listed(listing, "qwen3:8b") == {"name": "qwen3:8b"}
    assert listed(listing, "hf.co/x/y:Q4") == {"model": "hf.co/x/y:Q4"}
    nonsense: Any
    for nonsense in (None, [], {"models": None}, {"models": ["None"]}, {"models": [{}]}):
        assert listed(nonsense, "qwen3") is None


@pytest.mark.parametrize(
    ("counted", "estimated", "cut"),
    [(4096, 20_000, True), (10_000, 20_000, False), (9_999, 20_000, True), (0, 20_000, False), (1, JUDGED_TOKENS - 1, False)],
)
def test_a_cut_is_suspected_far_below_the_estimate_only(counted: int, estimated: int, cut: bool) -> None:
    assert looks_cut(counted, estimated) is cut


def test_text_is_passed_on_and_thinking_is_not() -> None:
    reply = Reply("m")
    assert reply.feed({"model": "qwen3", "message": {"thinking": "hm", "content": ""}, "done": False}) == [Began()]
    assert reply.feed({"message": {"content": "Hel"}, "done": False}) == [Delta("Hel")]
    assert reply.feed({"message": {"content": "lo"}, "done": False}) == [Delta("lo")]
    assert not reply.complete
    assert reply.feed({"message": {}, "done": True, "done_reason": "stop", "prompt_eval_count": 90, "eval_count": 7}) == []
    done = reply.done()
    assert (done.blocks, done.stop, done.model, done.usage) == ((Text("Hello"),), "end", "qwen3", Usage(90, 7))


def test_odd_lines_do_no_harm() -> None:
    reply = Reply("m")
    odd: list[dict[str, Any]] = [
        {},
        {"message": "text"},
        {"message": {"content": 5, "tool_calls": "x"}},
        {"message": {"tool_calls": [1, {}, {"function": {"name": ""}}, {"function": "f"}]}},
        {"message": {"tool_calls": [{"function": {"name": "t", "arguments": None}}, {"function": {"name": "u", "arguments": '{"a":1}'}}]}},
        {"done": True, "prompt_eval_count": None, "eval_count": -1},
    ]
    for line in odd:
        reply.feed(line)
    assert reply.complete
    assert [block.arguments for block in reply.done().blocks if isinstance(block, ToolCall)] == ["{}", '{"a":1}']
    assert (reply.done().stop, reply.done().usage) == ("tools", Usage())


def test_an_error_in_the_stream_is_raised() -> None:
    with pytest.raises(ProviderError) as caught:
        Reply("m").feed({"error": "llama runner process has terminated"})
    assert caught.value.kind == "server"


@pytest.mark.asyncio
async def test_settings_are_strict() -> None:
    provider: Provider = plugin.build(
        "home", Settings.model_validate({"model": "m", "context_window": 4096, "timeouts": {"between": "5s"}})
    )
    assert isinstance(provider, Ollama)
    assert (provider.name, provider.kind, provider.model, provider.max_tokens) == ("home", "ollama", "m", "auto")
    assert (provider.cache_ttl, provider.configured, (await provider.limits()).window) == (None, True, 4096)
    await provider.close()
    assert Settings.model_validate({"timeouts": {"between": "5s"}}).timeouts.first_byte == 300.0
    for wrong in ({"cache_ttl": "1h"}, {"base_url": "ftp://h"}, {"context_window": 12}, {"model": ""}, {"keep_alive": "5m"}):
        with pytest.raises(ValidationError):
            Settings.model_validate(wrong)
