"""Replies on their way out: pending → sending → sent | unknown | dead, one lane per address."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from clew.clock import new_id
from clew.store import Reply, Settlement
from clew.store.connection import Connection
from clew.store.damage import readable
from clew.store.grouping import lane, shared
from clew.transport import Address, Delivery, Part

_COLUMNS = (
    "id, address, text, parts, created, in_reply_to, answers, context, sent_parts, attempts, repeated, preview_ref, session, turn, owner"
)


BEGINNING = 20_000
"""Characters of a reply that are given where replies are listed."""


_FIRST = (
    "NOT EXISTS (SELECT 1 FROM outbox AS earlier WHERE earlier.transport = o.transport AND earlier.address = o.address"
    " AND earlier.number < o.number AND earlier.state IN ('pending', 'sending'))"
)
"""That a row of `outbox AS o` is the first of its lane."""


_DUE = "(next_at <= :now OR tried > :now)"
"""That a row is due. One that was tried later than now was put off by a clock that has gone back since."""


_NEXT_DUE = (
    "SELECT min(CASE WHEN tried > :now THEN :now ELSE next_at END) FROM outbox AS o"
    f" WHERE transport = :transport AND state = 'pending' AND {_FIRST}"
)


@shared(lambda reply, session, turn, now: [lane(reply.address)])
def put(db: Connection, reply: Reply, session: str, turn: str, now: float) -> str:
    """Store a reply. Returns its id."""
    identifier, number = _insert(db, reply, "sent" if reply.instant else "pending", session, turn, now)
    db.execute("INSERT INTO timeline (address, outbox) VALUES (?, ?)", (str(reply.address), number))
    return identifier


def put_all(db: Connection, replies: Sequence[Reply], session: str, turn: str, now: float) -> tuple[str, ...]:
    """Store what a turn without a draft ends with. Returns the ids."""
    return tuple(put(db, reply, session, turn, now) for reply in replies)


def put_last(db: Connection, replies: Sequence[Reply], session: str, turn: str, now: float) -> tuple[str, ...]:
    """Store what a turn ends with: its draft becomes the reply at the same address, or is taken away. Returns the ids."""
    stored = tuple(complete(db, turn, reply, now) or put(db, reply, session, turn, now) for reply in replies)
    drop_drafts(db, turn, now)
    return stored


def _insert(db: Connection, reply: Reply, state: str, session: str, turn: str, now: float) -> tuple[str, int]:
    identifier = new_id()
    number = db.insert(
        "INSERT INTO outbox (id, state, transport, address, session, turn, text, parts, in_reply_to, answers, context,"
        " next_at, created, settled) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        "number",
    )
    return identifier, number


def put_once(db: Connection, key: str, reply: Reply, now: float, again_after: float) -> bool:
    """Store words unless the ones with this `key` were stored less than `again_after` seconds ago. Returns whether they were."""
    last = db.execute("SELECT value FROM meta WHERE key = ?", (f"said/{key}",)).fetchone()
    if last and now - float(last[0]) < again_after:
        return False
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (f"said/{key}", repr(now))
    )
    put(db, reply, session="", turn="", now=now)
    return True


@shared(lambda turn, now: ())
def draft(db: Connection, turn: str, now: float) -> Delivery | None:
    """The row of the reply that a turn is still writing, made before its first preview is shown. None: the turn does not run any more.

    `preview_ref` is empty as long as it is not known what the platform made of the first preview. `repeat`: it was there already.
    """
    if not db.execute(f"SELECT 1 FROM turns WHERE id = ? AND state = 'running'{db.locked}", (turn,)).fetchone():
        return None
    if row := db.execute(f"SELECT {_COLUMNS} FROM outbox WHERE turn = ? AND state = 'draft'", (turn,)).fetchone():
        return replace(_delivery(row), repeat=True)
    session, address = db.execute(
        "SELECT turns.session, address FROM turns JOIN chats ON chats.id = turns.chat WHERE turns.id = ?", (turn,)
    ).fetchone()
    newest = db.execute("SELECT client_id, context FROM inbox WHERE turn = ? ORDER BY id DESC LIMIT 1", (turn,)).fetchone()
    client_id, context = newest or ("", "{}")
    reply = Reply(Address.parse(address), "", (), in_reply_to=client_id, context=readable(context, {}))
    identifier, _ = _insert(db, reply, "draft", session, turn, now)
    row = db.execute(f"UPDATE outbox SET preview_ref = '' WHERE id = ? RETURNING {_COLUMNS}", (identifier,)).fetchone()
    return _delivery(row)


@shared(lambda delivery, ref: ())
def previewed(db: Connection, delivery: str, ref: str | None) -> None:
    """Note by which message a reply is shown while it is written. None: it is shown by none (any more)."""
    db.execute("UPDATE outbox SET preview_ref = ? WHERE id = ? AND state IN ('draft', 'pending', 'sending')", (ref, delivery))


def complete(db: Connection, turn: str, reply: Reply, now: float, *, ends: bool = True) -> str | None:
    """Turn the draft of `turn` into `reply`. None: it has none at this address. ends: it is the turn's own, not a question in between."""
    row = db.execute(
        "SELECT id, number FROM outbox WHERE turn = ? AND state = 'draft' AND address = ?", (turn, str(reply.address))
    ).fetchone()
    if row is None:
        return None
    db.execute(
        "UPDATE outbox SET state = 'pending', text = ?, parts = ?, in_reply_to = ?, answers = ?, context = ?, next_at = ?, created = ?,"
        " turn = ? WHERE id = ?",
        (
            reply.text,
            json.dumps([part.text for part in reply.parts], ensure_ascii=False),
            reply.in_reply_to,
            json.dumps(reply.answers),
            json.dumps(dict(reply.context)),
            now,
            now,
            turn if ends else "",
            row[0],
        ),
    )
    db.execute("INSERT INTO timeline (address, outbox) VALUES (?, ?)", (str(reply.address), row[1]))
    return str(row[0])


