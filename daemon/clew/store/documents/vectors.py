"""Vectors of the pieces of documents: of one model at a time, gone with their piece. See `clew.store.vectors` for those of messages."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from clew.context.vectors import similarities
from clew.store.connection import Connection
from clew.store.documents.index import within

MODEL = "chunk_vectors"
"""The row of `meta` that says of which model the vectors are."""
MOST_IN_PYTHON = 5_000
"""Pieces that are compared where sqlite-vec is not there, the newest: 20 microseconds each."""


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A piece without a vector. text: what it is cited by, and what it says."""

    chunk: int
    text: str


def waiting(db: Connection, version: str, limit: int) -> tuple[Unembedded, ...]:
    """The next pieces that lack a vector of a model; at most so many."""
    rows = db.execute(
        f"SELECT c.id, d.name || ' ' || c.place, c.text {_without(db, version)} ORDER BY c.id LIMIT ?",
        (limit,),
    )
    return tuple(Unembedded(chunk, f"{cited}\n{text}") for chunk, cited, text in rows)


def left(db: Connection, version: str) -> int:
    """How many pieces lack a vector of a model."""
    return int(db.execute(f"SELECT count(*) {_without(db, version)}").fetchone()[0])


def _without(db: Connection, version: str) -> str:
    there = "SELECT chunk FROM chunk_vectors" if _model(db) == version else "SELECT chunk FROM chunk_vectors WHERE false"
    return f"FROM chunks AS c JOIN documents AS d ON d.number = c.document WHERE d.ready = 1 AND c.id NOT IN ({there})"


def add(db: Connection, version: str, vectors: Sequence[tuple[Unembedded, bytes]]) -> None:
    """Write the vectors of pieces that `waiting` gave. Those of another model go first; a piece that is gone by now gets none."""
    if _model(db) != version:
        db.execute("DELETE FROM chunk_vectors")
        db.execute("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (MODEL, version))
    db.executemany(
        "INSERT INTO chunk_vectors (chunk, vector) SELECT id, ? FROM chunks WHERE id = ?"
        " ON CONFLICT (chunk) DO UPDATE SET vector = excluded.vector",
        [(vector, each.chunk) for each, vector in vectors],
    )


def nearest(db: Connection, scopes: Collection[int] | None, version: str, vector: bytes, limit: int, *, extension: bool) -> list[int]:
    """The pieces of these scopes whose vectors are nearest to `vector`, best first. extension: sqlite-vec is loaded."""
    if _model(db) != version or (scopes is not None and not scopes):
        return []
    allowed, values = within(scopes)
    source = (
        "FROM chunk_vectors AS v JOIN chunks AS c ON c.id = v.chunk JOIN documents AS d ON d.number = c.document"
        f" WHERE length(v.vector) = ? AND d.ready = 1 AND {allowed}"
    )
    if extension:
        rows = db.execute(
            f"SELECT v.chunk {source} ORDER BY vec_distance_cosine(vec_int8(v.vector), vec_int8(?)), v.chunk LIMIT ?",
            (len(vector), *values, vector, limit),
        )
        return [chunk for (chunk,) in rows]
    found = db.execute(
        f"SELECT v.chunk, v.vector {source} ORDER BY v.chunk DESC LIMIT ?", (len(vector), *values, MOST_IN_PYTHON)
    ).fetchall()
    alike = similarities(vector, [each for _, each in found])
    return [chunk for _, chunk in sorted((-cosine, chunk) for cosine, (chunk, _) in zip(alike, found, strict=True))[:limit]]


def problems(db: Connection) -> list[str]:
    """What is wrong with the vectors, in words."""
    lost = db.execute("SELECT count(*) FROM chunk_vectors WHERE chunk NOT IN (SELECT id FROM chunks)").fetchone()[0]
    return [f"{lost} vectors are of no piece of a document"] if lost else []


def _model(db: Connection) -> str:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (MODEL,)).fetchone()
    return str(row[0]) if row else ""
