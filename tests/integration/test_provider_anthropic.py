import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from pydantic import SecretStr

from clew.context.rules import mended
from clew.messages import Text, Thinking, ToolCall, ToolResult
from clew.providers import Began, Delta, Done, ErrorKind, Event, PromptMessage, ProviderError, Request, SystemBlock, ToolSpec
from clew.providers.anthropic import Anthropic, Settings
from clew.providers.sections import Waits
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import calls_tool, echo, say
from tests.emulators.server import AnyFault, DropAfter, Empty, Fault, Malformed, Reply, Stall, StreamError
from tests.servers import free_port

KEY = "sk-ant-a-key-for-tests"
HI = Request((SystemBlock("base", "You are clew."),), (PromptMessage("user", (Text("hi"),)),))
FIRST_DELTA = 4
"""Events of the emulator up to and with the first words: start, block start, ping, delta."""


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[AnthropicEmulator]:
    async with AnthropicEmulator(script=echo, api_key=KEY, min_tokens=1) as server:
        yield server


def provider_for(url: str, *, key: str = KEY, first_byte: float = 30.0, between: float = 30.0) -> Anthropic:
    timeouts = Waits(first_byte=first_byte, between=between)
    return Anthropic("claude", Settings(api_key=SecretStr(key), base_url=url, timeouts=timeouts))


@pytest_asyncio.fixture
async def provider(emulator: AnthropicEmulator) -> AsyncIterator[Anthropic]:
    made = provider_for(emulator.url)
    yield made
    await made.close()


async def collect(provider: Anthropic, request: Request = HI) -> list[Event]:
    return [event async for event in provider.stream(request)]


async def fail(provider: Anthropic, request: Request = HI) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await collect(provider, request)
    return caught.value


@pytest.mark.asyncio
async def test_a_reply_is_streamed_and_comes_whole(emulator: AnthropicEmulator, provider: Anthropic) -> None:
    emulator.script = lambda body: say("Grüße aus Köln, 東京 and beyond")
    began, *deltas, done = await collect(provider)
    assert isinstance(began, Began)
    assert isinstance(done, Done)
    assert "".join(event.text for event in deltas if isinstance(event, Delta)) == "Grüße aus Köln, 東京 and beyond"
    assert len(deltas) > 1
    assert done.blocks == (Text("Grüße aus Köln, 東京 and beyond"),)
    assert (done.stop, done.model) == ("end", "claude-sonnet-5-5")
    assert done.usage.output > 0


@pytest.mark.asyncio
async def test_tool_round_with_thinking_is_replayed_as_the_api_demands(
    emulator: AnthropicEmulator, provider: Anthropic
) -> None:  # P11, BO-115
    emulator.strict_thinking = True
    thought = {"type": "thinking", "thinking": "I should look"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"z": "ä", "a": [1, {"y": 2}]}}
    emulator.script = lambda body: Reply([thought, call], "tool_use")
    request = Request(HI.system, HI.messages, (ToolSpec("look", "looks", '{"type": "object"}'),))
    done = (await collect(provider, request))[-1]
    assert isinstance(done, Done)
    assert done.stop == "tools"
    assert isinstance(done.blocks[0], Thinking)
    assert done.blocks[1] == ToolCall("toolu_1", "look", '{"z": "\\u00e4", "a": [1, {"y": 2}]}')
    emulator.script = echo
    result = PromptMessage("user", (ToolResult("toolu_1", "look", "a cat"),))
    second = Request(HI.system, (*HI.messages, PromptMessage("assistant", done.blocks), result), request.tools)
    assert isinstance((await collect(provider, second))[-1], Done)
    assert list(emulator.calls[-1].body["messages"][1]["content"][1]["input"]) == ["z", "a"]


