"""What was spent, summed by day and month, and reserved for calls that are being made.

The sums grow from the rows of `model_calls`, in their order: `roll` takes in those behind the mark. Without budgets that is done in the
background, many at a time; with budgets, in the transaction that asks them.
"""

import sys
from collections.abc import Sequence
from typing import Any

from clew.allowances import EVERY, MICROS, Amount, Limit, Payer, Standing, applying, period, refusing, resets_at
from clew.store.connection import Connection
from clew.store.records.spending import Reserved, SpendingKind, Sums, Wanted

Key = tuple[str, str, str]
"""(kind, subject, period); the table checks the kind."""
HOUSE_ZONE = "zone"
"""The key in `meta` of the zone by which days end that are nobody's own."""
CHUNK = 500
"""Calls that are taken in by one statement."""
REMEMBERED = 70 * 86_400.0
"""Seconds for which it is known that somebody was told of a budget: longer than any period."""
LONGEST = 1800.0
"""Seconds that no reservation lasts: one that ends later was made by a clock that has been put back since."""
_TOLD = "key >= 'said/budget/' AND key < 'said/budget0'"
_OLD = f"{_TOLD} AND CASE WHEN {_TOLD} THEN CAST(value AS DOUBLE PRECISION) < ? END"  # what else there is is no number

_SUMS = "calls, input, output, cache_read, cache_write, micros, unpriced, replies, reply_ms"
_GROW = (
    f"INSERT INTO spending (kind, subject, period, {_SUMS}) VALUES (?, ?, ?{', ?' * len(_SUMS.split(', '))})"
    " ON CONFLICT (kind, subject, period) DO UPDATE SET"
    f" {', '.join(f'{name} = spending.{name} + excluded.{name}' for name in _SUMS.split(', '))}"
)
_PAYER = "CASE WHEN c.payer <> '' THEN c.payer WHEN chats.direct = 1 THEN coalesce(chats.person, '') ELSE '' END"
"""Whose account a call is on: who is named for it, else whose chat it is."""
_CALLS = (
    "SELECT c.rowid, c.started, c.ended, c.purpose, c.error, c.provider, c.model, c.cost, c.input, c.output, c.cache_read, c.cache_write,"
    f" {_PAYER}, payers.timezone, coalesce(chats.address, ''), CASE WHEN chats.direct = 1 THEN owners.timezone END"
    " FROM model_calls AS c LEFT JOIN sessions ON sessions.id = c.session LEFT JOIN chats ON chats.id = sessions.chat"
    f" LEFT JOIN people AS payers ON payers.id = {_PAYER} LEFT JOIN people AS owners ON owners.id = chats.person"
    " WHERE c.rowid > ? ORDER BY c.rowid LIMIT ?"
)


def keep_zone(db: Connection, zone: str) -> None:
    db.execute("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (HOUSE_ZONE, zone))


def house_zone(db: Connection) -> str:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (HOUSE_ZONE,)).fetchone()
    return str(row[0]) if row else "UTC"


# Sums ------------------------------------------------------------------------------------------------------------


def waiting(db: Connection) -> int:
    """About how many calls are not in the sums yet."""
    row = db.execute("SELECT coalesce((SELECT max(rowid) FROM model_calls), 0) - upto FROM spending_mark").fetchone()
    return int(row[0])


def roll(db: Connection, most: int | None = None) -> None:
    """Take calls into the sums that are not in them yet: all, or about `most`."""
    zone = house_zone(db)
    while True:
        upto = _mark(db)
        sums, last, count = _summed(db, upto, CHUNK, zone)
        if not count:
            return
        for key, found in sums.items():
            _add(db, key, found)
        db.execute("UPDATE spending_mark SET upto = ?", (last,))
        if count < CHUNK or (most is not None and (most := most - count) <= 0):
            return


def skip(db: Connection) -> None:
    """What stands in `model_calls` now is in the sums, or is not to be: it was imported, or the newest of it was deleted."""
    db.execute("UPDATE spending_mark SET upto = coalesce((SELECT max(rowid) FROM model_calls), 0)")


def _mark(db: Connection) -> int:
    return int(db.execute("SELECT upto FROM spending_mark").fetchone()[0])


