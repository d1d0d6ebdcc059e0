"""The schemas of both databases are one: the same tables, columns and keys, at the same number."""

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clew.store.indexing import Indexer
from clew.store.postgresql.connection import PostgresConnection
from clew.store.postgresql.database import PostgresDatabase
from clew.store.postgresql.database import migrations as postgresql_migrations
from clew.store.sqlite import SqliteStore
from clew.store.sqlite.database import migrations as sqlite_migrations
from tests.databases import POSTGRESQL, databases
from tests.unit.store_rows import NOW

TYPES = {"INTEGER": "bigint", "INT": "bigint", "TEXT": "text", "REAL": "double precision", "BLOB": "bytea"}
OWN = frozenset({"schema_version", "counting"})
"""Tables that differ: SQLite's file has a number of its own, and PostgreSQL lists of words."""
NUMBERS = frozenset({("compactions", "rowid"), ("model_calls", "rowid"), ("turns", "rowid")})
"""Columns that SQLite has without saying so, and the keys of them."""


class Column(NamedTuple):
    type: str
    needed: bool
    default: str | None


class Table(NamedTuple):
    """references: (columns, table, its columns, what a deletion there does)."""

    columns: dict[str, Column]
    key: tuple[str, ...]
    unique: frozenset[tuple[frozenset[str], bool]]
    references: frozenset[tuple[tuple[str, ...], str, tuple[str, ...], str]]


def of_sqlite(path: Path) -> dict[str, Table]:
    with closing(sqlite3.connect(path)) as db:
        virtual = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%'")]
        names = [
            name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'")
        ]
        plain = [name for name in names if name not in OWN and not any(name == each or name.startswith(f"{each}_") for each in virtual)]
        return {name: _sqlite_table(db, name) for name in plain}


def _sqlite_table(db: sqlite3.Connection, name: str) -> Table:
    rows = db.execute(f"PRAGMA table_info({name})").fetchall()
    key = tuple(column for _, column, *_ in sorted((row for row in rows if row[5]), key=lambda row: row[5]))
    columns = {row[1]: Column(TYPES[row[2]], bool(row[3]) or bool(row[5]), row[4]) for row in rows}
    unique = set()
    for _, index, is_unique, origin, partial in db.execute(f"PRAGMA index_list({name})").fetchall():
        if is_unique and origin != "pk":
            unique.add((frozenset(row[2] for row in db.execute(f"PRAGMA index_info({index})")), bool(partial)))
    references: dict[int, list[Any]] = {}
    for number, _, table, one, other, _, deleted, _ in sorted(db.execute(f"PRAGMA foreign_key_list({name})").fetchall()):
        references.setdefault(number, []).append((one, table, other, deleted))
    return Table(columns, key, frozenset(unique), frozenset(_reference(db, each) for each in references.values()))


def _reference(db: sqlite3.Connection, parts: list[Any]) -> tuple[tuple[str, ...], str, tuple[str, ...], str]:
    table, deleted = parts[0][1], parts[0][3]
    others = tuple(other for _, _, other, _ in parts)
    if others == (None,):  # the key of the other table
        others = tuple(row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[5])
    return tuple(one for one, *_ in parts), table, others, deleted


def of_postgresql(url: str) -> dict[str, Table]:
    db = PostgresConnection(url)
    try:
        names = [
            name
            for (name,) in db.execute("SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
        ]
        return {name: _postgresql_table(db, name) for name in names if name not in OWN and not name.endswith("_fts")}
    finally:
        db.close()


def _postgresql_table(db: PostgresConnection, name: str) -> Table:
    columns = {
        column: Column(kind, needed, re.sub(r"::[a-z ]+$", "", default) if default else None)
        for column, kind, needed, default in db.execute(
            "SELECT attname::text, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid) FROM pg_attribute LEFT JOIN"
            " pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped",
            (name,),
        )
        if (name, column) not in NUMBERS
    }
    key: tuple[str, ...] = ()
    unique = set()
    for listed, primary, partial in db.execute(
        "SELECT (SELECT string_agg(attname::text, ' ' ORDER BY place) FROM unnest(indkey) WITH ORDINALITY AS each (number, place)"
        " JOIN pg_attribute ON attrelid = indrelid AND attnum = number), indisprimary, indpred IS NOT NULL"
        " FROM pg_index WHERE indrelid = to_regclass(?) AND indisunique",
        (name,),
    ):
        if primary:
            key = tuple(listed.split())
        elif (name, listed) not in NUMBERS:
            unique.add((frozenset(listed.split()), partial))
    return Table(columns, key, frozenset(unique), frozenset(_references(db, name)))


def _references(db: PostgresConnection, name: str) -> Iterator[tuple[tuple[str, ...], str, tuple[str, ...], str]]:
    named = (
        "(SELECT string_agg(attname::text, ' ' ORDER BY place) FROM unnest({}) WITH ORDINALITY AS each (number, place)"
        " JOIN pg_attribute ON attrelid = {} AND attnum = number)"
    )
    deleted = {"a": "NO ACTION", "c": "CASCADE", "n": "SET NULL"}
    rows = db.execute(
        f"SELECT {named.format('conkey', 'conrelid')}, confrelid::regclass::text, {named.format('confkey', 'confrelid')}, confdeltype::text"
        " FROM pg_constraint WHERE contype = 'f' AND conrelid = to_regclass(?)",
        (name,),
    )
    for ones, table, others, action in rows:
        yield tuple(ones.split()), table, tuple(others.split()), deleted[action]


@POSTGRESQL
@pytest.mark.asyncio
async def test_both_schemas_have_the_same_tables_columns_and_keys(tmp_path: Path) -> None:
    await (await SqliteStore.open(tmp_path / "clew.db", NOW)).close()
    url = databases.untouched()
    await (await PostgresDatabase.open(url, Indexer(()))).close()
    one, other = of_sqlite(tmp_path / "clew.db"), await asyncio.to_thread(of_postgresql, url)
    assert one.keys() | {"file_bodies"} == other.keys()  # files lie in a folder beside an SQLite database
    assert len(one) > 40
    for name, table in one.items():
        assert (name, table) == (name, other[name])


def test_both_folders_of_migrations_end_at_the_same_number() -> None:
    numbers = [number for number, _ in sqlite_migrations()]
    twins = [number for number, _ in postgresql_migrations()]
    assert twins == numbers[-len(twins) :]
