"""Databases with clew's tables and no rows, which one test after the other has: to empty one takes a tenth of what making one takes."""

import contextlib
import json
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from clew.store.postgresql.connection import PostgresConnection
from clew.store.postgresql.database import prepare

T = TypeVar("T")

OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
CATALOGS = (
    "pg_class",
    "pg_attribute",
    "pg_constraint",
    "pg_index",
    "pg_proc",
    "pg_trigger",
    "pg_statistic",
    "pg_namespace",
    "pg_extension",
)
SCHEMA = "SELECT md5(string_agg(each, ' ' ORDER BY each)) FROM ({}) AS found (each)".format(
    " UNION ALL ".join(f"SELECT '{name} ' || ctid || ' ' || xmin FROM {name} WHERE xmin::text::bigint > ?" for name in CATALOGS)
)
"""Changes with whatever a test does to tables, functions, triggers, or the planner's figures: each row of the catalogs carries the number
of the transaction that wrote it, and a copy of a database keeps them."""


class Server(Protocol):
    def create(self, template: str = "template1") -> str:
        """A new database. Returns its address."""

    def drop(self, url: str) -> None:
        """Remove a database, whoever is in it."""


def aside(url: str, run: Callable[[PostgresConnection], T]) -> T:
    """Run something on a connection of its own: it has a loop, which the thread of a test may have already."""

    def connected() -> T:
        with contextlib.closing(PostgresConnection(url)) as db:
            return run(db)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(connected).result()


class DatabasePool:
    """more: statements that alter clew's own tables and functions."""

    def __init__(self, server: Server, more: str = "") -> None:
        self._server = server
        self._template = server.create()
        self._begun, self._schema, self._empty = aside(self._template, lambda db: _made(db, more))
        self._used: deque[str] = deque()

    def take(self) -> str:
        """Address of a database with tables and no rows."""
        while self._used:
            url = self._used.popleft()
            if aside(url, self._emptied):
                return url
            self._server.drop(url)
        return self._server.create(self._template.rpartition("/")[2])

    def give_back(self, url: str) -> None:
        """Nobody uses this database any more."""
        self._used.append(url)

    def _emptied(self, db: PostgresConnection) -> bool:
        """False where the database is not what it was: somebody is still in it, or it was altered."""
        if db.execute(OTHERS).fetchone()[0] or _schema(db, self._begun) != self._schema:
            return False
        db.script(self._empty)
        return True


def _schema(db: PostgresConnection, begun: int) -> str:
    return str(db.execute(SCHEMA, [begun] * len(CATALOGS)).fetchone()[0])


def _made(db: PostgresConnection, more: str) -> tuple[int, str, str]:
    """Make clew's tables. Returns the transaction before, what the schema is known by, and what makes the database so again."""
    begun = int(db.execute("SELECT txid_current()").fetchone()[0])
    prepare(db, "", False)
    if more:
        db.script(more)
    return begun, _schema(db, begun), _emptying(db)


def _emptying(db: PostgresConnection) -> str:
    """Statements that take the rows out of all tables, put those back that are there from the beginning, and begin all numbers anew."""
    named = "SELECT oid::regclass::text FROM pg_class WHERE relkind = ? AND relnamespace = 'public'::regnamespace ORDER BY 1"
    tables = [name for (name,) in db.execute(named, (b"r",))]
    steps = ["SET session_replication_role = replica", *(f"DELETE FROM {name}" for name in tables)]
    for name in tables:
        rows = [json.loads(row) for (row,) in db.execute(f"SELECT row_to_json(each)::text FROM {name} AS each")]
        if rows:
            text = json.dumps(rows).replace("'", "''")
            steps.append(f"INSERT INTO {name} SELECT * FROM json_populate_recordset(NULL::{name}, '{text}')")
    steps += [f"SELECT setval('{name}', 1, false)" for (name,) in db.execute(named, (b"S",))]
    return "; ".join(steps)
