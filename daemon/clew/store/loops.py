"""Loops: how often somebody has answered in a chat as no person does, and until when they are left alone for it."""

from functools import lru_cache
from typing import Literal

from clew.context.loops import IN_A_ROW, REST, Spoken, is_mechanical
from clew.store.connection import Connection
from clew.store.damage import readable
from clew.transport import Inbound

RECENT = 5
"""Replies of a chat that are compared with what comes in."""
REMEMBERED = 256
"""Replies whose parts are remembered: each is compared with several messages."""

Loop = Literal["", "begins", "goes on"]


def seen(db: Connection, item: Inbound, chat: int, person: str, length: int, rests_until: float, now: float) -> Loop:
    """Whether this message is one too many of a loop; it is counted. length, rests_until: those of the loop so far, 0 for none."""
    if item.kind != "message":
        return ""
    if now < rests_until <= now + REST:
        return "goes on"
    if not is_mechanical(item.text, lambda: _before(db, item, person), _replies(db, item), now, direct=item.direct):
        if length:
            db.execute("DELETE FROM loops WHERE chat = ? AND person = ?", (chat, person))
        return ""
    length = 1 if rests_until else length + 1
    ends = length > IN_A_ROW
    db.execute(
        "INSERT INTO loops (chat, person, length, rests_until) VALUES (?, ?, ?, ?) ON CONFLICT (chat, person) DO UPDATE"
        " SET length = excluded.length, rests_until = excluded.rests_until",
        (chat, person, length, now + REST if ends else 0.0),
    )
    return "begins" if ends else ""


def _before(db: Connection, item: Inbound, person: str) -> str:
    """What somebody said last in a chat."""
    row = db.execute(
        "SELECT text FROM (SELECT i.text, i.person FROM timeline AS t JOIN inbox AS i ON i.id = t.inbox WHERE t.address = ?"
        " ORDER BY t.seq DESC LIMIT ?) AS newest WHERE person = ? LIMIT 1",
        (str(item.address), RECENT, person),
    ).fetchone()
    return row[0] if row else ""


def _replies(db: Connection, item: Inbound) -> list[Spoken]:
    """The newest of what clew said in a chat, each part by itself."""
    rows = db.execute(
        "SELECT text, parts, settled FROM outbox WHERE address = ? AND state IN ('sending', 'sent') ORDER BY number DESC LIMIT ?",
        (str(item.address), RECENT),
    )
    return [Spoken(part, settled) for text, parts, settled in rows.fetchall() for part in _parts(text, parts)]


@lru_cache(maxsize=REMEMBERED)
def _parts(text: str, parts: str) -> tuple[str, ...]:
    """A reply and its parts, each once."""
    return tuple(dict.fromkeys([text, *readable(parts, [text])]))
