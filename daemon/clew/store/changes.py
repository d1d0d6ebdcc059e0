"""Waiting for something to change in the store, without asking it."""

import asyncio


class Changes:
    """Something that changes now and then. `version` grows with every change."""

    def __init__(self) -> None:
        self.version = 0
        self._waiting: set[asyncio.Future[None]] = set()

    async def wait(self, seen: int, timeout: float) -> int:
        """Wait until the version is not `seen` any more, at most `timeout` seconds. Returns it."""
        if self.version == seen:
            loop = asyncio.get_running_loop()
            told = loop.create_future()
            self._waiting.add(told)
            late = loop.call_later(timeout, _wake, told)
            try:
                await told
            finally:
                late.cancel()
                self._waiting.discard(told)
        return self.version

    def tell(self) -> None:
        self.version += 1
        for told in self._waiting:
            _wake(told)


def _wake(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)
