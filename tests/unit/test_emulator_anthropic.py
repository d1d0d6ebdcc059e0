"""The emulated Messages API over HTTP: streams, faults, holds, records."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.emulators import scripts
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.server import DropAfter, Empty, Fault, JsonObject, Malformed, Reply, Stall, StreamError

DEADLINE_S = 20
HEADERS = {"x-api-key": "key", "anthropic-version": "2023-06-01"}
MARK = {"type": "ephemeral"}


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Client:
    """A bare HTTP client, so that the bytes of an answer can be seen."""

    def __init__(self, session: aiohttp.ClientSession, emulator: AnthropicEmulator) -> None:
        self.session = session
        self.emulator = emulator

    async def post(self, body: JsonObject, path: str = "/v1/messages", headers: dict[str, str] = HEADERS) -> tuple[int, JsonObject]:
        async with self.session.post(self.emulator.url + path, json=body, headers=headers) as response:
            return response.status, await response.json()

    async def stream(self, body: JsonObject) -> list[bytes]:
        """The chunks of a streamed answer as they were written."""
        url = f"{self.emulator.url}/v1/messages"
        async with self.session.post(url, json={**body, "stream": True}, headers=HEADERS) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            chunks, current = [], b""
            async for data, end in response.content.iter_chunks():
                current += data
                if end:
                    chunks.append(current)
                    current = b""
            return chunks


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[AnthropicEmulator]:
    async with AnthropicEmulator(script=scripts.echo, clock=Clock(), min_tokens=1) as running:
        yield running


@pytest_asyncio.fixture
async def client(emulator: AnthropicEmulator) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(DEADLINE_S)) as session:
        yield Client(session, emulator)


def request(said: str = "hello", **fields: Any) -> JsonObject:
    content = [{"type": "text", "text": said, "cache_control": MARK}]
    messages = [{"role": "user", "content": content}]
    return {"model": "claude-sonnet-5-5", "max_tokens": 50, "messages": messages, **fields}


def events(chunks: list[bytes]) -> list[JsonObject]:
    lines = b"".join(chunks).decode().split("\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


@pytest.mark.asyncio
async def test_answers_with_exact_usage(client: Client) -> None:
    status, first = await client.post(request("three small words"))
    _, second = await client.post(request("three small words"))
    assert status == 200
    assert first["content"] == [{"type": "text", "text": "answer to: three small words"}]
    assert (first["usage"]["cache_creation_input_tokens"], first["usage"]["cache_read_input_tokens"]) == (3, 0)
    assert first["usage"]["cache_creation"] == {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 0}
    assert (second["usage"]["cache_creation_input_tokens"], second["usage"]["cache_read_input_tokens"]) == (0, 3)
    assert first["usage"]["output_tokens"] == 5
    assert (first["stop_reason"], first["role"], first["type"]) == ("end_turn", "assistant", "message")


@pytest.mark.asyncio
async def test_records_what_came_in_and_what_it_cost(client: Client, emulator: AnthropicEmulator) -> None:
    body = request()
    await client.post(body)
    record = emulator.calls[0]
    assert record.body == body
    assert json.loads(record.raw) == body
    assert record.headers["x-api-key"] == "key"
    assert (record.status, record.outcome, record.started) == (200, "answered", 1_000.0)
    assert record.accounting is not None
    assert [tokens for _, tokens in record.accounting.prefixes] == [1]
    assert record.accounting.longest_unexpired_prefix == 0


@pytest.mark.asyncio
async def test_streams_every_event_in_order(client: Client) -> None:
    kinds = [event["type"] for event in events(await client.stream(request("x")))]
    assert kinds == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


@pytest.mark.asyncio
async def test_streamed_usage_stands_at_the_start_and_again_at_the_end(client: Client) -> None:
    streamed = events(await client.stream(request("three small words")))
    start, delta = streamed[0]["message"], streamed[-2]
    assert (start["content"], start["stop_reason"]) == ([], None)
    assert start["usage"]["cache_creation_input_tokens"] == 3
    assert (delta["delta"]["stop_reason"], delta["usage"]["output_tokens"]) == ("end_turn", 5)


@pytest.mark.asyncio
async def test_cuts_text_into_pieces_and_inside_characters(client: Client, emulator: AnthropicEmulator) -> None:
    said = "Grüße an Zoë, 日本語 🙂"
    emulator.script = lambda body: scripts.say(said)
    chunks = await client.stream(request())
    deltas = [event["delta"]["text"] for event in events(chunks) if event["type"] == "content_block_delta"]
    assert "".join(deltas) == said
    assert max(map(len, deltas)) == 7
    assert any(chunk[0] & 0xC0 == 0x80 for chunk in chunks)


@pytest.mark.asyncio
async def test_tool_input_comes_as_json_in_pieces(client: Client, emulator: AnthropicEmulator) -> None:
    arguments = {"a long key": "Zoë 🙂", "n": [1, 2]}
    emulator.script = scripts.calls_tool("look", arguments)
    streamed = events(await client.stream(request()))
    parts = [event["delta"]["partial_json"] for event in streamed if event["type"] == "content_block_delta"]
    assert parts[0] == ""
    assert json.loads("".join(parts)) == arguments
    assert any("\\" in part and not part.isalnum() for part in parts)
    assert streamed[1]["content_block"]["input"] == {}
    assert streamed[-2]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.asyncio
async def test_thinking_is_streamed_with_its_signature_last(client: Client, emulator: AnthropicEmulator) -> None:
    thought = {"type": "thinking", "thinking": "let me see"}
    emulator.script = lambda body: Reply([thought, {"type": "text", "text": "so"}])
    deltas = [event["delta"] for event in events(await client.stream(request())) if "delta" in event]
    assert [delta["type"] for delta in deltas[:3]] == ["thinking_delta", "thinking_delta", "signature_delta"]
    assert deltas[2]["signature"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "retry_after"),
    [
        (Fault(429, "rate_limit_error", "slow down", {"retry-after": "1"}), "1"),
        (Fault(429, "rate_limit_error", "spent", details={"error_code": "enforced_spend_limit_reached"}), None),
        (Fault(529, "overloaded_error", "Overloaded"), None),
        (Fault(500, "api_error", "Internal server error"), None),
    ],
)
async def test_an_http_fault_hits_one_call(client: Client, emulator: AnthropicEmulator, fault: Fault, retry_after: str | None) -> None:
    emulator.faults.append(fault)
    url = f"{emulator.url}/v1/messages"
    async with client.session.post(url, json=request(), headers=HEADERS) as response:
        body = await response.json()
        assert response.status == fault.status
        assert response.headers.get("retry-after") == retry_after
    assert (body["type"], body["error"]["type"], body["error"]["message"]) == ("error", fault.type, fault.message)
    assert body["error"].get("details") == fault.details
    assert body["request_id"].startswith("req_")
    assert (await client.post(request()))[0] == 200
    assert [call.status for call in emulator.calls] == [fault.status, 200]


@pytest.mark.asyncio
async def test_a_failed_call_writes_nothing_to_the_cache(client: Client, emulator: AnthropicEmulator) -> None:
    emulator.faults.append(Fault(529, "overloaded_error", "Overloaded"))
    await client.post(request())
    assert (await client.post(request()))[1]["usage"]["cache_read_input_tokens"] == 0


@pytest.mark.asyncio
async def test_an_error_event_inside_a_stream(client: Client, emulator: AnthropicEmulator) -> None:
    emulator.faults += [StreamError(), StreamError(after=4)]
    early, late = events(await client.stream(request())), events(await client.stream(request()))
    assert [event["type"] for event in early] == ["message_start", "content_block_start", "error"]
    assert early[-1]["error"] == {"type": "overloaded_error", "message": "Overloaded"}
    assert [event["type"] for event in late][-2:] == ["content_block_delta", "error"]


@pytest.mark.asyncio
@pytest.mark.parametrize("after", [0, 4])
async def test_a_dropped_stream(client: Client, emulator: AnthropicEmulator, after: int) -> None:
    emulator.faults.append(DropAfter(after))
    with pytest.raises(aiohttp.ClientError):
        await client.stream(request())
    await asyncio.wait_for(emulator.calls[0].finished.wait(), DEADLINE_S)
    assert emulator.calls[0].outcome == "dropped"


@pytest.mark.asyncio
async def test_a_dropped_answer_without_a_stream(client: Client, emulator: AnthropicEmulator) -> None:
    emulator.faults.append(DropAfter(3))
    with pytest.raises(aiohttp.ClientError):
        await client.post(request())


@pytest.mark.asyncio
@pytest.mark.parametrize("after", [0, 4])
async def test_a_stalled_stream_goes_on_when_released(client: Client, emulator: AnthropicEmulator, after: int) -> None:
    stall = Stall(after)
    emulator.faults.append(stall)
    task = asyncio.create_task(client.stream(request()))
    await asyncio.wait_for(stall.reached.wait(), DEADLINE_S)
    assert emulator.calls[0].status == (200 if after else None)
    stall.until.set()
    assert events(await task)[-1]["type"] == "message_stop"


@pytest.mark.asyncio
async def test_a_client_that_gives_up_is_recorded(client: Client, emulator: AnthropicEmulator) -> None:
    stall = Stall()
    emulator.faults.append(stall)
    task = asyncio.create_task(client.post(request()))
    await asyncio.wait_for(stall.reached.wait(), DEADLINE_S)
    task.cancel()
    await asyncio.wait_for(emulator.calls[0].finished.wait(), DEADLINE_S)
    assert (emulator.calls[0].outcome, emulator.calls[0].status) == ("disconnected", None)


@pytest.mark.asyncio
async def test_stopping_does_not_wait_for_a_stalled_request() -> None:
    stall = Stall()
    async with aiohttp.ClientSession() as session:
        async with AnthropicEmulator(script=scripts.echo) as emulator:
            emulator.faults.append(stall)
            task = asyncio.create_task(Client(session, emulator).post(request()))
            await asyncio.wait_for(stall.reached.wait(), DEADLINE_S)
        with pytest.raises(aiohttp.ClientError):
            await asyncio.wait_for(task, DEADLINE_S)


@pytest.mark.asyncio
async def test_a_body_that_is_not_json(client: Client, emulator: AnthropicEmulator) -> None:
    emulator.faults += [Malformed(), Malformed("{oops")]
    with pytest.raises(json.JSONDecodeError):
        await client.post(request())
    assert b"data: {oops\n" in b"".join(await client.stream(request()))


@pytest.mark.asyncio
async def test_an_empty_reply(client: Client, emulator: AnthropicEmulator) -> None:
    emulator.faults += [Empty(), Empty()]
    body = (await client.post(request()))[1]
    assert (body["content"], body["stop_reason"], body["usage"]["output_tokens"]) == ([], "end_turn", 0)
    kinds = [event["type"] for event in events(await client.stream(request()))]
    assert kinds == ["message_start", "message_delta", "message_stop"]


@pytest.mark.asyncio
async def test_a_refusal_comes_from_the_script(client: Client, emulator: AnthropicEmulator) -> None:
    emulator.script = lambda body: Reply([], "refusal", {"type": "refusal", "category": "cyber"})
    body = (await client.post(request()))[1]
    assert (body["content"], body["stop_reason"], body["stop_details"]["category"]) == ([], "refusal", "cyber")
    delta = events(await client.stream(request()))[-2]["delta"]
    assert (delta["stop_reason"], delta["stop_details"]["category"]) == ("refusal", "cyber")


@pytest.mark.asyncio
async def test_a_script_can_fail_just_the_calls_it_means(client: Client, emulator: AnthropicEmulator) -> None:
    overloaded = Fault(529, "overloaded_error", "Overloaded")
    emulator.script = scripts.summarises(lambda body: "sum" in scripts.last_user_text(body), lambda body: overloaded)
    assert (await client.post(request("hello")))[0] == 200
    assert (await client.post(request("sum up")))[0] == 529


@pytest.mark.asyncio
async def test_a_script_that_raises_fails_the_test() -> None:
    def script(body: JsonObject) -> Reply:
        raise AssertionError("not this request")

    emulator = await AnthropicEmulator(script=script).start()
    async with aiohttp.ClientSession() as session:
        assert (await Client(session, emulator).post(request()))[0] == 500
    with pytest.raises(AssertionError, match="not this request"):
        await emulator.stop()


@pytest.mark.asyncio
async def test_held_calls_overlap_and_both_write(client: Client, emulator: AnthropicEmulator) -> None:
    holds = [emulator.hold(), emulator.hold()]
    tasks = [asyncio.create_task(client.post(request())) for _ in holds]
    for hold in holds:
        await asyncio.wait_for(hold.reached.wait(), DEADLINE_S)
    assert [call.outcome for call in emulator.calls] == ["open", "open"]
    for hold in holds:
        hold.release()
    usages = [(await task)[1]["usage"] for task in tasks]
    assert [usage["cache_creation_input_tokens"] for usage in usages] == [1, 1]


@pytest.mark.asyncio
async def test_a_hold_picks_its_request(client: Client, emulator: AnthropicEmulator) -> None:
    hold = emulator.hold(lambda body: scripts.last_user_text(body) == "slow")
    task = asyncio.create_task(client.post(request("slow")))
    await asyncio.wait_for(hold.reached.wait(), DEADLINE_S)
    assert (await client.post(request("quick")))[0] == 200
    hold.release()
    assert (await task)[0] == 200


@pytest.mark.asyncio
async def test_an_entry_is_readable_once_the_answer_begins(client: Client, emulator: AnthropicEmulator) -> None:
    stall = Stall(after=1)
    emulator.faults.append(stall)
    task = asyncio.create_task(client.stream(request()))
    await asyncio.wait_for(stall.reached.wait(), DEADLINE_S)
    assert (await client.post(request()))[1]["usage"]["cache_read_input_tokens"] == 1
    stall.until.set()
    await task


@pytest.mark.asyncio
async def test_lifetime_counts_from_the_start_of_the_request() -> None:
    clock = Clock()
    async with (
        AnthropicEmulator(script=scripts.echo, clock=clock, min_tokens=1) as emulator,
        aiohttp.ClientSession() as session,
    ):
        client = Client(session, emulator)
        hold = emulator.hold()
        task = asyncio.create_task(client.post(request()))
        await asyncio.wait_for(hold.reached.wait(), DEADLINE_S)
        clock.now += 240
        hold.release()
        await task
        clock.now += 61
        assert (await client.post(request()))[1]["usage"]["cache_read_input_tokens"] == 0


@pytest.mark.asyncio
async def test_keys_and_versions_are_asked_for(client: Client, emulator: AnthropicEmulator) -> None:
    version = {"anthropic-version": "2023-06-01"}
    status, body = await client.post(request(), headers=version)
    assert (status, body["error"]["type"]) == (401, "authentication_error")
    assert (await client.post(request(), headers={**version, "authorization": "Bearer key"}))[0] == 200
    status, body = await client.post(request(), headers={"x-api-key": "key"})
    assert (status, body["error"]["message"]) == (400, "anthropic-version: header is required")
    emulator.api_key = "another"
    assert (await client.post(request()))[0] == 401


@pytest.mark.asyncio
async def test_a_body_over_the_limit() -> None:
    emulator = AnthropicEmulator(script=scripts.echo)
    emulator.max_body = 1_000
    async with emulator, aiohttp.ClientSession() as session:
        status, body = await Client(session, emulator).post(request("x" * 1_000))
    assert (status, body["error"]["type"]) == (413, "request_too_large")


@pytest.mark.asyncio
async def test_a_prompt_over_the_window_names_both_numbers(client: Client, emulator: AnthropicEmulator) -> None:
    emulator.window = 10
    status, body = await client.post(request("word " * 11))
    assert (status, body["error"]["message"]) == (400, "prompt is too long: 11 tokens > 10 maximum")
    body = (await client.post(request("word " * 8)))[1]
    assert body["stop_reason"] == "model_context_window_exceeded"


@pytest.mark.asyncio
async def test_prewarming_writes_and_says_nothing(client: Client) -> None:
    body = (await client.post(request(max_tokens=0)))[1]
    assert (body["content"], body["stop_reason"], body["usage"]["output_tokens"]) == ([], "max_tokens", 0)
    assert (await client.post(request()))[1]["usage"]["cache_read_input_tokens"] == 1


@pytest.mark.asyncio
async def test_counts_tokens_with_the_same_checks(client: Client, emulator: AnthropicEmulator) -> None:
    body = request("three small words")
    del body["max_tokens"]
    assert await client.post(body, "/v1/messages/count_tokens") == (200, {"input_tokens": 3})
    assert (await client.post({**body, "messages": []}, "/v1/messages/count_tokens"))[0] == 400
    assert (len(emulator.calls), len(emulator.records)) == (0, 2)


@pytest.mark.asyncio
async def test_tells_a_models_window(client: Client, emulator: AnthropicEmulator) -> None:
    async def get(name: str) -> tuple[int, JsonObject]:
        async with client.session.get(f"{emulator.url}/v1/models/{name}", headers=HEADERS) as response:
            return response.status, await response.json()

    body = (await get("claude-haiku-4-5"))[1]
    assert (body["max_input_tokens"], body["max_tokens"]) == (200_000, 64_000)
    assert (await get("claude-nobody-9"))[0] == 404
    emulator.window = 500
    assert (await get("claude-haiku-4-5"))[1]["max_input_tokens"] == 500


@pytest.mark.asyncio
async def test_strict_thinking_takes_back_only_its_own(client: Client, emulator: AnthropicEmulator) -> None:
    emulator.strict_thinking = True
    thought = {"type": "thinking", "thinking": "let me see"}
    emulator.script = lambda body: Reply([thought, {"type": "text", "text": "so"}])
    said = (await client.post(request("first")))[1]["content"]
    again = {"role": "assistant", "content": said}
    more = {"role": "user", "content": "more"}
    kept, edited = request("first")["messages"], request("edited")["messages"]
    assert (await client.post(request(messages=[*kept, again, more])))[0] == 200
    status, body = await client.post(request(messages=[*edited, again, more]))
    assert status == 400
    assert "bound to a different conversation" in body["error"]["message"]
