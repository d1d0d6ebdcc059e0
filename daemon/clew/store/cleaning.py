"""After a deletion: what is gone leaves the pages of the full-text indexes too.

An index only notes that a row is gone, until the parts of it that hold its words are merged. That is done behind the talk, in slices of
bounded work. Everything else of a deleted row is overwritten with zeros in the transaction that deletes it (`secure_delete`).
"""

import json
from collections.abc import Sequence
from typing import Any

from clew.store.connection import Connection
from clew.store.damage import readable
from clew.store.words import Name

STATE = "cleaning"
"""The row of `meta` that says which indexes are still to be merged."""
INDEXES: Sequence[Name] = ("messages", "notes", "chunks")
INPUTS = "terminal_history"
"""The file beside the database in which `clew chat` keeps what was typed."""


def ask(db: Connection) -> None:
    """Something was deleted: let it leave the indexes' pages."""
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (STATE, json.dumps({"begun": False, "left": INDEXES})),
    )


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
    merged = db.words(left[0]).merge(begun=bool(state.get("begun")))
    state = {"begun": merged, "left": left if merged else left[1:]}
    db.execute("UPDATE meta SET value = ? WHERE key = ?", (json.dumps(state), STATE))
    return True
