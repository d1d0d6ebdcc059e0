"""Which database a test's stores are in: a file each, or Debian's PostgreSQL, started once for a whole run."""

import asyncio
import atexit
import contextlib
import glob
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from clew.store.connection import Connection
from clew.store.indexing import Indexer
from clew.store.opening import FILE
from clew.store.postgresql.connection import PostgresConnection
from clew.store.sqlite.connection import SqliteConnection
from clew.store.sqlite.database import SqliteDatabase
from tests.database_pool import DatabasePool, aside
from tests.servers import HOST, STOP_DEADLINE_S, Server

T = TypeVar("T")

MISSING = "PostgreSQL is not installed (apt-get install postgresql): tests that need it are skipped"
BOTH = pytest.mark.stores("sqlite", "postgresql")
"""Marks tests, or a module of them, that are run on either database."""
CLOCK = (
    "CREATE TABLE clock (at DOUBLE PRECISION NOT NULL); INSERT INTO clock VALUES (0);"
    " CREATE OR REPLACE FUNCTION wall_clock() RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT at FROM clock'"
)
"""What makes the clock of a PostgreSQL database one that a test sets."""
POSTGRESQL = pytest.mark.stores("postgresql")
"""Marks tests of PostgreSQL alone, also in a module that is marked otherwise."""
SQLITE = pytest.mark.stores("sqlite")
"""Marks tests of SQLite alone, also in a module that is marked otherwise."""


def program(name: str) -> str | None:
    """Debian keeps the server's programs in a folder for each version."""
    return shutil.which(name) or max(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), default=None)


def kill_server(folder: Path) -> None:
    """Kill the processes of the server with this folder."""
    postmaster = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    for process in [postmaster, *map(int, children)]:  # the first would see to the others that end
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