@pytest.mark.asyncio
async def test_untidy_history_is_accepted_by_a_strict_server(emulator: AnthropicEmulator, provider: Anthropic) -> None:
    # BO-113: blank rows, neighbours of one role, ids of other providers, arguments that are no JSON, half characters
    messages = (
        PromptMessage("user", (Text(""),)),
        PromptMessage("assistant", (Text("hello"), Text("\n"))),
        PromptMessage("user", (Text("one \ud800"),)),
        PromptMessage("user", (Text("two"),)),
        PromptMessage("assistant", (ToolCall("call|1", "t", '{"x": "\\ud800"}'), ToolCall("call_2", "t", "{oops"))),
        PromptMessage("user", (Text("more"), ToolResult("call|1", "t", ""), ToolResult("call_2", "t", "bad", True))),
    )
    request = Request((SystemBlock("base", "\n"),), messages, (ToolSpec("t", "d", '{"type": "object"}'),))
    assert isinstance((await collect(provider, mended(request)[0]))[-1], Done)


@pytest.mark.asyncio
async def test_marked_blocks_are_written_once_and_read_afterwards(provider: Anthropic) -> None:  # P28
    system = (
        SystemBlock("base", "one two three", marked=True),
        SystemBlock("summary", "\n\nfour five", marked=True),
        SystemBlock("recall", "\n\nsix"),
    )
    first = Request(system, (PromptMessage("user", (Text("seven eight"),), marked=(0,)),), cache_ttl="1h")
    answer = PromptMessage("assistant", (Text("nine"),))
    newest = PromptMessage("user", (Text("ten"),), marked=(0,))
    second = Request(system, (*first.messages, answer, newest), cache_ttl="1h")
    done = [(await collect(provider, request))[-1] for request in (first, first, second)]
    usage = [each.usage for each in done if isinstance(each, Done)]
    assert [(each.cache_read, each.cache_write, each.input) for each in usage] == [(0, 8, 0), (8, 0, 0), (8, 2, 0)]


@pytest.mark.asyncio
async def test_empty_and_refused_replies_are_results(emulator: AnthropicEmulator, provider: Anthropic) -> None:
    emulator.faults.append(Empty())  # BO-113
    empty = (await collect(provider))[-1]
    assert isinstance(empty, Done)
    assert (empty.blocks, empty.stop) == ((), "end")
    emulator.script = lambda body: Reply([], "refusal")  # BO-114
    refused = (await collect(provider))[-1]
    assert isinstance(refused, Done)
    assert (refused.blocks, refused.stop) == ((), "refusal")
    assert len(emulator.calls) == 2


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (Fault(429, "rate_limit_error", "slow down"), "rate_limit", False),
        (Fault(429, "rate_limit_error", "cap", details={"error_code": "enforced_spend_limit_reached"}), "quota", False),
        (Fault(400, "invalid_request_error", "You have reached your specified API usage limits."), "quota", False),
        (Fault(402, "billing_error", "pay first"), "quota", False),
        (Fault(403, "permission_error", "no"), "auth", False),
        (Fault(400, "invalid_request_error", "arguments are malformed"), "invalid", False),
        (Fault(404, "not_found_error", "model: x"), "invalid", False),
        (Fault(413, "request_too_large", "Request exceeds the maximum size"), "overflow", False),
        (Fault(500, "api_error", "oops"), "server", False),
        (Fault(504, "timeout_error", "too slow"), "server", False),
        (Fault(529, "overloaded_error", "Overloaded"), "overloaded", False),
        (StreamError("overloaded_error", after=1), "overloaded", False),
        (StreamError("overloaded_error", after=FIRST_DELTA), "overloaded", True),
        (StreamError("api_error", "Internal server error", after=1), "server", False),
        (DropAfter(0), "network", False),
        (DropAfter(1), "cut", False),
        (DropAfter(FIRST_DELTA), "cut", True),
        (Malformed(), "server", False),
    ],
)
async def test_every_failure_has_its_kind(
    emulator: AnthropicEmulator, provider: Anthropic, fault: AnyFault, kind: ErrorKind, said: bool
) -> None:
    emulator.faults.append(fault)
    error = await fail(provider)
    assert (error.kind, error.text_delivered) == (kind, said)
    assert len(emulator.calls) == 1  # the SDK does not retry by itself
    assert isinstance((await collect(provider))[-1], Done)


