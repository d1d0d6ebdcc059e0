"""Vectors of messages: of one model at a time, in the order of the rows, gone with their message.

They lie in a plain table, so that a clew without the extension can read and delete them. sqlite-vec compares them where this Python's
SQLite can load extensions; else the same is done in Python, in about twenty microseconds a vector instead of one.
"""

import importlib
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain

from clew.context.nearness import Nearness, Pair
from clew.context.vectors import cosines
from clew.messages import blocks_from_json, readable_blocks, searchable
from clew.store.connection import Connection
from clew.store.damage import readable
from clew.store.database import Database

STATE = "vectors"
"""The row of `meta` that says of which model the vectors are, how long, and up to which message there are all. `transcript.forget` keeps
it true."""
NEAR = 40
"""Messages on each side of one whose speakers' names are known to it."""
_LISTED = "(SELECT value FROM json_each(?))"
_STANDS = "id NOT IN (SELECT message FROM retractions)"
"""What was taken back goes to no model."""


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A message without a vector. names: of those who speak around it. session: its own."""

    number: int
    id: str
    text: str
    names: frozenset[str]
    session: str = ""


@dataclass(frozen=True, slots=True)
class _State:
    version: str = ""
    length: int = 0
    done: int = 0


class Vectors:
    """The verbs, one transaction each."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._extension = False

    async def prepare(self) -> bool:
        """Use sqlite-vec from now on, where it can be loaded. Returns whether it can."""
        self._extension = all(await self._db.everywhere(prepare))
        return self._extension

    async def waiting(self, version: str, limit: int) -> tuple[Unembedded, ...]:
        return await self._db.read(waiting, version, limit)

    async def left(self, version: str) -> int:
        """How many messages lack a vector of a model."""
        return await self._db.read(left, version)

    async def add(self, version: str, vectors: Sequence[tuple[Unembedded, bytes]]) -> bool:
        return await self._db.write_relaxed(add, version, vectors)

    async def near(self, version: str, vector: bytes, ids: Sequence[str], pairs: Sequence[Pair] = ()) -> Nearness:
        return await self._db.read(near, version, vector, ids, pairs, self._extension)


def prepare(db: Connection) -> bool:
    """Let a connection compare vectors by sqlite-vec. Returns whether it can."""
    if not hasattr(db, "enable_load_extension"):
        return False
    try:
        extension = importlib.import_module("sqlite_vec")
        db.enable_load_extension(True)
        try:
            extension.load(db)
        finally:
            db.enable_load_extension(False)
    except (ImportError, sqlite3.Error):
        return False
    return True


def waiting(db: Connection, version: str, limit: int) -> tuple[Unembedded, ...]:
    """The next messages, in the order of their rows, that lack a vector of a model; at most so many."""
    rows = db.execute(
        f"SELECT number, id, CASE WHEN {_STANDS} THEN blocks ELSE '[]' END, session, seq FROM messages WHERE number > ?"
        " ORDER BY number LIMIT ?",
        (_done(db, version), limit),
    )
    return tuple(
        Unembedded(number, id, _text(blocks), _names(db, session, seq), session) for number, id, blocks, session, seq in rows.fetchall()
    )


def left(db: Connection, version: str) -> int:
    """How many messages lack a vector of a model."""
    return int(db.execute("SELECT count(*) FROM messages WHERE number > ?", (_done(db, version),)).fetchone()[0])


def _done(db: Connection, version: str) -> int:
    """Up to which message each has its vector of a model."""
    state = _state(db)
    return min(state.done, _newest(db)) if state.version == version else 0


def add(db: Connection, version: str, vectors: Sequence[tuple[Unembedded, bytes]]) -> bool:
    """Write the vectors of messages that `waiting` gave. Those of another model go first. Where they have another length than the same
    model's before, all go, for it is begun anew, and False is returned. A message that is gone by now gets none."""
    state = _state(db)
    if state.version != version:
        db.execute("DELETE FROM vectors")
        state = _State(version)
    lengths = {len(vector) for _, vector in vectors if vector} | {state.length} - {0}
    if len(lengths) > 1:
        db.execute("DELETE FROM vectors")
        _save(db, _State(version))
        return False
    ids = json.dumps([each.id for each, _ in vectors])
    taken_back = {message for (message,) in db.execute(f"SELECT message FROM retractions WHERE message IN {_LISTED}", (ids,))}
    db.executemany(
        "INSERT INTO vectors (message, vector) SELECT number, ? FROM messages WHERE number = ? AND id = ?"
        " ON CONFLICT (message) DO UPDATE SET vector = excluded.vector",
        [(b"" if each.id in taken_back else vector, each.number, each.id) for each, vector in vectors],
    )
    done = max((each.number for each, _ in vectors), default=state.done)
    late = db.execute(  # a number may be given long before its commit
        "SELECT min(number) FROM messages WHERE number > ? AND number <= ?"
        " AND NOT EXISTS (SELECT 1 FROM vectors WHERE vectors.message = messages.number)",
        (state.done, done),
    ).fetchone()[0]
    _save(db, _State(version, max(lengths, default=0), min(done if late is None else late - 1, _newest(db))))
    return True


