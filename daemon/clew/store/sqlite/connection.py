"""A connection to an SQLite file."""

import sqlite3
from contextlib import suppress
from typing import Any

from clew.store.connection import Values

OUTSIDE = ("locked", "busy", "full", "disk I/O", "readonly", "unable to open")
"""Words of SQLite's errors that come from the machine, not from a statement. They pass."""
DURABLE, RELAXED = "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL"


class SqliteConnection(sqlite3.Connection):
    """The module's own, with what the verbs ask of it beside, see `clew.store.connection.Connection`."""

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

    def begin(self, *, relaxed: bool, shared: bool) -> None:
        """One process holds the file, so that nothing is shared."""
        self.execute(RELAXED if relaxed else DURABLE)
        self.execute("BEGIN IMMEDIATE")

    def is_busy(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)

    def is_outside(self, error: BaseException) -> bool:
        return is_outside(error)


def is_outside(error: BaseException) -> bool:
    """Whether an error comes from the machine, not from a statement."""
    return isinstance(error, sqlite3.OperationalError) and any(word in str(error) for word in OUTSIDE)
