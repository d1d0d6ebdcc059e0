"""The store in one SQLite file."""

from collections.abc import Collection
from pathlib import Path
from typing import Self

from clew.store.indexing import Indexer
from clew.store.sql import SqlStore
from clew.store.sqlite.database import SqliteDatabase


class SqliteStore(SqlStore):
    """One file. Open it with `open`, close it with `close`."""

    @classmethod
    async def open(cls, path: Path, now: float, *, read_only: bool = False, known: Collection[str] = ()) -> Self:
        """Open and migrate. `known`: secrets of this installation, kept out of index and notes. Raises StoreError with what to do."""
        index = Indexer(known)
        store = cls(path, await SqliteDatabase.open(path, now, index, read_only=read_only), index, known)
        try:
            await store.prepare(read_only)
        except BaseException:
            await store.close()
            raise
        return store
