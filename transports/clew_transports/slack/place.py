"""What has to be remembered of Slack between two batches: how far it is read, and where. Pure."""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any, Self

MAX_CHANNELS = 500
"""Conversations that are remembered by name, for apps that may not list theirs; the one met first is forgotten first."""
MAX_THREADS = 500
"""Threads that clew was called into. The one in which nothing was said for longest is forgotten first; it then needs a mention again."""

_TS = re.compile(r"[0-9]{1,12}\.[0-9]{1,6}", re.ASCII)


def order(ts: str) -> tuple[int, int]:
    """A place in time that can be compared. Raises ValueError for what is no `ts` of Slack."""
    if not _TS.fullmatch(ts):
        raise ValueError("no ts of Slack")
    seconds, _, part = ts.partition(".")
    return int(seconds), int(part.ljust(6, "0"))


@dataclass(frozen=True, slots=True)
class Place:
    """How far the messages for `bot` are read.

    first: when clew met this workspace; what was said before is none of its business. since: everything from there to this `ts` is stored.
    channels: conversations that were met. threads: `channel/thread` of channels' threads in which clew is spoken to. spoken: those of them
    in which it was since this was loaded; not stored.
    """

    bot: str = ""
    first: str = ""
    since: str = ""
    channels: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    spoken: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def load(cls, cursor: str | None) -> Self:
        """From what an earlier process stored. A cursor that is none of ours counts as none."""
        try:
            bot, first, since, channels, threads = json.loads(cursor or "")
            order(first)
            order(since)
            return cls(str(bot), first, since, _names(channels), _names(threads))
        except (ValueError, TypeError, AttributeError, RecursionError):
            return cls()

    def __str__(self) -> str:
        return json.dumps([self.bot, self.first, self.since, self.channels, self.threads], separators=(",", ":"))

    def onto(self, stored: str | None) -> str:
        """As it is to be stored in the place of `stored`, in which another daemon may have noted something meanwhile."""
        other = Place.load(stored)
        if other.bot != self.bot:
            return str(self)
        for channel in self.channels:
            other = other.met(channel)
        for thread in self.spoken:
            other = other.joined(*thread.split("/", 1))
        return str(other.read(self.since))

    def read(self, ts: str) -> Self:
        """Read up to `ts`, or further already."""
        return replace(self, since=ts) if order(ts) > order(self.since) else self

    def before(self, seconds: int) -> str:
        """The `ts` of a moment before `since`, but none before `first`."""
        whole, part = order(self.since)
        return max(f"{max(whole - seconds, 0)}.{part:06}", self.first, key=order)

    def met(self, channel: str) -> Self:
        return self if channel in self.channels else replace(self, channels=(*self.channels, channel)[-MAX_CHANNELS:])

    def joined(self, channel: str, thread: str) -> Self:
        """clew is spoken to in this thread, now."""
        name = f"{channel}/{thread}"
        others = (each for each in self.threads if each != name)
        return replace(self, threads=(*others, name)[-MAX_THREADS:], spoken=(*self.spoken, name)[-MAX_THREADS:])

    def is_joined(self, channel: str, thread: str) -> bool:
        return f"{channel}/{thread}" in self.threads


def _names(given: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in list(given))
