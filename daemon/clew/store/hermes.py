"""Hermes' database, read and never written: its sessions as plain values."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from clew.errors import StoreError

MOST_MESSAGES = 200_000
"""Messages of one session that are read."""
LONGEST = 64 * 2**20
"""Bytes of one value."""


def sessions(path: Path) -> Iterator[dict[str, Any]]:
    """Each with its `messages`, in order. Raises StoreError where the file is no such database."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as db:
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            db.execute("PRAGMA trusted_schema = OFF")
            known = {table: _columns(db, table) for table in ("sessions", "messages")}
            wanted = {
                "sessions": ("id", "title", "started_at"),
                "messages": ("id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp", "active"),
            }
            columns = {table: [each for each in names if each in known[table]] for table, names in wanted.items()}
            if "id" not in columns["sessions"] or not {"role", "content"} <= set(columns["messages"]):
                raise StoreError(f"{path.name} is not a database of Hermes.", hint="It is ~/.hermes/state.db.")
            for row in db.execute(f"SELECT {', '.join(columns['sessions'])} FROM sessions ORDER BY rowid"):
                session = dict(zip(columns["sessions"], row, strict=True))
                said = db.execute(
                    f"SELECT {', '.join(columns['messages'])} FROM messages WHERE session_id = ? ORDER BY rowid LIMIT ?",
                    (session["id"], MOST_MESSAGES),
                )
                yield session | {"messages": [dict(zip(columns["messages"], each, strict=True)) for each in said]}
    except sqlite3.Error as error:
        raise StoreError(f"{path.name} cannot be read ({error}).", hint="Is it whole, and is Hermes off?") from None


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    """Of a table, none of a view: what a view computes knows no end."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone() is None:
        return set()
    return {str(name) for _, name, *_ in db.execute(f"PRAGMA table_info({table})")}
