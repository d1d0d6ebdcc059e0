"""Sessions as people handle them: listed, shown, exported, imported, deleted, verified."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from clew.context.consent import QUESTION_CODE
from clew.errors import NotFound, UsageError
from clew.messages import blocks_to_json, readable_blocks
from clew.store import Said, Sent, SessionRow, accept, branches, cleaning, compactions, forgetting, spending, transcript, turns
from clew.store.connection import Connection
from clew.store.damage import readable
from clew.store.imports import FORMAT
from clew.transport import Inbound

LISTING = (
    "SELECT s.id, c.address, s.title, s.created,"
    " coalesce((SELECT max(at) FROM messages WHERE session = s.id), s.created) AS updated,"
    " (SELECT count(*) FROM messages WHERE session = s.id),"
    " (SELECT count(*) FROM compactions WHERE session = s.id AND undone_at IS NULL), c.person"
    " FROM sessions AS s JOIN chats AS c ON c.id = s.chat"
)


def listing(db: Connection, address: str | None = None, limit: int = 1000) -> list[SessionRow]:
    """Sessions but those of jobs' runs, the one used last first; of one chat where `address` is given."""
    rows = db.execute(
        f"{LISTING} WHERE s.run = 0 AND c.address = coalesce(?, c.address) ORDER BY updated DESC, s.created DESC LIMIT ?",
        (address, limit),
    )
    return [SessionRow(*row) for row in rows]


def find(db: Connection, prefix: str) -> SessionRow:
    """The session whose id is `prefix` or begins with it alone. Raises NotFound, or UsageError where several do."""
    return only(matching(db, prefix), prefix, hint="`clew session list` shows those that are.")


def matching(db: Connection, prefix: str, condition: str = "", values: Sequence[Any] = ()) -> list[SessionRow]:
    """A few sessions whose ids begin with `prefix`, in their order."""
    if not (prefix and prefix.isascii()):
        return []
    escaped = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    rows = db.execute(f"{LISTING} WHERE lower(s.id) LIKE ? ESCAPE '\\' {condition} ORDER BY s.id LIMIT 6", (f"{escaped.lower()}%", *values))
    return [SessionRow(*row) for row in rows]


def only(found: Sequence[SessionRow], prefix: str, hint: str) -> SessionRow:
    """The session that is meant. Raises NotFound with this hint, or UsageError where several are."""
    if not found:
        raise NotFound(f"There is no session {prefix[:40]!r}.", hint=hint)
    if len(found) > 1 and found[0].id != prefix:
        some = ", ".join(row.id for row in found[:5])
        raise UsageError(f"{prefix!r} is the beginning of several sessions: {some}.", hint="Give more characters of the id.")
    return found[0]


def listing_for(db: Connection, address: str, limit: int) -> list[SessionRow]:
    """The threads that may be gone on with at an address, the one used last first: its own and, in somebody's direct chat, those of their
    other direct chats."""
    rows = db.execute(f"{LISTING} WHERE s.run = 0 AND {_MAY} ORDER BY updated DESC, s.created DESC LIMIT ?", (address, address, limit))
    return [SessionRow(*row) for row in rows]


_MAY = (
    "(c.address = ? OR EXISTS (SELECT 1 FROM chats AS here WHERE here.address = ? AND here.direct = 1 AND c.direct = 1"
    " AND here.person IS NOT NULL AND here.person = c.person))"
)
"""That a thread of the chat `c` may be gone on with at an address, which is given twice."""


def find_for(db: Connection, address: str, prefix: str) -> SessionRow:
    """The thread that may be gone on with at `address` and whose id begins with `prefix` alone. Raises NotFound or UsageError."""
    found = matching(db, prefix, f"AND s.run = 0 AND {_MAY}", (address, address))
    return only(found, prefix, hint="/sessions lists those that you can go on with here.")


def current(db: Connection, address: str) -> str | None:
    """The session that the next message at `address` joins."""
    row = db.execute("SELECT session FROM chats WHERE address = ?", (address,)).fetchone()
    return row[0] if row else None


def open_chat(db: Connection, item: Inbound, person: str, now: float, title: str) -> str:
    """Make a session at the address of `item` and let its next message join it."""
    return turns.new_session(db, accept.chat_for(db, item, person, now), now, title)


def join_chat(db: Connection, item: Inbound, person: str, session: str, now: float) -> None:
    """Let the next message at the address of `item` join `session`; the session's own chat keeps it too."""
    db.execute("UPDATE chats SET session = ? WHERE id = ?", (session, accept.chat_for(db, item, person, now)))


