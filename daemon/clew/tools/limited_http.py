"""HTTP for MCP servers at an address: what they answer is bounded. Needs the extra `mcp`."""

from collections.abc import AsyncIterator
from typing import cast

import httpx2

LONGEST_ANSWER = 16 * 2**20
"""Bytes of an answer; one that streams events is bounded by the SDK, event by event."""


class Limited(httpx2.AsyncBaseTransport):
    """A transport whose answers break off with ReadError where they are too long, or packed though that was not asked for."""

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["Accept-Encoding"] = "identity"
        response = await self._inner.handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.ReadError("it answered in an encoding that was not asked for", request=request)
        if not response.headers.get("Content-Type", "").lower().startswith("text/event-stream"):
            response.stream = _Counted(cast(httpx2.AsyncByteStream, response.stream))
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for piece in self._inner:
            read += len(piece)
            if read > LONGEST_ANSWER:
                raise httpx2.ReadError(f"it answered with more than {LONGEST_ANSWER // 2**20} MiB")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
