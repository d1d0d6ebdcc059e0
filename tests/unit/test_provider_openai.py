import json
from types import SimpleNamespace as Ns
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from clew.context.files import IMAGES
from clew.context.rules import mended
from clew.messages import Text, Thinking, ToolCall, ToolResult, Usage
from clew.providers import Began, Delta, Limits, PromptMessage, Provider, Request, Stop, SystemBlock, ToolSpec
from clew.providers.openai import OpenAI, Reply, Settings, entry_of, payload, plugin, window_of


def user(*texts: str) -> PromptMessage:
    return PromptMessage("user", tuple(Text(text) for text in texts))


def local(request: Request) -> dict[str, Any]:
    return payload(request, "qwen", official=False)


def test_one_leading_system_message_holds_all_parts() -> None:  # P27
    system = (SystemBlock("base", "base", marked=True), SystemBlock("summary", "\n\nsummary"), SystemBlock("recall", "\n\nr"))
    body = local(Request(system, (user("hi", "recalled"),), cache_ttl="1h"))
    assert body["messages"] == [
        {"role": "system", "content": "base\n\nsummary\n\nr"},
        {"role": "user", "content": "hi\n\nrecalled"},
    ]


def test_tool_messages_follow_their_calls_at_once() -> None:  # P11
    messages = (
        user("go"),
        PromptMessage("assistant", (ToolCall("a", "t", '{"z" : 1}'), ToolCall("b", "u", "{broken"))),
        PromptMessage("user", (Text("and?"), ToolResult("a", "t", "one"), ToolResult("b", "u", ""))),
    )
    sent = local(Request((), messages))["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user"]
    assert "content" not in sent[1]
    assert sent[1]["tool_calls"][0]["function"] == {"name": "t", "arguments": '{"z" : 1}'}
    assert json.loads(sent[1]["tool_calls"][1]["function"]["arguments"]) == {"unparsed": "{broken"}
    assert sent[2] == {"role": "tool", "tool_call_id": "a", "content": "one"}
    assert sent[3] == {"role": "tool", "tool_call_id": "b", "content": ""}


def test_blank_rows_and_thinking_are_left_out() -> None:  # BO-113, BO-115
    messages = (user("hi"), PromptMessage("assistant", (Text(" "), Thinking("anthropic/x", "{}"))), user("you?"))
    assert local(mended(Request((), messages))[0])["messages"] == [{"role": "user", "content": "hi\n\nyou?"}]


def test_only_openai_gets_its_own_fields() -> None:
    request = Request((), (user("hi"),), max_tokens=99, cache_key="session-1")
    body, official = local(request), payload(request, "gpt-5", official=True)
    assert body["max_tokens"] == official["max_completion_tokens"] == 99
    assert "max_completion_tokens" not in body
    assert "max_tokens" not in official
    assert "prompt_cache_key" not in body
    assert official["prompt_cache_key"] == "session-1"
    assert body["stream_options"] == {"include_usage": True}


def test_tools_are_functions() -> None:
    body = local(Request((), (user("hi"),), (ToolSpec("t", "does", '{"type":"object"}'),)))
    function = {"name": "t", "description": "does", "parameters": {"type": "object"}}
    assert body["tools"] == [{"type": "function", "function": function}]


def chunk(*, finish: str | None = None, usage: Ns | None = None, **delta: Any) -> Ns:
    fields = {"content": None, "tool_calls": None, **delta}
    return Ns(model="qwen", usage=usage, choices=[Ns(delta=Ns(**fields), finish_reason=finish)])


def call(index: int | None, id: str | None, name: str | None, arguments: str | None) -> Ns:
    return Ns(index=index, id=id, function=Ns(name=name, arguments=arguments))


def test_text_is_passed_on_and_reasoning_is_not() -> None:
    reply = Reply("any")
    assert reply.feed(chunk(content="", reasoning_content="hm")) == [Began()]
    assert reply.feed(chunk(content="Hel")) == [Delta("Hel")]
    assert reply.feed(chunk(content="lo")) == [Delta("lo")]
    assert not reply.complete
    reply.feed(chunk(finish="stop"))
    assert reply.complete
    details = Ns(cached_tokens=60, cache_write_tokens=10)
    reply.feed(Ns(model="qwen", choices=[], usage=Ns(prompt_tokens=100, completion_tokens=7, prompt_tokens_details=details)))
    done = reply.done()
    assert (done.blocks, done.stop, done.model) == ((Text("Hello"),), "end", "qwen")
    assert done.usage == Usage(input=30, output=7, cache_read=60, cache_write=10)


def test_a_reply_of_reasoning_alone_has_no_text() -> None:
    reply = Reply("any")
    reply.feed(chunk(reasoning_content="hm"))
    reply.feed(chunk(finish="stop"))
    assert (reply.done().blocks, reply.done().usage) == ((), Usage())


