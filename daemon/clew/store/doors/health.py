"""How the file is, what is in it, and its index."""

import asyncio
import os
import shutil

from clew.errors import StoreError
from clew.store import cleaning, health, rebuilding
from clew.store.doors.opened import Opened

LONGEST_LOG = 16 * 2**20
"""Bytes of SQLite's write-ahead log from which on it is written back at the next look."""
ROOM = 4 * 2**20
"""Bytes that must be free for a disk that was full to count as mended: a log that is reused takes small writes on a full disk too."""


class HealthDoor(Opened):
    """How the file is, what is in it, and its index."""

    async def counts(self, now: float) -> dict[str, int]:
        """How many rows there are, wait, or went wrong, by name."""
        return await self._db.read(health.counts, now)

    async def session_usage(self, session: str) -> health.SessionUsage:
        return await self._db.read(health.session_usage, session)

    async def check(self) -> list[str]:
        """What is wrong with the file, in words: SQLite's own check, and the indexes against what they are made of."""
        problems = await self._db.read(health.check, self._index)
        return problems or [*await self.notes.check(), *await self.documents.check(), *await self.files.check()]

    async def rebuild_index(self) -> rebuilding.Rebuilding:
        """Begin to build the search index anew, unless that is going on; `rebuild_some` goes on with it."""
        begun = await self._db.write(rebuilding.begin, self._index)
        self._notify(self.chores)
        return begun

    async def rebuild_some(self) -> rebuilding.Rebuilding | None:
        """Index some more messages. Returns how far it came, None where it is done or nothing was begun."""
        return await self._db.write_relaxed(rebuilding.step, self._index)

    async def rebuilding(self) -> rebuilding.Rebuilding | None:
        return await self._db.read(rebuilding.progress)

    async def bound_log(self) -> None:
        """Write SQLite's log back into the file when it has grown."""
        log = self._path.with_name(f"{self._path.name}-wal")
        if await asyncio.to_thread(lambda: log.exists() and log.stat().st_size > LONGEST_LOG):
            await self._db.checkpoint()

    async def vacuum(self) -> tuple[int, int]:
        """Give the room of deleted rows back. Returns the bytes that the database takes before and after. Raises StoreError."""
        before = await self._db.size()
        await self._db.vacuum()
        return before, await self._db.size()

    async def clean_some(self) -> bool:
        """Let what was deleted leave some more pages of the search indexes, and in the end the log and what was typed in terminals.

        False: nothing is left to do.
        """
        if not await self._db.read(cleaning.waits):
            return False
        if await self._db.write_relaxed(cleaning.step):
            return True
        await asyncio.to_thread(self._empty_inputs)
        await self._db.checkpoint()
        return False

    def _empty_inputs(self) -> None:
        inputs = self._path.with_name(cleaning.INPUTS)
        try:
            os.truncate(inputs, 0)  # a chat that runs goes on with the file
        except FileNotFoundError:
            pass
        except PermissionError:  # root's: the folder is ours
            inputs.unlink()

    async def failing(self) -> StoreError:
        """Wait until a write fails for a reason that lies outside of it, such as a full disk. Returns the reason."""
        await self._db.failed.wait()
        self._db.failed.clear()
        return self._db.failure or StoreError("The store cannot be used just now.")

    async def takes_writes(self, now: float) -> bool:
        """Whether a write succeeds and there is room for more."""
        usage = await asyncio.to_thread(shutil.disk_usage, self._path.parent)
        if usage.free < ROOM:
            return False
        try:
            await self._db.write(health.probe_write, now)
        except StoreError as error:
            if error.lasting:
                raise
            return False
        finally:
            self._db.failed.clear()
        return True

    async def probe(self) -> None:
        """Raises StoreError unless the store can be read."""
        await self._db.read(health.probe)
