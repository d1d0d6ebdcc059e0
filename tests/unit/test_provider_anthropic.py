import json
from types import SimpleNamespace as Ns

import pytest
from pydantic import SecretStr, ValidationError

from clew.context.files import IMAGES, PDF
from clew.context.rules import mended
from clew.messages import Text, Thinking, ToolCall, ToolResult, Usage
from clew.providers import Began, Delta, Limits, PromptMessage, Provider, Request, Stop, SystemBlock, ToolSpec
from clew.providers.anthropic import Anthropic, Reply, Settings, author, known_limits, payload, plugin

MODEL = "claude-sonnet-5-5"
MARK = {"type": "ephemeral", "ttl": "1h"}


def user(*texts: str, marked: tuple[int, ...] = (), recall: int | None = None) -> PromptMessage:
    return PromptMessage("user", tuple(Text(text) for text in texts), marked, recall)


def test_system_blocks_keep_their_order_text_and_marks() -> None:  # P27, P28
    system = (
        SystemBlock("base", "base", marked=True),
        SystemBlock("notes", "\n\nnotes"),
        SystemBlock("summary", "\n\nsummary", marked=True),
        SystemBlock("recall", "\n\nrecall"),
    )
    body = payload(Request(system, (user("hi"),), cache_ttl="1h"), MODEL)
    assert body["system"] == [
        {"type": "text", "text": "base", "cache_control": MARK},
        {"type": "text", "text": "\n\nnotes"},
        {"type": "text", "text": "\n\nsummary", "cache_control": MARK},
        {"type": "text", "text": "\n\nrecall"},
    ]
    assert "cache_control" not in body  # never the automatic marker


def test_without_a_lifetime_nothing_is_marked() -> None:
    request = Request((SystemBlock("base", "base", marked=True),), (user("hi", marked=(0,)),))
    assert "cache_control" not in json.dumps(payload(request, MODEL))


def test_sampling_parameters_are_never_sent() -> None:
    body = payload(Request((SystemBlock("base", "base"),), (user("hi"),)), MODEL)
    assert set(body) == {"model", "max_tokens", "system", "messages"}


def test_recall_block_stands_behind_the_marked_words() -> None:  # P29
    body = payload(Request((), (user("what?", "recalled", marked=(0,), recall=1),), cache_ttl="5m"), MODEL)
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "what?", "cache_control": {"type": "ephemeral", "ttl": "5m"}},
        {"type": "text", "text": "recalled"},
    ]
    assert "system" not in body


def test_calls_and_results_keep_order_ids_and_key_order() -> None:  # P11
    messages = (
        user("go"),
        PromptMessage("assistant", (Text("let me see"), ToolCall("a", "t", '{"z": 1, "a": 2}'), ToolCall("b", "t", ""))),
        PromptMessage("user", (ToolResult("a", "t", "one"), ToolResult("b", "t", " ", is_error=True)), marked=(1,)),
    )
    body = payload(Request((), messages, cache_ttl="1h"), MODEL)
    calls = body["messages"][1]["content"]
    assert json.dumps(calls[1]["input"]) == '{"z": 1, "a": 2}'
    assert calls[2] == {"type": "tool_use", "id": "b", "name": "t", "input": {}}
    assert body["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "one"},
        {"type": "tool_result", "tool_use_id": "b", "is_error": True, "cache_control": MARK},
    ]


