"""From what waits to a turn: claimed for one session at a time, resumed where whoever had it is gone, joined by what arrives meanwhile."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, NamedTuple

from clew.clock import new_id
from clew.messages import OVERHEARD, Message, Text
from clew.store import (
    SAFE_ATTEMPTS,
    UNSEEN,
    Claim,
    Item,
    NewMessage,
    Person,
    Room,
    Seen,
    compactions,
    runs,
    transcript,
)
from clew.store.connection import Connection
from clew.store.damage import readable
from clew.store.files import verbs as files
from clew.store.grouping import lane, shared, thread
from clew.store.notes import reading
from clew.store.turns import CLAIMABLE, RUNNING, hold, new_session
from clew.store.windows import joined
from clew.transport import Address

FOR_THE_AGENT = ("message", "job")
"""Kinds of arrivals that a model answers."""
EVERYTHING = Room()
_EXPIRED = "state = 'new' AND kind <> 'job' AND expires <= :now"
_ITEM = "id, kind, text, client_id, coalesce(person, ''), sender_name, context, received, job, reply_to, instant"
_OPEN_TURN = "EXISTS (SELECT 1 FROM turns WHERE turns.session = chats.session AND turns.state IN ('running', 'waiting'))"
_OPEN_FILES = f"EXISTS (SELECT 1 FROM attachments WHERE attachments.inbox = inbox.id AND attachments.{files.OPEN})"
_ATTEMPTS = "(SELECT coalesce(max(attempts), 0) FROM inbox WHERE inbox.turn = turns.id)"


class Looked(NamedTuple):
    """The next turn that may run, if there is one. busy: there may be one as soon as somebody else is done who has its chat in hand."""

    claim: Claim | None
    busy: bool = False


class _Stands(NamedTuple):
    """Whether the owner runs turns, and one that may have brought the process down; whether turns wait whose lease ended, and such a one;
    whether arrivals have expired."""

    runs: bool
    risks: bool
    lapsed: bool
    risky: bool
    expired: bool


def _stands(db: Connection, owner: str, now: float) -> _Stands:
    own, lapsed = "owner = :owner AND lease_until > :now", "lease_until <= :now"
    conditions = (own, f"{own} AND {_ATTEMPTS} > :safe", lapsed, f"{lapsed} AND {_ATTEMPTS} >= :safe")
    turns = ", ".join(f"EXISTS (SELECT 1 FROM turns WHERE {RUNNING} AND {each})" for each in conditions)
    row = db.execute(
        f"SELECT {turns}, EXISTS (SELECT 1 FROM inbox WHERE {_EXPIRED})", {"owner": owner, "now": now, "safe": SAFE_ATTEMPTS}
    ).fetchone()
    return _Stands(*map(bool, row))


def claim(
    db: Connection,
    owner: str,
    now: float,
    lease: float,
    merging: frozenset[str],
    risky_first: bool = False,
    room: Room = EVERYTHING,
    seen: Mapping[str, Seen] = {},
) -> Looked:
    """The next turn that may run.

    First those whose lease ended, then the oldest waiting arrival whose session is free, then jobs, unless they go first; a turn that may
    have brought the process down comes last, and runs alone. risky_first: it has waited long enough, nothing else is begun before it.
    room: what there is room for. seen: of sessions, what need not be read again, see `compactions.view`.
    """
    found = _next(db, owner, now, lease, merging, risky_first, room)
    return found._replace(claim=_shown(db, found.claim, now, seen.get(found.claim.session, UNSEEN))) if found.claim else found


def _next(db: Connection, owner: str, now: float, lease: float, merging: frozenset[str], risky_first: bool, room: Room) -> Looked:
    stands = _stands(db, owner, now)
    if stands.risks:
        return Looked(None)
    if risky_first and stands.risky:
        return Looked(None if stands.runs else _resume(db, owner, now, lease, risky=True))
    if stands.lapsed and (resumed := _resume(db, owner, now, lease, room, risky=False)):
        return Looked(resumed)
    if stands.expired:
        db.alone()
        db.execute(f"UPDATE inbox SET state = 'refused', reason = 'it expired before it could be answered' WHERE {_EXPIRED}", {"now": now})
    if room.jobs and room.jobs_first and (run := _begin_run(db, owner, now, lease)):
        return Looked(run)
    found = _begin(db, owner, now, lease, merging) if room.people else Looked(None)
    if found.claim is None and room.jobs and not room.jobs_first:
        found = found._replace(claim=_begin_run(db, owner, now, lease))
    if found.claim is None and stands.risky and not stands.runs:
        found = found._replace(claim=_resume(db, owner, now, lease, risky=True))
    return found


def _resume(db: Connection, owner: str, now: float, lease: float, room: Room = EVERYTHING, *, risky: bool) -> Claim | None:
    row = db.execute(
        f"SELECT id, session, chat, kind, epoch + 1, first_seq, started, stop_requested_at FROM turns WHERE {RUNNING}"
        f" AND lease_until <= ? AND ({_ATTEMPTS} >= ?) = ?"
        " AND CASE WHEN kind = 'job' THEN CAST(? AS INTEGER) ELSE CAST(? AS INTEGER) END = 1"
        f" ORDER BY started LIMIT 1{db.unlocked}",
        (now, SAFE_ATTEMPTS, risky, room.jobs, room.people),
    ).fetchone()
    if row is None:
        return None
    turn, session, chat, kind, epoch, first_seq, started, stop_requested_at = row
    db.execute("UPDATE turns SET owner = ?, epoch = ?, lease_until = ? WHERE id = ?", (owner, epoch, now + lease, turn))
    db.execute("UPDATE inbox SET attempts = attempts + 1 WHERE turn = ?", (turn,))
    items = tuple(_item(each) for each in db.execute(f"SELECT {_ITEM} FROM inbox WHERE turn = ? ORDER BY id", (turn,)))
    attempts = _attempts(db, turn)
    claim = _claim(db, turn, session, chat, kind, owner, epoch, items, first_seq or 0, started, now, attempts=attempts)
    return replace(claim, resumed=True, stopping=stop_requested_at is not None)


def _attempts(db: Connection, turn: str) -> int:
    """How often a turn was begun."""
    return int(db.execute("SELECT coalesce(max(attempts), 1) FROM inbox WHERE turn = ?", (turn,)).fetchone()[0])


def _begin(db: Connection, owner: str, now: float, lease: float, merging: frozenset[str]) -> Looked:
    passed: list[int] = []
    while (place := _free(db, passed)) is not None:
        if not db.hold(lane(place.address), *([thread(place.session)] if place.session else [])):
            passed.append(place.chat)
            continue
        merges = place.kind == "message" and Address.parse(place.address).transport in merging
        waiting = _waiting(db, place, merges=merges)
        if not waiting or waiting[0].open_files:
            passed.append(place.chat)
            continue
        session = place.session or new_session(db, place.chat, now)
        first = waiting[0].item
        if first.kind != "notice":
            return Looked(_start(db, place.chat, session, first.kind, owner, now, lease, tuple(_together(waiting, merges=merges))))
        if waiting[0].overheard:
            _take_in_line(db, session, place.chat, first, now)
        else:
            runs.take_in_notice(db, session, place.chat, first.id, now)
    return Looked(None, bool(passed))


class _Place(NamedTuple):
    """Where something waits: a chat and its session. kind: of the first arrival there."""

    chat: int
    address: str
    session: str | None
    kind: str


def _free(db: Connection, passed: Sequence[int]) -> _Place | None:
    """Where the oldest arrival waits whose session is free and whose files are there, without the chats in `passed`."""
    row = db.execute(
        "SELECT chats.id, chats.address, chats.session, inbox.kind"
        " FROM (SELECT chat, min(id) AS id FROM inbox WHERE state = 'new' AND kind <> 'job' GROUP BY chat) AS first"
        " JOIN inbox ON inbox.id = first.id JOIN chats ON chats.id = first.chat"
        f" WHERE NOT {_OPEN_TURN} AND NOT {_OPEN_FILES} AND chats.id NOT IN (SELECT CAST(value AS BIGINT) FROM json_each(?))"
        " ORDER BY inbox.id LIMIT 1",
        (str(passed),),
    ).fetchone()
    return _Place(*row) if row else None


class _Waiting(NamedTuple):
    """What waits. overheard: it is a line that is kept. open_files: its files are not there yet."""

    item: Item
    overheard: bool
    open_files: bool


def _waiting(db: Connection, place: _Place, *, merges: bool) -> list[_Waiting]:
    """What waits at a place, in order; nothing where its session is not free any more, or is another by now. merges: all, not the first."""
    free = f"EXISTS (SELECT 1 FROM chats WHERE chats.id = ? AND chats.session IS NOT DISTINCT FROM ? AND NOT {_OPEN_TURN})"
    return _arrivals(db, place.chat, f" AND {free} ORDER BY id LIMIT ?", place.chat, place.session, 2**62 if merges else 1)


def _arrivals(db: Connection, chat: int, more: str, *values: Any) -> list[_Waiting]:
    rows = db.execute(
        f"SELECT overheard, {_OPEN_FILES}, {_ITEM} FROM inbox WHERE chat = ? AND state = 'new' AND kind <> 'job'{more}", (chat, *values)
    )
    return [_Waiting(_item(row), bool(overheard), bool(open_files)) for overheard, open_files, *row in rows]


def _together(waiting: Sequence[_Waiting], *, merges: bool) -> Iterator[Item]:
    """Those that are answered in one turn: the first and, where messages are merged, those of the same person behind it."""
    first = waiting[0].item
    yield first
    for item, _, open_files in waiting[1:]:
        if not (merges and item.kind == first.kind == "message" and item.person == first.person) or open_files:
            return
        yield item


def _begin_run(db: Connection, owner: str, now: float, lease: float) -> Claim | None:
    """A job's turn. What it asks is decided in it: see `open_run`."""
    row = runs.waiting(db)
    if row is None:
        return None
    db.alone()  # another run of the job, or another one in its session, may be begun elsewhere
    inbox_id, chat, runs_in = row
    item = _item(db.execute(f"SELECT {_ITEM} FROM inbox WHERE id = ?", (inbox_id,)).fetchone())
    if runs_in == "chat" and db.execute("SELECT session FROM chats WHERE id = ?", (chat,)).fetchone()[0] is None:
        new_session(db, chat, now)
    return _start(db, chat, runs.session_for(db, chat, runs_in, now), "job", owner, now, lease, (item,))


