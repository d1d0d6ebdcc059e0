"""What is said in private: no other thread's prompt or search sees it, and nothing is noted of it.

Private is a span of rows of a thread. It is kept for that thread alone, and is forgotten for good when the thread ends, see `threads`.
"""

from clew.store.connection import Connection

_SPAN = "p.session = {0}.session AND {0}.seq > p.from_seq AND {0}.seq <= coalesce(p.until_seq, 9000000000000000000)"
HIDDEN = (
    "(m.session NOT IN (SELECT session FROM private_spans) OR m.session IS NOT DISTINCT FROM ? OR m.session IS NOT DISTINCT FROM ?"
    f" OR NOT EXISTS (SELECT 1 FROM private_spans AS p WHERE {_SPAN.format('m')}))"
)
"""The condition that a row of `messages AS m` was not said in private, but for those of two threads: the one that asks, and the one that it
goes on from."""


def begin(db: Connection, session: str) -> None:
    """What is said in a thread from now on is private."""
    if not goes_on(db, session):
        db.execute("INSERT INTO private_spans (session, from_seq) VALUES (?, ?)", (session, _last(db, session)))


def end(db: Connection, session: str) -> None:
    """What is said in a thread from now on is private no more; what was stays so."""
    last = _last(db, session)
    db.execute("DELETE FROM private_spans WHERE session = ? AND until_seq IS NULL AND from_seq >= ?", (session, last))
    db.execute("UPDATE private_spans SET until_seq = ? WHERE session = ? AND until_seq IS NULL", (last, session))


def _last(db: Connection, session: str) -> int:
    row = db.execute(
        "SELECT coalesce((SELECT max(seq) FROM messages WHERE session = ?1), (SELECT fork_seq FROM sessions WHERE id = ?1), 0)", (session,)
    ).fetchone()
    return int(row[0])


def goes_on(db: Connection, session: str) -> bool:
    """Whether what is said in a thread now is private."""
    return db.execute("SELECT 1 FROM private_spans WHERE session = ? AND until_seq IS NULL", (session,)).fetchone() is not None


def rows(db: Connection, session: str) -> tuple[str, ...]:
    """Ids of what was said in private in a thread, in order."""
    found = db.execute(
        f"SELECT m.id FROM private_spans AS p CROSS JOIN messages AS m WHERE {_SPAN.format('m')} AND p.session = ? ORDER BY m.seq",
        (session,),
    )
    return tuple(identifier for (identifier,) in found)


def is_source(db: Connection, message: str) -> bool:
    """Whether a message was said in private, or by a job that goes on from a thread which is."""
    row = db.execute(
        f"SELECT 1 FROM messages AS m JOIN private_spans AS p ON {_SPAN.format('m')} WHERE m.id = ?1"
        " UNION SELECT 1 FROM messages AS m JOIN sessions AS s ON s.id = m.session AND s.run = 1"
        " JOIN private_spans AS p ON p.session = s.parent AND p.until_seq IS NULL WHERE m.id = ?1",
        (message,),
    ).fetchone()
    return row is not None