def _summed(db: Connection, upto: int, most: int, zone: str) -> tuple[dict[Key, Sums], int, int]:
    """(sums of the calls behind `upto`, the last of them, how many they are)."""
    sums: dict[Key, Sums] = {}
    last, count = upto, 0
    for row in db.execute(_CALLS, (upto, most)):
        last, started, ended, purpose, error, provider, model, cost, *usage, person, zone_of, chat, chat_zone = row
        read, said, cached, written = usage
        count += 1
        replied = purpose == "reply" and not error
        milliseconds = max(round((ended - started) * 1000), 0) if replied else 0
        unpriced = sum(usage) if cost is None else 0
        micros = round((cost or 0.0) * MICROS)
        found = Sums(1, read, said, cached, written, micros, unpriced, int(replied), milliseconds)
        places = [("all", "", zone), ("model", f"{provider} {model}".strip(), zone), ("purpose", purpose, zone)]
        places += [("person", person, zone_of or zone)] if person else []
        places += [("chat", chat, chat_zone or zone)] if chat else []
        for kind, subject, there in places:
            for every in EVERY:
                key = (kind, subject, period(started, there, every))
                sums[key] = sums[key] + found if key in sums else found
    return sums, last, count


def _add(db: Connection, key: Key, sums: Sums) -> None:
    db.execute(_GROW, (*key, *sums.figures))


def hand_over(db: Connection, former: str, person: str) -> None:
    """Let what somebody spent be on another's account: the two are one."""
    roll(db)
    rows = db.execute(f"SELECT period, {_SUMS} FROM spending WHERE kind = 'person' AND subject = ?", (former,)).fetchall()
    for when, *figures in rows:
        _add(db, ("person", person, when), Sums(*figures))
    db.execute("DELETE FROM spending WHERE kind = 'person' AND subject = ?", (former,))
    db.execute("UPDATE reservations SET person = ? WHERE person = ?", (person, former))


def tail(db: Connection) -> dict[Key, Sums]:
    """The sums of the calls that are not in the table yet."""
    return _summed(db, _mark(db), sys.maxsize, house_zone(db))[0]


def sums(db: Connection, keys: Sequence[Key]) -> dict[Key, Sums]:
    """What was spent under each of these keys."""
    fresh = tail(db)
    return {key: _stored(db, key) + fresh.get(key, Sums()) for key in keys}


def _stored(db: Connection, key: Key) -> Sums:
    row = db.execute(f"SELECT {_SUMS} FROM spending WHERE kind = ? AND subject = ? AND period = ?", key).fetchone()
    return Sums(*row) if row else Sums()


def periods(db: Connection, kind: SpendingKind, subject: str, first: str, last: str) -> dict[str, Sums]:
    """What was spent in each period from `first` to `last`, both of one length, in their order; those without a call are left out."""
    rows = db.execute(
        f"SELECT period, {_SUMS} FROM spending WHERE kind = ? AND subject = ? AND period BETWEEN ? AND ? AND length(period) = ?",
        (kind, subject, first, last, len(first)),
    )
    found = {row[0]: Sums(*row[1:]) for row in rows}
    for (its_kind, its_subject, when), more in tail(db).items():
        if (its_kind, its_subject) == (kind, subject) and len(when) == len(first) and first <= when <= last:
            found[when] = found.get(when, Sums()) + more
    return dict(sorted(found.items()))


def subjects(db: Connection, kind: SpendingKind, when: str) -> dict[str, Sums]:
    """Who or what spent something in a period, the most first."""
    found = {
        row[0]: Sums(*row[1:]) for row in db.execute(f"SELECT subject, {_SUMS} FROM spending WHERE kind = ? AND period = ?", (kind, when))
    }
    for (its_kind, subject, its_period), more in tail(db).items():
        if (its_kind, its_period) == (kind, when):
            found[subject] = found.get(subject, Sums()) + more
    return dict(sorted(found.items(), key=lambda each: (-each[1].micros, -each[1].tokens, each[0])))


def of_session(db: Connection, session: str) -> Sums:
    """All that a session's calls took."""
    tokens = "input + output + cache_read + cache_write"
    replied = "purpose = 'reply' AND error = ''"
    row = db.execute(
        "SELECT count(*), coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cache_read), 0), coalesce(sum(cache_write), 0),"
        f" CAST(round(coalesce(sum(cost), 0) * ?) AS BIGINT), coalesce(sum(CASE WHEN cost IS NULL THEN {tokens} END), 0),"
        f" count(CASE WHEN {replied} THEN 1 END),"
        f" CAST(round(coalesce(sum(CASE WHEN {replied} THEN (ended - started) * 1000 END), 0)) AS BIGINT)"
        " FROM model_calls WHERE session = ?",
        (MICROS, session),
    ).fetchone()
    return Sums(*row)


# Budgets ---------------------------------------------------------------------------------------------------------