class Postgres(Server):
    """A server with a cluster of its own, open to whoever is on this machine; databases are made for tests by name."""

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        super().__init__(folder)
        self._durable = durable
        self._made = 0
        if program("postgres") is None:
            pytest.skip(MISSING)
        if os.getuid() == 0:  # the server refuses to run as root
            shutil.chown(folder, "postgres")
        self._run("initdb", "--pgdata", str(folder / "data"), "--auth", "trust", "--username", "clew", "--no-sync", "--encoding", "UTF8")

    def _as(self) -> list[str]:
        return ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []

    def _run(self, name: str, *arguments: str) -> None:
        subprocess.run([*self._as(), str(program(name)), *arguments], check=True, capture_output=True, cwd="/")

    def _command(self) -> Sequence[str]:
        settings = ["max_connections=300", *([] if self._durable else ["fsync=off", "full_page_writes=off", "autovacuum=off"])]
        options = [each for setting in settings for each in ("-c", setting)]
        return [
            *self._as(),
            str(program("postgres")),
            "-D",
            str(self.folder / "data"),
            "-p",
            str(self.port),
            "-k",
            str(self.folder),
            *options,
        ]

    def _accepts(self) -> bool:
        """It listens before it lets anybody in."""
        ready = [str(program("pg_isready")), "-q", "-h", HOST, "-p", str(self.port)]
        return super()._accepts() and subprocess.run(ready, check=False).returncode == 0

    def kill(self) -> None:
        """End it and all its processes at once, as a power cut does, but for what the system has not written to the disk yet."""
        kill_server(self.folder)

    def start_again(self) -> None:
        """Start it once the last process of the one that was killed has noticed."""
        assert self._process is not None
        self._process.wait(STOP_DEADLINE_S)
        deadline = time.monotonic() + STOP_DEADLINE_S
        while True:
            try:
                return self.start()
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise

    def url(self, name: str = "postgres") -> str:
        return f"postgresql://clew@{HOST}:{self.port}/{name}"

    def sql(self, statement: str, name: str = "postgres") -> str:
        """Run a statement. Returns what it found, a row a line."""
        command = [str(program("psql")), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement, self.url(name)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def create(self, template: str = "template1") -> str:
        """A new database, empty or like another one. Returns its address."""
        self._made += 1
        name = f"clew_{self._made}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is in it."""
        self.sql(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")


@contextlib.contextmanager
def postgres(*, durable: bool = False) -> Iterator[Postgres]:
    """A server with a folder of its own, which the server's user can reach, and in which its socket's path is short."""
    folder = Path(tempfile.mkdtemp(prefix="clew-postgresql-", dir="/tmp"))
    try:
        with Postgres(folder, durable=durable) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def in_transaction(db: SqliteConnection | PostgresConnection, run: Callable[[Connection], T]) -> T:
    db.begin(relaxed=True, holds=None)
    found = run(db)
    db.commit()
    return found


async def _migrated(file: Path) -> None:
    await (await SqliteDatabase.open(file, 0.0, Indexer(()))).close()


class Databases:
    """What the stores of the running test are in: `kind`, and the address of each folder's."""

    def __init__(self) -> None:
        self.kind = "sqlite"
        self._server: Postgres | None = None
        self._pools: dict[str, DatabasePool] = {}
        self._file: Path | None = None
        self._of: dict[Path, str] = {}
        self._pool_of: dict[str, DatabasePool] = {}
        self._there: set[Path] = set()

    def begin(self, kind: str) -> None:
        """A test begins."""
        self.kind = kind
        self._give_back(list(self._of))

    def store(self, folder: Path, *, clock: bool = False) -> str:
        """What `store` says in the config of a data directory. A database that is of none yet has clew's tables, and no rows.

        clock: the database's clock is what the table `clock` says, see CLOCK.
        """
        if self.kind == "sqlite":
            if folder.is_dir() and not (folder / FILE).exists():
                shutil.copy(self.file, folder / FILE)
            return "sqlite"
        if folder not in self._of:
            self._give_back([each for each in self._there if not each.exists()])  # a property is asked of one store after the other
            pool = self._pool(CLOCK if clock else "")
            self._of[folder] = pool.take()
            self._pool_of[self._of[folder]] = pool
            if folder.exists():
                self._there.add(folder)
        elif clock and self._pool_of[self._of[folder]] is not self._pool(CLOCK):
            self._pool_of[self._of[folder]] = self._pool(CLOCK)
            aside(self._of[folder], lambda db: db.script(CLOCK))
        return self._of[folder]

    def copied(self, source: Path, folder: Path) -> None:
        """Let a data directory that is a copy of another one have what that one's store has, which nobody is in."""
        if self.kind == "postgresql":
            url = self.server.create(self._of[source].rpartition("/")[2])
            self._of[folder], self._pool_of[url] = url, self._pool_of[self._of[source]]

    def untouched(self) -> str:
        """What `store` says of a database in which clew never was."""
        return self.server.create()

    def _give_back(self, folders: Sequence[Path]) -> None:
        for folder in folders:
            url = self._of.pop(folder)
            self._pool_of[url].give_back(url)
            self._there.discard(folder)

    @contextlib.contextmanager
    def connected(self, folder: Path) -> Iterator[SqliteConnection | PostgresConnection]:
        """A connection past the store of this folder, for a thread that has no loop."""
        if self.kind == "sqlite":
            with contextlib.closing(sqlite3.connect(folder / FILE, isolation_level=None, factory=SqliteConnection)) as db:
                yield db
        else:
            with contextlib.closing(PostgresConnection(self.store(folder))) as other:
                yield other

    def beside(self, folder: Path, run: Callable[[Connection], T]) -> T:
        """Run something in a transaction of its own, past the store of this folder."""
        if self.kind == "sqlite":
            with self.connected(folder) as db:
                return in_transaction(db, run)
        return aside(self.store(folder), lambda db: in_transaction(db, run))

    def altered(self, folder: Path, *statements: str) -> None:
        """Run statements past the store of this folder. Raises Unfit where the schema does not allow one."""

        def run(db: Connection) -> None:
            with db.attempt():
                for statement in statements:
                    db.execute(statement)

        self.beside(folder, run)

    def damaged(self, folder: Path, damage: Callable[[Connection], object] | str) -> None:
        """Run something, or a statement, past the store of this folder, its triggers and its references."""

        def run(db: Connection) -> None:
            triggers = []
            if self.kind == "postgresql":
                db.execute("SET LOCAL session_replication_role = replica")
            else:
                triggers = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
            for name, _ in triggers:
                db.execute(f"DROP TRIGGER {name}")
            damage(db) if callable(damage) else db.execute(damage)
            for _, sql in triggers:
                db.execute(sql)

        self.beside(folder, run)

    def counted(self, folder: Path) -> dict[str, int]:
        """In how many messages each word stands, by the index of the store of this folder."""
        return self.beside(folder, lambda db: db.words("messages").counts())

    def dump(self, folder: Path) -> str:
        """All that is in the store of this folder, as text."""
        if self.kind == "sqlite":
            return self.beside(folder, lambda db: "\n".join(cast(sqlite3.Connection, db).iterdump()))
        tables = "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        return "\n".join(
            row for (name,) in self.rows(folder, tables) for (row,) in self.rows(folder, f"SELECT each::text FROM {name} AS each")
        )

    def written(self, folder: Path) -> bytes:
        """All that was written for the store of this folder, as far as a test can look: the file, or the rows of the database."""
        files = [each.read_bytes() for each in sorted(folder.glob("clew.db*"))]
        return b"".join(files) if self.kind == "sqlite" else self.dump(folder).encode()

    def rows(self, folder: Path, statement: str, *values: object) -> list[Any]:
        """What a query finds past the store of this folder."""
        return self.beside(folder, lambda db: db.execute(statement, values).fetchall())

    @property
    def file(self) -> Path:
        """A file with clew's tables and no rows: to copy it takes a seventh of what making it takes."""
        if self._file is None:
            folder = tempfile.TemporaryDirectory(prefix="clew-sqlite-")
            atexit.register(folder.cleanup)
            self._file = Path(folder.name) / FILE
            with ThreadPoolExecutor(1) as thread:  # that of a test may have a loop already
                thread.submit(asyncio.run, _migrated(self._file)).result()
        return self._file

    def _pool(self, more: str) -> DatabasePool:
        if more not in self._pools:
            self._pools[more] = DatabasePool(self.server, more)
        return self._pools[more]

    @property
    def server(self) -> Postgres:
        """The server of this run. Skips the test where PostgreSQL is not installed."""
        if self._server is None:
            if program("postgres") is None:
                pytest.skip(MISSING)
            running = contextlib.ExitStack()
            self._server = running.enter_context(postgres())
            atexit.register(running.close)
        return self._server


databases = Databases()
