import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr

from clew.messages import Text, ToolCall, ToolResult
from clew.providers import Began, Delta, Done, ErrorKind, Event, PromptMessage, ProviderError, Request, SystemBlock, ToolSpec
from clew.providers.openai import OpenAI, Settings
from clew.providers.sections import Waits
from tests.emulators.openai import OpenAIEmulator, Overflow
from tests.emulators.scripts import echo, say
from tests.emulators.server import AnyFault, DropAfter, Empty, Fault, Malformed, Reply, Stall, StreamError
from tests.servers import free_port

HI = Request((SystemBlock("base", "You are clew."),), (PromptMessage("user", (Text("hi"),)),))
LM_STUDIO = "The number of tokens to keep from the initial prompt is greater than the context length."
FIRST_DELTA = 2
"""Chunks of the emulator up to and with the first words."""


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[OpenAIEmulator]:
    async with OpenAIEmulator(script=echo) as server:
        yield server


def provider_for(url: str, *, key: str | None = None, model: str = "any", **waits: float) -> OpenAI:
    secret = None if key is None else SecretStr(key)
    return OpenAI("local", Settings(base_url=url, api_key=secret, model=model, timeouts=Waits(**waits)))


@pytest_asyncio.fixture
async def provider(emulator: OpenAIEmulator) -> AsyncIterator[OpenAI]:
    made = provider_for(emulator.base_url)
    yield made
    await made.close()


async def collect(provider: OpenAI, request: Request = HI) -> list[Event]:
    return [event async for event in provider.stream(request)]


async def fail(provider: OpenAI, request: Request = HI) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await collect(provider, request)
    return caught.value


@pytest.mark.asyncio
async def test_a_reply_is_streamed_and_comes_whole(emulator: OpenAIEmulator, provider: OpenAI) -> None:
    emulator.script = lambda body: say("Grüße aus Köln, 東京 and beyond")
    began, *deltas, done = await collect(provider)
    assert isinstance(began, Began)
    assert isinstance(done, Done)
    assert "".join(event.text for event in deltas if isinstance(event, Delta)) == "Grüße aus Köln, 東京 and beyond"
    assert len(deltas) > 1
    assert done.blocks == (Text("Grüße aus Köln, 東京 and beyond"),)
    assert done.stop == "end"


@pytest.mark.asyncio
async def test_tool_rounds_pass_a_strict_server(emulator: OpenAIEmulator, provider: OpenAI) -> None:  # P11
    calls = [{"type": "tool_use", "id": f"call_{n}", "name": "look", "input": {"z": n, "a": "ä"}} for n in (1, 2)]
    emulator.script = lambda body: Reply(calls, "tool_use")
    request = Request(HI.system, HI.messages, (ToolSpec("look", "looks", '{"type": "object"}'),))
    done = (await collect(provider, request))[-1]
    assert isinstance(done, Done)
    assert done.stop == "tools"
    assert done.blocks[0] == ToolCall("call_1", "look", '{"z": 1, "a": "\\u00e4"}')
    emulator.script = echo
    results = PromptMessage("user", (ToolResult("call_1", "look", "a cat"), ToolResult("call_2", "look", "a dog")))
    second = Request(HI.system, (*HI.messages, PromptMessage("assistant", done.blocks), results), request.tools)
    assert isinstance((await collect(provider, second))[-1], Done)
    assert emulator.calls[-1].body["messages"][2]["tool_calls"][0]["function"]["arguments"] == '{"z": 1, "a": "\\u00e4"}'


@pytest.mark.asyncio
async def test_what_was_cached_is_told_apart(provider: OpenAI) -> None:
    first, second = [(await collect(provider))[-1] for _ in range(2)]
    assert isinstance(first, Done)
    assert isinstance(second, Done)
    assert (first.usage.input, first.usage.cache_read) == (4, 0)
    assert (second.usage.input, second.usage.cache_read) == (0, 4)


@pytest.mark.asyncio
async def test_empty_refused_and_reasoning_replies_are_results(emulator: OpenAIEmulator, provider: OpenAI) -> None:
    emulator.faults.append(Empty())  # BO-113
    emulator.script = lambda body: Reply([], "refusal")  # BO-114
    done = [(await collect(provider))[-1], (await collect(provider))[-1]]
    emulator.script = lambda body: Reply([{"type": "thinking", "thinking": "hm"}])
    done.append((await collect(provider))[-1])
    results = [(each.blocks, each.stop) for each in done if isinstance(each, Done)]
    assert results == [((), "end"), ((), "refusal"), ((), "end")]
    assert len(emulator.calls) == 3


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (Fault(429, "rate_limit_exceeded", "slow down"), "rate_limit", False),
        (Fault(429, "insufficient_quota", "check your plan"), "quota", False),
        (Fault(402, "billing", "pay first"), "quota", False),
        (Fault(401, "invalid_request_error", "no key"), "auth", False),
        (Fault(403, "forbidden", "no"), "auth", False),
        (Fault(400, "invalid_request_error", "arguments are malformed"), "invalid", False),
        (Fault(404, "not_found_error", "no such model"), "invalid", False),
        (Fault(500, "server_error", "oops"), "server", False),
        (Fault(503, "unavailable_error", "Loading model"), "server", False),
        (Fault(504, "timeout", "too slow"), "server", False),
        (Fault(529, "overloaded_error", "Overloaded"), "overloaded", False),
        (StreamError("server_error", "oops", after=FIRST_DELTA), "server", True),
        (StreamError("overloaded_error", after=1), "overloaded", False),
        (StreamError("error", LM_STUDIO, after=0), "overflow", False),
        (DropAfter(0), "network", False),
        (DropAfter(1), "cut", False),
        (DropAfter(FIRST_DELTA), "cut", True),
        (Malformed(), "server", False),
    ],
)
async def test_every_failure_has_its_kind(emulator: OpenAIEmulator, provider: OpenAI, fault: AnyFault, kind: ErrorKind, said: bool) -> None:
    emulator.faults.append(fault)
    error = await fail(provider)
    assert (error.kind, error.text_delivered) == (kind, said)
    assert len(emulator.calls) == 1  # the SDK does not retry by itself
    assert isinstance((await collect(provider))[-1], Done)