def open_run(db: Connection, claim: Claim, text: str, now: float) -> Claim:
    """Append what a job asks, with which its turn begins for the model. Raises LeaseLost."""
    chat = hold(db, claim)
    runs.fork(db, claim.session)
    items = tuple(replace(item, text=text) for item in claim.items)
    stored = _take_in(db, claim.session, chat, claim.turn, items, now)
    first_seq = stored[0].seq
    db.executemany(
        "UPDATE inbox SET message = ? WHERE id = ?", [(message.id, item.id) for message, item in zip(stored, items, strict=True)]
    )
    db.execute("UPDATE turns SET first_seq = ? WHERE id = ?", (first_seq, claim.turn))
    attempts = _attempts(db, claim.turn)
    begun = _claim(
        db, claim.turn, claim.session, chat, "job", claim.owner, claim.epoch, items, first_seq, claim.started, now, attempts=attempts
    )
    return _shown(db, begun, now)


def _start(
    db: Connection,
    chat: int,
    session: str,
    kind: str,
    owner: str,
    now: float,
    lease: float,
    items: tuple[Item, ...],
) -> Claim:
    turn = new_id()
    stored = _take_in(db, session, chat, turn, items, now) if kind == "message" else ()
    first_seq = stored[0].seq if stored else 0
    db.execute(
        "INSERT INTO turns (id, session, chat, kind, state, owner, epoch, lease_until, first_seq, started)"
        " VALUES (?, ?, ?, ?, 'running', ?, 1, ?, ?, ?)",
        (turn, session, chat, kind, owner, now + lease, first_seq, now),
    )
    _mark(db, turn, items, stored)
    return _claim(db, turn, session, chat, kind, owner, 1, items, first_seq, now, now, attempts=1, opening=stored)


