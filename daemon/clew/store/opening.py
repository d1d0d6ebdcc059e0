"""The store that the config names: a file in the data directory, or a PostgreSQL database."""

from collections.abc import Collection
from pathlib import Path

from clew.config.database import is_shared
from clew.errors import StoreError
from clew.store.sql import SqlStore
from clew.store.sqlite import SqliteStore

FILE = "clew.db"


async def open_store(where: str, folder: Path, now: float, *, read_only: bool = False, known: Collection[str] = ()) -> SqlStore:
    """Open and migrate.

    where: `store` of the config. folder: the data directory, in which files of messages lie. now: seconds since the epoch. known: secrets
    of this installation, kept out of index and notes. Raises StoreError with what to do.
    """
    if not is_shared(where):
        return await SqliteStore.open(folder / FILE, now, read_only=read_only, known=known)
    try:
        from clew.store.postgresql import PostgresStore  # an extra, which a store in a file does without
    except ModuleNotFoundError as missing:
        raise StoreError(
            f"A store in PostgreSQL needs the package {missing.name}.", hint="pip install 'clew[postgresql]'", lasting=True
        ) from None
    return await PostgresStore.open(where, folder / FILE, read_only=read_only, known=known)
