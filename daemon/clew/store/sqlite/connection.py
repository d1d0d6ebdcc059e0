"""A connection to an SQLite file."""

import sqlite3
from contextlib import suppress
from typing import Any

from clew.store.connection import Values


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