def _mark(db: Connection, turn: str, items: Sequence[Item], stored: Sequence[Message]) -> None:
    """Note in which turn inbox rows are answered, and which rows of the transcript they became."""
    db.executemany(
        "UPDATE inbox SET state = 'claimed', turn = ?, attempts = attempts + 1, message = ? WHERE id = ?",
        [(turn, message.id if message else None, item.id) for item, message in zip_longest(items, stored)],
    )


def _take_in(db: Connection, session: str, chat: int, turn: str, items: tuple[Item, ...], now: float) -> tuple[Message, ...]:
    """Append the user messages of inbox rows, their files with them."""
    stored = transcript.append(db, session, chat, turn, [_spoken(db, item, now) for item in items])
    for message, item in zip(stored, items, strict=True):
        if len(message.blocks) > 1:
            files.join(db, item.id, message.id)
    return stored


def _take_in_line(db: Connection, session: str, chat: int, line: Item, now: float) -> None:
    """Append a line of a group that nobody answers."""
    turn = OVERHEARD + new_id()
    _mark(db, turn, (line,), _take_in(db, session, chat, turn, (line,), now))
    db.execute("UPDATE inbox SET state = 'answered' WHERE id = ?", (line.id,))


def _spoken(db: Connection, item: Item, now: float) -> NewMessage:
    """The user message of an inbox row, with its files. Its time is when it arrived, never later than now."""
    metadata = {"client_id": item.client_id, "inbox": item.id} | ({"job": item.job} if item.job else {})
    return NewMessage(
        "user", (Text(item.text), *files.blocks(db, item.id)), min(item.received, now), item.person, item.sender_name, metadata
    )


