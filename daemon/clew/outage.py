"""The store cannot be written: a full disk, a lock, a folder that became read-only. Told once, and watched until it is over."""

import asyncio
import contextlib
from typing import Literal

import structlog

from clew.clock import Time
from clew.errors import StoreError
from clew.owner import Owner
from clew.store.sql import SqlStore
from clew.supervise import unless_lasting
from clew.transport import Delivery, Refused, Retry, Unknown

log = structlog.get_logger()

LOOK = 5.0
"""Seconds between two looks whether it is over."""
PASSING = 8.0
"""Seconds after which the owner is told; what is over by then was a hiccup."""
NOW = (
    "I cannot store anything. {reason} New messages are refused or wait with their platform until that is mended. What is stored is "
    "safe, and nothing has to be restarted."
)
THEN = (
    "For {span} I could not store anything. {reason} Messages that came meanwhile were refused or waited with their platform; what "
    "was stored is safe. It is over."
)


Telling = Literal["untold", "told", "out of reach"]
"""Whether the owner knows. `untold`: it is tried again; `out of reach`: they are told when it is over."""


class Outage:
    """Watches what becomes of writes. reason: why they fail, empty as long as they do not."""

    def __init__(self, store: SqlStore, owner: Owner, time: Time) -> None:
        self._store = store
        self._owner = owner
        self._time = time
        self._connected = asyncio.Event()
        self.reason = ""

    def connected(self) -> None:
        """A transport came up: the owner may be reached by it."""
        self._connected.set()

    async def run(self) -> None:
        while True:
            await self._watch(await self._store.failing())

    async def _watch(self, failure: StoreError) -> None:
        """From the first write that failed until writes succeed again."""
        began = self._time.steady()
        state: Telling = "untold"
        notice: Delivery | None = None
        self.reason = failure.told
        log.error("store.unavailable", err=failure.message, hint=failure.hint)
        while not await self._store.takes_writes(self._time.wall()):
            await self._pause()
            if state == "untold" and self._time.steady() - began >= PASSING:
                notice = notice or await self._notice()
                state = await self._tell(notice) if notice is not None else state
        span, reason, self.reason = self._time.steady() - began, self.reason, ""
        log.warning("store.recovered", seconds=round(span))
        if state != "told" and span >= PASSING:
            with unless_lasting():
                # Said by one of the daemons that lived through it: what was said since it began was said of it.
                await self._owner.warn("outage", THEN.format(span=_words(span), reason=reason), None, again=span)

    async def _pause(self) -> None:
        self._connected.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK):
                await self._connected.wait()

    async def _notice(self) -> Delivery | None:
        with unless_lasting():  # a lock may keep readers out too
            return await self._owner.notice(NOW.format(reason=self.reason))
        return None

    async def _tell(self, notice: Delivery) -> Telling:
        try:
            await self._owner.send(notice)
        except (Retry, Unknown):
            return "untold"
        except Refused:
            return "out of reach"
        return "told"


def _words(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