@pytest.mark.parametrize(
    "pieces",
    [
        [call(0, "a", "t", ""), call(0, None, None, '{"x":'), call(0, None, None, "1}"), call(1, "b", "u", "{}")],
        [call(0, "a", "t", '{"x":1}'), call(0, "b", "u", "{}")],
        [call(None, "a", "t", '{"x":1}'), call(None, "b", "u", None)],
    ],
)
def test_calls_are_put_together_whatever_the_server_numbers_them(pieces: list[Ns]) -> None:  # P11
    reply = Reply("any")
    for piece in pieces:
        reply.feed(chunk(tool_calls=[piece]))
    reply.feed(chunk(finish="stop"))
    assert reply.done().blocks == (ToolCall("a", "t", '{"x":1}'), ToolCall("b", "u", "{}"))
    assert reply.done().stop == "tools"


def test_a_call_without_an_id_gets_one_of_its_own() -> None:
    reply = Reply("any")
    reply.feed(chunk(tool_calls=[call(0, None, "t", "{}"), call(1, "", "t", "{}")], finish="tool_calls"))
    first, second = (block.id for block in reply.done().blocks if isinstance(block, ToolCall))
    assert first
    assert second
    assert first != second


@pytest.mark.parametrize(("said", "meant"), [("stop", "end"), ("length", "length"), ("content_filter", "refusal"), ("tool_calls", "end")])
def test_stop_reasons(said: str, meant: Stop) -> None:
    reply = Reply("any")
    reply.feed(chunk(content="x", finish=said))
    assert reply.done().stop == meant


def test_a_refusal_in_words_is_a_refusal() -> None:  # BO-114
    reply = Reply("any")
    reply.feed(chunk(refusal="I will not."))
    reply.feed(chunk(finish="stop"))
    assert (reply.done().blocks, reply.done().stop) == ((Text("I will not."),), "refusal")


@pytest.mark.parametrize(
    ("props", "entry", "window"),
    [
        ({"default_generation_settings": {"n_ctx": 4096}}, {"meta": {"n_ctx_train": 131072}}, 4096),
        (None, {"meta": {"n_ctx_train": 131072}}, 131072),
        (None, {"max_model_len": 16384}, 16384),
        (None, {"context_length": 32768}, 32768),
        (None, {"loaded_context_length": 8000, "context_length": 32768}, 8000),
        ({"default_generation_settings": None}, {"context_length": None, "meta": None}, None),
        ("text", ["list"], None),
        (None, None, None),
    ],
)
def test_the_window_is_read_from_what_servers_tell(props: Any, entry: Any, window: int | None) -> None:
    assert window_of(props, entry) == window


def test_the_entry_of_a_model() -> None:
    listing = {"data": [{"id": "a"}, {"id": "b"}]}
    assert entry_of(listing, "b") == {"id": "b"}
    assert entry_of(listing, "any") == {"id": "a"}
    assert entry_of(listing, "c") is None
    assert entry_of({"data": [{"id": "path/to/model.gguf"}]}, "qwen") == {"id": "path/to/model.gguf"}
    nonsense: Any
    for nonsense in (None, [], {"data": None}, {"data": ["a"]}, {"data": [{}]}):
        assert entry_of(nonsense, "any") is None


@pytest.mark.parametrize(
    ("settings", "configured"),
    [
        (Settings(), False),
        (Settings(api_key=SecretStr("")), False),
        (Settings(api_key=SecretStr("k")), True),
        (Settings(base_url="http://127.0.0.1:8080/v1"), True),
        (Settings(base_url="https://openrouter.ai/api/v1", api_key=SecretStr("")), False),
    ],
)
def test_a_local_server_needs_no_key(settings: Settings, configured: bool) -> None:
    provider: Provider = OpenAI("local", settings)
    assert provider.configured is configured


@pytest.mark.asyncio
async def test_windows_that_need_no_question() -> None:
    assert await OpenAI("l", Settings(context_window=32768)).limits() == Limits(32768, 32768, files=IMAGES)
    assert await OpenAI("l", Settings(model="gpt-5.6-mini")).limits() == Limits(400_000, 400_000, files=IMAGES)
    assert await OpenAI("l", Settings(model="unheard-of")).limits() == Limits(8192, 8192, files=IMAGES)


def test_settings_are_strict() -> None:
    provider = plugin.build("local", Settings.model_validate({"model": "m", "base_url": "http://h/v1", "max_tokens": 512}))
    assert (provider.name, provider.kind, provider.model, provider.max_tokens) == ("local", "openai", "m", 512)
    assert provider.cache_ttl is None
    for wrong in ({"cache_ttl": "1h"}, {"base_url": "ftp://h"}, {"context_window": "32k"}, {"model": ""}):
        with pytest.raises(ValidationError):
            Settings.model_validate(wrong)
