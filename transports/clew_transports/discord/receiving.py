"""Events in: connections to the gateway one after the other, and what was missed between two of them."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import structlog

from clew.transport import Host, Inbound
from clew_transports.buttons import Presses
from clew_transports.calls import Unanswered, Unreached
from clew_transports.discord import account
from clew_transports.discord.api import Api, Refusal
from clew_transports.discord.catching_up import missed
from clew_transports.discord.events import Reader, place_of
from clew_transports.discord.gateway import ANEW_PAUSE_S, FATAL, Event, Gateway, Lost
from clew_transports.discord.place import OTHER_SHAPE, Place, channels, own_roles, snowflake
from clew_transports.reading import Malformed

LONGEST_PAUSE_S = 120.0
"""Of these the day has 720, and of sessions a bot may begin 1,000."""
FATAL_PAUSE_S = 600.0
"""Between two looks whether a token or an intent that Discord refused is as it should be."""
STEADY_S = 60.0
"""Seconds after which a connection counts as one that holds."""
RESUMES = 3
"""Connections after which a session that cannot be gone on with is given up."""
KEPT_S = 300.0
"""Seconds after which Discord, which keeps a session for a few minutes, has given it up."""
SAVE_S = 30.0
"""Seconds after which it is stored how far events are read that are no messages for clew."""
SIDE_BY_SIDE = 8
"""Channels that are asked at the same time for what was missed there."""
CATCH_UPS = 3
"""Tries to ask for what was missed before the connection is made anew."""

log = structlog.get_logger()


class Receiver:
    """Hands `host` what is said in Discord. All times in seconds.

    reader: how its events are read; of which bot, Discord says. presses: of buttons, to be
    answered. first_pause: before the second try to connect. fatal_pause: before another
    look at what Discord refused.
    """

    def __init__(
        self,
        api: Api,
        token: str,
        host: Host,
        place: Place,
        reader: Reader,
        presses: Presses,
        first_pause: float,
        fatal_pause: float,
    ) -> None:
        self.place = place
        self._api = api
        self._token = token
        self._host = host
        self._any_reader = reader
        self._presses = presses
        self._first_pause = first_pause
        self._fatal_pause = fatal_pause
        self._saved_at = 0.0
        self._up_at: float | None = None
        self._down_at: float | None = None
        self._misses = 0

    async def run(self) -> None:
        """Connect, again and again, until cancelled. Raises what `host.accept` raises."""
        loop, pause = asyncio.get_running_loop(), self._first_pause
        self._saved_at = loop.time()
        while True:
            self._up_at, self._down_at = None, self._down_at or loop.time()
            try:
                await self._connection()
            except (Lost, Refusal, Unreached, Unanswered, Malformed) as error:
                self._host.report(False, why(error))
                if self._up_at is not None and loop.time() - self._up_at > STEADY_S:
                    pause = self._first_pause
                await asyncio.sleep(self._wait(error, pause))
                pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _connection(self) -> None:
        """One connection, from its beginning to the Lost at its end."""
        if self._misses >= RESUMES or asyncio.get_running_loop().time() - (self._down_at or 0.0) > KEPT_S:
            self.place = self.place.without_session()
        url = self.place.url or await account.gateway(self._api)
        async with Gateway(await self._api.websocket(url), self.place.seq) as gateway:
            self._misses += 1
            await gateway.begin(self._token, self.place)
            async for events in gateway.events():
                await self._take(events)
                gateway.stored = self.place.seq

    def _wait(self, error: Exception, pause: float) -> float:
        """Seconds until the next connection. Forgets a session that is over."""
        if isinstance(error, Lost) and not error.resumable:
            self.place = self.place.without_session()
        if _is_fatal(error):
            return self._fatal_pause
        if isinstance(error, Lost) and error.at_once and self._up_at is not None:
            return 0.0
        if isinstance(error, Lost) and not error.resumable:
            pause = max(pause, self._first_pause * random.uniform(*ANEW_PAUSE_S))  # noqa: S311 - as below
        if isinstance(error, Refusal) and error.retry_after:
            return max(pause, min(error.retry_after, FATAL_PAUSE_S))
        return pause * random.uniform(0.75, 1.0)  # noqa: S311 - it keeps clients apart, no secret

    async def _take(self, events: Sequence[Event]) -> None:
        """Store what `events` tell. What Discord is told of, by heartbeats and by going on, is what is stored."""
        batch: list[Inbound] = []
        for event in events:
            try:
                if event.kind in ("READY", "GUILD_CREATE"):
                    await self._store(batch)
                    batch = []
                    await (self._ready(event.told) if event.kind == "READY" else self._server(event.told))
                else:
                    batch += self._read(event)
            except Malformed as reason:
                log.warning("inbox.rejected", transport=self._any_reader.name, reason=str(reason))
            self.place = self.place.behind(event.seq)
        await self._store(batch)

    async def _store(self, batch: list[Inbound]) -> None:
        now = asyncio.get_running_loop().time()
        if batch or now - self._saved_at > SAVE_S:
            self._presses.answer(batch, await self._host.accept(batch, str(self.place)))
            self._saved_at = now

    def _read(self, event: Event) -> list[Inbound]:
        told = event.told
        match event.kind:
            case "RESUMED":
                self._is_up()
            case "GUILD_DELETE" if isinstance(told, dict) and not told.get("unavailable"):
                self.place = self.place.without(str(told.get("id")))
            case "MESSAGE_CREATE":
                number, channel, direct = place_of(told)
                self.place = self.place.seen(number)
                if direct:
                    self.place = self.place.with_direct(channel)
        return self._reader.read(event.kind, told)

    async def _ready(self, told: Any) -> None:
        """A new session. What was said since the last one is asked for, before anything of this one is read."""
        try:
            bot, session, url = str(int(told["user"]["id"])), str(told["session_id"]), str(told["resume_gateway_url"])
            servers = [str(int(each["id"])) for each in told["guilds"]]
            known = self.place.bot == bot
            place = self.place if known else Place(bot, floor=snowflake(time.time() * 1000))
            begun = place.with_session(session, url, servers if known else ())
        except OTHER_SHAPE:
            raise Lost("Discord began a session with what is none", resumable=False) from None
        self.place = place
        self._is_up()
        await self._catch_up(place.directs if known else (), server=False)
        self.place = begun
        self._saved_at = float("-inf")

    async def _server(self, told: Any) -> None:
        """A server is there, with its channels; in a new session what was missed there is asked for."""
        try:
            server, lasts, roles = str(int(told["id"])), channels(told), own_roles(told, self.place.bot)
        except OTHER_SHAPE:
            raise Malformed("a GUILD_CREATE of another shape than Discord documents") from None
        self.place = self.place.with_roles(roles)
        if server in self.place.awaited:
            await self._catch_up([channel for channel, last in lasts.items() if last > self.place.since], server=True)
            self.place = self.place.without(server)
            self._saved_at = float("-inf")
        self.place = self.place.seen(*lasts.values())

    async def _catch_up(self, channels: Sequence[str], *, server: bool) -> None:
        """Store what was missed in these channels, some of them at the same time. Raises what `missed` raises, after some tries."""
        for start in range(0, len(channels), SIDE_BY_SIDE):
            tasks = (self._catch_up_with(channel, server) for channel in channels[start : start + SIDE_BY_SIDE])
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if outcome is not None:
                    raise outcome

    async def _catch_up_with(self, channel: str, server: bool) -> None:
        for attempt in range(1, CATCH_UPS + 1):
            try:
                async for page in missed(self._api, self._any_reader.name, channel, self.place.since):
                    if batch := list(self._said_meanwhile(page, server)):
                        await self._host.accept(batch, str(self.place))
                return
            except (Refusal, Unreached, Unanswered):
                if attempt == CATCH_UPS:
                    raise
                await asyncio.sleep(attempt * self._first_pause)

    def _said_meanwhile(self, page: Sequence[Any], server: bool) -> Sequence[Inbound]:
        batch: list[Inbound] = []
        for message in page:
            try:
                batch += self._reader.missed(message, server)
            except Malformed as reason:
                log.warning("inbox.rejected", transport=self._any_reader.name, reason=str(reason))
        return batch

    @property
    def _reader(self) -> Reader:
        """Raises Malformed as long as it is not known which bot this is: its own words would be taken for another's."""
        if not self.place.bot:
            raise Malformed("an event came before Discord said which bot this is")
        return replace(self._any_reader, bot=self.place.bot, roles=frozenset(self.place.roles))

    def _is_up(self) -> None:
        self._up_at, self._down_at, self._misses = asyncio.get_running_loop().time(), None, 0
        self._host.report(True)


def _is_fatal(error: Exception) -> bool:
    return (isinstance(error, Lost) and error.fatal) or (isinstance(error, Refusal) and error.status == 401)


def why(error: Exception) -> str:
    """What is wrong and what mends it."""
    return FATAL[4004] if isinstance(error, Refusal) and error.status == 401 else str(error)
