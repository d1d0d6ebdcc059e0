"""The store that the config names: a file in the data directory, or a PostgreSQL database."""

import asyncio
from collections.abc import Collection
from pathlib import Path

from clew.config.database import is_shared
from clew.errors import StoreError
from clew.store import copying
from clew.store.copying import Tell
from clew.store.indexing import Indexer
from clew.store.sql import SqlStore
from clew.store.sqlite import SqliteStore
from clew.store.sqlite.side import SqliteSide

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


async def copied(source: str | Path, target: str | Path, now: float, known: Collection[str], tell: Tell, *, again: bool = False) -> int:
    """Copy a store, row by row and compared: one of `source` and `target` is the path of a file, the other one postgresql://…. Returns the
    number of rows. again: overwrite what the target holds. Raises StoreError."""
    file, url = (target, source) if isinstance(target, Path) else (source, target)
    one = await SqliteSide.open(Path(file), now, Indexer(known))
    try:
        return await asyncio.to_thread(_copied, one, str(url), Indexer(known), isinstance(target, Path), tell, again)
    finally:
        one.close()


def _copied(file: SqliteSide, url: str, index: Indexer, back: bool, tell: Tell, again: bool) -> int:
    from clew.store.postgresql.database import refused
    from clew.store.postgresql.side import PostgresSide

    try:
        other = PostgresSide(url, index)
        try:
            what = copying.tables(file.db)
            return copying.copy(other, file, what, tell, again=again) if back else copying.copy(file, other, what, tell, again=again)
        finally:
            other.close()
    except Exception as error:
        raise refused(url, error) or error from error
