"""After a deletion: what is gone leaves the pages of the full-text indexes too.

An index only notes that a row is gone, until the parts of it that hold its words are merged. That is done behind the talk, in slices of
bounded work. Everything else of a deleted row is overwritten with zeros in the transaction that deletes it (`secure_delete`).
"""

import json
from typing import Any

from clew.store.connection import Connection
from clew.store.damage import readable

STATE = "cleaning"
"""The row of `meta` that says which indexes are still to be merged."""
INDEXES = ("messages_fts", "notes_fts", "chunks_fts")
INPUTS = "terminal_history"
"""The file beside the database in which `clew chat` keeps what was typed."""
PAGES = 64
"""Pages of an index that one slice merges: a few milliseconds."""


def ask(db: Connection) -> None:
    """Something was deleted: let it leave the indexes' pages."""
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (STATE, json.dumps({"begun": False, "left": INDEXES})))


def waits(db: Connection) -> bool:
    return db.execute("SELECT 1 FROM meta WHERE key = ?", (STATE,)).fetchone() is not None


def step(db: Connection) -> bool:
    """Merge some more. False: nothing is left to do."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (STATE,)).fetchone()
    if row is None:
        return False
    state: dict[str, Any] = readable(row[0], {})
    left = [index for index in INDEXES if index in state.get("left", ())]
    if not left:
        db.execute("DELETE FROM meta WHERE key = ?", (STATE,))
        return False
    merged = _merged(db, left[0], begun=bool(state.get("begun")))
    state = {"begun": merged, "left": left if merged else left[1:]}
    db.execute("UPDATE meta SET value = ? WHERE key = ?", (json.dumps(state), STATE))
    return True


def _merged(db: Connection, index: str, *, begun: bool) -> bool:
    """Merge some pages; the first slice, a negative number of them, marks all parts of the index for one merge. False: there was nothing to
    merge any more, which SQLite tells by fewer than two changes (https://sqlite.org/fts5.html#the_merge_command)."""
    before = _changes(db)
    db.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)", (PAGES if begun else -PAGES,))
    return _changes(db) - before >= 2


def _changes(db: Connection) -> int:
    return int(db.execute("SELECT total_changes()").fetchone()[0])
