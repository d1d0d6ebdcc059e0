"""A connection to an SQLite file."""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from clew.context.text import index_text
from clew.store.connection import Unfit, Values
from clew.store.sqlite.words import SHAPES, SqliteWords
from clew.store.words import Name, WordIndex

OUTSIDE = ("locked", "busy", "full", "disk I/O", "readonly", "unable to open")
"""Words of SQLite's errors that come from the machine, not from a statement. They pass."""
UNFIT = (sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError, sqlite3.DataError, OverflowError)
DURABLE, RELAXED = "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL"


class SqliteConnection(sqlite3.Connection):
    """The module's own, with what the verbs ask of it beside, see `clew.store.connection.Connection`. indexer: makes index texts."""

    indexer: Callable[[str], str] = staticmethod(index_text)
    locked = unlocked = ""
    _relaxed: bool | None = None  # how it syncs its commits; None: as SQLite does by itself
    _parted = False

    def insert(self, sql: str, values: Values, number: str) -> int:
        return self.execute(sql, values).lastrowid or 0

    def readable(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            return self.execute(sql, values).fetchall()
        except sqlite3.OperationalError as error:
            if "decode" not in str(error):
                raise
        self.text_factory = bytes
        try:
            found = self.execute(sql, values).fetchall()
        finally:
            self.text_factory = str
        kept = []
        for row in found:
            with suppress(UnicodeDecodeError):
                kept.append(tuple(each.decode() if isinstance(each, bytes) else each for each in row))
        return kept

    def hold(self, *names: str) -> bool:
        return True  # nobody else writes

    def alone(self) -> None:
        """It always is."""

    @contextmanager
    def attempt(self) -> Iterator[None]:
        self.execute("SAVEPOINT attempt")
        try:
            yield
        except BaseException as error:
            self.execute("ROLLBACK TO attempt")
            self.execute("RELEASE attempt")
            if isinstance(error, UNFIT):
                raise Unfit(str(error)) from error
            raise
        self.execute("RELEASE attempt")

    def columns(self, table: str) -> frozenset[str]:
        return frozenset(name for _, name, *_ in self.execute(f"PRAGMA table_info({table})"))

    def words(self, name: Name, /) -> WordIndex:
        return SqliteWords(self, name)

    @property
    def shapes(self) -> Mapping[str, Sequence[str]]:
        return SHAPES

    def index_text(self, text: str, /) -> str:
        return self.indexer(text)

    def integrity(self) -> list[str]:
        try:
            return [row[0] for row in self.execute("PRAGMA integrity_check(10)") if row[0] != "ok"]
        except sqlite3.DatabaseError as error:
            return [str(error)]

    def is_damage(self, error: Exception, /) -> bool:
        return isinstance(error, sqlite3.DatabaseError)

    def begin(self, *, relaxed: bool, holds: Collection[str] | None) -> None:
        """One process has the file, and one transaction at a time writes."""
        if relaxed != self._relaxed:
            self.execute(RELAXED if relaxed else DURABLE)
            self._relaxed = relaxed
        self.execute("BEGIN IMMEDIATE")
        self._parted = False

    def begin_part(self) -> None:
        if self._parted:
            self.execute("RELEASE part")
        self.execute("SAVEPOINT part")
        self._parted = True

    def undo_part(self) -> None:
        self.execute("ROLLBACK TO part")

    def is_busy(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)

    def is_outside(self, error: BaseException) -> bool:
        return is_outside(error)


def is_outside(error: BaseException) -> bool:
    """Whether an error comes from the machine, not from a statement."""
    return isinstance(error, sqlite3.OperationalError) and any(word in str(error) for word in OUTSIDE)
