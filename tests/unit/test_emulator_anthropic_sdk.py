"""The vendor's own client accepts the emulated Messages API as the real thing."""

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx2
import pytest
import pytest_asyncio

from tests.emulators import scripts
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.server import DropAfter, Fault, Reply, StreamError

MODEL = "claude-sonnet-5-5"
TOOL: Any = {"name": "look", "description": "look it up", "input_schema": {"type": "object"}}
DEADLINE_S = 20.0


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[AnthropicEmulator]:
    async with AnthropicEmulator(script=scripts.echo, min_tokens=1) as running:
        yield running


@pytest_asyncio.fixture(params=["httpx2", "aiohttp"])
async def client(emulator: AnthropicEmulator, request: pytest.FixtureRequest) -> AsyncIterator[anthropic.AsyncAnthropic]:
    transport = anthropic.DefaultAioHttpClient() if request.param == "aiohttp" else None
    async with anthropic.AsyncAnthropic(
        api_key="key", base_url=emulator.url, max_retries=0, timeout=DEADLINE_S, http_client=transport
    ) as sdk:
        yield sdk


def user(text: str) -> Any:
    return {
        "role": "user",
        "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    }


@pytest.mark.asyncio
async def test_a_message_and_its_usage(client: anthropic.AsyncAnthropic) -> None:
    first = await client.messages.create(model=MODEL, max_tokens=50, messages=[user("three small words")])
    second = await client.messages.create(model=MODEL, max_tokens=50, messages=[user("three small words")])
    assert isinstance(first.content[0], anthropic.types.TextBlock)
    assert first.content[0].text == "answer to: three small words"
    assert first.usage.cache_creation is not None
    assert first.usage.cache_creation.ephemeral_1h_input_tokens == 3
    assert second.usage.cache_read_input_tokens == 3
    assert first._request_id == first.id.replace("msg_", "req_")


@pytest.mark.asyncio
async def test_a_streamed_message(client: anthropic.AsyncAnthropic, emulator: AnthropicEmulator) -> None:
    emulator.script = lambda body: scripts.say("Grüße, 日本語 🙂")
    async with client.messages.stream(model=MODEL, max_tokens=50, messages=[user("hi")]) as stream:
        said = [text async for text in stream.text_stream]
        message = await stream.get_final_message()
    assert "".join(said) == "Grüße, 日本語 🙂"
    assert len(said) > 1
    assert (message.stop_reason, message.usage.cache_creation_input_tokens) == ("end_turn", 1)


@pytest.mark.asyncio
async def test_a_tool_loop(client: anthropic.AsyncAnthropic, emulator: AnthropicEmulator) -> None:
    arguments = {"query": "Zoë 🙂", "limit": 3}
    emulator.script = scripts.calls_tool("look", arguments)
    messages: list[Any] = [user("find her")]
    async with client.messages.stream(model=MODEL, max_tokens=50, messages=messages, tools=[TOOL]) as stream:
        asked = await stream.get_final_message()
    call = asked.content[0]
    assert isinstance(call, anthropic.types.ToolUseBlock)
    assert (asked.stop_reason, call.name, call.input) == ("tool_use", "look", arguments)
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "found"}
    messages += [{"role": "assistant", "content": asked.content}, {"role": "user", "content": [result]}]
    final = await client.messages.create(model=MODEL, max_tokens=50, messages=messages, tools=[TOOL])
    assert isinstance(final.content[0], anthropic.types.TextBlock)
    assert final.content[0].text == "answer to: find her"
    assert final.usage.cache_read_input_tokens == asked.usage.cache_creation_input_tokens


@pytest.mark.asyncio
async def test_streamed_thinking_keeps_its_signature(client: anthropic.AsyncAnthropic, emulator: AnthropicEmulator) -> None:
    thought = {"type": "thinking", "thinking": "let me see", "signature": "signed"}
    emulator.script = lambda body: Reply([thought, {"type": "text", "text": "so"}])
    async with client.messages.stream(model=MODEL, max_tokens=50, messages=[user("hi")]) as stream:
        message = await stream.get_final_message()
    assert isinstance(message.content[0], anthropic.types.ThinkingBlock)
    assert (message.content[0].thinking, message.content[0].signature) == ("let me see", "signed")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(401, "authentication_error", "invalid x-api-key"), anthropic.AuthenticationError),
        (Fault(429, "rate_limit_error", "slow down", {"retry-after": "1"}), anthropic.RateLimitError),
        (Fault(500, "api_error", "Internal server error"), anthropic.InternalServerError),
        (Fault(529, "overloaded_error", "Overloaded"), anthropic.InternalServerError),
    ],
)
async def test_errors_have_their_types(
    client: anthropic.AsyncAnthropic,
    emulator: AnthropicEmulator,
    fault: Fault,
    error: type[anthropic.APIStatusError],
) -> None:
    emulator.faults.append(fault)
    with pytest.raises(error) as caught:
        await client.messages.create(model=MODEL, max_tokens=50, messages=[user("hi")])
    assert (caught.value.status_code, caught.value.type) == (fault.status, fault.type)
    assert caught.value.response.headers.get("retry-after") == fault.headers.get("retry-after")


@pytest.mark.asyncio
async def test_a_refused_request(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="at least one message is required"):
        await client.messages.create(model=MODEL, max_tokens=50, messages=[])


@pytest.mark.asyncio
async def test_the_sdk_retries_by_itself(emulator: AnthropicEmulator) -> None:
    emulator.faults.append(Fault(429, "rate_limit_error", "slow down", {"retry-after": "0.01"}))
    async with anthropic.AsyncAnthropic(api_key="key", base_url=emulator.url, max_retries=1, timeout=DEADLINE_S) as client:
        await client.messages.create(model=MODEL, max_tokens=50, messages=[user("hi")])
    assert [call.status for call in emulator.calls] == [429, 200]


async def listen(client: anthropic.AsyncAnthropic, said: list[str]) -> None:
    async with client.messages.stream(model=MODEL, max_tokens=50, messages=[user("hi")]) as stream:
        async for text in stream.text_stream:
            said.append(text)


@pytest.mark.asyncio
async def test_an_error_inside_a_stream(client: anthropic.AsyncAnthropic, emulator: AnthropicEmulator) -> None:
    emulator.faults.append(StreamError(after=4))
    said: list[str] = []
    with pytest.raises(anthropic.APIStatusError) as caught:
        await listen(client, said)
    assert (caught.value.status_code, caught.value.type, said) == (200, "overloaded_error", ["answer "])


@pytest.mark.asyncio
async def test_a_dropped_stream_is_a_transport_error(client: anthropic.AsyncAnthropic, emulator: AnthropicEmulator) -> None:
    emulator.faults.append(DropAfter(4))
    with pytest.raises((httpx2.TransportError, anthropic.APIConnectionError)):
        await listen(client, [])
    assert emulator.calls[0].outcome == "dropped"


@pytest.mark.asyncio
async def test_counts_and_models(client: anthropic.AsyncAnthropic) -> None:
    counted = await client.messages.count_tokens(model=MODEL, messages=[user("three small words")])
    assert counted.input_tokens == 3
    model = await client.models.retrieve("claude-haiku-4-5")
    assert (model.max_input_tokens, model.max_tokens) == (200_000, 64_000)
    assert MODEL in [known.id async for known in client.models.list()]
