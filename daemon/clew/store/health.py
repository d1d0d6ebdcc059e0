"""What the store says of itself: counts, usage, checks."""

import sqlite3
from dataclasses import dataclass

from clew.messages import Usage


@dataclass(frozen=True, slots=True)
class SessionUsage:
    """Model calls of a session and their tokens. `last`: usage of the newest reply's call."""

    calls: int
    usage: Usage
    last: Usage


def counts(db: sqlite3.Connection, now: float) -> dict[str, int]:
    found = {
        "inbox_new": "SELECT count(*) FROM inbox WHERE state = 'new'",
        "outbox_pending": "SELECT count(*) FROM outbox WHERE state IN ('pending', 'sending')",
        "sessions": "SELECT count(*) FROM sessions",
        "messages": "SELECT coalesce(max(number), 0) FROM messages",
        "turns_running": "SELECT count(*) FROM turns WHERE state = 'running'",
    }
    expired = db.execute("SELECT count(*) FROM cache_entries WHERE expires <= ?", (now,)).fetchone()[0]
    # An index on some states serves only a query that names exactly those.
    troubled = dict(db.execute("SELECT state, count(*) FROM outbox WHERE state IN ('unknown', 'dead') GROUP BY state").fetchall())
    return {name: db.execute(sql).fetchone()[0] for name, sql in found.items()} | {
        "outbox_unknown": troubled.get("unknown", 0),
        "outbox_dead": troubled.get("dead", 0),
        "cache_expired": expired,
    }


def session_usage(db: sqlite3.Connection, session: str) -> SessionUsage:
    sums = db.execute(
        "SELECT count(*), coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cache_read), 0), coalesce(sum(cache_write), 0)"
        " FROM model_calls WHERE session = ?",
        (session,),
    ).fetchone()
    last = db.execute(
        "SELECT input, output, cache_read, cache_write FROM model_calls WHERE session = ? AND purpose = 'reply'"
        " ORDER BY started DESC LIMIT 1",
        (session,),
    ).fetchone()
    return SessionUsage(sums[0], Usage(*sums[1:]), Usage(*last) if last else Usage())


def check(db: sqlite3.Connection) -> list[str]:
    problems = [row[0] for row in db.execute("PRAGMA integrity_check(10)") if row[0] != "ok"]
    try:
        db.execute("INSERT INTO messages_fts (messages_fts) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        problems.append(f"the search index is malformed: {error}")
    return problems


def probe(db: sqlite3.Connection) -> None:
    db.execute("SELECT 1 FROM inbox LIMIT 1").fetchone()
