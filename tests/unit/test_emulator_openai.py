"""The emulated chat completions server, over bare HTTP and through the vendor's own client."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import openai
import pytest
import pytest_asyncio

from tests.emulators import scripts
from tests.emulators.openai import OpenAIEmulator, Overflow
from tests.emulators.openai_rules import check
from tests.emulators.server import DropAfter, Empty, Fault, JsonObject, Malformed, Rejected, Reply, Stall, StreamError

DEADLINE_S = 20.0
TOOL: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[OpenAIEmulator]:
    async with OpenAIEmulator(script=scripts.echo) as running:
        yield running


def sdk(emulator: OpenAIEmulator, transport: Any = None) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="key", base_url=emulator.base_url, max_retries=0, timeout=DEADLINE_S, http_client=transport)


@pytest_asyncio.fixture(params=["default", "aiohttp"])
async def client(emulator: OpenAIEmulator, request: pytest.FixtureRequest) -> AsyncIterator[openai.AsyncOpenAI]:
    transport = openai.DefaultAioHttpClient() if request.param == "aiohttp" else None
    async with sdk(emulator, transport) as running:
        yield running


async def ask(emulator: OpenAIEmulator, body: JsonObject, path: str = "/v1/chat/completions") -> tuple[int, Any]:
    timeout = aiohttp.ClientTimeout(DEADLINE_S)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.post(emulator.url + path, json=body) as response,
    ):
        return response.status, await response.json()


async def get(emulator: OpenAIEmulator, path: str) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.get(emulator.url + path) as response:
        return response.status, await response.json()


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def request(*messages: Any, **fields: Any) -> JsonObject:
    return {"model": "any", "messages": list(messages), **fields}


@pytest.mark.asyncio
async def test_a_completion_and_its_usage(client: openai.AsyncOpenAI) -> None:
    completion = await client.chat.completions.create(model="any", messages=[user("three small words")])
    assert completion.choices[0].message.content == "answer to: three small words"
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (3, 5)


@pytest.mark.asyncio
async def test_a_streamed_completion(client: openai.AsyncOpenAI, emulator: OpenAIEmulator) -> None:
    emulator.script = lambda body: scripts.say("Grüße, 日本語 🙂")
    stream = await client.chat.completions.create(model="any", messages=[user("hi")], stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in stream]
    said = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(said) == "Grüße, 日本語 🙂"
    assert max(map(len, said)) == 7
    usage = chunks[-1].usage
    assert usage is not None
    assert (chunks[-1].choices, usage.total_tokens) == ([], 4)


@pytest.mark.asyncio
async def test_usage_is_streamed_only_on_request(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(model="any", messages=[user("hi")], stream=True)
    assert [chunk.usage async for chunk in stream if chunk.usage is not None] == []


@pytest.mark.asyncio
async def test_a_tool_loop(client: openai.AsyncOpenAI, emulator: OpenAIEmulator) -> None:
    arguments = {"query": "Zoë 🙂", "limit": 3}
    emulator.script = scripts.calls_tool("look", arguments)
    messages: list[Any] = [user("find her")]
    completion = await client.chat.completions.create(model="any", messages=messages, tools=[TOOL])
    message = completion.choices[0].message
    assert message.tool_calls is not None
    call = message.tool_calls[0]
    assert call.type == "function"
    assert (completion.choices[0].finish_reason, message.content) == ("tool_calls", None)
    assert (call.function.name, json.loads(call.function.arguments)) == ("look", arguments)
    result = {"role": "tool", "tool_call_id": call.id, "content": "found"}
    messages += [message.model_dump(exclude_none=True), result]
    final = await client.chat.completions.create(model="any", messages=messages, tools=[TOOL])
    assert final.choices[0].message.content == "answer to: find her"


@pytest.mark.asyncio
async def test_tool_arguments_are_streamed_in_pieces(client: openai.AsyncOpenAI, emulator: OpenAIEmulator) -> None:
    arguments = {"a long key": "Zoë 🙂"}
    emulator.script = scripts.calls_tool("look", arguments)
    stream = await client.chat.completions.create(model="any", messages=[user("hi")], tools=[TOOL], stream=True)
    deltas = [call async for chunk in stream for call in chunk.choices[0].delta.tool_calls or []]
    functions = [delta.function for delta in deltas if delta.function is not None]
    assert (deltas[0].id, functions[0].name, functions[0].arguments) == ("toolu_0001", "look", "")
    assert len(functions) > 3
    assert json.loads("".join(function.arguments or "" for function in functions)) == arguments


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(401, "invalid_request_error", "Incorrect API key provided"), openai.AuthenticationError),
        (Fault(429, "rate_limit_error", "slow down", {"retry-after": "1"}), openai.RateLimitError),
        (Fault(500, "server_error", "The server had an error"), openai.InternalServerError),
        (Fault(503, "server_error", "Loading model"), openai.InternalServerError),
    ],
)
async def test_errors_have_their_types(
    client: openai.AsyncOpenAI, emulator: OpenAIEmulator, fault: Fault, error: type[openai.APIStatusError]
) -> None:
    emulator.faults.append(fault)
    with pytest.raises(error, match=fault.message) as caught:
        await client.chat.completions.create(model="any", messages=[user("hi")])
    assert caught.value.status_code == fault.status
    assert caught.value.response.headers.get("retry-after") == fault.headers.get("retry-after")


async def listen(client: openai.AsyncOpenAI, said: list[str]) -> None:
    stream = await client.chat.completions.create(model="any", messages=[user("hi")], stream=True)
    async for chunk in stream:
        said.append(chunk.choices[0].delta.content or "")


@pytest.mark.asyncio
async def test_an_error_inside_a_stream(client: openai.AsyncOpenAI, emulator: OpenAIEmulator) -> None:
    emulator.faults.append(StreamError("server_error", "out of memory", after=2))
    said: list[str] = []
    with pytest.raises(openai.APIError, match="out of memory"):
        await listen(client, said)
    assert said == ["", "answer "]


@pytest.mark.asyncio
async def test_a_dropped_stream_is_a_connection_error(client: openai.AsyncOpenAI, emulator: OpenAIEmulator) -> None:
    emulator.faults.append(DropAfter(2))
    with pytest.raises(openai.APIConnectionError):
        await listen(client, [])
    assert emulator.calls[0].outcome == "dropped"


@pytest.mark.asyncio
async def test_the_details_of_a_fault_are_fields_of_the_error(emulator: OpenAIEmulator) -> None:
    emulator.faults.append(Fault(429, "insufficient_quota", "no money", details={"code": "insufficient_quota"}))
    error = {"message": "no money", "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}
    assert await ask(emulator, request(user("hi"))) == (429, {"error": error})


@pytest.mark.asyncio
async def test_a_stall_a_broken_body_and_an_empty_reply(emulator: OpenAIEmulator) -> None:
    stall = Stall()
    emulator.faults += [stall, Malformed("{oops"), Empty()]
    task = asyncio.create_task(ask(emulator, request(user("hi"))))
    await asyncio.wait_for(stall.reached.wait(), DEADLINE_S)
    stall.until.set()
    assert (await task)[0] == 200
    with pytest.raises(json.JSONDecodeError):
        await ask(emulator, request(user("hi")))
    assert (await ask(emulator, request(user("hi"))))[1]["choices"][0]["message"]["content"] == ""


@pytest.mark.asyncio
async def test_a_held_call(emulator: OpenAIEmulator) -> None:
    hold = emulator.hold(lambda body: scripts.last_user_text(body) == "slow")
    task = asyncio.create_task(ask(emulator, request(user("slow"))))
    await asyncio.wait_for(hold.reached.wait(), DEADLINE_S)
    assert (await ask(emulator, request(user("quick"))))[0] == 200
    hold.release()
    assert (await task)[0] == 200
    assert [call.outcome for call in emulator.calls] == ["answered", "answered"]


@pytest.mark.asyncio
async def test_reports_the_prefix_that_it_has_seen(emulator: OpenAIEmulator) -> None:
    system = {"role": "system", "content": "be kind now"}
    turn = [system, user("one two")]

    async def cached(*messages: Any) -> int:
        usage = (await ask(emulator, request(*messages)))[1]["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    assert await cached(*turn) == 0
    assert await cached(*turn, {"role": "assistant", "content": "yes"}, user("three")) == 5
    assert await cached({"role": "system", "content": "be quick now"}, user("one two")) == 0
    assert await cached(system, user("another")) == 3
    emulator.cache_step = 4
    assert await cached(*turn) == 4
    emulator.cache_minimum = 100
    assert await cached(*turn) == 0


@pytest.mark.asyncio
async def test_a_server_that_does_not_report_caching(emulator: OpenAIEmulator) -> None:
    emulator.caching = False
    assert "prompt_tokens_details" not in (await ask(emulator, request(user("hi"))))[1]["usage"]


OVERFLOWS: dict[Overflow, JsonObject] = {
    "openai": {
        "message": "This model's maximum context length is 10 tokens. However, your messages resulted in 11 tokens. "
        "Please reduce the length of the messages.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    },
    "llama.cpp": {
        "message": "request (11 tokens) exceeds the available context size (10 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "param": None,
        "code": 400,
        "n_prompt_tokens": 11,
        "n_ctx": 10,
    },
    "vllm": {
        "message": "This model's maximum context length is 10 tokens. However, you requested 0 output tokens and your "
        "prompt contains at least 11 input tokens, for a total of at least 11 tokens.",
        "type": "BadRequestError",
        "param": None,
        "code": 400,
    },
}


@pytest.mark.asyncio
@pytest.mark.parametrize("form", OVERFLOWS)
async def test_a_prompt_over_the_window(emulator: OpenAIEmulator, form: Overflow) -> None:
    emulator.window, emulator.overflow = 10, form
    assert await ask(emulator, request(user("word " * 11))) == (400, {"error": OVERFLOWS[form]})
    assert (await ask(emulator, request(user("word " * 10))))[0] == 200


@pytest.mark.asyncio
async def test_vllm_reserves_the_output(emulator: OpenAIEmulator) -> None:
    emulator.window, emulator.overflow = 10, "vllm"
    status, body = await ask(emulator, request(user("word " * 5), max_tokens=6))
    assert status == 400
    assert "you requested 6 output tokens" in body["error"]["message"]


@pytest.mark.asyncio
async def test_tells_the_window_in_each_servers_way() -> None:
    fields: dict[str, JsonObject] = {
        "llama": {"meta": {"n_ctx_train": 32_768}},
        "org/vllm": {"max_model_len": 16_384},
        "router": {"context_length": 8_192},
    }
    async with OpenAIEmulator(script=scripts.echo, models=fields, n_ctx=4_096) as emulator:
        listed = {entry["id"]: entry for entry in (await get(emulator, "/v1/models"))[1]["data"]}
        assert listed["llama"]["meta"]["n_ctx_train"] == 32_768
        assert listed["router"]["context_length"] == 8_192
        assert (await get(emulator, "/v1/models/org/vllm"))[1]["max_model_len"] == 16_384
        assert (await get(emulator, "/v1/models/nobody"))[0] == 404
        assert (await get(emulator, "/props"))[1]["default_generation_settings"]["n_ctx"] == 4_096


@pytest.mark.asyncio
async def test_props_are_not_there_unless_asked_for(emulator: OpenAIEmulator) -> None:
    assert (await get(emulator, "/props"))[0] == 404


@pytest.mark.asyncio
async def test_a_wrong_key(client: openai.AsyncOpenAI, emulator: OpenAIEmulator) -> None:
    emulator.api_key = "another"
    with pytest.raises(openai.AuthenticationError, match="Incorrect API key"):
        await client.chat.completions.create(model="any", messages=[user("hi")])


@pytest.mark.asyncio
@pytest.mark.parametrize(("stop", "finish"), [("max_tokens", "length"), ("refusal", "content_filter")])
async def test_stop_reasons(emulator: OpenAIEmulator, stop: str, finish: str) -> None:
    emulator.script = lambda body: Reply([{"type": "text", "text": "so"}], stop)
    assert (await ask(emulator, request(user("hi"))))[1]["choices"][0]["finish_reason"] == finish


def call(*ids: str) -> JsonObject:
    calls = [{"id": id_, "type": "function", "function": {"name": "look", "arguments": "{}"}} for id_ in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(id_: str) -> JsonObject:
    return {"role": "tool", "tool_call_id": id_, "content": "found"}


UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "
    "following tool_call_ids did not have response messages: {}"
)
UNASKED = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
UNKNOWN = "Invalid parameter: 'tool_call_id' of 'b' not found in 'tool_calls' of previous message."

REFUSED: dict[str, tuple[list[JsonObject], str, str]] = {
    "no result": ([user("hi"), call("a", "b"), user("so?")], UNANSWERED.format("a, b"), "messages.[2].role"),
    "one of two": ([user("hi"), call("a", "b"), result("b"), user("so?")], UNANSWERED.format("a"), "messages.[3].role"),
    "none at the end": ([user("hi"), call("a")], UNANSWERED.format("a"), "messages.[1].role"),
    "result too late": ([user("hi"), call("a"), user("x"), result("a")], UNANSWERED.format("a"), "messages.[2].role"),
    "result unasked": ([user("hi"), result("a")], UNASKED, "messages.[1].role"),
    "result of another": ([user("hi"), call("a"), result("b")], UNKNOWN, "messages.[2].tool_call_id"),
    "result twice": ([user("hi"), call("b"), result("b"), result("b")], UNKNOWN, "messages.[3].tool_call_id"),
    "null content": (
        [user("hi"), {"role": "assistant", "content": None}],
        "Invalid value for 'content': expected a string, got null.",
        "messages.[1].content",
    ),
}


@pytest.mark.parametrize(("messages", "message", "param"), REFUSED.values(), ids=REFUSED.keys())
def test_refuses(messages: list[JsonObject], message: str, param: str) -> None:
    with pytest.raises(Rejected) as caught:
        check(request(*messages))
    assert (caught.value.message, caught.value.fields["param"]) == (message, param)


def test_refuses_arguments_that_are_not_a_string() -> None:
    bad = call("a")
    bad["tool_calls"][0]["function"]["arguments"] = {}
    with pytest.raises(Rejected, match="expected a string, but got an object instead"):
        check(request(user("hi"), bad, result("a")))


def test_accepts_results_in_any_order() -> None:
    check(request(user("hi"), call("a", "b"), result("b"), result("a"), user("so")))