def drop_drafts(db: Connection, turn: str, now: float) -> None:
    """What a turn has shown and will not say is taken away from its platform."""
    db.execute("UPDATE outbox SET state = 'pending', next_at = ? WHERE turn = ? AND state = 'draft'", (now, turn))


_HELD = "id = ? AND state = 'sending' AND owner = ? AND attempts = ?"
"""That a delivery is still its sender's own: whoever found that process gone has taken it back, or claimed it anew."""


@shared(lambda owner, transport, now: ())
def claim(db: Connection, owner: str, transport: str, now: float) -> tuple[Delivery | None, float | None]:
    """The oldest delivery that is due and first in its lane, and when the one after it is due."""
    row = db.execute(  # the row itself is left out of what is due, as it may be seen before its change and after it
        "UPDATE outbox SET state = 'sending', attempts = attempts + 1, owner = :owner WHERE number ="
        f" (SELECT number FROM outbox AS o WHERE transport = :transport AND state = 'pending' AND {_DUE} AND {_FIRST}"
        f"  ORDER BY next_at, number LIMIT 1{db.unlocked}) RETURNING {_COLUMNS},"
        " EXISTS (SELECT 1 FROM approvals AS a WHERE a.outbox = outbox.id AND a.state = 'open'),"
        f" ({_NEXT_DUE} AND o.number <> outbox.number)",
        {"owner": owner, "transport": transport, "now": now},
    ).fetchone()
    if row is None:
        return None, next_due(db, transport, now)
    *found, asks, due = row
    return _delivery(found, asks=bool(asks)), due


def next_due(db: Connection, transport: str, now: float) -> float | None:
    """When the next delivery of `transport` that is first in its lane is due."""
    row = db.execute(_NEXT_DUE, {"transport": transport, "now": now}).fetchone()
    return None if row[0] is None else float(row[0])


def is_held(db: Connection, delivery: Delivery) -> bool:
    """Whether a delivery is still sent by the process that claimed it."""
    return db.execute(f"SELECT 1 FROM outbox WHERE {_HELD}", _claim(delivery)).fetchone() is not None


def _claim(delivery: Delivery) -> tuple[str, str, int]:
    return delivery.id, delivery.claimed_by, delivery.attempt


@shared(lambda delivery, result, now: ())
def settle(db: Connection, delivery: Delivery, result: Settlement, now: float) -> bool:
    """Note what came of sending, unless somebody else has the delivery by now. Returns whether there may be more to send."""
    row = db.execute(
        "UPDATE outbox SET state = ?, ref = ?, reason = ?, next_at = ?, sent_parts = ?,"
        f" repeated = CASE WHEN ? = 1 THEN 1 ELSE repeated END, settled = ?, tried = ? WHERE {_HELD}"
        " RETURNING state = 'pending' OR EXISTS (SELECT 1 FROM outbox AS o WHERE o.transport = outbox.transport AND o.state = 'pending'"
        " AND o.number <> outbox.number)",
        (
            result.state,
            result.ref,
            result.reason,
            result.next_at,
            result.sent_parts,
            int(result.repeat),
            None if result.state == "pending" else now,
            now,
            *_claim(delivery),
        ),
    ).fetchone()
    return row is not None and bool(row[0])


