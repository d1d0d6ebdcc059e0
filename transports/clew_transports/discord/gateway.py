"""One connection to Discord's gateway: the greeting, heartbeats, a session that is begun or gone on with, and its events in order."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp

from clew_transports.discord.place import OTHER_SHAPE, Place

INTENTS = 1 << 0 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 15
"""Servers, their messages and reactions, private messages and reactions, and what messages say."""
HELLO_S = 20.0
"""Seconds for the greeting. What follows may take longer: while Discord is ill, sessions begin late."""
WAITING = 1000
"""Events that may wait to be stored; what comes behind them stays with Discord, heartbeats and all, and the connection is soon renewed."""
ANEW_PAUSE_S = (1.0, 5.0)
"""Seconds to wait, at random, after a session was taken back, as Discord asks."""
LONG = 100_000
"""Characters from which on a frame, such as a large server with all its channels, is read beside the loop."""
LATER = 4000
"""The code to close with: behind 1000 and 1001 Discord forgets the session."""

FATAL = {
    4004: "Discord does not know the token: copy it again from the Developer Portal, Bot, Reset Token",
    4010: "Discord refuses the shard",
    4011: "the bot is in too many servers for one connection",
    4012: "Discord does not speak this version of its gateway any more: a newer clew is needed",
    4013: "Discord does not know one of the intents: a newer clew is needed",
    4014: "the Message Content Intent is off: turn it on in the Developer Portal, Bot, Privileged Gateway Intents",
}
"""Codes behind which Discord asks not to connect again, and what mends them."""
_FORGOTTEN = frozenset({1000, 1001, 4003, 4007, 4009})
"""Codes that end a session together with its connection."""


class Lost(Exception):
    """The connection is over.

    resumable: the session can be gone on with. at_once: Discord asks for just that. fatal: it does not want to see the same again.
    """

    def __init__(self, why: str, *, resumable: bool = True, at_once: bool = False, fatal: bool = False) -> None:
        super().__init__(why)
        self.resumable = resumable
        self.at_once = at_once
        self.fatal = fatal


@dataclass(frozen=True, slots=True)
class Event:
    """A dispatch: its number in the session, its kind, and what it tells."""

    seq: int
    kind: str
    told: Any


class Gateway:
    """An open connection, of which `socket` is the WebSocket. Use as an async context manager.

    stored: the number of the last event that is stored; what is behind it Discord has to keep. `events` ends with Lost.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, stored: int = 0) -> None:
        self.stored = stored
        self._socket = socket
        self._events: asyncio.Queue[Event | Lost] = asyncio.Queue(WAITING)
        self._heard = True
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Gateway":
        return self

    async def __aexit__(self, *exception: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._socket.close(code=LATER)

    async def begin(self, token: str, place: Place) -> None:
        """Go on with the session of `place`, or begin one if it has none. Raises Lost."""
        try:
            async with asyncio.timeout(HELLO_S):
                hello = await self._frame()
        except TimeoutError:
            raise Lost(f"no greeting from Discord within {HELLO_S:.0f} s") from None
        try:
            interval = float(hello["d"]["heartbeat_interval"]) / 1000
            if hello["op"] != 10 or not 0 < interval < 3600:
                raise ValueError
        except OTHER_SHAPE:
            raise Lost("Discord's greeting is none") from None
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._beat(interval))]
        if place.session:
            await self._say(6, {"token": token, "session_id": place.session, "seq": place.seq})
        else:
            about = {"os": "linux", "browser": "clew", "device": "clew"}
            await self._say(2, {"token": token, "intents": INTENTS, "properties": about})

    async def events(self) -> AsyncIterator[list[Event]]:
        """What comes, in order, as many at a time as there are. Raises Lost."""
        while True:
            batch = [await self._events.get()]
            while not self._events.empty():
                batch.append(self._events.get_nowait())
            events = [each for each in batch if isinstance(each, Event)]
            if events:
                yield events
            for each in batch:
                if isinstance(each, Lost):
                    raise each

    async def _read(self) -> None:
        try:
            while True:
                frame = await self._frame()
                match frame.get("op"):
                    case 0:
                        await self._events.put(Event(int(frame["s"]), str(frame["t"]), frame.get("d")))
                    case 1:
                        await self._say(1, self.stored or None)
                    case 7:
                        raise Lost("Discord asks to connect anew", at_once=True)
                    case 9:
                        raise Lost("Discord took the session back", resumable=frame.get("d") is True)
                    case 11:
                        self._heard = True
        except Lost as lost:
            await self._events.put(lost)
        except Exception as error:  # nobody else would notice that nothing is read any more
            await self._events.put(Lost(f"Discord sent what is no event ({type(error).__name__})"))

    async def _beat(self, interval: float) -> None:
        """A heartbeat each `interval` seconds; one that nobody answered ends the connection."""
        wait = interval * random.random()  # noqa: S311 - it keeps clients apart, no secret
        with contextlib.suppress(Lost):  # the reader tells
            while True:
                await asyncio.sleep(wait)
                if not self._heard:
                    await self._socket.close(code=LATER)
                    return
                self._heard, wait = False, interval
                await self._say(1, self.stored or None)

    async def _frame(self) -> dict[str, Any]:
        """Raises Lost at the connection's end."""
        message = await self._socket.receive()
        match message.type:
            case aiohttp.WSMsgType.TEXT:
                frame = _read(message.data) if len(message.data) < LONG else await asyncio.to_thread(_read, message.data)
                if isinstance(frame, dict):
                    return frame
                raise Lost("Discord sent what is no JSON")
            case aiohttp.WSMsgType.CLOSE:
                raise closed(int(message.data or 0))
        if not self._heard:
            raise Lost("Discord answered no heartbeat")
        raise Lost("the connection to Discord broke")

    async def _say(self, op: int, data: Any) -> None:
        try:
            await self._socket.send_str(json.dumps({"op": op, "d": data}))
        except (aiohttp.ClientError, OSError) as error:
            raise Lost(f"the connection to Discord broke ({type(error).__name__})") from None


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def closed(code: int) -> Lost:
    """What it means that Discord closed the connection with `code`."""
    if code in FATAL:
        return Lost(FATAL[code], resumable=False, fatal=True)
    return Lost(f"Discord closed the connection ({code})", resumable=code not in _FORGOTTEN)
