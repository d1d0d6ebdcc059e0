import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from aiohttp import web
from structlog.testing import capture_logs

from clew.messages import File, Text, ToolCall, ToolResult
from clew.providers import Began, Delta, Done, ErrorKind, Event, PromptMessage, ProviderError, Request, SystemBlock, ToolSpec
from clew.providers.ollama import Ollama, Settings, SlowWaits
from tests.emulators.ollama import OllamaEmulator
from tests.emulators.scripts import echo, say
from tests.emulators.server import AnyFault, DropAfter, Empty, Fault, Malformed, Reply, Stall, StreamError
from tests.servers import free_port

HI = Request((SystemBlock("base", "You are clew."),), (PromptMessage("user", (Text("hi"),)),))
LOOK = ToolSpec("look", "looks", '{"type": "object"}')


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[OllamaEmulator]:
    async with OllamaEmulator(script=echo) as server:
        yield server


def provider_for(url: str, *, model: str = "qwen3", window: int | None = None, **waits: float) -> Ollama:
    return Ollama("home", Settings(base_url=url, model=model, context_window=window, timeouts=SlowWaits(**waits)))


@pytest_asyncio.fixture
async def provider(emulator: OllamaEmulator) -> AsyncIterator[Ollama]:
    made = provider_for(emulator.url)
    yield made
    await made.close()


async def collect(provider: Ollama, request: Request = HI) -> list[Event]:
    return [event async for event in provider.stream(request)]


async def finish(provider: Ollama, request: Request = HI) -> Done:
    done = (await collect(provider, request))[-1]
    assert isinstance(done, Done)
    return done


async def fail(provider: Ollama, request: Request = HI) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await collect(provider, request)
    return caught.value


