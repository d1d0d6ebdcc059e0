"""Columns that may be damaged: one bad row must not keep the others from being read."""

import json
import sqlite3
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


def readable(text: str, instead: T) -> T:
    """What `text` holds, `instead` where that cannot be read or is of another kind."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return instead
    return value if type(value) is type(instead) else instead


def rows(db: sqlite3.Connection, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of a query; those with a text that is no UTF-8 are left out: one bad record must not hide the others."""
    try:
        return db.execute(sql, values).fetchall()
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
    db.text_factory = bytes
    try:
        found = db.execute(sql, values).fetchall()
    finally:
        db.text_factory = str
    kept = []
    for row in found:
        with suppress(UnicodeDecodeError):
            kept.append(tuple(each.decode() if isinstance(each, bytes) else each for each in row))
    return kept
