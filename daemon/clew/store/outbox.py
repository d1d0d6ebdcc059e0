"""Replies on their way out: pending → sending → sent | unknown | dead, one lane per address."""

import json
import sqlite3
from typing import Any

from clew.clock import new_id
from clew.store import Reply, Settlement
from clew.store.damage import readable
from clew.transport import Address, Delivery, Part

_COLUMNS = "id, address, text, parts, created, in_reply_to, answers, context, sent_parts, attempts, repeated, preview_ref, session, turn"


_FIRST = (
    "NOT EXISTS (SELECT 1 FROM outbox AS earlier WHERE earlier.transport = o.transport AND earlier.address = o.address"
    " AND earlier.number < o.number AND earlier.state IN ('pending', 'sending'))"
)
"""That a row of `outbox AS o` is the first of its lane."""


LONGEST_WAIT = 600.0
"""Seconds; no delivery is put off for longer, so one that is due later was put off by a clock that has gone back since: it is due."""


def put(db: sqlite3.Connection, reply: Reply, session: str, turn: str, now: float) -> str:
    """Store a reply. Returns its id."""
    identifier, number = _insert(db, reply, "sent" if reply.instant else "pending", session, turn, now)
    db.execute("INSERT INTO timeline (address, outbox) VALUES (?, ?)", (str(reply.address), number))
    return identifier


def _insert(db: sqlite3.Connection, reply: Reply, state: str, session: str, turn: str, now: float) -> tuple[str, int]:
    identifier = new_id()
    number: int = db.execute(
        "INSERT INTO outbox (id, state, transport, address, session, turn, text, parts, in_reply_to, answers, context,"
        " next_at, created, settled) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
        (
            identifier,
            state,
            reply.address.transport,
            str(reply.address),
            session,
            turn,
            reply.text,
            json.dumps([part.text for part in reply.parts], ensure_ascii=False),
            reply.in_reply_to,
            json.dumps(reply.answers),
            json.dumps(dict(reply.context)),
            now,
            now,
            now if reply.instant else None,
        ),
    ).fetchone()[0]
    return identifier, number


def put_once(db: sqlite3.Connection, key: str, reply: Reply, now: float, again_after: float) -> bool:
    """Store words unless the ones with this `key` were stored less than `again_after` seconds ago. Returns whether they were."""
    last = db.execute("SELECT value FROM meta WHERE key = ?", (f"said/{key}",)).fetchone()
    if last and now - float(last[0]) < again_after:
        return False
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (f"said/{key}", repr(now)))
    put(db, reply, session="", turn="", now=now)
    return True


def draft(db: sqlite3.Connection, reply: Reply, session: str, turn: str, now: float) -> Delivery:
    """The row of a reply that is still being written, made before its first preview is shown."""
    row = db.execute(f"SELECT {_COLUMNS} FROM outbox WHERE turn = ? AND state = 'draft'", (turn,)).fetchone()
    if row is None:
        identifier, _ = _insert(db, reply, "draft", session, turn, now)
        row = db.execute(f"SELECT {_COLUMNS} FROM outbox WHERE id = ?", (identifier,)).fetchone()
    return _delivery(row)


def previewed(db: sqlite3.Connection, delivery: str, ref: str) -> None:
    db.execute("UPDATE outbox SET preview_ref = ? WHERE id = ? AND state = 'draft'", (ref, delivery))


def complete(db: sqlite3.Connection, turn: str, reply: Reply, now: float) -> str | None:
    """Turn the draft of `turn` into `reply`. None: it had none."""
    row = db.execute("SELECT id, number FROM outbox WHERE turn = ? AND state = 'draft'", (turn,)).fetchone()
    if row is None:
        return None
    parts = json.dumps([part.text for part in reply.parts], ensure_ascii=False)
    db.execute(
        "UPDATE outbox SET state = 'pending', text = ?, parts = ?, next_at = ? WHERE id = ?",
        (reply.text, parts, now, row[0]),
    )
    db.execute("INSERT INTO timeline (address, outbox) VALUES (?, ?)", (str(reply.address), row[1]))
    return str(row[0])


def claim(db: sqlite3.Connection, transport: str, now: float) -> tuple[Delivery | None, float | None]:
    """The oldest delivery that is due and first in its lane, and when the one after it is due."""
    row = db.execute(
        f"UPDATE outbox SET state = 'sending', attempts = attempts + 1 WHERE number ="
        f" (SELECT number FROM outbox AS o WHERE transport = ? AND state = 'pending' AND (next_at <= ? OR next_at > ?) AND {_FIRST}"
        f"  ORDER BY next_at, number LIMIT 1) RETURNING {_COLUMNS}",
        (transport, now, now + LONGEST_WAIT),
    ).fetchone()
    return _delivery(row) if row else None, next_due(db, transport, now)


