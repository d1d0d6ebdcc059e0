"""How fast a platform may be written to: what it takes in all, and the waits that it has asked for."""

import asyncio
from collections.abc import Awaitable, Callable

from clew.transport import Address, Retry

MAX_CHATS = 1000
"""Chats whose waits are remembered; the one that was met longest ago is forgotten first."""
LONGEST = 86_400.0
"""Seconds; a longer wait that a platform states is taken for this."""


class Pace:
    """Of one transport. per_second: calls that it takes in all its chats together, None for no limit. steady: a clock, in seconds."""

    def __init__(
        self, per_second: float | None, steady: Callable[[], float], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._apart = 1 / per_second if per_second else 0.0
        self._steady = steady
        self._sleep = sleep
        self._queue = asyncio.Lock()
        self._next = 0.0
        self._all = 0.0
        self._chats: dict[Address, float] = {}

    def rest(self, chat: Address, asked: Retry) -> None:
        """Keep a wait that the platform asked for, to this chat or to all."""
        if asked.after is None:
            return
        until = self._steady() + min(max(asked.after, 0.0), LONGEST)
        if asked.everywhere:
            self._all = max(self._all, until)
            return
        self._chats[chat] = max(until, self._chats.pop(chat, 0.0))
        while len(self._chats) > MAX_CHATS:
            del self._chats[next(iter(self._chats))]

    @property
    def rests(self) -> float:
        """Seconds for which nothing goes to any chat."""
        return max(self._all - self._steady(), 0.0)

    def left(self, chat: Address) -> float:
        """Seconds for which nothing goes to this chat."""
        return max(self._chats.get(chat, 0.0) - self._steady(), self.rests)

    async def turn(self) -> None:
        """Wait for the next place of those that the platform has in a second, in the order of asking."""
        if not self._apart:
            return
        async with self._queue:
            if (left := self._next - self._steady()) > 0:
                await self._sleep(left)
            self._next = self._steady() + self._apart

    def is_free(self, chat: Address) -> bool:
        """Whether something that can as well be left out may go to this chat at once: nothing waits for a place of its own."""
        return not self._queue.locked() and self._next <= self._steady() and not self.left(chat)
