"""Typing and previews, while a turn runs: to whoever listens on the bus, and to the platform. Lossy."""

import asyncio
from collections.abc import Mapping

import structlog

from clew.bus import Bus, LiveEvent, Replied
from clew.previews import LONGEST_PREVIEW, Previews
from clew.transport import Address, Preview, Transport, Typing

log = structlog.get_logger()

HINT_AFTER, HINT_EVERY = 0.1, 0.25
"""Seconds before the first hint of a reply is shown to a platform, and between two rounds: each preview repeats all words so far. A reply
that is there sooner needs none."""
HINTS = 1000
"""Live hints that may wait; more are dropped."""


class Hints:
    """What waits to be shown."""

    def __init__(self, bus: Bus, transports: Mapping[str, Transport], previews: Previews) -> None:
        self._previews = previews
        self._bus = bus
        self._transports = transports
        self._waiting: dict[Address, Typing | Preview] = {}
        self._typing: dict[Address, asyncio.TimerHandle] = {}
        self._due = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def show(self, address: Address, event: LiveEvent) -> None:
        """Never waits. Of the hints for one address that wait, only the newest is shown, and none once the reply is there."""
        self._bus.publish(address, event)
        if isinstance(event, Replied):
            self._previews.end(address)
            self._waiting.pop(address, None)
            if again := self._typing.pop(address, None):
                again.cancel()
            if self._timer is not None and not self._waiting:
                self._timer.cancel()
                self._timer = None
            return
        transport = self._transports.get(address.transport)
        if transport is None or transport.capabilities.instant or len(self._waiting) >= HINTS:
            return
        if isinstance(event, Preview) and transport.capabilities.streams(address) == "edit":
            self._previews.show(address, event)
            return
        self._waiting[address] = event
        self._wake()
        if isinstance(event, Typing) and transport.capabilities.typing_s and address not in self._typing:
            self._type_again(address, event, transport.capabilities.typing_s)

    def _wake(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(HINT_AFTER, self._due.set)

    def _type_again(self, address: Address, event: Typing, seconds: float) -> None:
        """Show `event` every `seconds` until the reply is there, for platforms that forget it."""

        def again() -> None:
            self._waiting.setdefault(address, event)
            self._wake()
            self._type_again(address, event, seconds)

        self._typing[address] = asyncio.get_running_loop().call_later(seconds, again)

    async def run(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            self._timer = None
            waiting, self._waiting = self._waiting, {}
            for address, event in waiting.items():
                if isinstance(event, Preview) and len(event.text) > LONGEST_PREVIEW:
                    continue
                try:
                    await self._transports[address.transport].hint(address, event)
                except Exception as error:
                    log.debug("hint.lost", transport=address.transport, err=str(error))
            await asyncio.sleep(HINT_EVERY - HINT_AFTER)
