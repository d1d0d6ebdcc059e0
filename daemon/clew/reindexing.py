"""The search indexes built anew while everything else goes on."""

import asyncio

import structlog

from clew.clock import Time
from clew.progress import Progress, Work
from clew.store.rebuilding import Rebuilding
from clew.store.sql import SqlStore
from clew.supervise import unless_lasting

log = structlog.get_logger()

LOOK = 60.0
"""Seconds between looks when nothing was reported."""
AGAIN = 5.0
"""Seconds after which a store that could not be written is tried again."""


class Reindexing:
    """Goes on with a rebuild that somebody asked for, one that an earlier process left too, and rests as long as it works: what people
    say comes in between."""

    def __init__(self, store: SqlStore, time: Time, progress: Progress) -> None:
        self._store = store
        self._time = time
        self._progress = progress

    async def begin(self) -> Rebuilding:
        """Ask for a rebuild, unless one goes on already. Returns how far it is."""
        return await self._store.rebuild_index()

    async def run(self) -> None:
        while True:
            seen = self._store.chores.version
            if (begun := await self._store.rebuilding()) is not None:
                with self._progress.of("search index", "messages", begun.total) as work:
                    await self._finish(work)
            await self._store.chores.wait(seen, LOOK)

    async def _finish(self, work: Work) -> None:
        going, started = True, self._time.steady()
        log.info("index.rebuilding")
        with unless_lasting():
            await self._store.documents.renew()
        while going:
            wait = AGAIN
            with unless_lasting():
                begun = self._time.steady()
                built = await self._store.rebuild_some()
                going = built is not None
                work.at(built.done if built else work.of or 0, built.total if built else None)
                wait = self._time.steady() - begun
            await asyncio.sleep(wait)
        log.info("index.rebuilt", seconds=round(self._time.steady() - started, 1))