def near(db: Connection, version: str, vector: bytes, ids: Sequence[str], pairs: Sequence[Pair] = (), extension: bool = False) -> Nearness:
    """The cosines of the vectors of these messages to `vector`, and of those of `pairs` to one another, as far as they have one of this
    model. extension: sqlite-vec is loaded."""
    state = _state(db)
    if (state.version, state.length) != (version, len(vector)):
        return Nearness()
    return _by_extension(db, vector, ids, pairs) if extension else _by_python(db, vector, ids, pairs)


def _by_extension(db: Connection, vector: bytes, ids: Sequence[str], pairs: Sequence[Pair]) -> Nearness:
    asked = db.execute(
        "SELECT m.id, 1 - vec_distance_cosine(vec_int8(v.vector), vec_int8(:vector)) FROM json_each(:ids) AS wanted"
        " CROSS JOIN messages AS m ON m.id = wanted.value CROSS JOIN vectors AS v ON v.message = m.number WHERE length(v.vector) = :length",
        {"vector": vector, "ids": json.dumps(ids), "length": len(vector)},
    ).fetchall()
    between = db.execute(
        "SELECT m.id, n.id, 1 - vec_distance_cosine(vec_int8(v.vector), vec_int8(w.vector)) FROM json_each(:pairs) AS wanted"
        " CROSS JOIN messages AS m ON m.id = wanted.value ->> 0 CROSS JOIN vectors AS v ON v.message = m.number"
        " CROSS JOIN messages AS n ON n.id = wanted.value ->> 1 CROSS JOIN vectors AS w ON w.message = n.number"
        " WHERE length(v.vector) = :length AND length(w.vector) = :length",
        {"pairs": json.dumps(pairs), "length": len(vector)},
    ).fetchall()
    return Nearness(dict(asked), {(one, other): cosine for one, other, cosine in between})


def _by_python(db: Connection, vector: bytes, ids: Sequence[str], pairs: Sequence[Pair]) -> Nearness:
    rows = db.execute(
        "SELECT m.id, v.vector FROM json_each(?) AS wanted CROSS JOIN messages AS m CROSS JOIN vectors AS v"
        " WHERE m.id = wanted.value AND v.message = m.number AND length(v.vector) = ?",
        (json.dumps(sorted({*ids, *chain.from_iterable(pairs)})), len(vector)),
    ).fetchall()
    places = {identifier: place for place, (identifier, _) in enumerate(rows, start=1)}
    asked = [each for each in ids if each in places]
    held = [pair for pair in pairs if places.keys() >= set(pair)]
    compared = [(0, places[each]) for each in asked] + [(places[one], places[other]) for one, other in held]
    found = cosines([vector, *(each for _, each in rows)], compared)
    return Nearness(dict(zip(asked, found[: len(asked)], strict=True)), dict(zip(held, found[len(asked) :], strict=True)))


def problems(db: Connection) -> list[str]:
    """What is wrong with the vectors, in words."""
    state = _state(db)
    questions = (
        (
            "vectors have no message",
            "SELECT count(*) FROM vectors WHERE message NOT IN (SELECT number FROM messages)",
        ),
        ("vectors have another length than the others", f"SELECT count(*) FROM vectors WHERE length(vector) NOT IN (0, {state.length})"),
        (
            "messages lack their vectors",
            f"SELECT count(*) FROM messages WHERE number <= {state.done} AND number NOT IN (SELECT message FROM vectors)",
        ),
    )
    return [f"{count} {words}" for words, question in questions if (count := db.execute(question).fetchone()[0])]


def _text(blocks: str) -> str:
    try:
        return searchable(blocks_from_json(blocks))
    except ValueError:
        return searchable(readable_blocks(blocks))


def _names(db: Connection, session: str, seq: int) -> frozenset[str]:
    rows = db.execute(
        "SELECT DISTINCT sender_name FROM messages WHERE session = ? AND seq BETWEEN ? AND ? AND sender_name != ''",
        (session, seq - NEAR, seq + NEAR),
    )
    return frozenset(name for (name,) in rows)


def _newest(db: Connection) -> int:
    return int(db.execute("SELECT coalesce(max(number), 0) FROM messages").fetchone()[0])


def _state(db: Connection) -> _State:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (STATE,)).fetchone()
    match readable(row[0], {}) if row else {}:
        case {"version": str(version), "length": int(length), "done": int(done)}:
            return _State(version, length, done)
    return _State()


def _save(db: Connection, state: _State) -> None:
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (STATE, json.dumps(asdict(state))),
    )
