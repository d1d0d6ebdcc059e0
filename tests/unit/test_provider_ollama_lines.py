"""Lines of a streamed response, whatever pieces they come in."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from clew.providers import ProviderError, Timeouts
from clew.providers import lines as module
from clew.providers.lines import Lines


def source(*chunks: bytes) -> Callable[[], Awaitable[bytes]]:
    """Gives one chunk after the other, then nothing."""
    rest = list(chunks)

    async def read() -> bytes:
        return rest.pop(0) if rest else b""

    return read


async def silent() -> bytes:
    await asyncio.Event().wait()
    return b""


@pytest.mark.asyncio
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_pieces_make_no_difference(size: int) -> None:
    data = 'one\n\n  \r\nzwölf\n{"a": "東京"}\nlast'.encode()
    lines = Lines(source(*(data[at : at + size] for at in range(0, len(data), size))), Timeouts())
    assert [line async for line in lines] == [b"one", "zwölf".encode(), '{"a": "東京"}'.encode(), b"last"]
    assert lines.unfinished


@pytest.mark.asyncio
@pytest.mark.parametrize("data", [b"", b"\n", b"one\n"])
async def test_an_end_is_an_end(data: bytes) -> None:
    assert [line async for line in Lines(source(data), Timeouts())] == data.split()


@pytest.mark.asyncio
@pytest.mark.parametrize("began", [False, True])
async def test_silence_is_a_stall(began: bool) -> None:
    lines = Lines(silent, Timeouts(60.0, 0.01) if began else Timeouts(0.01, 60.0))
    lines.began = began
    with pytest.raises(ProviderError) as caught:
        await anext(lines)
    assert caught.value.kind == "stall"


@pytest.mark.asyncio
async def test_an_endless_response_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RESPONSE_BYTES", 1_000)

    async def endless() -> bytes:
        return b"x" * 100

    with pytest.raises(ProviderError) as caught:
        await anext(Lines(endless, Timeouts()))
    assert caught.value.kind == "server"


@pytest.mark.asyncio
async def test_the_next_response_of_the_same_source_is_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RESPONSE_BYTES", 10)
    lines = Lines(source(b"eight..\n", b"eight..\n"), Timeouts())
    assert await anext(lines) == b"eight.."
    lines.restart()
    assert await anext(lines) == b"eight.."
