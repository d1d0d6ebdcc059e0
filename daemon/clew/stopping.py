"""Stopping a turn on request, wherever it waits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Stopped(Exception):
    """The turn was stopped."""


class Stop:
    """The request to stop one turn. It is made once, from within the event loop. reason: why, where nobody asked for it."""

    def __init__(self) -> None:
        self._made = False
        self.reason = ""
        self._scopes: set[asyncio.Timeout] = set()

    def is_set(self) -> bool:
        return self._made

    def set(self, reason: str = "") -> None:
        if self._made:
            return
        self._made, self.reason = True, reason
        for scope in self._scopes:
            scope.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def heeded(self) -> AsyncIterator[None]:
        """What stands in the block is cancelled where it waits once the request is made; then the block raises Stopped."""
        scope = asyncio.timeout(0 if self._made else None)
        try:
            async with scope:
                self._scopes.add(scope)
                try:
                    yield
                finally:
                    self._scopes.discard(scope)
        except TimeoutError:
            if not scope.expired():
                raise
            raise Stopped from None
