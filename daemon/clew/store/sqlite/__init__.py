"""The store in one SQLite file."""

import time
from collections.abc import Collection
from pathlib import Path
from typing import Self

from clew.clock import Clock
from clew.store.changes import Neighbours
from clew.store.indexing import Indexer
from clew.store.sql import SqlStore
from clew.store.sqlite.database import SqliteDatabase


class SqliteStore(SqlStore):
    """One file. Open it with `open`, close it with `close`."""

    @classmethod
    async def open(
        cls,
        path: Path,
        now: float,
        *,
        read_only: bool = False,
        known: Collection[str] = (),
        neighbours: Neighbours | None = None,
        clock: Clock = time.time,
    ) -> Self:
        """Open and migrate. `known`: secrets of this installation, kept out of index and notes. neighbours: the stores of this process
        that have the file open too, None where nobody else has. clock: by which leases end. Raises StoreError with what to do."""
        index = Indexer(known)
        database = await SqliteDatabase.open(path, now, index, read_only=read_only, neighbours=neighbours, clock=clock)
        store = cls(path, database, index, known)
        try:
            await store.prepare(read_only)
        except BaseException:
            await store.close()
            raise
        return store