def _claim(
    db: Connection,
    turn: str,
    session: str,
    chat: int,
    kind: Any,
    owner: str,
    epoch: int,
    items: tuple[Item, ...],
    first_seq: int,
    started: float,
    now: float,
    *,
    attempts: int,
    opening: tuple[Message, ...] = (),
) -> Claim:
    rows = db.execute(  # one for each identity of whoever it is for
        f"SELECT c.address, c.direct, {CLAIMABLE}, p.id, p.role, p.timezone, i.identity FROM chats AS c"
        " LEFT JOIN people AS p ON p.id = coalesce(CAST(:person AS TEXT), c.person) LEFT JOIN identities AS i ON i.person = p.id"
        " WHERE c.id = :chat ORDER BY i.identity",
        {"chat": chat, "now": now, "person": (items[-1].person or None) if items else None},
    ).fetchall()
    address, direct, more, person, role, timezone, _ = rows[0]
    return Claim(
        turn=turn,
        session=session,
        address=Address.parse(address),
        direct=bool(direct),
        kind=kind,
        owner=owner,
        epoch=epoch,
        items=items,
        person=Person(person, role, timezone, tuple(row[-1] for row in rows if row[-1] is not None)) if person else None,
        first_seq=first_seq,
        started=started,
        attempts=attempts,
        more=bool(more),
        failures=runs.failures(db, items[-1].job) if kind == "job" and items else 0,
        opening=opening,
    )


def _shown(db: Connection, claim: Claim, now: float, seen: Seen = UNSEEN) -> Claim:
    """`claim` with what its model is shown, if it is for one."""
    if claim.kind not in FOR_THE_AGENT:
        return claim
    rows = compactions.view(db, claim.session, joined(seen, claim.opening))
    return replace(claim, rows=rows, notes=reading.standing(db, str(claim.address), rows.prompt, now))


def steerable(db: Connection, turn: str) -> bool:
    """Whether something has arrived in the chat of a running turn."""
    row = db.execute(
        "SELECT EXISTS (SELECT 1 FROM turns JOIN inbox ON inbox.chat = turns.chat WHERE turns.id = ? AND inbox.state = 'new'"
        " AND inbox.kind NOT IN ('job', 'notice'))",
        (turn,),
    ).fetchone()
    return bool(row[0])


@shared(lambda claim, now: [lane(claim.address)])
def steer(db: Connection, claim: Claim, now: float) -> tuple[tuple[Item, ...], tuple[Message, ...]]:
    """Take messages of the same person that arrived meanwhile into a running turn, up to the first command. Raises LeaseLost."""
    chat = hold(db, claim)
    waiting = _arrivals(db, chat, " ORDER BY id")
    if not waiting or waiting[0].open_files:
        return (), ()
    first = waiting[0].item
    if first.kind != "message" or claim.person is None or first.person != claim.person.id:
        return (), ()
    items = tuple(_together(waiting, merges=True))
    stored = _take_in(db, claim.session, chat, claim.turn, items, now)
    _mark(db, claim.turn, items, stored)
    return items, stored


def _item(row: Sequence[Any]) -> Item:
    identifier, kind, text, client_id, person, sender_name, context, received, job, reply_to, instant = row
    return Item(identifier, kind, text, client_id, person, sender_name, readable(context, {}), received, job, reply_to, instant)
