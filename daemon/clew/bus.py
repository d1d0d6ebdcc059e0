"""Live events: typing, deltas, progress. Bounded and lossy; nothing depends on one arriving."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from clew.transport import Address, Preview, Typing

QUEUE = 256
"""Events a subscriber may lag behind before the oldest are dropped."""


@dataclass(frozen=True, slots=True)
class Replied:
    """Something was appended to the transcript of a chat: fetch it."""

    session: str


LiveEvent = Typing | Preview | Replied


class Subscription:
    """The events of one address, from now on."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[LiveEvent] = asyncio.Queue(QUEUE)

    def push(self, event: LiveEvent) -> None:
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(event)

    async def get(self) -> LiveEvent:
        return await self._queue.get()

    def __aiter__(self) -> AsyncIterator[LiveEvent]:
        return self._events()

    async def _events(self) -> AsyncIterator[LiveEvent]:
        while True:
            yield await self._queue.get()


class Bus:
    """Who listens to which address."""

    def __init__(self) -> None:
        self._listeners: defaultdict[Address, list[Subscription]] = defaultdict(list)

    def publish(self, address: Address, event: LiveEvent) -> None:
        for subscription in self._listeners.get(address, ()):
            subscription.push(event)

    @contextmanager
    def subscribe(self, address: Address) -> Iterator[Subscription]:
        subscription = Subscription()
        self._listeners[address].append(subscription)
        try:
            yield subscription
        finally:
            self._listeners[address].remove(subscription)
            if not self._listeners[address]:
                del self._listeners[address]
