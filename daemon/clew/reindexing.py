"""The search indexes built anew while everything else goes on."""

import asyncio

import structlog

from clew.clock import Time
from clew.store.rebuilding import Rebuilding
from clew.store.sqlite import SqliteStore
from clew.supervise import unless_lasting

log = structlog.get_logger()

AGAIN = 5.0
"""Seconds after which a store that could not be written is tried again."""


class Reindexing:
    """Goes on with a rebuild that somebody asked for, one that an earlier process left too, and rests as long as it works: what people
    say comes in between."""

    def __init__(self, store: SqliteStore, time: Time) -> None:
        self._store = store
        self._time = time
        self._wanted = asyncio.Event()
        self._wanted.set()  # an earlier process may have left one

    async def begin(self) -> Rebuilding:
        """Ask for a rebuild, unless one goes on already. Returns how far it is."""
        begun = await self._store.rebuild_index()
        self._wanted.set()
        return begun

    async def run(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if await self._store.rebuilding() is not None:
                await self._finish()

    async def _finish(self) -> None:
        going, started = True, self._time.steady()
        log.info("index.rebuilding")
        with unless_lasting():
            await self._store.documents.renew()
        while going:
            wait = AGAIN
            with unless_lasting():
                begun = self._time.steady()
                going = await self._store.rebuild_some() is not None
                wait = self._time.steady() - begun
            await asyncio.sleep(wait)
        log.info("index.rebuilt", seconds=round(self._time.steady() - started, 1))
