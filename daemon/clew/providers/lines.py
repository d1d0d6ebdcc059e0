"""A streamed response that comes in lines, from a socket or a pipe, with a watch over silence and endlessness."""

import asyncio
from collections.abc import Awaitable, Callable

from clew.providers import ProviderError, Timeouts
from clew.providers.failures import stalled

MAX_RESPONSE_BYTES = 64 * 2**20
"""A response of 128k tokens in lines of JSON takes about 20 MB."""


class Lines:
    """The lines that `read` brings, without their ends; blank ones are left out.

    read: gives the next bytes, none at the end. began: whether the model has begun to answer, set by whoever understands the
    lines; until then all of them together have `timeouts.first_byte` seconds, afterwards each piece has `timeouts.between`.
    unfinished: the last line had no end, so it may have been cut.
    Iterating raises ProviderError: `stall` when nothing comes, `server` when it does not end.
    """

    def __init__(self, read: Callable[[], Awaitable[bytes]], timeouts: Timeouts) -> None:
        self._read = read
        self._timeouts = timeouts
        self._buffer = bytearray()
        self._searched = 0
        self.restart()

    def restart(self) -> None:
        """Begin to wait for the next response of the same source."""
        self.began = False
        self.unfinished = False
        self._total = 0
        self._until = asyncio.get_running_loop().time() + self._timeouts.first_byte

    def __aiter__(self) -> "Lines":
        return self

    async def __anext__(self) -> bytes:
        while True:
            line = self._line()
            if line is None:
                chunk = await self._more()
                self._buffer += chunk
                line = b"" if chunk else self._rest()
            if line.strip():
                return line
            if self.unfinished:
                raise StopAsyncIteration

    def _line(self) -> bytes | None:
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._buffer)
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    def _rest(self) -> bytes:
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        self.unfinished = True
        return rest

    async def _more(self) -> bytes:
        now = asyncio.get_running_loop().time()
        seconds = self._timeouts.between if self.began else self._timeouts.first_byte
        try:
            async with asyncio.timeout_at(now + seconds if self.began else self._until):
                chunk = await self._read()
        except TimeoutError:
            raise stalled(seconds) from None
        self._total += len(chunk)
        if self._total > MAX_RESPONSE_BYTES:
            raise ProviderError("server", f"the response does not end: more than {MAX_RESPONSE_BYTES} bytes")
        return chunk
