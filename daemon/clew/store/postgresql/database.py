"""A PostgreSQL database: its connections and migrations."""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from typing import Any, Concatenate, ParamSpec, TypeVar

import asyncpg

from clew.config.database import shown
from clew.errors import NotFound, StoreError
from clew.store.connection import Connection
from clew.store.grouping import GroupedDatabase, Write, outcome
from clew.store.indexing import Indexer
from clew.store.postgresql.connection import PostgresConnection, is_outside
from clew.store.postgresql.wakes import Wakes

P = ParamSpec("P")
T = TypeVar("T")

READERS = 2
VACUUM_TIMEOUT = 6 * 3600.0
"""Seconds."""
OLDEST = 150_000
"""PostgreSQL 15, as the server counts."""
ENCODING = "UTF8"
GONE = "Is the server there, and has it room? clew tries again by itself."
NOT_THERE = "Is the server there, and has it room?"
OPTIONS = "Look at the options behind the ? of `store` in the config: docs/postgresql.md."
OWNER = "Make the user the owner of the database: `ALTER DATABASE … OWNER TO …`, as PostgreSQL's superuser (docs/postgresql.md)."
AT_FIRST = (
    ("28", "Look at user and password in `store` of the config, and at pg_hba.conf of the server."),
    ("3D", "Make the database (docs/postgresql.md), or mend its name in `store` of the config."),
    ("3F", OWNER),
    ("42501", OWNER),
    ("42704", OPTIONS),
    ("22023", OPTIONS),
    ("55P02", OPTIONS),
    ("53300", "Raise max_connections in postgresql.conf, then restart PostgreSQL."),
)
"""What mends an error whose code begins so, where a store is opened
(https://www.postgresql.org/docs/current/errcodes-appendix.html)."""

Job = Callable[[PostgresConnection], Any]


