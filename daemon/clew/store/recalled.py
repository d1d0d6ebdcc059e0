"""What recall gave each turn, and why."""

import json
from collections.abc import Sequence

from clew.store import Ask, Found, Quote, Recalled, RecalledFor, Scope, search, transcript
from clew.store.connection import Connection
from clew.store.damage import readable

LATELY = 20
"""Turns of a window that are looked through for what was recalled lately, the newest."""
_ASKED = (
    "SELECT t.id, t.started, t.first_seq FROM turns AS t JOIN messages AS m ON m.session = t.session AND m.seq = t.first_seq"
    " WHERE t.session = ? AND t.first_seq > 0 AND m.id NOT IN (SELECT message FROM retractions)"
)


def put(db: Connection, turn: str, recalled: Recalled) -> None:
    db.execute(
        "INSERT INTO recalled (turn, message, quoted, score, why, shown) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (turn, message) DO UPDATE"
        " SET quoted = excluded.quoted, score = excluded.score, why = excluded.why, shown = excluded.shown",
        (
            turn,
            recalled.message,
            json.dumps(recalled.quoted or (recalled.message,)),
            recalled.score,
            json.dumps(recalled.why, ensure_ascii=False),
            int(recalled.shown),
        ),
    )


def of(db: Connection, scope: Scope, session: str, turn: str | None) -> RecalledFor | None:
    """What a turn of a session was given, as far as `scope` may see it now; None where there is no such turn. turn: None for the newest
    one that answers a message which nobody took back."""
    condition, values = (" AND t.id = ?", [turn]) if turn is not None else ("", [])
    row = db.execute(f"{_ASKED}{condition} ORDER BY t.first_seq DESC LIMIT 1", (session, *values)).fetchone()
    if row is None:
        return None
    identifier, started, first_seq = row
    said = transcript.between(db, session, first_seq - 1, first_seq)
    quotes, hidden = [], 0
    rows = db.execute(
        "SELECT message, score, why, shown FROM recalled WHERE turn = ? ORDER BY shown DESC, score DESC, message", (identifier,)
    )
    for message, score, why, shown in rows.fetchall():
        found = search.around(db, scope, message, 0, 0)
        quotes += [Quote(each, score, tuple(readable(why, [])), bool(shown)) for each in found]
        hidden += not found
    return RecalledFor(identifier, "\n".join(message.text for message in said), started, tuple(quotes), hidden)


def found_for(
    db: Connection, asking: tuple[str, str, int], ask: Ask, limit: int, shown: Sequence[str], *, again: bool
) -> tuple[Found, frozenset[str]]:
    """What is found for a session, its address and its last row that is not in view; and what it was given lately, where it asks again."""
    session, _, after_seq = asking
    found = search.search(db, search.scope_of_session(db, *asking), ask, limit, shown)
    return found, lately(db, session, after_seq) if again and found.scored else frozenset()


def lately(db: Connection, session: str, after_seq: int) -> frozenset[str]:
    """Ids of the messages that were quoted to those turns of a session whose words are in its window, behind `after_seq`."""
    rows: list[tuple[str]] = db.execute(
        "SELECT quoted FROM recalled WHERE shown = 1 AND turn IN"
        " (SELECT id FROM turns WHERE session = ? AND first_seq > ? ORDER BY first_seq DESC LIMIT ?)",
        (session, after_seq, LATELY),
    ).fetchall()
    found: set[str] = set()
    for (quoted,) in rows:
        found.update(readable(quoted, []))
    return frozenset(found)
