"""Messages that their platform says were deleted: not answered, not found and not recalled any more.

The transcript keeps its rows, as taken back. Where one stands in a prompt that a provider may hold in its cache, it is `shown` there until
that prompt changes anyway: see `let_go`.
"""

import json
from collections.abc import Collection
from datetime import tzinfo

from clew.store import branches, forgetting
from clew.store.connection import Connection
from clew.store.files import verbs as files
from clew.transport import Inbound

KEPT = 14 * 86_400.0
"""Seconds for which a deletion waits for its message: twice as long as any platform delivers one again (WhatsApp, 7 days)."""
MOST = 10_000
"""Deletions that may wait; the oldest are dropped."""


def take(db: Connection, item: Inbound, now: float) -> bool:
    """Take the message back that a deletion is about. False: that was done already."""
    row = db.execute(
        "SELECT id, state, turn, message FROM inbox WHERE external_id = ? AND transport = ?", (item.edits, item.address.transport)
    ).fetchone()
    if row is None:
        return _wait(db, item.edits, now)
    number, state, turn, message = row
    if state == "new":
        _unsay(db, number, "refused")
        db.execute("DELETE FROM attachments WHERE inbox = ?", (number,))
        return True
    if state == "claimed":
        return _wait(db, item.edits, now)  # it stands in a prompt that is being answered
    return withdraw(db, number, turn, message, now)


def of_turn(db: Connection, turn: str, now: float) -> None:
    """Take back what was deleted while this turn answered it."""
    rows = db.execute(
        "SELECT id, message, external_id FROM inbox WHERE turn = ? AND external_id IN (SELECT external_id FROM deletions)", (turn,)
    ).fetchall()
    if rows:
        db.alone()
    for number, message, external_id in rows:
        withdraw(db, number, turn, message, now)
        db.execute("DELETE FROM deletions WHERE external_id = ?", (external_id,))


def withdraw(db: Connection, number: int, turn: str | None, message: str | None, now: float) -> bool:
    """Take the row of a transcript back that an inbox row became, and the results of tools that quote it. False: it is so already."""
    found = message or _message(db, number, turn)
    _unsay(db, number, None)
    if found is None or db.execute("SELECT 1 FROM retractions WHERE message = ?", (found,)).fetchone():
        return False
    ids = [found, *(copy for theirs in branches.copies(db, [found]).values() for copy in theirs)]
    ids += forgetting.quoting(db, ids)
    db.executemany(
        "INSERT INTO retractions (message, reason, at, shown) VALUES (?, 'deleted', ?, 1) ON CONFLICT (message) DO NOTHING",
        [(each, now) for each in ids],
    )
    listed = json.dumps(ids)
    db.execute("DELETE FROM pins WHERE message IN (SELECT value FROM json_each(?))", (listed,))
    db.execute("DELETE FROM recalled WHERE message IN (SELECT value FROM json_each(?))", (listed,))
    return True


def let_go(db: Connection, session: str, zone: tzinfo, known: Collection[str]) -> None:
    """Take what was deleted out of the window of a session and out of its summaries, now that its prompt changes. zone: of the dates in
    the summary; known: secrets of this installation."""
    rows = db.execute(
        "SELECT m.id, m.seq FROM retractions AS r CROSS JOIN messages AS m WHERE m.id = message AND shown = 1 AND r.session = ?", (session,)
    ).fetchall()
    ids = {identifier for identifier, _ in rows}
    db.execute("UPDATE retractions SET shown = 0 WHERE message IN (SELECT value FROM json_each(?))", (json.dumps(sorted(ids)),))
    files.forget(db, json.dumps(sorted(ids)))
    if rows:
        forgetting.leave_summaries(db, session, ids, min(seq for _, seq in rows), zone, known)


def _wait(db: Connection, external_id: str, now: float) -> bool:
    db.execute(
        "DELETE FROM deletions WHERE at < ? OR external_id IN (SELECT external_id FROM deletions ORDER BY at DESC LIMIT ? OFFSET ?)",
        (now - KEPT, 2**62, MOST),
    )
    return bool(db.execute("INSERT INTO deletions (external_id, at) VALUES (?, ?) ON CONFLICT DO NOTHING", (external_id, now)).rowcount)


def _unsay(db: Connection, number: int, state: str | None) -> None:
    """Take the words of an inbox row away, with its line on the chat page and its edits."""
    db.execute(
        "UPDATE inbox SET text = '', reason = 'it was deleted', state = coalesce(?, state) WHERE id = ?",
        (state, number),
    )
    db.execute("UPDATE inbox SET text = '' WHERE edits = (SELECT external_id FROM inbox WHERE id = ?)", (number,))
    db.execute("DELETE FROM timeline WHERE inbox = ?", (number,))


def _message(db: Connection, number: int, turn: str | None) -> str | None:
    """The row of the transcript that an inbox row of an older clew became."""
    row = db.execute(
        "SELECT id FROM messages WHERE turn = ? AND turn <> '' AND role = 'user' AND CAST(metadata ->> 'inbox' AS TEXT) = ?",
        (turn, str(number)),
    ).fetchone()
    return row[0] if row else None
