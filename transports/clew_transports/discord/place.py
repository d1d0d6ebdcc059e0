"""How far Discord's events are read: what has to be remembered between two processes. Pure."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

MAX_DIRECTS = 1000
"""Private chats that are asked for what was missed; the one that was silent for longest is forgotten first."""
MAX_ROLES = 100
"""Servers of which it is remembered which role Discord made for the bot there."""
MARGIN_MS = 120_000
"""Discord does not promise to deliver in the order of ids: what is asked for again begins so many milliseconds earlier."""

EPOCH_MS = 1_420_070_400_000
"""The first millisecond of Discord's ids, since 1970."""

_WRITTEN_IN = frozenset({0, 2, 5, 10, 11, 12, 13})
"""Types of channels that have messages of their own: text, voice, announcements, threads, stages."""
OTHER_SHAPE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""What reading values of another shape than the documented one raises."""
_ADDRESS = re.compile(r"wss?://[A-Za-z0-9.:\[\]_-]{1,255}(/[A-Za-z0-9._~/-]{0,200})?")


def snowflake(ms: float) -> int:
    """The smallest id of the millisecond `ms` since 1970, 0 for times before Discord's first."""
    return max(int(ms) - EPOCH_MS, 0) << 22


def gateway_address(said: Any) -> str:
    """What Discord says of where its gateway is. Raises ValueError for what is no address of one."""
    if not isinstance(said, str) or not _ADDRESS.fullmatch(said):
        raise ValueError("that is no address of a gateway")
    return said


@dataclass(frozen=True, slots=True)
class Place:
    """How far the events of `bot` are stored.

    session, url: what a new connection can go on with, and where; empty for none. seq: the last event of it that is stored. floor: all
    messages up to about this id have been seen, in every channel. awaited: servers of which what was missed is still to be asked for, and
    until then `floor` stays. directs: private chats, the latest first. roles: those that Discord made for the bot, which nobody else has.
    """

    bot: str = ""
    session: str = ""
    url: str = ""
    seq: int = 0
    floor: int = 0
    awaited: frozenset[str] = frozenset()
    directs: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    @classmethod
    def load(cls, cursor: str | None) -> Self:
        """From what an earlier process stored. A cursor that is none of ours counts as none."""
        try:
            bot, session, url, seq, floor, awaited, directs, roles = json.loads(cursor or "")
            if not (session and isinstance(url, str) and _ADDRESS.fullmatch(url)):
                session, url = "", ""
            chats, known = tuple(map(str, directs)), tuple(map(str, roles))
            return cls(str(bot), str(session), url, int(seq), int(floor), frozenset(map(str, awaited)), chats, known)
        except OTHER_SHAPE:
            return cls()

    def __str__(self) -> str:
        fields = [self.bot, self.session, self.url, self.seq, self.floor, sorted(self.awaited), self.directs, self.roles]
        return json.dumps(fields, separators=(",", ":"))

    @property
    def since(self) -> int:
        """The id behind which is to be asked for what was missed."""
        return max(self.floor - (MARGIN_MS << 22), 0)

    def without_session(self) -> Self:
        return replace(self, session="", url="", seq=0)

    def with_session(self, session: str, url: str, awaited: Iterable[str]) -> Self:
        """A new one. Raises ValueError for an address that is none."""
        if not session:
            raise ValueError("a session has a name")
        return replace(self, session=session, url=gateway_address(url), seq=0, awaited=frozenset(awaited))

    def behind(self, seq: int) -> Self:
        return replace(self, seq=max(self.seq, seq))

    def seen(self, *ids: int) -> Self:
        """That there is nothing unread below these ids, unless something is still to be asked for."""
        return self if self.awaited else replace(self, floor=max((self.floor, *ids)))

    def with_direct(self, channel: str) -> Self:
        if self.directs[:1] == (channel,):
            return self
        others = (each for each in self.directs if each != channel)
        return replace(self, directs=(channel, *others)[:MAX_DIRECTS])

    def with_roles(self, roles: Iterable[str]) -> Self:
        new = [each for each in roles if each not in self.roles]
        return replace(self, roles=(*new, *self.roles)[:MAX_ROLES]) if new else self

    def without(self, server: str) -> Self:
        """Nothing is to be asked of `server` any more."""
        return replace(self, awaited=self.awaited - {server})


def own_roles(server: Mapping[str, Any], bot: str) -> list[str]:
    """The role that Discord made for the bot when it came to the server."""
    return [str(int(each["id"])) for each in server.get("roles") or () if str((each.get("tags") or {}).get("bot_id")) == bot]


def channels(server: Mapping[str, Any]) -> dict[str, int]:
    """The channels and open threads of a server in which something was written, and the id of the last message there."""
    found = {}
    for channel in [*(server.get("channels") or ()), *(server.get("threads") or ())]:
        last = channel.get("last_message_id")
        if last and channel.get("type") in _WRITTEN_IN:
            found[str(int(channel["id"]))] = int(last)
    return found
