"""Places at which threads are best cut, until the background takes them."""

from clew.store import Boundary
from clew.store.connection import Connection

_DUE = "due <= ? AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session = boundaries.session AND turns.state IN ('running', 'waiting'))"
"""It is time, and nothing is being said in the thread."""


def put(db: Connection, session: str, boundary: Boundary) -> None:
    """Mark a place; one that was marked before gives way."""
    db.execute(
        "INSERT INTO boundaries (session, reason, seq, due)"
        " VALUES (?, ?, coalesce(?, (SELECT coalesce(max(seq), 0) FROM messages WHERE session = ?)), ?)"
        " ON CONFLICT (session) DO UPDATE SET reason = excluded.reason, seq = excluded.seq, due = excluded.due",
        (session, boundary.reason, boundary.seq, session, boundary.due),
    )


def next_due(db: Connection, now: float) -> float | None:
    """When the next place may be taken that may not yet, None where there is none."""
    row = db.execute("SELECT min(due) FROM boundaries WHERE due > ?", (now,)).fetchone()
    return float(row[0]) if row[0] is not None else None


def any_due(db: Connection, now: float) -> bool:
    return bool(db.execute(f"SELECT EXISTS (SELECT 1 FROM boundaries WHERE {_DUE})", (now,)).fetchone()[0])


def take(db: Connection, now: float, limit: int) -> list[Boundary]:
    """Take places that are due, the oldest first: each is tried once, whatever comes of it."""
    rows = db.execute(f"SELECT reason, seq, due, session FROM boundaries WHERE {_DUE} ORDER BY due LIMIT ?", (now, limit)).fetchall()
    db.executemany("DELETE FROM boundaries WHERE session = ?", [(row[3],) for row in rows])
    return [Boundary(*row) for row in rows]