class _Worker:
    """A thread with a connection, which runs one job after the other."""

    def __init__(self, url: str, name: str, read_only: bool, index: Indexer) -> None:
        self._connection = PostgresConnection(url, read_only, index)
        self._jobs: queue.SimpleQueue[tuple[Job, Callable[[Any, BaseException | None], object]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def hand(self, job: Job, done: Callable[[Any, BaseException | None], object]) -> None:
        """Run a job; `done` is called in the thread with what came of it."""
        self._jobs.put((job, done))

    async def run(self, job: Callable[[PostgresConnection], T]) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self.hand(job, lambda value, error: loop.call_soon_threadsafe(_settle, future, value, error))
        return await future

    async def close(self) -> None:
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):  # it is gone
            await self.run(PostgresConnection.close)
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        while (given := self._jobs.get()) is not None:
            job, done = given
            try:
                value, error = job(self._connection), None
            except BaseException as failure:
                value, error = None, failure
                if is_outside(failure):
                    self._connection.cut()
            done(value, error)


class PostgresDatabase(GroupedDatabase):
    """One writer, separate readers, each with a thread of its own. Other daemons have theirs: see `grouping.shared`."""

    shared = True

    def __init__(self, url: str, writer: _Worker, readers: list[_Worker], aside: _Worker) -> None:
        super().__init__()
        wakes = Wakes(url)
        self.tell, self.heard = wakes.tell, wakes.heard
        self._aside = aside
        self.url = url
        self._writer = writer
        self._readers: asyncio.Queue[_Worker] = asyncio.Queue()
        for reader in readers:
            self._readers.put_nowait(reader)
        self._all = [*readers, writer, aside]

    @classmethod
    async def open(cls, url: str, index: Indexer, *, read_only: bool = False) -> "PostgresDatabase":
        """Connect, check and migrate. Raises StoreError with what to do where it cannot be used."""
        writer = _Worker(url, "clew-writer", read_only, index)
        readers = [_Worker(url, f"clew-reader-{number}", True, index) for number in range(READERS)]
        database = cls(url, writer, readers, _Worker(url, "clew-aside", read_only, index))
        try:
            await writer.run(lambda db: prepare(db, url, read_only))
        except BaseException as error:
            await database.close()
            told = refused(url, error)
            if told is not None:
                raise told from error
            raise
        return database

    async def read(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run queries on one snapshot, which ends before this returns."""
        reader = await self._readers.get()
        work = asyncio.ensure_future(reader.run(lambda db: _snapshot(db, lambda connection: run(connection, *args, **kwargs))))
        work.add_done_callback(lambda _: self._readers.put_nowait(reader))
        try:
            return await asyncio.shield(work)
        except Exception as error:
            raise self._for_people(error) from error

    async def write_aside(self, run: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one transaction on a connection of its own, which waits for no other's lock but those of the rows."""
        try:
            return await self._aside.run(lambda db: _aside(db, lambda connection: run(connection, *args, **kwargs)))
        except Exception as error:
            raise self._for_people(error) from error

    async def everywhere(self, run: Callable[[Connection], T]) -> list[T]:
        """What `run` makes of each connection."""
        return [await worker.run(run) for worker in self._all]

    async def checkpoint(self) -> None:
        """The server sees to its log by itself."""

    async def vacuum(self) -> None:
        """Let the server reuse the room of deleted rows; nobody waits meanwhile. Raises StoreError."""
        worker = _Worker(self.url, "clew-vacuum", False, Indexer(()))
        try:
            await worker.run(lambda db: db.script("VACUUM ANALYZE", VACUUM_TIMEOUT))
        except Exception as error:
            raise self._for_people(error) from error
        finally:
            await worker.close()

    async def size(self) -> int:
        return await self.read(lambda db: int(db.execute("SELECT pg_database_size(current_database())").fetchone()[0]))

    async def close(self) -> None:
        """Commit what still waits, then close."""
        await self._finish_writing()
        for worker in self._all:
            await worker.close()

    def _hand_over(self, group: list[Write]) -> None:
        def done(value: Any, error: BaseException | None) -> None:
            self._loop.call_soon_threadsafe(self._committed, error or value)

        self._writer.hand(lambda db: _carried_out(db, group), done)

    async def _behind(self) -> None:
        await self._writer.run(lambda _: None)

    def _for_people(self, error: BaseException) -> BaseException:
        return unreachable(self.url, error) or error


def unreachable(url: str, error: BaseException) -> StoreError | None:
    """What to tell of an error that lies outside of a statement; None for others."""
    return StoreError(f"{shown(url)}: the store cannot be used just now ({error}).", hint=GONE) if is_outside(error) else None


def refused(url: str, error: BaseException) -> StoreError | None:
    """What to tell of an error of the server, the network or the address where nobody tries again by itself; None for others."""
    hint = _mended_by(error)
    return StoreError(f"{shown(url)}: the store cannot be used just now ({error}).", hint=hint) if hint else None


def _mended_by(error: BaseException) -> str:
    if isinstance(error, asyncpg.ClientConfigurationError):
        return OPTIONS
    code = str(error.sqlstate) if isinstance(error, asyncpg.PostgresError) else ""
    known = (hint for beginning, hint in AT_FIRST if code.startswith(beginning))
    return next(known, NOT_THERE if is_outside(error) else "")


def _settle(future: asyncio.Future[T], value: T, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


def _carried_out(db: PostgresConnection, group: list[Write]) -> Any:
    done = outcome(db, group)
    if isinstance(done, BaseException):
        raise done  # the worker lets go of a connection that was cut
    return done


def _aside(db: PostgresConnection, run: Callable[[Connection], T]) -> T:
    db.end_frozen()  # leases are renewed here, every few seconds
    db.begin_writing()
    try:
        value = run(db)
        db.commit()
    except BaseException:
        if db.in_transaction:
            db.rollback()
        raise
    return value


def _snapshot(db: PostgresConnection, run: Callable[[Connection], T]) -> T:
    db.begin_reading()
    try:
        return run(db)
    finally:
        if db.in_transaction:
            db.rollback()


# Migrations ------------------------------------------------------------------------------------------------------


def migrations() -> list[tuple[int, str]]:
    """(number, SQL) of every migration, in order. The first makes what SQLite's make up to that number."""
    folder = files("clew.store.postgresql").joinpath("migrations")
    steps = [(int(item.name[:4]), item.read_text("utf-8")) for item in folder.iterdir() if item.name.endswith(".sql")]
    return sorted(steps)


def prepare(db: PostgresConnection, url: str, read_only: bool) -> None:
    """Check the server and the schema, and bring that up to date. Raises StoreError."""
    number, encoding = db.execute("SELECT current_setting('server_version_num'), current_setting('server_encoding')").fetchone()
    if int(number) < OLDEST:
        raise StoreError(f"{shown(url)} is older than PostgreSQL 15.", hint="Use PostgreSQL 15 or later.", lasting=True)
    if encoding != ENCODING:
        hint = "Make another one: `createdb --encoding=UTF8 --template=template0 …` (docs/postgresql.md)."
        raise StoreError(f"The encoding of {shown(url)} is {encoding}, which does not hold every text.", hint=hint, lasting=True)
    table = _table(db)  # asked first: another daemon may be making clew's tables
    version, newest = _version(db), migrations()[-1][0]
    if not version and table:
        hint = "Give clew a database of its own (docs/postgresql.md), or mend the name in `store` of the config."
        raise StoreError(f"{shown(url)} is another program's: it holds the table {table}, and none of clew's.", hint=hint, lasting=True)
    if version > newest:
        raise StoreError(
            f"{shown(url)} was written by a newer clew (schema {version}, this one knows {newest}).",
            hint="Install that version again, or start with another database.",
            lasting=True,
        )
    if read_only and not version:
        raise NotFound(f"Nothing is stored yet: {shown(url)} has no tables of clew.", hint="`clew chat` or `clew run` makes them.")
    if read_only and version < newest:
        raise StoreError(
            f"{shown(url)} was written by an older clew (schema {version}, this one has {newest}).",
            hint="Start clew once: `clew run` brings it up to date.",
            lasting=True,
        )
    if version < newest:
        _migrate(db)


def _version(db: PostgresConnection) -> int:
    """The number of the schema; 0 where clew never was, though another program may have a table of that name."""
    if not db.columns("inbox") or db.columns("schema_version") != {"version"}:
        return 0
    return int(db.execute("SELECT version FROM schema_version").fetchone()[0])


def _table(db: PostgresConnection) -> str | None:
    """A table that is there already where clew's are made; those of extensions do not count."""
    row = db.execute(
        "SELECT min(relname::text) FROM pg_class WHERE relkind IN ('r', 'p')"
        " AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
        " AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')"
    ).fetchone()
    return None if row[0] is None else str(row[0])


def _migrate(db: PostgresConnection) -> None:
    """Bring the schema up to date; of several daemons that start at once one does, and the others wait for it."""
    for number, script in migrations():
        db.begin(relaxed=False, holds=None)
        try:
            if number > _version(db):
                db.script(script)
                db.script("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL); DELETE FROM schema_version")
                db.script(f"INSERT INTO schema_version (version) VALUES ({number})")
            db.commit()
        except BaseException:
            if db.in_transaction:
                db.rollback()
            raise