@shared(lambda delivery, parts: ())
def advance(db: Connection, delivery: Delivery, parts: int) -> None:
    """Note that the first `parts` parts are with the platform. What may be sent twice from now on is the next one."""
    db.execute(f"UPDATE outbox SET sent_parts = ?, repeated = 0 WHERE {_HELD}", (parts, *_claim(delivery)))


_ORPHANED = "state = 'sending' AND owner NOT IN (SELECT owner FROM leases)"


def recover(db: Connection, idempotent: frozenset[str], now: float) -> int:
    """After a crash of whoever has no lease: what was being sent is sent again where the receiver drops repeats, elsewhere once and marked
    as a repeat. To edit a message to the same words is no repeat. What turns that do not run any more had shown is taken away.

    Returns how many have had their repeat and stay unknown.
    """
    over = "turn NOT IN (SELECT id FROM turns WHERE state IN ('running', 'waiting'))"
    for (turn,) in db.execute(f"SELECT turn FROM outbox WHERE state = 'draft' AND {over}").fetchall():
        drop_drafts(db, turn, now)
    safe = "transport IN (SELECT value FROM json_each(:idempotent))"
    db.execute(
        "UPDATE outbox SET state = 'pending', next_at = :now,"
        f" repeated = CASE WHEN {safe} OR (preview_ref <> '' AND sent_parts = 0) THEN 0 ELSE 1 END"
        f" WHERE {_ORPHANED} AND (repeated = 0 OR {safe})",
        {"idempotent": json.dumps(sorted(idempotent)), "now": now},
    )
    return db.execute(
        f"UPDATE outbox SET state = 'unknown', reason = 'the daemon stopped while it was being sent', settled = ? WHERE {_ORPHANED}",
        (now,),
    ).rowcount


def again(db: Connection, delivery: str, now: float) -> bool:
    """Send a dead or unknown delivery once more. False: there is no such one."""
    return bool(
        db.execute(
            "UPDATE outbox SET state = 'pending', attempts = 0, next_at = ?, reason = '', settled = NULL"
            " WHERE id = ? AND state IN ('dead', 'unknown')",
            (now, delivery),
        ).rowcount
    )


def discard(db: Connection, delivery: str) -> bool:
    """Give up a delivery that is not on its way; the words stay in the transcript. False: there is no such one."""
    gone = db.execute("DELETE FROM outbox WHERE id = ? AND state IN ('pending', 'dead', 'unknown')", (delivery,))
    return bool(gone.rowcount)


_NOT_SENT = ("state IN ('pending', 'sending')", "state IN ('unknown', 'dead')", "state = 'draft'")
"""Each has an index of its own, which serves only a query that names exactly those states."""


def listing(db: Connection, states: tuple[str, ...], limit: int = 2**62, skip: int = 0) -> list[dict[str, Any]]:
    """Deliveries in one of `states`, oldest first, as plain values; at most `limit`, without the first `skip`."""
    open_ = " UNION ALL ".join(f"SELECT number FROM outbox WHERE {each}" for each in _NOT_SENT)
    within = "" if "sent" in states else f" AND number IN ({open_})"
    rows = db.execute(
        "SELECT id, state, address, session, attempts, reason, created, next_at FROM outbox"
        f" WHERE state IN (SELECT value FROM json_each(?)){within} ORDER BY number LIMIT ? OFFSET ?",
        (json.dumps(states), limit, skip),
    )
    names = ("id", "state", "address", "session", "attempts", "reason", "created", "next_at")
    return [dict(zip(names, row, strict=True)) for row in rows]


def counts(db: Connection) -> dict[str, int]:
    """How many deliveries are in each state but `sent`."""
    found = (db.execute(f"SELECT state, count(*) FROM outbox WHERE {states} GROUP BY state").fetchall() for states in _NOT_SENT)
    return dict(row for rows in found for row in rows)


def words(db: Connection, deliveries: Sequence[str]) -> dict[str, str]:
    """How deliveries begin, by id."""
    rows = db.execute(
        f"SELECT id, substr(text, 1, {BEGINNING}) FROM outbox WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(deliveries),)
    )
    return dict(rows.fetchall())


def _delivery(row: Sequence[Any], *, asks: bool = False) -> Delivery:
    (identifier, address, text, parts, created, reply_to, answers, context, sent, attempts, repeated, ref, session, turn, owner) = row
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
        asks=asks,
        claimed_by=owner,
    )
