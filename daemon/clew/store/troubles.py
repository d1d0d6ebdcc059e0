"""What went wrong lately: turns, replies and jobs, as far as it is worth a look."""

from clew.store import Trouble
from clew.store.connection import Connection

LOOKED_THROUGH = 2_000
"""The newest turns that are looked through for failures."""

_TURNS = (
    "SELECT 'turn', coalesce(t.ended, t.started), c.address, t.session, t.id, t.error FROM"
    " (SELECT * FROM turns ORDER BY rowid DESC LIMIT ?) AS t JOIN chats AS c ON c.id = t.chat WHERE t.state = 'failed' LIMIT ?"
)
_REPLIES = (
    "SELECT 'reply', coalesce(settled, created), address, session, turn, state || ': ' || reason FROM outbox"
    " WHERE state IN ('unknown', 'dead') ORDER BY number DESC LIMIT ?"
)
_JOBS = (
    "SELECT 'job', coalesce(r.ended, r.at), j.name, coalesce(r.session, ''), coalesce(r.turn, ''), r.note FROM jobs AS j"
    " JOIN job_runs AS r ON r.job = j.name AND r.instant = (SELECT max(instant) FROM job_runs WHERE job = j.name)"
    " WHERE r.outcome = 'failed' ORDER BY r.at DESC LIMIT ?"
)


def newest(db: Connection, limit: int) -> list[Trouble]:
    """At most so many, the newest first: turns that failed, replies that are dead or unknown, jobs whose newest run failed."""
    rows = [
        *db.execute(_TURNS, (LOOKED_THROUGH, limit)).fetchall(),
        *db.execute(_REPLIES, (limit,)).fetchall(),
        *db.execute(_JOBS, (limit,)).fetchall(),
    ]
    return sorted((Trouble(*row) for row in rows), key=lambda each: -each.at)[:limit]
