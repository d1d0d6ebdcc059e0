"""A whole store copied from an SQLite file into a PostgreSQL database, or back: every row, its number with it, and compared at the end.

Tables are copied in the order of their references and each in the order of its key, some rows in each transaction, so that the newest
row of the target says where an interrupted copy goes on. Until it is whole the target has a mark that no daemon starts with.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from clew.errors import StoreError
from clew.store import leases, transcript
from clew.store.connection import Connection
from clew.store.documents import index as documents
from clew.store.files import verbs
from clew.store.notes import index as notes

ROWS = 1_000
"""Rows that one transaction copies."""
MARK = "copying"
"""The row of `meta` that a target has until it is whole: up to which place it is indexed."""
META = "meta"
LEFT_OUT = ("leases", "counting")
"""Tables that say what goes on just now; of words that wait to be counted there are none while it is copied."""
NUMBERED = ("compactions", "model_calls", "turns")
"""Tables whose order is that of a `rowid` beside their key."""

Tell = Callable[[str, int, int], None]
"""Is told how far it is: the table, its rows that are done, all of its rows."""


class Side(Protocol):
    """A database that is copied from or into: a connection whose transactions are ended here."""

    @property
    def db(self) -> Connection: ...

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def numbers(self) -> dict[str, int]:
        """The highest number that was ever given to a row, of each table that numbers its rows."""

    def count_on(self, numbers: Mapping[str, int]) -> None:
        """Give the next rows numbers behind these and behind all that are there."""

    def hashes(self) -> set[str]:
        """Of the files that it keeps."""

    def body(self, digest: str) -> bytes | None:
        """The bytes of a file; None where they are not there, or damaged."""

    def put(self, digest: str, body: bytes) -> None:
        """Keep a file whose row is there."""


@dataclass(frozen=True, slots=True)
class Table:
    """columns: all of them. key: those that its rows are ordered by. itself: whether a row may name another one of the same table."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    itself: bool

    @property
    def select(self) -> str:
        return f"SELECT {', '.join(self.columns)} FROM {self.name}"

    @property
    def insert(self) -> str:
        return f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES ({', '.join('?' * len(self.columns))})"

    def position(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """The key of a row."""
        return tuple(row[self.columns.index(column)] for column in self.key)

    def rows(self, db: Connection, after: tuple[Any, ...] | None, limit: int) -> list[tuple[Any, ...]]:
        """The rows behind a key, in order."""
        names = ", ".join(self.key)
        behind = f" WHERE ({names}) > ({', '.join('?' * len(self.key))})" if after else ""
        return db.execute(f"{self.select}{behind} ORDER BY {names} LIMIT ?", (*(after or ()), limit)).fetchall()

    def batches(self, db: Connection, after: tuple[Any, ...] | None = None) -> Iterator[list[tuple[Any, ...]]]:
        while rows := self.rows(db, after, ROWS):
            yield rows
            after = self.position(rows[-1])

    def count(self, db: Connection) -> int:
        return int(db.execute(f"SELECT count(*) FROM {self.name}").fetchone()[0])


def tables(file: Connection) -> list[Table]:
    """What is copied, by the schema of an SQLite file: each table behind those that its rows refer to. The search indexes are made anew."""
    names = [
        name
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
        if not name.startswith(("sqlite_", transcript.BESIDE)) and "_fts" not in name and name not in LEFT_OUT
    ]
    refers = {name: {row[2] for row in file.execute(f"PRAGMA foreign_key_list({name})")} for name in names}
    ordered: list[str] = []
    while left := [name for name in names if name not in ordered]:
        ordered.append(next(name for name in left if refers[name] <= {*ordered, name}))
    return [_table(file, name, itself=name in refers[name]) for name in ordered]


def _table(file: Connection, name: str, *, itself: bool) -> Table:
    columns = file.execute(f"PRAGMA table_info({name})").fetchall()
    key = tuple(column for _, column, *_ in sorted((row for row in columns if row[5]), key=lambda row: int(row[5])))
    numbered = ("rowid",) if name in NUMBERED else ()
    return Table(name, (*numbered, *(row[1] for row in columns)), numbered or key, itself)


def copy(source: Side, target: Side, what: Sequence[Table], tell: Tell, *, again: bool = False) -> int:
    """Copy all rows and compare them. Returns their number.

    again: begin anew, whatever the target holds. Raises StoreError where the target holds something else, or differs in the end.
    """
    for side in (source, target):
        if any(lease.left > 0 for lease in leases.listing(side.db)):
            raise StoreError("A clew works on one of the two stores.", hint="Stop every clew first, or wait 15 seconds for one that died.")
    _prepare(target, what, again=again)
    for table in what:
        if table.name != META:
            _copy_table(source, target, table, tell)
    _copy_files(source, target, tell)
    _index(target, tell)
    for table in what:
        if table.name == META:
            _copy_meta(source, target, table)  # it says what the indexes were made by
    rows = sum(_compare(source, target, table, tell) for table in what)
    target.begin()
    target.count_on(source.numbers())
    target.db.execute("DELETE FROM meta WHERE key = ?", (MARK,))
    target.commit()
    return rows


def is_unfinished(db: Connection) -> bool:
    """Whether a copy into this store was begun and is not whole."""
    return db.execute("SELECT 1 FROM meta WHERE key = ?", (MARK,)).fetchone() is not None


def _prepare(target: Side, what: Sequence[Table], *, again: bool) -> None:
    target.begin()
    if again or not is_unfinished(target.db):
        held = [table.name for table in what if table.name not in (META, "spending_mark") and table.count(target.db)]
        if held and not again:
            target.commit()
            raise StoreError(
                f"The store that is to be copied into holds something already ({', '.join(held[:3])}).",
                hint="Give an empty one, or add --again to let it be overwritten.",
                lasting=True,
            )
        for table in reversed(what):
            target.db.execute(f"DELETE FROM {table.name}")
        target.db.words("messages").clear()
        target.db.execute("INSERT INTO meta (key, value) VALUES (?, '0')", (MARK,))
    target.commit()


def _copy_table(source: Side, target: Side, table: Table, tell: Tell) -> None:
    total = table.count(source.db)
    newest = target.db.execute(f"{table.select} ORDER BY {' DESC, '.join(table.key)} DESC LIMIT 1").fetchone()
    done = table.count(target.db)
    tell(table.name, done, total)
    if table.itself and done:
        return  # it was copied at once
    target.begin()
    for rows in table.batches(source.db, table.position(newest) if newest else None):
        target.db.executemany(table.insert, rows)
        done += len(rows)
        if not table.itself:
            target.commit()
            target.begin()
        tell(table.name, done, total)
    target.commit()


def _copy_meta(source: Side, target: Side, table: Table) -> None:
    target.begin()
    target.db.execute("DELETE FROM meta WHERE key <> ?", (MARK,))
    target.db.executemany(table.insert, [row for rows in table.batches(source.db) for row in rows])
    target.commit()


def _copy_files(source: Side, target: Side, tell: Tell) -> None:
    """Copy the bytes of the files that messages name, each checked by its hash; one that is damaged or gone at the source stays so."""
    wanted = sorted(verbs.wanted(source.db) & source.hashes() - target.hashes())
    for done, digest in enumerate(wanted, 1):
        if (body := source.body(digest)) is not None:
            target.begin()
            target.put(digest, body)
            target.commit()
        tell("files", done, len(wanted))


def _index(target: Side, tell: Tell) -> None:
    """Make the search indexes of the target, from where an interrupted copy left them."""
    total = int(target.db.execute("SELECT count(*) FROM places").fetchone()[0])
    after = int(target.db.execute("SELECT value FROM meta WHERE key = ?", (MARK,)).fetchone()[0])
    done = int(target.db.execute("SELECT count(*) FROM places WHERE place <= ?", (after,)).fetchone()[0])
    newest: int | None = after
    while newest is not None:
        target.begin()
        if (newest := transcript.index_places(target.db, newest, ROWS)) is not None:
            target.db.execute("UPDATE meta SET value = ? WHERE key = ?", (str(newest), MARK))
            done += ROWS
        target.commit()
        tell("search index", min(done, total), total)
    target.begin()
    notes.rebuild(target.db)
    documents.rebuild(target.db)
    target.commit()


def _compare(source: Side, target: Side, table: Table, tell: Tell) -> int:
    """Compare a table row by row. Returns the number of rows. Raises StoreError at the first one that differs."""
    total, done = table.count(source.db), 0
    given, held = _rows(source, table), _rows(target, table)
    while True:
        one, other = next(given, None), next(held, None)
        if one != other:
            where = ", ".join(str(each) for each in table.position(one or other or ()))
            raise StoreError(
                f"The copy differs from its source: {table.name}, the row {where}.",
                hint="Did something write to one of them meanwhile? Stop every clew, and begin anew with --again.",
                lasting=True,
            )
        if one is None:
            return done
        done += 1
        if done % ROWS == 0 or done == total:
            tell(f"{table.name}, compared", done, total)


def _rows(side: Side, table: Table) -> Iterator[tuple[Any, ...]]:
    for rows in table.batches(side.db):
        yield from (row for row in rows if table.name != META or row[0] != MARK)