def next_due(db: sqlite3.Connection, transport: str, now: float) -> float | None:
    """When the next delivery of `transport` that is first in its lane is due."""
    due = "CASE WHEN next_at > ? THEN ? ELSE next_at END"
    sql = f"SELECT min({due}) FROM outbox AS o WHERE transport = ? AND state = 'pending' AND {_FIRST}"
    row = db.execute(sql, (now + LONGEST_WAIT, now, transport)).fetchone()
    return None if row[0] is None else float(row[0])


def settle(db: sqlite3.Connection, delivery: Delivery, result: Settlement, now: float) -> float | None:
    """Note what came of sending. Returns when the transport's next delivery is due."""
    db.execute(
        "UPDATE outbox SET state = ?, ref = ?, reason = ?, next_at = ?, sent_parts = ?, repeated = max(repeated, ?), settled = ?"
        " WHERE id = ?",
        (
            result.state,
            result.ref,
            result.reason,
            result.next_at,
            result.sent_parts,
            int(result.repeat),
            None if result.state == "pending" else now,
            delivery.id,
        ),
    )
    return next_due(db, delivery.address.transport, now)


def advance(db: sqlite3.Connection, delivery: str, parts: int) -> None:
    """Note that the first `parts` parts are with the platform. What may be sent twice from now on is the next one."""
    db.execute("UPDATE outbox SET sent_parts = ?, repeated = 0 WHERE id = ? AND state = 'sending'", (parts, delivery))


def recover(db: sqlite3.Connection, idempotent: frozenset[str], now: float) -> int:
    """After a crash: what was being sent is sent again where the receiver drops repeats, elsewhere once and marked as a repeat.

    Returns how many have had their repeat and stay unknown.
    """
    db.execute(
        "WITH idempotent AS (SELECT value FROM json_each(?))"
        " UPDATE outbox SET state = 'pending', next_at = ?, repeated = transport NOT IN idempotent"
        " WHERE state = 'sending' AND (repeated = 0 OR transport IN idempotent)",
        (json.dumps(sorted(idempotent)), now),
    )
    return db.execute(
        "UPDATE outbox SET state = 'unknown', reason = 'the daemon stopped while it was being sent', settled = ? WHERE state = 'sending'",
        (now,),
    ).rowcount


def again(db: sqlite3.Connection, delivery: str, now: float) -> bool:
    """Send a dead or unknown delivery once more. False: there is no such one."""
    return bool(
        db.execute(
            "UPDATE outbox SET state = 'pending', attempts = 0, next_at = ?, reason = '', settled = NULL"
            " WHERE id = ? AND state IN ('dead', 'unknown')",
            (now, delivery),
        ).rowcount
    )


def discard(db: sqlite3.Connection, delivery: str) -> bool:
    """Give up a delivery that is not on its way; the words stay in the transcript. False: there is no such one."""
    gone = db.execute("DELETE FROM outbox WHERE id = ? AND state IN ('pending', 'dead', 'unknown')", (delivery,))
    return bool(gone.rowcount)


def listing(db: sqlite3.Connection, states: tuple[str, ...]) -> list[dict[str, Any]]:
    """Deliveries in one of `states`, oldest first, as plain values."""
    rows = db.execute(
        "SELECT id, state, address, session, attempts, reason, created, next_at FROM outbox"
        " WHERE state IN (SELECT value FROM json_each(?)) ORDER BY number",
        (json.dumps(states),),
    )
    names = ("id", "state", "address", "session", "attempts", "reason", "created", "next_at")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _delivery(row: tuple[Any, ...]) -> Delivery:
    (identifier, address, text, parts, created, reply_to, answers, context, sent, attempts, repeated, ref, session, turn) = row
    texts = readable(parts, [text])
    return Delivery(
        id=identifier,
        address=Address.parse(address),
        text=text,
        parts=tuple(Part(part, index, len(texts)) for index, part in enumerate(texts, 1)),
        ts=created,
        in_reply_to=reply_to,
        answers=tuple(readable(answers, [])),
        context=readable(context, {}),
        sent=sent,
        attempt=attempts,
        repeat=bool(repeated),
        preview_ref=ref,
        session=session,
        turn=turn,
    )
