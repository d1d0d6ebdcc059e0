"""One SQLite file: connections, grouped commits, migrations."""

import asyncio
import sqlite3
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, cast

import aiosqlite

from clew.errors import StoreError
from clew.store.connection import Connection
from clew.store.database import Look
from clew.store.indexing import Indexer
from clew.store.sqlite.connection import SqliteConnection

P = ParamSpec("P")
T = TypeVar("T")

BUSY_TIMEOUT = 5.0
"""Seconds SQLite waits for a lock; a write is then tried again, see `LOCKED_TRIES`."""
LOCKED_TRIES = 6
READERS = 2
GROUP = 64
"""Writes that may share one commit."""
DURABLE, RELAXED = "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL"
STATEMENTS = 256
"""Statements that a connection keeps ready, more than there are: none is made to measure of the values it is given."""
PAGES_KB = 2000
"""kB of the file that a connection keeps in memory, SQLite's own default, stated because some builds have another."""


When = Literal["at once", "joined", "relaxed"]


class _Write:
    """A transaction that waits for its commit. `look` says first whether there is anything to do."""

    __slots__ = ("future", "look", "relaxed", "run")

    def __init__(self, run: Callable[[Connection], object], relaxed: bool, look: Callable[[Connection], Look] | None) -> None:
        self.run = run
        self.relaxed = relaxed
        self.look = look
        self.future: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    def settle(self, value: object, failure: BaseException | None) -> None:
        if self.future.done():  # whoever waited was cancelled
            return
        if failure is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(failure)
            self.future.exception()  # whoever waits may be cancelled yet, and asyncio would complain of an error that nobody looked at


Done = tuple[list[tuple[object, BaseException | None]], int]
"""(the results of a group of writes: value or failure; the number of commits it took, one or none)."""


