"""When something may be sent to a chat again, and when a connection is tried again."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Hashable

from clew.transport import Host

MAX_CHATS = 1000
"""Chats of which it is remembered until when nothing is sent to them; the one that was met longest ago is forgotten first."""


class Pauses:
    """Chats that are left alone for a while. All times are of one clock, in seconds."""

    def __init__(self) -> None:
        self._until: dict[Hashable, float] = {}

    def left(self, chat: Hashable, now: float) -> float:
        """Seconds until something may be sent to `chat`; 0.0 if it may now."""
        return max(self._until.get(chat, 0.0) - now, 0.0)

    def pause(self, chat: Hashable, until: float) -> None:
        """Send nothing to `chat` before `until`. A longer pause that was asked for before stays."""
        self._until[chat] = max(until, self._until.pop(chat, 0.0))
        while len(self._until) > MAX_CHATS:
            del self._until[next(iter(self._until))]


async def kept_up(
    host: Host, connection: Callable[[], AsyncIterator[None]], errors: tuple[type[Exception], ...], first_pause: float, longest_pause: float
) -> None:
    """Connect, and connect again, for ever.

    connection: one from start to end; it yields each time that the platform has answered, which makes the pauses start anew. errors: how
    it ends; they are reported. first_pause, longest_pause: seconds between two connections, doubled from one to the other.
    """
    pause = first_pause
    while True:
        try:
            async for _ in connection():
                pause = first_pause
        except errors as error:
            host.report(False, str(error))
        await asyncio.sleep(pause * random.uniform(0.75, 1.0))  # noqa: S311 - it keeps clients apart, no secret
        pause = min(2 * pause, longest_pause)
