"""One SQLite file: its connections and migrations."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Collection
from importlib.resources import files
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import aiosqlite

from clew.clock import Clock
from clew.errors import StoreError
from clew.store.changes import Neighbours
from clew.store.connection import Connection
from clew.store.grouping import GroupedDatabase, Write, outcome
from clew.store.indexing import Indexer
from clew.store.sqlite.connection import RELAXED, SqliteConnection, is_outside

P = ParamSpec("P")
T = TypeVar("T")

BUSY_TIMEOUT = 5.0
"""Seconds SQLite waits for a lock; a write is then tried again, see `grouping.BUSY_TRIES`."""
READERS = 2
STATEMENTS = 256
"""Statements that a connection keeps ready, more than there are: none is made to measure of the values it is given."""
PAGES_KB = 2000
"""kB of the file that a connection keeps in memory, SQLite's own default, stated because some builds have another."""
PASSING = ("locked", "busy", "full")
"""Words of SQLite's errors that may pass without anybody touching the file."""
DAMAGED = "The file is damaged. Stop clew, keep a copy of it, and put a backup in its place; clew changes nothing by itself."


class SqliteDatabase(GroupedDatabase):
    """One writer, separate readers, each with a thread of its own."""

    def __init__(self, writer: aiosqlite.Connection, readers: list[aiosqlite.Connection], neighbours: Neighbours | None = None) -> None:
        super().__init__()
        self._neighbours = neighbours
        self.shared = neighbours is not None
        self._writer = writer
        self._readers: asyncio.Queue[aiosqlite.Connection] = asyncio.Queue()
        for reader in readers:
            self._readers.put_nowait(reader)
        self._all = [*readers, writer]

    @classmethod
    async def open(
        cls,
        path: Path,
        now: float,
        index: Indexer,
        *,
        read_only: bool = False,
        neighbours: Neighbours | None = None,
        clock: Clock = time.time,
    ) -> "SqliteDatabase":
        """Open, check and migrate the file. neighbours: those in this process that have it open too, None where nobody else has. clock:
        what `wall_clock()` tells. Raises StoreError with what to do where it cannot be used."""
        opened: list[aiosqlite.Connection] = []
        try:
            writer = await _connect(path, read_only, index, clock)
            opened.append(writer)
            await _run(writer, _prepare, path, now, read_only)
            for _ in range(READERS):
                opened.append(await _connect(path, True, index, clock))
        except BaseException as error:
            for connection in opened:
                await connection.close()
            if isinstance(error, sqlite3.Error):
                hint = DAMAGED if _damaged(error) else "Check that the disk has room and that the file and its folder belong to clew."
                passing = any(word in str(error) for word in PASSING)
                raise StoreError(f"{path}: the store cannot be opened ({error}).", hint=hint, lasting=not passing) from error
            raise
        return cls(writer, opened[1:], neighbours)

    def tell(self, names: Collection[str]) -> None:
        """See `Database.tell`."""
        if self._neighbours is not None:
            self._neighbours.tell(self, names)

    async def heard(self) -> AsyncIterator[str]:
        """See `Database.heard`."""
        if self._neighbours is None:
            await asyncio.Event().wait()
        else:
            async for name in self._neighbours.heard(self):
                yield name

    async def write_aside(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A write like any other: one writes at a time."""
        return await self.write(run, *args, **kwargs)

    async def read(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query on a reader. The snapshot ends before this returns, so that no reader holds back a checkpoint."""
        connection = await self._readers.get()
        work = asyncio.ensure_future(_run(connection, _snapshot, lambda db: run(db, *args, **kwargs)))
        work.add_done_callback(lambda _: self._readers.put_nowait(connection))
        try:
            return await asyncio.shield(work)
        except sqlite3.Error as error:
            raise _for_people(error) from error

    async def everywhere(self, run: Callable[[Connection], T]) -> list[T]:
        """What `run` makes of each connection: functions and extensions are theirs alone."""
        return [await _run(connection, run) for connection in self._all]

    async def checkpoint(self) -> None:
        """Write the log back into the file and empty it, the readers held for that moment: while one of them reads, it only grows."""
        held = [await self._readers.get() for _ in range(READERS)]
        try:
            await _run(self._writer, lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
        finally:
            for reader in held:
                self._readers.put_nowait(reader)

    async def vacuum(self) -> None:
        """Write the whole file anew without the room of deleted rows; writes wait meanwhile. Raises StoreError."""
        try:
            await _run(self._writer, lambda db: db.execute("VACUUM"))
        except sqlite3.Error as error:
            raise _for_people(error) from error
        await self.checkpoint()

    async def size(self) -> int:
        return await self.read(
            lambda db: int(db.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()").fetchone()[0])
        )

    async def close(self) -> None:
        """Commit what still waits, then close."""
        await self._finish_writing()
        for connection in self._all:
            await connection.close()

    def _hand_over(self, group: list[Write]) -> None:
        # The thread calls back: a task and a future between them would cost as much again.
        db = cast("SqliteConnection", self._writer._conn)
        self._writer._tx.put_nowait((None, lambda: self._loop.call_soon_threadsafe(self._committed, outcome(db, group))))

    async def _behind(self) -> None:
        await _run(self._writer, lambda _: None)  # comes after what is being committed

    def _for_people(self, error: BaseException) -> BaseException:
        return _for_people(error)


async def _connect(path: Path, read_only: bool, index: Indexer, clock: Clock) -> aiosqlite.Connection:
    uri = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
    connection = await aiosqlite.connect(
        uri, uri=True, factory=SqliteConnection, isolation_level=None, timeout=BUSY_TIMEOUT, cached_statements=STATEMENTS
    )
    try:
        await _run(connection, set_up, index, clock)
    except BaseException:
        await connection.close()
        raise
    return connection


def set_up(db: SqliteConnection, index: Indexer, clock: Clock) -> None:
    """Give a connection its settings and the functions of ours that the verbs use."""
    db.execute(f"PRAGMA cache_size = {-PAGES_KB}")
    db.execute("PRAGMA mmap_size = 0")  # some builds map files by default: a disk's error would end the process
    db.create_function("wall_clock", 0, clock)
    db.indexer = index


async def _run(
    connection: aiosqlite.Connection,
    function: Callable[Concatenate[SqliteConnection, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    # aiosqlite's public calls are one hop per statement; a whole transaction in one hop costs a third and cannot be interleaved.
    hop: Any = connection._execute
    return cast(T, await hop(function, connection._conn, *args, **kwargs))


def _snapshot(db: SqliteConnection, run: Callable[[SqliteConnection], T]) -> T:
    db.execute("BEGIN")
    try:
        return run(db)
    finally:
        db.execute("COMMIT")


def _damaged(error: BaseException) -> bool:
    return isinstance(error, sqlite3.DatabaseError) and ("malformed" in str(error) or "not a database" in str(error))


def _for_people(error: BaseException) -> BaseException:
    if _damaged(error):
        return StoreError(f"The store cannot be read ({error}).", hint=DAMAGED, lasting=True)
    if is_outside(error):
        return StoreError(f"The store cannot be used just now ({error}).", hint="Check the disk's free space and the file's owner.")
    return error


# Migrations ------------------------------------------------------------------------------------------------------


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration, in order."""
    folder = files("clew.store.sqlite").joinpath("migrations")
    steps = [(int(item.name[:4]), item.read_text("utf-8")) for item in folder.iterdir() if item.name.endswith(".sql")]
    return sorted(steps)


def _prepare(db: SqliteConnection, path: Path, now: float, read_only: bool) -> None:
    _require_fts5(db)
    version = db.execute("PRAGMA user_version").fetchone()[0]
    newest = migrations()[-1][0]
    if version > newest:
        raise StoreError(
            f"{path} was written by a newer clew (schema {version}, this one knows {newest}).",
            hint="Install that version again, or start with another data_dir.",
        )
    if read_only:
        if version < newest:
            raise StoreError(
                f"{path} was written by an older clew (schema {version}, this one has {newest}).",
                hint="Start clew once: `clew run` brings it up to date.",
                lasting=True,
            )
        return
    path.chmod(0o600)  # SQLite gives its -wal and -shm files the same mode
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("PRAGMA secure_delete = ON")  # what is deleted leaves the file; Debian's build does it anyway
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute("PRAGMA journal_size_limit = 67108864")
    db.execute(RELAXED)  # a power cut takes some of them back, and they are made again; the first durable commit syncs them too
    for number, script in migrations():
        if number > version:
            _migrate(db, number, script)


def _migrate(db: SqliteConnection, number: int, script: str) -> None:
    try:
        db.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
    except sqlite3.Error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _require_fts5(db: SqliteConnection) -> None:
    try:
        db.execute("CREATE VIRTUAL TABLE temp.fts5_probe USING fts5(text)")
        db.execute("DROP TABLE temp.fts5_probe")
    except sqlite3.OperationalError as error:
        raise StoreError(
            f"This Python's SQLite ({sqlite3.sqlite_version}) has no FTS5, which clew's search and recall need.",
            hint="Use a Python whose sqlite3 module was built with FTS5 (Debian's, python.org's and most others are).",
        ) from error
