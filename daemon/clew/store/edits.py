"""Edits of what people said: used as long as nothing was answered, afterwards kept beside it. They may come before their message."""

from dataclasses import replace

from clew.store.connection import Connection
from clew.transport import Inbound

_AT = "coalesce(sent_at, received)"
"""When something was written or edited, as far as the platform says so."""


def take(db: Connection, item: Inbound, chat: int, person: str, now: float) -> None:
    """Let an edit that was stored just now take effect, unless one that was made later did."""
    row = db.execute(
        "SELECT id, state, message FROM inbox WHERE external_id = ? AND chat = ? AND person = ?", (item.edits, chat, person)
    ).fetchone()
    if row is None:
        return
    number, state, message = row
    if message is not None and _forgotten(db, message):
        db.execute("UPDATE inbox SET text = '', context = '{}' WHERE external_id = ?", (item.external_id,))
    elif message is not None:
        db.execute("INSERT INTO edits (message, text, at) VALUES (?, ?, ?)", (message, item.text, item.sent_at or now))
    elif state == "new" and (newest := _newest(db, item.edits, chat, person)) is not None:
        db.execute("UPDATE inbox SET text = ? WHERE id = ?", (newest, number))


def _forgotten(db: Connection, message: str) -> bool:
    """Whether a message has no words any more, and is not given others by an edit."""
    return db.execute("SELECT 1 FROM messages WHERE id = ? AND blocks = '[]'", (message,)).fetchone() is not None


def applied(db: Connection, item: Inbound, chat: int, person: str) -> Inbound:
    """A message as it reads after the edits that came before it."""
    newest = _newest(db, item.external_id, chat, person) if item.kind in ("message", "context") else None
    return item if newest is None else replace(item, text=newest)


def _newest(db: Connection, external_id: str, chat: int, person: str) -> str | None:
    row = db.execute(
        f"SELECT text FROM inbox WHERE edits = ? AND chat = ? AND person = ? ORDER BY {_AT} DESC, id DESC LIMIT 1",
        (external_id, chat, person),
    ).fetchone()
    return row[0] if row else None