def export(db: Connection, session: str) -> dict[str, Any]:
    """Everything of a session as plain values; `imports` gives an equal one back."""
    row = find(db, session)
    front = branches.in_front(db, row.id)
    if front:
        return _with_front(front, _export(db, row, 0))
    return _export(
        db, row, db.execute("SELECT CASE WHEN run = 1 THEN fork_seq ELSE 0 END FROM sessions WHERE id = ?", (row.id,)).fetchone()[0]
    )


def _with_front(front: Sequence[tuple[Any, ...]], exported: dict[str, Any]) -> dict[str, Any]:
    """The export of a thread that branched off, with the rows of its parent that its summary covers, under ids of their own."""
    own = exported["session"]["id"]
    ids = {row[0]: hashlib.blake2b(f"{own}/{row[0]}".encode(), digest_size=13).hexdigest() for row in front}
    messages = [_exported((ids[row[0]], *row[1:])) for row in front]
    told = json.dumps([exported["compactions"], exported["pins"]], ensure_ascii=False)
    for old, new in ids.items():
        told = told.replace(old, new)
    compactions_told, pins = json.loads(told)
    return exported | {"messages": [*messages, *exported["messages"]], "compactions": compactions_told, "pins": pins}


def _export(db: Connection, row: SessionRow, first: int) -> dict[str, Any]:
    """All of a session's own, numbered behind row `first`."""
    messages = db.execute(
        "SELECT m.id, seq - ?, role, blocks, sender, sender_name, turn, metadata, at, c.address FROM messages AS m"
        " JOIN chats AS c ON c.id = m.chat WHERE m.session = ? ORDER BY seq",
        (first, row.id),
    )
    exported = [_exported(each) for each in messages]
    direct = db.execute("SELECT direct FROM chats WHERE address = ?", (row.address,)).fetchone()[0]
    return {
        "clew": FORMAT,
        "session": {"id": row.id, "address": row.address, "direct": bool(direct), "title": row.title, "created": row.created},
        "messages": exported,
        "compactions": [_table_row(db, "compactions", each.id) for each in compactions.listing(db, row.id)],
        "pins": _rows(db, "SELECT message, by, at FROM pins WHERE session = ? ORDER BY message", row.id),
        "edits": _rows(
            db,
            "SELECT e.message, e.text, e.at FROM edits AS e JOIN messages AS m ON m.id = e.message WHERE session = ? ORDER BY e.id",
            row.id,
        ),
        "retractions": _rows(
            db,
            "SELECT message, reason, at FROM retractions WHERE session = ? ORDER BY message",
            row.id,
        ),
        "model_calls": _rows(db, "SELECT * FROM model_calls WHERE session = ? ORDER BY started, id", row.id),
    }


_EXPORTED = ("id", "seq", "role", "blocks", "sender", "sender_name", "turn", "metadata", "at", "address")


def _exported(row: Sequence[Any]) -> dict[str, Any]:
    message = dict(zip(_EXPORTED, row, strict=True))
    return message | {"blocks": _readable(message["blocks"]), "metadata": readable(message["metadata"], {})}


def _readable(blocks: str) -> Any:
    """A message's blocks as plain values; of damaged ones what can be read."""
    return json.loads(blocks_to_json(readable_blocks(blocks)))


def _table_row(db: Connection, table: str, identifier: str) -> dict[str, Any]:
    return _rows(db, f"SELECT * FROM {table} WHERE id = ?", identifier)[0]


def _rows(db: Connection, sql: str, *values: Any) -> list[dict[str, Any]]:
    found = db.execute(sql, values)
    names = [column[0] for column in found.description]
    rows = [dict(zip(names, row, strict=True)) for row in found]
    return [{name: value for name, value in row.items() if name != "rowid"} for row in rows]  # a column where SQLite has a hidden one