def thread(words: int) -> Request:
    """A conversation of ten messages with so many words together."""
    texts = [f"message {n} " + "word " * (words // 10) for n in range(10)]
    return Request(HI.system, tuple(PromptMessage("assistant" if n % 2 else "user", (Text(text),)) for n, text in enumerate(texts[:-1])))


@pytest.mark.asyncio
async def test_a_reply_is_streamed_and_comes_whole(emulator: OllamaEmulator, provider: Ollama) -> None:
    emulator.script = lambda body: Reply([{"type": "thinking", "thinking": "hm hm hm"}, *say("Grüße aus Köln, 東京").content])
    began, *deltas, done = await collect(provider)
    assert isinstance(began, Began)
    assert isinstance(done, Done)
    assert "".join(event.text for event in deltas if isinstance(event, Delta)) == "Grüße aus Köln, 東京"
    assert len(deltas) > 1
    assert done.blocks == (Text("Grüße aus Köln, 東京"),)
    assert (done.stop, done.model, done.usage.input, done.usage.cache_read) == ("end", "qwen3", 4, 0)
    assert done.usage.output > 0


@pytest.mark.asyncio
async def test_the_window_is_asked_for_once_and_nothing_may_be_cut(emulator: OllamaEmulator, provider: Ollama) -> None:
    emulator.loads.append(("qwen3:latest", 16_384))
    for _ in range(2):
        await finish(provider)
    assert emulator.loads == [("qwen3:latest", 16_384)]  # never loaded anew
    emulator.loads.append(("qwen3:latest", 4_096))  # by somebody else
    await finish(provider)
    assert [call.body["options"]["num_ctx"] for call in emulator.calls] == [16_384] * 3
    assert all(call.body["truncate"] is False and call.body["shift"] is False for call in emulator.calls)
    assert [record.path for record in emulator.records].count("/api/ps") == 1
    assert "keep_alive" not in emulator.calls[0].body
    assert emulator.calls[0].body["options"]["num_predict"] == HI.max_tokens


@pytest.mark.asyncio
@pytest.mark.parametrize(("trained", "window"), [(40_960, 8_192), (2_048, 2_048)])
async def test_a_model_that_is_not_loaded_gets_a_small_window(emulator: OllamaEmulator, trained: int, window: int) -> None:
    emulator.models["qwen3:latest"] = trained
    provider = provider_for(emulator.url)
    assert (await provider.limits()).window == window
    await provider.close()


@pytest.mark.asyncio
async def test_a_configured_window_needs_no_question(emulator: OllamaEmulator) -> None:
    provider = provider_for(emulator.url, window=32_768)
    assert (await provider.limits()).window == 32_768
    await finish(provider)
    assert [record.path for record in emulator.records] == ["/api/show", "/api/chat"]  # what it sees is asked once
    await provider.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("ids", [True, False])
async def test_tool_rounds(emulator: OllamaEmulator, provider: Ollama, ids: bool) -> None:  # P11
    emulator.ids = ids
    calls = [{"type": "tool_use", "id": f"call_{n}", "name": "look", "input": {"z": n, "a": "ä"}} for n in (1, 2)]
    emulator.script = lambda body: Reply(calls, "tool_use")
    request = Request(HI.system, HI.messages, (LOOK,))
    done = await finish(provider, request)
    assert done.stop == "tools"
    first, second = (block for block in done.blocks if isinstance(block, ToolCall))
    assert (first.name, first.arguments, second.arguments) == ("look", '{"z": 1, "a": "ä"}', '{"z": 2, "a": "ä"}')
    assert first.id != second.id
    emulator.script = echo
    results = PromptMessage("user", (ToolResult(first.id, "look", "a cat"), ToolResult(second.id, "look", "a dog")))
    await finish(provider, Request(HI.system, (*HI.messages, PromptMessage("assistant", done.blocks), results), (LOOK,)))
    sent = emulator.calls[-1].body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "tool"]
    assert sent[2]["tool_calls"][0] == {"function": {"name": "look", "arguments": {"z": 1, "a": "ä"}}}
    assert sent[3] == {"role": "tool", "tool_name": "look", "content": "a cat"}


@pytest.mark.asyncio
async def test_a_model_without_tools_can_still_talk(emulator: OllamaEmulator, provider: Ollama) -> None:
    emulator.tools = False
    request = Request(HI.system, HI.messages, (LOOK,))
    with capture_logs() as logs:
        for _ in range(2):
            assert (await finish(provider, request)).blocks == (Text("answer to: hi"),)
    assert ["tools" in call.body for call in emulator.calls] == [True, False, False]
    assert [line["event"] for line in logs] == ["provider.no_tools"]


@pytest.mark.asyncio
async def test_empty_and_cut_off_replies_are_results(emulator: OllamaEmulator, provider: Ollama) -> None:
    emulator.faults.append(Empty())  # BO-113
    emulator.script = lambda body: Reply([{"type": "thinking", "thinking": "hm"}])
    assert [(await finish(provider)).blocks for _ in range(2)] == [(), ()]
    emulator.script = lambda body: Reply(say("half a sen").content, "max_tokens")
    assert (await finish(provider)).stop == "length"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (Fault(429, "", "too many requests"), "rate_limit", False),
        (Fault(401, "", "unauthorized"), "auth", False),
        (Fault(400, "", "invalid tool arguments"), "invalid", False),  # BO-116
        (Fault(500, "", "llama runner process has terminated"), "server", False),
        (Fault(500, "", "model requires more system memory (9.1 GiB) than is available (3.2 GiB)"), "unavailable", False),
        (Fault(503, "", "server busy, please try again. maximum pending requests exceeded"), "overloaded", False),
        (StreamError(message="an error was encountered while running the model", after=1), "server", True),
        (StreamError(message="an error was encountered while running the model", after=0), "server", False),
        (DropAfter(0), "network", False),
        (DropAfter(1), "cut", True),
        (Malformed(), "server", True),
    ],
)
async def test_every_failure_has_its_kind(emulator: OllamaEmulator, provider: Ollama, fault: AnyFault, kind: ErrorKind, said: bool) -> None:
    emulator.faults.append(fault)
    error = await fail(provider)
    assert (error.kind, error.text_delivered) == (kind, said)
    assert len(emulator.calls) == 1
    assert isinstance((await collect(provider))[-1], Done)


@pytest.mark.asyncio
async def test_a_missing_model_is_named_with_what_to_do(emulator: OllamaEmulator) -> None:
    provider = provider_for(emulator.url, model="llama9")
    assert not await provider.answers()
    error = await fail(provider)
    assert error.kind == "invalid"
    assert "`ollama pull llama9`" in str(error)
    await provider.close()


@pytest.mark.asyncio
@pytest.mark.parametrize(("after", "said"), [(0, False), (1, True)])
async def test_silence_is_a_stall(emulator: OllamaEmulator, after: int, said: bool) -> None:
    stall = Stall(after)
    emulator.faults.append(stall)
    impatient = provider_for(emulator.url, first_byte=1.0, between=0.5)
    error = await fail(impatient)
    assert (error.kind, error.text_delivered) == ("stall", said)
    stall.until.set()
    await impatient.close()


@pytest.mark.asyncio
async def test_a_prompt_that_does_not_fit_is_refused(emulator: OllamaEmulator) -> None:
    provider = provider_for(emulator.url, window=1_024)
    error = await fail(provider, thread(2_000))
    assert (error.kind, error.tokens, error.text_delivered) == ("overflow", None, False)
    await provider.close()