@pytest.mark.asyncio
@pytest.mark.parametrize(("after", "said"), [(0, False), (1, False), (FIRST_DELTA, True)])
async def test_silence_is_a_stall(emulator: AnthropicEmulator, after: int, said: bool) -> None:
    stall = Stall(after)
    emulator.faults.append(stall)
    impatient = provider_for(emulator.url, first_byte=1.0, between=0.5)
    error = await fail(impatient)
    assert (error.kind, error.text_delivered) == ("stall", said)
    stall.until.set()
    await impatient.close()


@pytest.mark.asyncio
async def test_a_wait_is_told_and_not_slept(emulator: AnthropicEmulator, provider: Anthropic) -> None:
    emulator.faults.append(Fault(429, "rate_limit_error", "slow down", headers={"retry-after": "3600"}))
    assert (await fail(provider)).retry_after == 3600.0
    emulator.faults.append(Fault(429, "rate_limit_error", "x", headers={"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}))
    assert (await fail(provider)).retry_after == 0.0


@pytest.mark.asyncio
async def test_an_overflow_tells_its_numbers(emulator: AnthropicEmulator, provider: Anthropic) -> None:
    emulator.window = 10
    long = Request(HI.system, (PromptMessage("user", (Text("word " * 20),)),), max_tokens=5)
    error = await fail(provider, long)
    assert (error.kind, error.tokens) == ("overflow", (23, 10))


@pytest.mark.asyncio
async def test_a_wrong_key_is_not_repeated_in_the_error(emulator: AnthropicEmulator) -> None:
    wrong = provider_for(emulator.url, key="my-private-key")
    emulator.script = lambda body: Fault(401, "authentication_error", "invalid key my-private-key")
    emulator.api_key = None
    error = await fail(wrong)
    assert error.kind == "auth"
    assert "my-private-key" not in str(error)
    emulator.api_key = KEY
    assert (await fail(wrong)).kind == "auth"
    await wrong.close()


@pytest.mark.asyncio
async def test_nobody_there_is_a_network_error() -> None:
    alone = provider_for(f"http://127.0.0.1:{free_port()}")
    assert (await fail(alone)).kind == "network"
    assert not await alone.answers()
    assert (await alone.limits()).window == 1_000_000  # by name
    await alone.close()


@pytest.mark.asyncio
async def test_the_endpoint_is_asked_for_limits_once(emulator: AnthropicEmulator, provider: Anthropic) -> None:
    assert await provider.answers()
    emulator.records.clear()
    for _ in range(2):
        limits = await provider.limits()
        assert (limits.window, limits.max_output, limits.marker_minimum) == (1_000_000, 128_000, 512)
    assert [record.path for record in emulator.records] == ["/v1/models/claude-sonnet-5-5"]


@pytest.mark.asyncio
async def test_leaving_a_stream_ends_the_request(emulator: AnthropicEmulator, provider: Anthropic) -> None:
    stall = Stall(FIRST_DELTA)
    emulator.faults.append(stall)
    seen: list[Event] = []

    async def read() -> None:
        async for event in provider.stream(HI):
            seen.append(event)

    task = asyncio.create_task(read())
    await asyncio.wait_for(stall.reached.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(emulator.calls[0].finished.wait(), 30)
    assert emulator.calls[0].outcome == "disconnected"


@pytest.mark.asyncio
async def test_many_calls_at_once_share_one_client(emulator: AnthropicEmulator, provider: Anthropic) -> None:
    replies = await asyncio.gather(*(collect(provider) for _ in range(8)))
    assert all(isinstance(events[-1], Done) for events in replies)


@pytest.mark.asyncio
async def test_a_tool_call_is_streamed_with_its_words(emulator: AnthropicEmulator, provider: Anthropic) -> None:
    emulator.script = calls_tool("now", {})
    done = (await collect(provider, Request(HI.system, HI.messages, (ToolSpec("now", "d", '{"type":"object"}'),))))[-1]
    assert isinstance(done, Done)
    assert done.blocks == (ToolCall("toolu_0001", "now", "{}"),)
