"""A person erased while everything else goes on: from the tables, the indexes' pages, the disk, and the file itself."""

import asyncio
from collections.abc import Callable
from datetime import tzinfo

import structlog

from clew.clock import Time
from clew.errors import StoreError
from clew.progress import Progress, Work
from clew.store.erasing import Erasure
from clew.store.sql import SqlStore
from clew.supervise import unless_lasting

log = structlog.get_logger()

AGAIN = 2.0
"""Seconds after which it is tried again where a turn runs in what is to go, or the store could not be written."""
LOOK = 60.0
"""Seconds between looks when nothing was reported."""
PAUSE = 0.005
"""Seconds between two slices: what people say comes in between."""


class Erasing:
    """Goes on with erasures, those that an earlier process left or a backup brought back too. zone: of the dates in summaries."""

    def __init__(self, store: SqlStore, time: Time, progress: Progress, zone: Callable[[], tzinfo]) -> None:
        self._store = store
        self._time = time
        self._progress = progress
        self._zone = zone

    async def begin(self, person: str) -> Erasure:
        """Begin to erase a person. Raises NotFound, or UsageError while they are being answered."""
        return await self._store.erase(person, self._time.wall())

    async def until_done(self, identifier: str, seconds: float) -> Erasure:
        """Wait until an erasure is done, at most so long. Raises NotFound."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    seen = self._store.chores.version
                    if (found := await self._store.erasure(identifier)).done is not None:
                        return found
                    await self._store.chores.wait(seen, seconds)
        except TimeoutError:
            return await self._store.erasure(identifier)

    async def recover(self) -> None:
        """At a start, before anything is answered: what a backup brought back is to be erased again."""
        if again := await self._store.erase_again(self._time.wall()):
            log.warning("erasure.again", erasures=again)

    async def run(self) -> None:
        while True:
            seen = self._store.chores.version
            for each in await self._store.erasures():
                with self._progress.of("erasure", "rows") as work:
                    await self._finish(each, work)
            await self._store.chores.wait(seen, LOOK)

    async def _finish(self, erasure: Erasure, work: Work) -> None:
        log.info("erasure.begun", erasure=erasure.id, what=erasure.what)
        while not await self._went_on(erasure.id, work):
            pass
        done = await self._store.erasure(erasure.id)
        log.info("erasure.done", erasure=erasure.id, what=erasure.what, rows=sum(done.counts.values()))

    async def _went_on(self, identifier: str, work: Work) -> bool:
        """Erase a slice, or end it. Returns whether it is done."""
        wait = AGAIN
        with unless_lasting():
            state = await self._store.erase_some(identifier, self._zone(), self._time.wall())
            if state == "cleared":
                await self._end(identifier)
                return True
            work.at(sum((await self._store.erasure(identifier)).counts.values()))
            wait = PAUSE if state == "going" else AGAIN
        await asyncio.sleep(wait)
        return False

    async def _end(self, identifier: str) -> None:
        """Nothing is left in the tables: nor shall there be on the disk."""
        await self._store.note_erasures()
        await self._store.documents.sweep()
        await self._store.files.sweep()
        while await self._store.clean_some():
            pass  # each slice is a hop of its own: what others write comes in between
        try:
            await self._store.vacuum()
        except StoreError as error:  # the rows are overwritten with zeros; copies that SQLite left between them are not
            log.warning("erasure.not_vacuumed", err=str(error), hint="Make room on the disk, then run `clew db vacuum`.")
        await self._store.erased(identifier, self._time.wall())
