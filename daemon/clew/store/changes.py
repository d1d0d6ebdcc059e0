"""Waiting for something to change in the store, without asking it."""

import asyncio
from collections.abc import AsyncIterator, Collection

BEHIND = 1000
"""Names that may wait to be heard; more are lost, and made good by the next look."""


class Changes:
    """Something that changes now and then. `version` grows with every change. name: by which other processes are told of it."""

    def __init__(self, name: str = "") -> None:
        self.name = name
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


class Deliveries(dict[str, Changes]):
    """By transport: there may be something to send."""

    def __missing__(self, transport: str) -> Changes:
        made = self[transport] = Changes(f"deliveries/{transport}")
        return made


class Neighbours:
    """Stores of one process that have the same file open: what one of them tells, the others hear."""

    def __init__(self) -> None:
        self._ears: dict[object, asyncio.Queue[str]] = {}

    def tell(self, teller: object, names: Collection[str]) -> None:
        for ear, queue in self._ears.items():
            if ear is not teller:
                for name in names:
                    if not queue.full():
                        queue.put_nowait(name)

    async def heard(self, by: object) -> AsyncIterator[str]:
        """What others tell from now on."""
        queue = self._ears[by] = asyncio.Queue(BEHIND)
        try:
            while True:
                yield await queue.get()
        finally:
            del self._ears[by]
