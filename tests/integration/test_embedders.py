"""The ways to an embedding model, against an emulator over a real socket."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from clew.context.vectors import similarities
from clew.embedders import BATCH, MAX_CHARS
from clew.embedders.endpoint import Endpoint
from clew.providers import ErrorKind, ProviderError
from tests.emulators.embeddings import EmbeddingsEmulator
from tests.emulators.server import AnyFault, DropAfter, Empty, Fault, JsonObject, Malformed, Stall
from tests.servers import free_port

KEY = "sk-0123456789abcdefghij"


@pytest_asyncio.fixture
async def emulator() -> AsyncIterator[EmbeddingsEmulator]:
    async with EmbeddingsEmulator(meaning={"kitten": "cat"}) as server:
        yield server


@pytest_asyncio.fixture
async def endpoint(emulator: EmbeddingsEmulator) -> AsyncIterator[Endpoint]:
    made = Endpoint(emulator.base_url, "small", None, 20.0)
    yield made
    await made.close()


async def failed(endpoint: Endpoint, texts: tuple[str, ...] = ("a", "b")) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await endpoint.embed(texts)
    return caught.value


@pytest.mark.asyncio
async def test_texts_of_one_meaning_lie_near_each_other(endpoint: Endpoint) -> None:  # P41
    cat, kitten, boat = await endpoint.embed(["the cat sleeps", "the kitten sleeps", "a boat in Laboe"])
    near, far = similarities(cat, [kitten, boat])
    assert near > 0.99 > far


@pytest.mark.asyncio
async def test_vectors_come_in_the_order_of_the_texts(emulator: EmbeddingsEmulator, endpoint: Endpoint) -> None:
    texts = ["one", "two", "three"]
    before = await endpoint.embed(texts)

    def turned(answer: JsonObject) -> JsonObject:
        return {**answer, "data": answer["data"][::-1]}

    emulator.render = turned
    assert await endpoint.embed(texts) == before


@pytest.mark.asyncio
async def test_a_text_without_words_has_no_vector_and_disturbs_no_other(endpoint: Endpoint) -> None:
    first, empty, last = await endpoint.embed(["one", "", "two"])
    assert (bool(first), empty, bool(last)) == (True, b"", True)


@pytest.mark.asyncio
async def test_half_a_character_reaches_no_server(emulator: EmbeddingsEmulator, endpoint: Endpoint) -> None:
    await endpoint.embed(["half \ud83d of it"])
    assert emulator.texts == ["half � of it"]


@pytest.mark.asyncio
async def test_long_texts_are_cut_and_shortened_until_the_model_takes_them(emulator: EmbeddingsEmulator, endpoint: Endpoint) -> None:
    emulator.window = 200
    await endpoint.embed(["w " * 5000])
    lengths = [len(call.body["input"][0]) for call in emulator.calls]
    assert lengths == [MAX_CHARS, MAX_CHARS // 2, MAX_CHARS // 4]
    emulator.window = 10
    assert (await failed(endpoint, ("w " * 5000,))).kind == "overflow"


@pytest.mark.asyncio
async def test_more_texts_than_a_server_takes_are_refused_here(emulator: EmbeddingsEmulator, endpoint: Endpoint) -> None:
    with pytest.raises(ValueError, match=str(BATCH)):
        await endpoint.embed(["x"] * (BATCH + 1))
    assert emulator.calls == []


FAULTS: list[tuple[AnyFault, ErrorKind]] = [
    (Fault(429, "rate_limit_error", "Slow down", {"retry-after": "7"}), "rate_limit"),
    (Fault(429, "insufficient_quota", "You exceeded your current quota", details={"code": "insufficient_quota"}), "quota"),
    (Fault(503, "overloaded_error", "Overloaded"), "overloaded"),
    (Fault(500, "server_error", "The server had an error"), "server"),
    (Fault(400, "invalid_request_error", "no such thing"), "invalid"),
    (DropAfter(), "network"),
    (DropAfter(1), "cut"),
    (Malformed('{"data": [{"ind'), "server"),
    (Malformed('{"data": [{"index": 0, "embedding": ["a"]}, {"index": 1, "embedding": [1]}]}'), "server"),
    (Malformed('{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1]}]}'), "server"),
    (Malformed('{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]}'), "server"),
    (Malformed('{"data": 5}'), "server"),
    (Malformed("[" * 200_000), "server"),
    (Empty(), "server"),
]


@pytest.mark.parametrize(("fault", "kind"), FAULTS, ids=[f"{type(fault).__name__}-{kind}-{at}" for at, (fault, kind) in enumerate(FAULTS)])
@pytest.mark.asyncio
async def test_every_fault_is_of_a_known_kind(emulator: EmbeddingsEmulator, endpoint: Endpoint, fault: AnyFault, kind: ErrorKind) -> None:
    emulator.faults.append(fault)
    error = await failed(endpoint)
    assert error.kind == kind
    assert error.retry_after == (7.0 if kind == "rate_limit" else None)
    assert all(await endpoint.embed(["a", "b"]))


@pytest.mark.asyncio
async def test_a_server_that_says_nothing_is_given_up(emulator: EmbeddingsEmulator) -> None:
    endpoint = Endpoint(emulator.base_url, "small", None, 0.2)
    stall = Stall()
    emulator.faults.append(stall)
    assert (await failed(endpoint)).kind == "stall"
    stall.until.set()
    await endpoint.close()


@pytest.mark.asyncio
async def test_where_no_server_is(endpoint: Endpoint) -> None:
    nowhere = Endpoint(f"http://127.0.0.1:{free_port()}/v1", "small", None, 5.0)
    assert (await failed(nowhere)).kind == "network"
    await nowhere.close()


@pytest.mark.asyncio
async def test_a_wrong_key_is_not_said_back() -> None:
    async with EmbeddingsEmulator(api_key="another") as server:
        endpoint = Endpoint(server.base_url, "small", KEY, 5.0)
        error = await failed(endpoint)
        assert error.kind == "auth"
        assert KEY not in str(error)
        await endpoint.close()


@pytest.mark.asyncio
async def test_a_key_goes_where_the_config_says_and_follows_no_redirect(emulator: EmbeddingsEmulator) -> None:
    emulator.api_key = KEY
    endpoint = Endpoint(emulator.base_url, "small", KEY, 5.0)
    assert all(await endpoint.embed(["a"]))
    emulator.faults.append(Fault(307, "moved", "elsewhere", {"location": f"http://127.0.0.1:{free_port()}/"}))
    assert (await failed(endpoint)).kind == "invalid"
    await endpoint.close()


@pytest.mark.asyncio
async def test_another_model_or_server_is_another_version(emulator: EmbeddingsEmulator) -> None:
    url = emulator.base_url
    versions = {Endpoint(*each, None, 5.0).version for each in ((url, "a"), (url, "b"), ("http://127.0.0.1:1/v1", "a"))}
    assert len(versions) == 3


@pytest.mark.asyncio
async def test_calls_side_by_side_share_one_client(emulator: EmbeddingsEmulator, endpoint: Endpoint) -> None:
    first, second = await asyncio.gather(endpoint.embed(["one"]), endpoint.embed(["two"]))
    assert first != second
