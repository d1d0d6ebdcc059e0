"""A watch over a streamed response: silence, endlessness and a cut connection become a `ProviderError`.

The SDKs swallow a server's keep-alives, so only the bytes tell a slow model from a dead one. This module imports the
SDKs' HTTP client, which is heavy: it is imported when the first SDK is.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import httpx2

from clew.providers import ProviderError, Timeouts
from clew.providers.failures import safe, stalled
from clew.providers.probe import on_this_machine

MAX_RESPONSE_BYTES = 64 * 2**20
"""A response of 128k tokens takes about 20 MB on the wire."""
CONNECT_S = 10.0
"""Seconds to establish a connection."""


class Watched(httpx2.AsyncByteStream):
    """The bytes of `source`. Raises ProviderError: `stall` when they stop coming, `server` when they do not end."""

    def __init__(self, source: httpx2.AsyncByteStream, timeouts: Timeouts) -> None:
        self._source = source
        self._timeouts = timeouts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        allowed, total = self._timeouts.first_byte, 0
        chunks = self._source.__aiter__()
        while True:
            try:
                async with asyncio.timeout(allowed):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise stalled(allowed) from None
            allowed, total = self._timeouts.between, total + len(chunk)
            if total > MAX_RESPONSE_BYTES:
                raise ProviderError("server", f"the response does not end: more than {MAX_RESPONSE_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._source.aclose()


def client_options(base_url: str, timeouts: Timeouts) -> dict[str, Any]:
    """Arguments of an SDK's HTTP client: watched bytes, and no proxy for a server on this machine."""

    async def watch(response: httpx2.Response) -> None:
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = Watched(response.stream, timeouts)

    return {
        "event_hooks": {"response": [watch]},
        "timeout": httpx2.Timeout(None, connect=CONNECT_S),
        "trust_env": not on_this_machine(base_url),
    }


def broken(error: Exception, *, began: bool, text_delivered: bool, secret: str = "") -> ProviderError | None:
    """The error that an exception of the HTTP layer or of a malformed stream amounts to; None for a fault of our own.

    began: the response had begun.
    """
    if isinstance(error, ValueError):
        detail = safe(f"{type(error).__name__}: {error}", secret)
        return ProviderError("server", f"the response cannot be read: {detail}", text_delivered=text_delivered)
    if isinstance(error, (httpx2.HTTPError, aiohttp.ClientError, OSError)):
        return lost(error, began=began, text_delivered=text_delivered, secret=secret)
    return None


def lost(error: Exception, *, began: bool, text_delivered: bool, secret: str = "") -> ProviderError:
    """The error of a connection that could not be made or, once the response had begun, broke."""
    reason = error.__cause__ or error
    detail = safe(f"{type(reason).__name__}: {reason}", secret)
    if began:
        return ProviderError("cut", f"the response was cut: {detail}", text_delivered=text_delivered)
    return ProviderError("network", f"no connection: {detail}")
