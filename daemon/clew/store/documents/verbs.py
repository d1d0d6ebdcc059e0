"""Documents taken in, let go and listed. A document comes and goes in pieces, and is seen whole or not at all."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence

from clew.clock import new_id
from clew.context.chunks import Chunk
from clew.context.notes import ScopeKind
from clew.errors import NotFound, UsageError
from clew.store.connection import Connection
from clew.store.documents import MOST_DOCUMENTS, PIECE, Document, NewDocument, index
from clew.store.notes import Where
from clew.store.notes.scopes import chosen, reach

_COLUMNS = "d.id, s.scope, d.source, d.name, d.title, d.kind, d.origin, d.hash, d.size, d.stamp, d.chunks, d.added, d.updated"
_FROM = "FROM documents AS d JOIN document_scopes AS s ON s.id = d.scope WHERE d.ready = 1"
_SHORTEST_PREFIX = 4

Prepared = tuple[Chunk, str, str]
"""A piece with the index texts of what it is cited by and of its words."""


def seen(db: Connection, where: Where | None) -> list[int] | None:
    """The numbers of the scopes that may be seen from there; None for the operator, who sees all."""
    if where is None:
        return None
    wanted = [scope for kind, scope in reach(db, where).items() if kind != "cross"]
    rows = db.execute("SELECT id FROM document_scopes WHERE scope IN (SELECT value FROM json_each(?))", (json.dumps(wanted),))
    return [number for (number,) in rows]


def scope_name(db: Connection, where: Where, kind: ScopeKind) -> str:
    """The scope of this kind. Raises UsageError where there is none."""
    within = reach(db, where)
    return within[chosen(within, kind)]


def begin(db: Connection, scope: str, new: NewDocument, count: int, now: float) -> int:
    """Make room for a document of `count` pieces. Returns its number. Raises UsageError where there are too many."""
    found = db.execute("SELECT id FROM document_scopes WHERE scope = ?", (scope,)).fetchone()
    number = found[0] if found else db.execute("INSERT INTO document_scopes (scope) VALUES (?) RETURNING id", (scope,)).fetchone()[0]
    there = db.execute("SELECT count(*) FROM documents WHERE scope = ? AND ready = 1", (number,)).fetchone()[0]
    if there >= MOST_DOCUMENTS:
        raise UsageError(f"There are {there:,} documents already, which is the most.", hint="`clew docs remove` makes room.")
    row = db.execute(
        "INSERT INTO documents (id, scope, source, name, title, kind, origin, hash, size, stamp, chunks, added, updated, ready)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0) RETURNING number",
        (
            *(new_id(), number, new.source, new.name, new.title, new.kind, new.origin, new.hash, new.size, new.stamp),
            *(count, now, now),
        ),
    ).fetchone()
    return int(row[0])


def fill(db: Connection, document: int, pieces: Sequence[Prepared]) -> None:
    """Put pieces of a document in, in order."""
    scope = db.execute("SELECT scope FROM documents WHERE number = ?", (document,)).fetchone()[0]
    rows = []
    for chunk, name, text in pieces:
        values = (document, chunk.place, chunk.text)
        made = db.execute("INSERT INTO chunks (document, place, text) VALUES (?, ?, ?) RETURNING id", values).fetchone()
        rows.append((made[0], name, text, scope))
    index.put(db, rows)


def end(db: Connection, document: int) -> Document:
    """Let a document that is whole be seen, in the place of the one that had its source."""
    old = db.execute(
        "SELECT o.number, o.id, o.added FROM documents AS o JOIN documents AS n ON n.scope = o.scope AND n.source = o.source"
        " WHERE n.number = ? AND o.ready = 1",
        (document,),
    ).fetchone()
    if old is not None:
        # It keeps its id, which people may have noted; the one that leaves needs none any more.
        _hide(db, old[0])
        db.execute("UPDATE documents SET id = ? WHERE number = ?", (new_id(), old[0]))
        db.execute("UPDATE documents SET id = ?, added = ? WHERE number = ?", (old[1], old[2], document))
    db.execute("UPDATE documents SET ready = 1 WHERE number = ?", (document,))
    return _document(db.execute(f"SELECT {_COLUMNS} {_FROM} AND d.number = ?", (document,)).fetchone())


def remove(db: Connection, identifiers: Collection[str]) -> None:
    """Let nobody see these documents any more; `sweep` takes them away."""
    rows = db.execute(
        "SELECT number FROM documents WHERE ready = 1 AND id IN (SELECT value FROM json_each(?))", (json.dumps(sorted(identifiers)),)
    )
    for (number,) in rows.fetchall():
        _hide(db, number)


def _hide(db: Connection, number: int) -> None:
    """Nobody finds it, and no prompt goes on to show it."""
    db.execute("UPDATE documents SET ready = 0, updated = 0 WHERE number = ?", (number,))
    db.execute(
        "UPDATE prompt_state SET documents = '', passages = '[]' WHERE passages != '[]' AND EXISTS"
        " (SELECT 1 FROM json_each(passages) AS shown"
        " WHERE CAST(shown.value ->> 'id' AS BIGINT) IN (SELECT id FROM chunks WHERE document = ?))",
        (number,),
    )


def any_there(db: Connection) -> bool:
    return db.execute("SELECT 1 FROM documents WHERE ready = 1 LIMIT 1").fetchone() is not None


def any_hidden(db: Connection, still: float) -> bool:
    return db.execute(f"SELECT 1 FROM documents WHERE {_LEFT} LIMIT 1", (still,)).fetchone() is not None


_LEFT = "ready = 0 AND updated < wall_clock() - ?"
"""That a document was let go, or was begun so many seconds ago and is not whole yet."""


def sweep(db: Connection, still: float) -> bool:
    """Take away some pieces of documents that nobody sees. still: seconds for which one that was begun may be on its way. Returns whether
    there may be more."""
    row = db.execute(f"SELECT number FROM documents WHERE {_LEFT} ORDER BY number LIMIT 1", (still,)).fetchone()
    if row is None:
        return False
    ids = [chunk for (chunk,) in db.execute("SELECT id FROM chunks WHERE document = ? LIMIT ?", (row[0], PIECE))]
    within = json.dumps(ids)
    db.execute("DELETE FROM chunks_fts WHERE rowid IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", (within,))
    db.execute("DELETE FROM chunk_vectors WHERE chunk IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", (within,))
    db.execute("DELETE FROM chunks WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(?))", (within,))
    if len(ids) < PIECE:
        db.execute("DELETE FROM documents WHERE number = ?", (row[0],))
    return True


def stamp(db: Connection, identifier: str, seen_as: str) -> None:
    """Note how an unchanged file was seen last."""
    db.execute("UPDATE documents SET stamp = ? WHERE id = ? AND ready = 1", (seen_as, identifier))


def listing(db: Connection, where: Where | None, limit: int, skip: int = 0) -> list[Document]:
    """Documents that may be seen from there, by name, without the first `skip`."""
    scopes = seen(db, where)
    condition = "" if scopes is None else " AND d.scope IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"
    values = () if scopes is None else (json.dumps(scopes),)
    rows = db.readable(f"SELECT {_COLUMNS} {_FROM}{condition} ORDER BY d.name, d.source, s.scope LIMIT ? OFFSET ?", *values, limit, skip)
    return [_document(row) for row in rows]


def count(db: Connection) -> int:
    """How many documents there are."""
    return int(db.execute(f"SELECT count(*) {_FROM}").fetchone()[0])


def of_config(db: Connection, scope: str) -> list[Document]:
    """Documents of a scope that came from watched folders."""
    return [_document(row) for row in db.readable(f"SELECT {_COLUMNS} {_FROM} AND d.origin = 'config' AND s.scope = ?", scope)]


def there(db: Connection, scope: str, source: str) -> Document | None:
    """The document of a scope that has this source."""
    row = db.execute(f"SELECT {_COLUMNS} {_FROM} AND s.scope = ? AND d.source = ?", (scope, source)).fetchone()
    return _document(row) if row else None


def find(db: Connection, key: str) -> Document:
    """The document with this id or the beginning of one, else with this source. Raises NotFound or UsageError."""
    rows = db.execute(f"SELECT {_COLUMNS} {_FROM} AND (d.id = ? OR d.source = ?) LIMIT 3", (key, key)).fetchall()
    if not rows and len(key) >= _SHORTEST_PREFIX:
        rows = db.execute(f"SELECT {_COLUMNS} {_FROM} AND substr(d.id, 1, ?) = ? LIMIT 3", (len(key), key)).fetchall()
    if not rows:
        raise NotFound(f"There is no document {key!r}.", hint="`clew docs list` shows those that are there.")
    if len(rows) > 1:
        which = ", ".join(f"{row[0]} ({row[1]})" for row in rows)
        raise UsageError(f"{key!r} is several documents: {which}.", hint="Say which, by its id.")
    return _document(rows[0])


def below(db: Connection, folders: Collection[str]) -> list[Document]:
    """Documents whose source lies in one of these folders, by source. folders: absolute paths."""
    begins = json.dumps([f"{folder.rstrip('/')}/" for folder in folders])
    condition = "EXISTS (SELECT 1 FROM json_each(?) AS f WHERE substr(d.source, 1, length(f.value)) = f.value)"
    return [_document(row) for row in db.readable(f"SELECT {_COLUMNS} {_FROM} AND {condition} ORDER BY d.source, s.scope", begins)]


def redact(db: Connection, redacted: Callable[[str], str]) -> None:
    """Take out of the pieces what is known as a secret by now."""
    for table, key, columns in (("documents", "number", ("name", "title")), ("chunks", "id", ("place", "text"))):
        for column in columns:
            changed = _changed(db.readable(f"SELECT {key}, {column} FROM {table}"), redacted)
            db.executemany(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", changed)


def _changed(rows: Iterable[Sequence[object]], redacted: Callable[[str], str]) -> list[tuple[str, int]]:
    return [(after, int(str(row))) for row, text in rows if (after := redacted(str(text))) != text]


def hand_over(db: Connection, before: str | None, owner: str | None) -> None:
    """Give the documents of the machine's owner to the owner whom the config names now, unless these have some already."""
    if before is not None and owner is not None and before != owner:
        db.execute(
            "UPDATE document_scopes SET scope = ? WHERE scope = ? AND NOT EXISTS (SELECT 1 FROM document_scopes WHERE scope = ?)",
            (f"user:{owner}", f"user:{before}", f"user:{owner}"),
        )


def _document(row: Sequence[object]) -> Document:
    return Document(*row)  # type: ignore[arg-type]  # as the columns have it