class SqliteDatabase:
    """One writer, separate readers.

    A transaction is one function of a connection and runs in one hop to the connection's thread; writes that arrive together share
    one commit, each behind the first in a savepoint of its own, so that one failing takes no other with it.
    """

    def __init__(self, writer: aiosqlite.Connection, readers: list[aiosqlite.Connection]) -> None:
        self._writer = writer
        self._readers: asyncio.Queue[aiosqlite.Connection] = asyncio.Queue()
        for reader in readers:
            self._readers.put_nowait(reader)
        self._all = [*readers, writer]
        self._waiting: list[_Write] = []
        self._group: list[_Write] = []  # those that are being committed
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self.commits = 0
        self.failure: StoreError | None = None
        self.failed = asyncio.Event()  # a write failed for a reason that lies outside of it; cleared by whoever watches

    @classmethod
    async def open(cls, path: Path, now: float, index: Indexer, *, read_only: bool = False) -> "SqliteDatabase":
        """Open, check and migrate the file. Raises StoreError with what to do where it cannot be used."""
        opened: list[aiosqlite.Connection] = []
        try:
            writer = await _connect(path, read_only, index)
            opened.append(writer)
            await _run(writer, _prepare, path, now, read_only)
            for _ in range(READERS):
                opened.append(await _connect(path, True, index))
        except BaseException as error:
            for connection in opened:
                await connection.close()
            if isinstance(error, sqlite3.Error):
                hint = DAMAGED if _damaged(error) else "Check that the disk has room and that the file and its folder belong to clew."
                passing = any(word in str(error) for word in PASSING)
                raise StoreError(f"{path}: the store cannot be opened ({error}).", hint=hint, lasting=not passing) from error
            raise
        return cls(writer, opened[1:])

    def write(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run one transaction, durable when the future is done (synchronous=FULL). Cancelling the future does not undo it."""
        return self._enqueue(lambda db: run(db, *args, **kwargs), "at once")

    def write_joined(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Like `write`, a round of the loop later: what others who were told of it write then is in the same commit, behind it."""
        return self._enqueue(lambda db: run(db, *args, **kwargs), "joined")

    def write_relaxed(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Like `write`, but may be lost at a power cut (not at a crash of the process)."""
        return self._enqueue(lambda db: run(db, *args, **kwargs), "relaxed")

    def write_if(
        self,
        look: Callable[[Connection], Look],
        run: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> asyncio.Future[T]:
        """Like `write`, where `look` finds something to do; else there is no transaction and its result is returned. One hop for both."""
        return self._enqueue(lambda db: run(db, *args, **kwargs), "at once", look)

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

    async def close(self) -> None:
        """Commit what still waits, then close."""
        self._closing = True
        self._commit_if_idle()
        while self._group:
            await _run(self._writer, lambda _: None)  # comes after what is being committed
        for connection in self._all:
            await connection.close()

    def _enqueue(self, run: Callable[[Connection], T], when: When, look: Callable[[Connection], Look] | None = None) -> asyncio.Future[T]:
        if self._closing:
            raise StoreError("The store is closed.", lasting=True)
        write = _Write(run, when == "relaxed", look)
        self._waiting.append(write)
        if when == "joined":
            self._loop.call_soon(self._commit_if_idle)
        else:
            self._commit_if_idle()
        return cast("asyncio.Future[T]", write.future)  # cancelling it does not cancel the write

    def _commit_if_idle(self) -> None:
        if not self._group:
            self._commit_next()

    def _commit_next(self) -> None:
        """Hand the writes that wait to the writer's thread, which calls back: a task and a future between them would cost as much again."""
        self._group, self._waiting = self._waiting[:GROUP], self._waiting[GROUP:]
        if self._group:
            db, group = cast("SqliteConnection", self._writer._conn), self._group
            self._writer._tx.put_nowait((None, lambda: self._loop.call_soon_threadsafe(self._committed, _outcome(db, group))))

    def _committed(self, outcome: "Done | BaseException") -> None:
        group = self._group
        self._commit_next()
        if isinstance(outcome, BaseException):
            told = _for_people(outcome)
            if isinstance(told, StoreError):
                self.failure = told
                self.failed.set()
            for write in group:
                write.settle(None, told)
            return
        results, commits = outcome
        self.commits += commits
        for write, (value, failure) in zip(group, results, strict=True):
            write.settle(value, failure)


async def _connect(path: Path, read_only: bool, index: Indexer) -> aiosqlite.Connection:
    uri = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
    connection = await aiosqlite.connect(
        uri, uri=True, factory=SqliteConnection, isolation_level=None, timeout=BUSY_TIMEOUT, cached_statements=STATEMENTS
    )
    try:
        await _run(connection, _set_up, index)
    except BaseException:
        await connection.close()
        raise
    return connection


def _set_up(db: SqliteConnection, index: Indexer) -> None:
    db.execute(f"PRAGMA cache_size = {-PAGES_KB}")
    db.execute("PRAGMA mmap_size = 0")  # some builds map files by default: a disk's error would end the process
    db.create_function("index_text", 1, index, deterministic=True)


async def _run(
    connection: aiosqlite.Connection,
    function: Callable[Concatenate[SqliteConnection, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    # aiosqlite's public calls are one hop per statement; a whole transaction in one hop costs a third and cannot be interleaved.
    hop: Any = connection._execute
    return cast(T, await hop(function, connection._conn, *args, **kwargs))


def _outcome(db: SqliteConnection, group: list[_Write]) -> Done | BaseException:
    try:
        return _carry_out(db, group)
    except BaseException as error:
        return error


def _snapshot(db: SqliteConnection, run: Callable[[SqliteConnection], T]) -> T:
    db.execute("BEGIN")
    try:
        return run(db)
    finally:
        db.execute("COMMIT")


def _carry_out(db: SqliteConnection, group: list[_Write]) -> Done:
    seen: list[Look] = []
    for write in group:
        behind = any(go for go, _ in seen)  # what is to be found may be written in the same transaction
        seen.append((True, None) if behind or write.look is None else write.look(db))
    todo = [write for write, (go, _) in zip(group, seen, strict=True) if go]
    done = iter(_transact_patiently(db, todo) if todo else ())
    return [next(done) if go else (value, None) for go, value in seen], int(bool(todo))


def _transact_patiently(db: SqliteConnection, group: list[_Write]) -> list[tuple[object, BaseException | None]]:
    for tries in range(LOCKED_TRIES, 0, -1):
        try:
            return _transact(db, group)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or tries == 1:
                raise
    raise AssertionError("unreachable")


def _transact(db: SqliteConnection, group: list[_Write]) -> list[tuple[object, BaseException | None]]:
    db.execute(RELAXED if all(write.relaxed for write in group) else DURABLE)
    try:
        results = [_first(db, group[0]), *(_savepoint(db, write) for write in group[1:])]
        if db.in_transaction:
            db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return results


def _first(db: SqliteConnection, write: _Write) -> tuple[object, BaseException | None]:
    """The first write of a transaction, which is rolled back if it fails: nothing else is in it yet."""
    db.execute("BEGIN IMMEDIATE")
    try:
        return write.run(db), None
    except Exception as error:
        if _outside(error):
            raise
        db.execute("ROLLBACK")
        return None, error


def _savepoint(db: SqliteConnection, write: _Write) -> tuple[object, BaseException | None]:
    if not db.in_transaction:  # all before it failed
        return _first(db, write)
    db.execute("SAVEPOINT one")
    try:
        value = write.run(db)
    except Exception as error:
        if _outside(error):
            raise  # the whole commit is in doubt
        db.execute("ROLLBACK TO one")
        db.execute("RELEASE one")
        return None, error
    db.execute("RELEASE one")
    return value, None


OUTSIDE = ("locked", "busy", "full", "disk I/O", "readonly", "unable to open")
"""Words of SQLite's errors that come from the machine, not from a statement. They pass."""
PASSING = ("locked", "busy", "full")
"""Those that may pass without anybody touching the file."""
DAMAGED = "The file is damaged. Stop clew, keep a copy of it, and put a backup in its place; clew changes nothing by itself."


def _outside(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and any(word in str(error) for word in OUTSIDE)


def _damaged(error: BaseException) -> bool:
    return isinstance(error, sqlite3.DatabaseError) and ("malformed" in str(error) or "not a database" in str(error))


def _for_people(error: BaseException) -> BaseException:
    if _damaged(error):
        return StoreError(f"The store cannot be read ({error}).", hint=DAMAGED, lasting=True)
    if _outside(error):
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