@pytest.mark.asyncio
@pytest.mark.parametrize(("after", "said"), [(0, False), (1, False), (FIRST_DELTA, True)])
async def test_silence_is_a_stall(emulator: OpenAIEmulator, after: int, said: bool) -> None:
    stall = Stall(after)
    emulator.faults.append(stall)
    impatient = provider_for(emulator.base_url, first_byte=1.0, between=0.5)
    error = await fail(impatient)
    assert (error.kind, error.text_delivered) == ("stall", said)
    stall.until.set()
    await impatient.close()


@pytest.mark.asyncio
@pytest.mark.parametrize(("form", "tokens"), [("openai", (22, 10)), ("llama.cpp", (22, 10)), ("vllm", (27, 10))])
async def test_an_overflow_tells_its_numbers(emulator: OpenAIEmulator, provider: OpenAI, form: Overflow, tokens: tuple[int, int]) -> None:
    emulator.window, emulator.overflow = 10, form
    long = Request((), (PromptMessage("user", (Text("word " * 22),)),), max_tokens=5)
    error = await fail(provider, long)
    assert (error.kind, error.tokens) == ("overflow", tokens)


@asynccontextmanager
async def odd_server(data: bytes) -> AsyncIterator[str]:
    """A server whose every stream is `data`."""

    async def complete(request: web.Request) -> web.StreamResponse:
        return web.Response(body=data, content_type="text/event-stream")

    app = web.Application()
    app.add_routes([web.post("/v1/chat/completions", complete)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    await runner.cleanup()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (f'event: error\ndata: {{"error": "{LM_STUDIO}"}}\n\n', "overflow"),
        (f'event: error\ndata: {{"error": {{"message": "{LM_STUDIO}"}}}}\n\n', "overflow"),
        ('data: {"error": {"code": 429, "message": "Rate limited upstream"}}\n\n', "rate_limit"),
        ('data: {"error": {"code": 502, "message": "Upstream gone"}}\n\n', "server"),
        ('data: {"choices": [{"index": 0, "delta": {"content": "half a sen"}}]}\n\n', "cut"),
        ("", "cut"),
    ],
)
async def test_errors_inside_a_stream_of_other_servers(data: str, kind: ErrorKind) -> None:  # BO-117
    async with odd_server(data.encode()) as url:
        provider = provider_for(url, model="m")
        assert (await fail(provider)).kind == kind
        await provider.close()


@pytest.mark.asyncio
async def test_the_window_is_asked_for(emulator: OpenAIEmulator, provider: OpenAI) -> None:
    assert (await provider.limits()).window == 8192  # nothing is told
    emulator.models = {"qwen": {"meta": {"n_ctx_train": 131072}}}
    assert (await provider.limits()).window == 131072
    emulator.n_ctx = 4096
    assert (await provider.limits()).window == 131072  # asked until known, then kept
    other = provider_for(emulator.base_url)
    assert (await other.limits()).window == 4096  # what is loaded counts more than what was trained


@pytest.mark.asyncio
async def test_any_is_the_first_model_of_the_server(emulator: OpenAIEmulator, provider: OpenAI) -> None:
    emulator.models = {"qwen": {}, "llama": {}}
    await collect(provider)
    await collect(provider)
    assert [call.body["model"] for call in emulator.calls] == ["qwen", "qwen"]
    assert [record.path for record in emulator.records].count("/v1/models") == 1
    assert provider.model == "any"


@pytest.mark.asyncio
async def test_keys_go_only_where_they_belong(emulator: OpenAIEmulator, provider: OpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-service")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    await collect(provider)
    assert all("authorization" not in record.headers for record in emulator.records)
    emulator.api_key = "local-secret"
    assert await provider.answers() is False
    keyed = provider_for(emulator.base_url, key="local-secret")
    assert await keyed.answers() is True
    await collect(keyed)
    assert emulator.calls[-1].headers["authorization"] == "Bearer local-secret"
    await keyed.close()
    wrong = provider_for(emulator.base_url, key="wrong-secret")
    error = await fail(wrong)
    assert error.kind == "auth"
    assert "wrong-secret" not in str(error)
    await wrong.close()


@pytest.mark.asyncio
async def test_nobody_there_is_a_network_error() -> None:
    alone = provider_for(f"http://127.0.0.1:{free_port()}/v1")
    assert not await alone.answers()
    assert (await alone.limits()).window == 8192
    assert (await fail(alone)).kind == "network"
    await alone.close()


@pytest.mark.asyncio
async def test_leaving_a_stream_ends_the_request(emulator: OpenAIEmulator, provider: OpenAI) -> None:
    stall = Stall(FIRST_DELTA)
    emulator.faults.append(stall)
    task = asyncio.create_task(collect(provider))
    await asyncio.wait_for(stall.reached.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(emulator.calls[0].finished.wait(), 30)
    assert emulator.calls[0].outcome == "disconnected"