def delete(db: Connection, session: str) -> int:
    """Delete a session with all that hangs on it. Returns the number of messages. Raises UsageError while a turn of it runs."""
    running = db.execute("SELECT 1 FROM turns WHERE session = ? AND state IN ('running', 'waiting')", (session,)).fetchone()
    if running:
        raise UsageError(f"A turn of session {session} is running.", hint="Wait for its reply, or write /stop in its chat, then try again.")
    spending.roll(db)  # what it cost stays known
    db.execute("UPDATE inbox SET text = '' WHERE message IN (SELECT id FROM messages WHERE session = ?)", (session,))
    forgetting.unquote(db, [row[0] for row in db.execute("SELECT id FROM messages WHERE session = ?", (session,))])
    cleaning.ask(db)
    gone = transcript.forget(db, session)
    for (run,) in db.execute("SELECT id FROM sessions WHERE parent = ? AND run = 1", (session,)).fetchall():
        gone += delete(db, run)
    db.execute("DELETE FROM outbox WHERE session = ? AND state != 'sending'", (session,))
    db.execute("UPDATE outbox SET text = '', parts = '[]' WHERE session = ?", (session,))
    turns_of = "SELECT id FROM inbox WHERE turn IN (SELECT id FROM turns WHERE session = ?)"
    db.execute(f"DELETE FROM timeline WHERE inbox IN ({turns_of})", (session,))
    db.execute(f"UPDATE inbox SET text = '', context = '{{}}', sender_name = '' WHERE id IN ({turns_of})", (session,))
    db.execute("UPDATE chats SET session = NULL WHERE session = ?", (session,))
    db.execute("DELETE FROM meta WHERE key = ?", (f"repaired/{session}",))
    db.execute("DELETE FROM sessions WHERE id = ?", (session,))
    spending.skip(db)
    return gone


def history(db: Connection, address: str, after: int, limit: int, *, newest: bool = True) -> list[Said]:
    """What was said at `address` behind place `after` of its timeline, oldest first: the `newest` or else the first `limit` of it."""
    rows = db.execute(
        "SELECT t.seq, coalesce(o.id, i.client_id), CASE WHEN o.id IS NULL THEN 'user' ELSE 'assistant' END, coalesce(o.text, i.text),"
        " coalesce(o.created, i.received), coalesce(i.sender_name, ''), coalesce(o.in_reply_to, ''), coalesce(o.answers, '[]'),"
        " CASE WHEN turns.state = 'failed' THEN 1 ELSE 0 END,"
        " coalesce((SELECT asking FROM approvals WHERE approvals.outbox = o.id AND approvals.state = 'open' LIMIT 1), ''), i.id"
        " FROM timeline AS t LEFT JOIN inbox AS i ON i.id = t.inbox"
        " LEFT JOIN outbox AS o ON o.number = t.outbox LEFT JOIN turns ON turns.id = o.turn"
        f" WHERE t.address = ? AND t.seq > ? ORDER BY t.seq {'DESC' if newest else 'ASC'} LIMIT ?",
        (address, after, limit),
    ).fetchall()
    sent = _sent(db, [row[-1] for row in rows if row[-1] is not None])
    said = [_said(sent.get(row[-1], ()), *row[:-1]) for row in rows]
    return said[::-1] if newest else said


def _sent(db: Connection, arrivals: Sequence[int]) -> dict[int, tuple[Sent, ...]]:
    """The files that are stored of arrivals, by their inbox rows."""
    found: dict[int, tuple[Sent, ...]] = {}
    rows = db.execute(
        "SELECT inbox, id, name, mime, size, file FROM attachments WHERE inbox IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"
        " AND hash <> '' ORDER BY number",
        (json.dumps(arrivals),),
    )
    for number, identifier, name, mime, size, file in rows:
        stored: list[Any] = readable(file, [])
        known = str(stored[0].get("mime", mime)) if stored else mime
        found[number] = (*found.get(number, ()), Sent(identifier, name, known, size))
    return found


def _said(
    files: tuple[Sent, ...],
    seq: int,
    identifier: str,
    role: Any,
    text: str,
    at: float,
    name: str,
    in_reply_to: str,
    answers: str,
    failed: int,
    asking: str,
) -> Said:
    known: tuple[str, ...] = tuple(readable(answers, []))
    return Said(seq, identifier, role, text, at, name, in_reply_to, known, bool(failed), asking[:QUESTION_CODE], files)


TOLD = 200
"""Repairs of one session that are remembered as told, the newest."""


def untold(db: Connection, session: str, repairs: Sequence[str]) -> tuple[str, ...]:
    """Which of these repairs of a session's view were not told yet."""
    told = _told(db, session)
    return tuple(repair for repair in repairs if repair not in told)


def tell(db: Connection, session: str, repairs: Sequence[str]) -> tuple[str, ...]:
    """Note these repairs as told. Returns those that were not."""
    new = untold(db, session, repairs)
    known = json.dumps([*_told(db, session), *new][-TOLD:], ensure_ascii=False)
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (f"repaired/{session}", known)
    )
    return new


def _told(db: Connection, session: str) -> list[str]:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (f"repaired/{session}",)).fetchone()
    return readable(row[0], []) if row else []
