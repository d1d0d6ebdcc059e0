"""When something may be sent to a chat again."""

from collections.abc import Hashable

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
