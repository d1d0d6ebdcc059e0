import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from clew.providers import ProviderError, Timeouts
from clew.providers.watch import MAX_RESPONSE_BYTES, Watched


class Source(httpx2.AsyncByteStream):
    """Yields `chunks`, then either ends or, if `silent`, waits for ever."""

    def __init__(self, chunks: list[bytes], *, silent: bool = False) -> None:
        self.chunks = chunks
        self.silent = silent
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            yield chunk
        if self.silent:
            await asyncio.Event().wait()

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.asyncio
async def test_bytes_pass_unchanged_and_the_source_is_closed() -> None:
    source = Source([b"a", b"bc"])
    watched = Watched(source, Timeouts())
    assert [chunk async for chunk in watched] == [b"a", b"bc"]
    await watched.aclose()
    assert source.closed


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("chunks", "timeouts"), [([], Timeouts(0.01, 60)), ([b"first"], Timeouts(60, 0.01))], ids=["first byte", "between"]
)
async def test_silence_is_a_stall(chunks: list[bytes], timeouts: Timeouts) -> None:
    watched = aiter(Watched(Source(chunks, silent=True), timeouts))
    for chunk in chunks:
        assert await anext(watched) == chunk
    with pytest.raises(ProviderError) as caught:
        await anext(watched)
    assert caught.value.kind == "stall"


@pytest.mark.asyncio
async def test_a_response_without_an_end_is_given_up() -> None:
    size = 2**20
    endless = Source([bytes(size)] * (MAX_RESPONSE_BYTES // size + 1))
    with pytest.raises(ProviderError) as caught:
        async for _ in Watched(endless, Timeouts()):
            pass
    assert caught.value.kind == "server"