@pytest.mark.asyncio
async def test_a_silent_cut_is_an_overflow_once(emulator: OllamaEmulator) -> None:
    emulator.honest, emulator.models["qwen3:latest"] = False, 2_048
    provider = provider_for(emulator.url, window=32_768)
    with capture_logs() as logs:
        error = await fail(provider, thread(9_000))
    assert error.kind == "overflow"
    assert error.tokens is not None
    sent, allowed = error.tokens
    assert sent > 2 * 2_048
    assert allowed == 2_048
    assert [line["event"] for line in logs] == ["provider.prompt_cut"]
    assert (await provider.limits()).window == 2_048  # what the model has in truth
    assert isinstance((await collect(provider, thread(1_000)))[-1], Done)
    await provider.close()


@pytest.mark.asyncio
async def test_a_low_count_of_a_prompt_that_fits_is_only_logged(emulator: OllamaEmulator) -> None:
    provider = provider_for(emulator.url, window=32_768)
    frugal = Request(HI.system, (PromptMessage("user", (Text("=" * 20_000),)),))  # one word, for the tokenizer of this server
    with capture_logs() as logs:
        assert isinstance((await collect(provider, frugal))[-1], Done)
        assert isinstance((await collect(provider, thread(9_000)))[-1], Done)
    assert [line["event"] for line in logs] == ["provider.prompt_cut"]
    assert (await provider.limits()).window == 32_768
    await provider.close()


@asynccontextmanager
async def odd_server(data: bytes) -> AsyncIterator[str]:
    """A server whose every stream is `data`."""

    async def chat(request: web.Request) -> web.StreamResponse:
        return web.Response(body=data, content_type="application/x-ndjson")

    app = web.Application()
    app.add_routes([web.post("/api/chat", chat)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        ('{"message": {"content": "half a sen"}, "done": false}\n', "cut", True),
        ('{"message": {"content": "half a sen"}, "done": false}\n{"message": {"con', "cut", True),
        ('{"error": {"message": "the prompt is longer than the context length"}}\n', "overflow", False),
        ("", "cut", False),
        ("[]\n", "server", False),
        ("[" * 100_000 + "\n", "server", False),
        ('{"message": {"content": "\xff"}}\n', "server", False),
    ],
)
async def test_streams_of_broken_servers(data: str, kind: ErrorKind, said: bool) -> None:  # BO-117
    async with odd_server(data.encode("latin-1")) as url:
        provider = provider_for(url, model="m")
        error = await fail(provider)
        assert (error.kind, error.text_delivered) == (kind, said)
        await provider.close()


@pytest.mark.asyncio
async def test_a_last_line_needs_no_end() -> None:
    async with odd_server(b'{"message": {"content": "all"}, "done": true, "done_reason": "stop"}') as url:
        provider = provider_for(url, model="m")
        assert (await finish(provider)).blocks == (Text("all"),)
        await provider.close()


@pytest.mark.asyncio
async def test_nobody_there_is_a_network_error() -> None:
    alone = provider_for(f"http://127.0.0.1:{free_port()}")
    assert not await alone.answers()
    assert (await alone.limits()).window == 8192
    assert (await fail(alone)).kind == "network"
    await alone.close()


@pytest.mark.asyncio
async def test_a_window_is_not_decided_while_nobody_answers() -> None:
    port = free_port()
    early = provider_for(f"http://127.0.0.1:{port}")
    assert (await early.limits()).window == 8192

    async def running(request: web.Request) -> web.StreamResponse:
        return web.json_response({"models": [{"name": "qwen3:latest", "context_length": 16_384}]})

    app = web.Application()
    app.add_routes([web.get("/api/ps", running)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    assert (await early.limits()).window == 16_384
    await runner.cleanup()
    assert (await early.limits()).window == 16_384
    await early.close()


@pytest.mark.asyncio
async def test_leaving_a_stream_ends_the_request(emulator: OllamaEmulator, provider: Ollama) -> None:
    stall = Stall(1)
    emulator.faults.append(stall)
    task = asyncio.create_task(collect(provider))
    await asyncio.wait_for(stall.reached.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(emulator.calls[0].finished.wait(), 30)
    assert emulator.calls[0].outcome == "disconnected"


@pytest.mark.asyncio
async def test_it_answers_where_the_model_is(emulator: OllamaEmulator, provider: Ollama) -> None:
    assert await provider.answers()
    emulator.models = {"other": 8_192}
    assert not await provider.answers()
    assert emulator.calls == []


@pytest.mark.asyncio
async def test_an_image_of_megabytes_is_sent_in_pieces(emulator: OllamaEmulator, provider: Ollama) -> None:  # P47
    emulator.capabilities = ["completion", "vision"]
    image = File("cafe", "map.png", "image/png", 2**20, width=64, height=64)
    asked = Request(HI.system, (PromptMessage("user", (Text("where?"), image)),), files={"cafe": "AAAA" * 2**19})
    await finish(provider, asked)  # aiohttp warns of a large body in one piece, and warnings are errors
    assert emulator.calls[-1].body["messages"][-1]["images"] == ["AAAA" * 2**19]
