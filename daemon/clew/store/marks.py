"""What people say of single messages: pinned, or taken back. The messages themselves never change."""

from collections.abc import Collection
from zoneinfo import ZoneInfo

from clew.errors import NotFound, UsageError
from clew.messages import Message
from clew.store import Effect, Pin, compactions, erased, forgetting, private, transcript
from clew.store.connection import Connection

SHOWN = 40
"""Characters of a wrong id that are said back."""
_STANDING = "id NOT IN (SELECT message FROM retractions)"


def pins(db: Connection, session: str) -> list[Pin]:
    """The pinned messages of a session that nobody took back, the one pinned last at the end."""
    placed = {message: (by, at) for message, by, at in db.execute("SELECT message, by, at FROM pins WHERE session = ?", (session,))}
    found = [Pin(row, *placed[row.id]) for row in transcript.standing(db, placed)]
    return sorted(found, key=lambda each: (each.at, each.message.seq))


def find(db: Connection, session: str, key: str) -> Message:
    """The message of a session with this id, or this beginning of one, or at this place (`#7`). Raises NotFound or UsageError."""
    place = int(key[1:]) if key[:1] == "#" and key[1:].isdecimal() and len(key) < 12 else 0
    rows = db.execute(
        f"SELECT {transcript.COLUMNS} FROM messages WHERE session = ? AND (seq = ? OR substr(id, 1, ?) = ?) AND {_STANDING}"
        " ORDER BY id = ? DESC, seq LIMIT 2",
        (session, place, len(key), key, key),
    ).fetchall()
    if not rows or not key:
        raise NotFound(
            f"There is no message {key[:SHOWN]!r} in session {session}.", hint="#7 is its seventh; `clew session show` numbers them."
        )
    if len(rows) > 1 and rows[0][0] != key:
        raise UsageError(f"{key[:SHOWN]!r} is the beginning of several messages.", hint="Give more characters of the id.")
    return transcript.message(rows[0])


def answered_to(db: Connection, session: str, reference: str) -> Message | None:
    """The message that somebody replied to, by the id under which their platform, or they themselves, know it."""
    row = db.execute(
        f"SELECT {transcript.COLUMNS} FROM messages WHERE session = ? AND role = 'user' AND metadata ->> 'client_id' = ?"
        f" AND {_STANDING} ORDER BY seq DESC LIMIT 1",
        (session, reference),
    ).fetchone()
    row = (
        row
        or db.execute(
            f"SELECT {transcript.COLUMNS} FROM messages WHERE session = ? AND role = 'assistant' AND {_STANDING} AND turn IN"
            " (SELECT turn FROM outbox WHERE session = ? AND (id = ? OR ref = ?)) ORDER BY seq DESC LIMIT 1",
            (session, session, reference, reference),
        ).fetchone()
    )
    return transcript.message(row) if row else None


def newest(db: Connection, session: str) -> Message | None:
    """The newest message of a session that has words."""
    rows = db.execute(
        f"SELECT {transcript.COLUMNS} FROM messages WHERE session = ? AND role != 'tool' AND {_STANDING} ORDER BY seq DESC", (session,)
    )
    return next((row for row in map(transcript.message, rows) if row.text.strip()), None)


def take(db: Connection, session: str, effect: Effect, now: float, known: Collection[str] = ()) -> None:
    """Let an effect take place; one that took place already changes nothing. known: secrets of this installation. Raises UsageError where
    the compaction to undo is not the newest any more."""
    match effect.kind:
        case "pin":
            rows = [(session, each, effect.by, now) for each in effect.ids]
            db.executemany("INSERT INTO pins (session, message, by, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", rows)
        case "unpin":
            db.executemany("DELETE FROM pins WHERE session = ? AND message = ?", [(session, each) for each in effect.ids])
        case "take_back":
            taken = [(each, now) for each in effect.ids]
            db.executemany("INSERT INTO retractions (message, reason, at) VALUES (?, 'undo', ?) ON CONFLICT DO NOTHING", taken)
        case "forget":
            forgetting.take(db, session, effect.ids, ZoneInfo(effect.zone), known, now)
            erased.record(db, "messages", {"session": session, "ids": effect.ids}, now)
        case "private":
            private.begin(db, session)
        case "open":
            private.end(db, session)
        case "undo":
            for compaction in effect.ids:
                if not compactions.undo(db, session, compaction, now):
                    raise UsageError("Another compaction was made just now. Nothing was undone.", hint="Try again to undo that one.")