def reserve(db: Connection, wanted: Wanted, limits: Sequence[Limit]) -> Reserved:
    """Reserve what a call may come to, if it fits every limit that binds it."""
    roll(db)
    db.execute(
        "DELETE FROM reservations WHERE expires <= ? OR expires > ? OR id = ?"
        " OR EXISTS (SELECT 1 FROM model_calls WHERE model_calls.id = reservations.id)",
        (wanted.now, wanted.now + LONGEST, wanted.instead_of),
    )
    payer = whose(db, wanted.session, wanted.payer)
    found = standings(db, payer, limits, wanted.now, rolled=True)
    refused = refusing(found, wanted.amount)
    if refused is None:
        db.execute(
            "INSERT INTO reservations (id, person, chat, tokens, micros, expires) VALUES (?, ?, ?, ?, ?, ?)",
            (wanted.id, payer.person, payer.chat, wanted.amount.tokens, wanted.amount.micros, wanted.expires),
        )
    elif refused.is_nearly_used and not refused.closed:  # a call too large for all of it says nothing of others
        key = _closed(refused.limit, refused.subject, refused.period)
        db.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (key, repr(wanted.now)))
    return Reserved(payer, found, refused)


def look(db: Connection, session: str, payer: str, limits: Sequence[Limit], now: float) -> Reserved:
    """How the limits stand that bind calls of a session; nothing is reserved."""
    found = whose(db, session, payer)
    return Reserved(found, standings(db, found, limits, now), None)


def look_at(db: Connection, person: str, chat: str, limits: Sequence[Limit], now: float) -> Reserved:
    """The same for calls that somebody (empty: whose chat it is) has made at an address."""
    row = db.execute("SELECT address, direct, person FROM chats WHERE address = ?", (chat,)).fetchone()
    found = _payer(db, row or (chat, 0, None), person)
    return Reserved(found, standings(db, found, limits, now), None)


def sweep(db: Connection, now: float) -> None:
    """Forget what was said of periods that are long over."""
    db.execute(f"DELETE FROM meta WHERE {_OLD}", (now - REMEMBERED,))


def sweepable(db: Connection, now: float) -> bool:
    return db.execute(f"SELECT 1 FROM meta WHERE {_OLD} LIMIT 1", (now - REMEMBERED,)).fetchone() is not None


def whose(db: Connection, session: str, payer: str) -> Payer:
    """On whose account calls of a session are made."""
    row = db.execute(
        "SELECT address, direct, chats.person FROM sessions JOIN chats ON chats.id = sessions.chat WHERE sessions.id = ?", (session,)
    ).fetchone()
    return _payer(db, row or ("", 0, None), payer)


def _payer(db: Connection, chat: tuple[str, int, str | None], named: str) -> Payer:
    address, direct, owner = chat
    house = house_zone(db)
    person = named or (owner if direct and owner else "")
    role, zone = db.execute("SELECT role, timezone FROM people WHERE id = ?", (person,)).fetchone() or (None, None)
    theirs = db.execute("SELECT timezone FROM people WHERE id = ?", (owner,)).fetchone() if direct else None
    return Payer(person, role, address, zone or house, (theirs[0] if theirs else None) or house, house, bool(direct))


def standings(db: Connection, payer: Payer, limits: Sequence[Limit], now: float, *, rolled: bool = False) -> list[Standing]:
    """How the limits stand that bind a payer. rolled: all calls are in the sums."""
    bound = [(limit, subject, limit.zone(payer)) for limit, subject in applying(limits, payer)]
    keys = [(limit.per, subject, period(now, zone, limit.every)) for limit, subject, zone in bound]
    spent = {key: _stored(db, key) for key in keys} if rolled else sums(db, keys)
    return [
        Standing(
            limit,
            subject,
            key[2],
            resets_at(now, zone, limit.every),
            spent[key].amount,
            _reserved(db, limit, subject, now),
            closed=db.execute("SELECT 1 FROM meta WHERE key = ?", (_closed(limit, subject, key[2]),)).fetchone() is not None,
        )
        for (limit, subject, zone), key in zip(bound, keys, strict=True)
    ]


def _closed(limit: Limit, subject: str, when: str) -> str:
    """The key in `meta` that a call was refused by this limit in a period, nearly used up; a limit that is raised is open again."""
    return f"said/budget/closed/{limit.name}/{limit.most}/{subject}/{when}"


def _reserved(db: Connection, limit: Limit, subject: str, now: float) -> Amount:
    """What calls may come to that are being made. One whose row is there is among what was spent."""
    row: tuple[Any, ...] = db.execute(
        "SELECT coalesce(sum(tokens), 0), coalesce(sum(micros), 0) FROM reservations"
        " WHERE expires > ? AND expires <= ? AND CASE CAST(? AS TEXT) WHEN 'person' THEN person = ? WHEN 'chat' THEN chat = ? ELSE true END"
        " AND NOT EXISTS (SELECT 1 FROM model_calls WHERE model_calls.id = reservations.id)",
        (now, now + LONGEST, limit.per, subject, subject),
    ).fetchone()
    return Amount(row[0], row[1])
