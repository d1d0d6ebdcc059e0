"""The store in a PostgreSQL database, which several daemons may share."""

from collections.abc import Collection
from pathlib import Path
from typing import Self

from clew.store.indexing import Indexer
from clew.store.postgresql.database import PostgresDatabase, refused
from clew.store.postgresql.files import SharedFilesDoor
from clew.store.sql import SqlStore


class PostgresStore(SqlStore):
    """One database of a server. Open it with `open`, close it with `close`."""

    FILES = SharedFilesDoor

    @classmethod
    async def open(cls, url: str, beside: Path, *, read_only: bool = False, known: Collection[str] = ()) -> Self:
        """Connect and migrate. beside: a path in the folder for files of this daemon. `known`: secrets of this installation, kept
        out of index and notes. Raises StoreError with what to do."""
        index = Indexer(known)
        store = cls(beside, await PostgresDatabase.open(url, index, read_only=read_only), index, known)
        try:
            await store.prepare(read_only)
        except BaseException as error:
            await store.close()
            raise refused(url, error) or error from error
        return store
