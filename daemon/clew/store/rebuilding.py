"""The search index built anew beside the one that answers, a few messages in each transaction, and put in its place when it is whole.

What is built stands in tables of its own. Messages that arrive meanwhile are indexed where searches look, and are built behind the others;
those that are deleted leave both. How far it came is committed with it, so that a process that dies goes on where it was.
"""

import json
from dataclasses import dataclass
from typing import Any

from clew.store import transcript
from clew.store.connection import Connection
from clew.store.damage import readable
from clew.store.indexing import Indexer

MESSAGES = 100
CHARACTERS = 20_000
"""What one transaction indexes: so many messages, or as many as have these characters of blocks. Some 20 ms."""


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """How far a rebuild came: `done` of the `total` messages that there were when it began, or that were done since."""

    done: int
    total: int


def begin(db: Connection, index: Indexer) -> Rebuilding:
    """Begin a rebuild, unless one is going on."""
    if _state(db, index) is None:
        drop(db)
        for name, statements in db.shapes.items():  # they are made anew, for what is there may be damaged
            for statement in statements:
                db.execute(statement.format(transcript.BESIDE + name))
        _save(db, index, 0, Rebuilding(0, int(db.execute("SELECT count(*) FROM messages").fetchone()[0])))
    return progress(db) or Rebuilding(0, 0)


def progress(db: Connection) -> Rebuilding | None:
    """How far the rebuild came that is going on, None where none is."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (transcript.REBUILDING,)).fetchone()
    if row is None:
        return None
    state: dict[str, Any] = readable(row[0], {})
    return Rebuilding(state.get("built", 0), state.get("of", 0))


def step(db: Connection, index: Indexer) -> Rebuilding | None:
    """Index some more messages; where none is left, put the new index in the old one's place. Returns how far it came, None at the end."""
    so_far = progress(db)
    if so_far is None:
        return None
    done = _state(db, index)
    if done is None:  # begun by another version, or for other secrets
        so_far, done = begin(db, index), 0
    more = transcript.index_some(db, done, MESSAGES, CHARACTERS, transcript.BESIDE)
    if more is not None:
        some = db.execute("SELECT count(*) FROM messages WHERE number > ? AND number <= ?", (done, more)).fetchone()[0]
        built = so_far.done + int(some)
        so_far = Rebuilding(built, max(built, so_far.total))
        _save(db, index, more, so_far)
        return so_far
    for name in db.shapes:
        db.execute(f"DROP TABLE {name}")
        db.execute(f"ALTER TABLE {transcript.BESIDE}{name} RENAME TO {name}")
    db.execute("DELETE FROM lanes")  # by places that were given anew
    db.execute("DELETE FROM meta WHERE key = ?", (transcript.REBUILDING,))
    index.sign(db)
    return None


def drop(db: Connection) -> None:
    """Give up what was built, if anything was."""
    db.execute("DELETE FROM meta WHERE key = ?", (transcript.REBUILDING,))
    for name in db.shapes:
        db.execute(f"DROP TABLE IF EXISTS {transcript.BESIDE}{name}")


def _state(db: Connection, index: Indexer) -> int | None:
    """Up to which message the index was built that these words make; None where there is none."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (transcript.REBUILDING,)).fetchone()
    current = row is not None and readable(row[0], {"version": ""}).get("version") == index.version(db)
    return transcript.built_beside(db) if current else None


def _save(db: Connection, index: Indexer, done: int, so_far: Rebuilding) -> None:
    state = json.dumps({"version": index.version(db), "done": done, "built": so_far.done, "of": so_far.total})
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (transcript.REBUILDING, state)
    )