def test_results_come_first_and_neighbours_of_one_role_are_one_message() -> None:
    messages = (
        user("a"),
        user("b"),
        PromptMessage("assistant", (ToolCall("1", "t", "{}"),)),
        PromptMessage("user", (Text("and then"), ToolResult("1", "t", "r"))),
    )
    sent = payload(mended(Request((), messages))[0], MODEL)["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert [part["text"] for part in sent[0]["content"]] == ["a", "b"]
    assert [part["type"] for part in sent[2]["content"]] == ["tool_result", "text"]


def test_blank_rows_heal() -> None:  # BO-113
    messages = (user("hi"), PromptMessage("assistant", (Text(""),)), user("  \n"), user("still there?"))
    sent = payload(mended(Request((SystemBlock("base", " "),), messages))[0], MODEL)
    assert sent["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "still there?"}]}]
    assert "system" not in sent


def test_an_emptied_message_is_replaced_only_where_the_order_needs_it() -> None:  # BO-113
    messages = (user(""), PromptMessage("assistant", (Text("hello"),)), user("\t"))
    sent = payload(mended(Request((), messages))[0], MODEL)["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert all(part["text"].strip() for message in sent for part in message["content"])


def test_thinking_is_replayed_whole_to_its_own_model_only() -> None:  # BO-115
    data = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    blocks = (Thinking(author(MODEL), json.dumps(data)), Thinking("anthropic/claude-opus-5", json.dumps(data)), Text("so"))
    messages = (user("hi"), PromptMessage("assistant", blocks), user("go on"))
    assert payload(Request((), messages), MODEL)["messages"][1]["content"] == [data, {"type": "text", "text": "so"}]


def test_schemas_are_sent_in_the_order_of_their_text() -> None:  # P29
    tool = ToolSpec("t", "does", '{"type":"object","properties":{"z":{},"a":{}}}')
    body = payload(Request((), (user("hi"),), (tool,)), MODEL)
    assert json.dumps(body["tools"]) == (
        '[{"name": "t", "description": "does", "input_schema": {"type": "object", "properties": {"z": {}, "a": {}}}}]'
    )


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("pause_turn", "end"),
        ("tool_use", "tools"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("something_new", "end"),
    ],
)
def test_stop_reasons(said: str, meant: Stop) -> None:
    reply = Reply(MODEL)
    reply.feed(Ns(type="message_delta", delta=Ns(stop_reason=said), usage=Ns(output_tokens=1)))
    assert reply.done().stop == meant


def feed_block(reply: Reply, index: int, block: Ns, *deltas: Ns) -> list[Began | Delta | None]:
    events = [Ns(type="content_block_start", index=index, content_block=block)]
    events += [Ns(type="content_block_delta", index=index, delta=delta) for delta in deltas]
    return [reply.feed(event) for event in events]


def test_blocks_are_put_together_verbatim() -> None:
    reply = Reply(MODEL)
    usage = Ns(input_tokens=3, output_tokens=1, cache_read_input_tokens=10, cache_creation_input_tokens=None)
    began = reply.feed(Ns(type="message_start", message=Ns(model="claude-x", usage=usage)))
    assert began == Began(Usage(3, 1, 10, 0))
    feed_block(
        reply,
        0,
        Ns(type="thinking"),
        Ns(type="thinking_delta", thinking="h"),
        Ns(type="thinking_delta", thinking="m"),
        Ns(type="signature_delta", signature="s"),
    )
    feed_block(reply, 1, Ns(type="redacted_thinking", data="xyz"))
    passed = feed_block(reply, 2, Ns(type="text", text=""), Ns(type="text_delta", text="Hel"), Ns(type="text_delta", text="lo"))
    assert passed == [None, Delta("Hel"), Delta("lo")]
    json_parts = [Ns(type="input_json_delta", partial_json=part) for part in ("", '{"b" : 1,', ' "a": "\\u00e4"}')]
    feed_block(reply, 3, Ns(type="tool_use", id="t1", name="look"), *json_parts)
    feed_block(reply, 4, Ns(type="tool_use", id="t2", name="now"), Ns(type="input_json_delta", partial_json=""))
    reply.feed(Ns(type="message_delta", delta=Ns(stop_reason="tool_use"), usage=Ns(output_tokens=25, input_tokens=None)))
    assert not reply.complete
    reply.feed(Ns(type="message_stop"))
    assert reply.complete
    done = reply.done()
    assert done.blocks == (
        Thinking(author(MODEL), '{"type": "thinking", "thinking": "hm", "signature": "s"}'),
        Thinking(author(MODEL), '{"type": "redacted_thinking", "data": "xyz"}'),
        Text("Hello"),
        ToolCall("t1", "look", '{"b" : 1, "a": "\\u00e4"}'),
        ToolCall("t2", "now", "{}"),
    )
    assert (done.stop, done.usage, done.model) == ("tools", Usage(3, 25, 10, 0), "claude-x")


def test_unsigned_thinking_and_blank_text_are_not_kept() -> None:  # BO-113, BO-115
    reply = Reply(MODEL)
    feed_block(reply, 0, Ns(type="thinking"), Ns(type="thinking_delta", thinking="half"))
    feed_block(reply, 1, Ns(type="text", text=""), Ns(type="text_delta", text=" \n"))
    feed_block(reply, 2, Ns(type="server_tool_use", id="s", name="web_search"))
    assert reply.done().blocks == ()


@pytest.mark.parametrize(
    ("model", "window", "minimum"),
    [
        ("claude-sonnet-5-5", 1_000_000, 512),
        ("claude-opus-5-5-20261001", 1_000_000, 512),
        ("claude-fable-5-2", 1_000_000, 512),
        ("claude-sonnet-5", 1_000_000, 1_024),
        ("claude-opus-4-7", 1_000_000, 2_048),
        ("claude-opus-4-6", 1_000_000, 4_096),
        ("claude-haiku-5-5", 1_000_000, 4_096),
        ("claude-haiku-4-5-20251001", 200_000, 4_096),
        ("claude-sonnet-4-20250514", 200_000, 1_024),
        ("anthropic/claude-opus-4-8", 1_000_000, 1_024),
        ("somebody-elses-model", 200_000, 4_096),
    ],
)
def test_limits_by_name(model: str, window: int, minimum: int) -> None:
    limits = known_limits(model)
    assert (limits.window, limits.marker_minimum) == (window, minimum)


@pytest.mark.asyncio
async def test_a_configured_window_is_believed() -> None:
    provider = Anthropic("claude", Settings(context_window=50_000, api_key=SecretStr("k")))
    assert await provider.limits() == Limits(50_000, 64_000, 512, IMAGES | {PDF})


@pytest.mark.asyncio
async def test_without_a_key_it_is_not_configured_and_does_not_answer() -> None:
    provider: Provider = Anthropic("claude", Settings())
    assert not provider.configured
    assert not await provider.answers()
    assert await provider.limits() == known_limits(MODEL)


@pytest.mark.asyncio
async def test_with_a_key_and_no_address_of_its_own_it_answers() -> None:
    assert await Anthropic("claude", Settings(api_key=SecretStr("k"))).answers()


def test_settings_are_strict_and_hide_the_key() -> None:
    settings = Settings.model_validate(
        {"model": MODEL, "api_key": SecretStr("topsecret"), "cache_ttl": "5m", "timeouts": {"first_byte": "2m"}}
    )
    assert settings.timeouts.first_byte == 120.0
    assert "topsecret" not in repr(settings)
    provider = plugin.build("claude", settings)
    assert (provider.name, provider.kind, provider.model, provider.cache_ttl) == ("claude", "anthropic", MODEL, "5m")
    assert "topsecret" not in repr(provider)
    for wrong in ({"temperature": 1}, {"cache_ttl": "2h"}, {"max_tokens": 0}, {"base_url": "api.anthropic.com"}):
        with pytest.raises(ValidationError):
            Settings.model_validate(wrong)
