"""Turns: claimed from the inbox, recorded step by step, finished in one commit; an epoch fences those who lost their lease."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from clew.clock import new_id
from clew.messages import OVERHEARD, Message, Text
from clew.store import (
    SAFE_ATTEMPTS,
    UNSEEN,
    AccessEffect,
    Claim,
    ExportLink,
    Item,
    JobEffect,
    LeaseLost,
    LinkCode,
    LoggedOut,
    LoginLink,
    NewMessage,
    Outcome,
    Question,
    Reply,
    Room,
    Seen,
    Step,
    Switch,
    ToolState,
    Withdrawn,
    access,
    approvals,
    boundaries,
    branches,
    compactions,
    deletions,
    exports,
    jobs,
    links,
    logins,
    marks,
    model_calls,
    outbox,
    people,
    recalled,
    runs,
    transcript,
)
from clew.store.connection import Connection
from clew.store.damage import readable
from clew.store.files import verbs as files
from clew.store.notes import NoteEffect, history, reading
from clew.store.windows import joined
from clew.transport import Address

FOR_THE_AGENT = ("message", "job")
"""Kinds of arrivals that a model answers."""
RUNNING = "state IN ('running', 'waiting') AND state = 'running'"
"""That a turn runs, in the words of the index `turns_open`."""
EVERYTHING = Room()
_EXPIRED = "state = 'new' AND kind <> 'job' AND expires <= ?"
_ITEM = "id, kind, text, client_id, coalesce(person, ''), sender_name, context, received, job, reply_to, instant"


def claimable(db: Connection, now: float) -> bool:
    """Whether a claim may find something; asked of a reader, so that looking costs no write."""
    row = db.execute(
        "SELECT EXISTS (SELECT 1 FROM inbox WHERE state = 'new' AND kind <> 'job')"
        " OR EXISTS (SELECT 1 FROM inbox WHERE state = 'new' AND kind = 'job')"
        f" OR EXISTS (SELECT 1 FROM turns WHERE {RUNNING} AND lease_until <= ?)",
        (now,),
    ).fetchone()
    return bool(row[0])


def claim(
    db: Connection,
    owner: str,
    now: float,
    lease: float,
    merging: frozenset[str],
    risky_first: bool = False,
    room: Room = EVERYTHING,
    seen: Mapping[str, Seen] = {},
) -> Claim | None:
    """The next turn that may run.

    First those whose lease ended, then the oldest waiting arrival whose session is free, then jobs; a turn that may have brought the
    process down comes last, and runs alone. risky_first: it has waited long enough, nothing else is begun before it. room: what there
    is room for. seen: of sessions, what need not be read again, see `compactions.view`.
    """
    found = _next(db, owner, now, lease, merging, risky_first, room)
    return _shown(db, found, now, seen.get(found.session, UNSEEN)) if found else None


def _next(db: Connection, owner: str, now: float, lease: float, merging: frozenset[str], risky_first: bool, room: Room) -> Claim | None:
    if db.execute(f"SELECT 1 FROM turns WHERE {RUNNING} LIMIT 1").fetchone() is None:  # nothing to go on with or to wait for
        return _new(db, owner, now, lease, merging, room)
    if _running(db, owner, now, risky=True):
        return None
    if risky_first and _risky_waits(db, now):
        return None if _running(db, owner, now, risky=False) else _resume(db, owner, now, lease, risky=True)
    found = _resume(db, owner, now, lease, room, risky=False) or _new(db, owner, now, lease, merging, room)
    if found is None and not _running(db, owner, now, risky=False):
        found = _resume(db, owner, now, lease, risky=True)
    return found


def _new(db: Connection, owner: str, now: float, lease: float, merging: frozenset[str], room: Room) -> Claim | None:
    found = _begin(db, owner, now, lease, merging) if room.people else None
    return _begin_run(db, owner, now, lease) if found is None and room.jobs else found


_ATTEMPTS = "(SELECT coalesce(max(attempts), 0) FROM inbox WHERE inbox.turn = turns.id)"


def _running(db: Connection, owner: str, now: float, *, risky: bool) -> bool:
    """Whether `owner` runs a (risky) turn. It can bring down no other process."""
    row = db.execute(
        f"SELECT 1 FROM turns WHERE {RUNNING} AND lease_until > ? AND owner = ? AND {_ATTEMPTS} > ? LIMIT 1",
        (now, owner, SAFE_ATTEMPTS if risky else -1),
    ).fetchone()
    return row is not None


def _risky_waits(db: Connection, now: float) -> bool:
    row = db.execute(
        f"SELECT 1 FROM turns WHERE {RUNNING} AND lease_until <= ? AND {_ATTEMPTS} >= ? LIMIT 1", (now, SAFE_ATTEMPTS)
    ).fetchone()
    return row is not None


def _resume(db: Connection, owner: str, now: float, lease: float, room: Room = EVERYTHING, *, risky: bool) -> Claim | None:
    row = db.execute(
        f"SELECT id, session, chat, kind, epoch + 1, first_seq, started, stop_requested_at FROM turns WHERE {RUNNING}"
        f" AND lease_until <= ? AND ({_ATTEMPTS} >= ?) = ?"
        " AND CASE WHEN kind = 'job' THEN CAST(? AS INTEGER) ELSE CAST(? AS INTEGER) END = 1 ORDER BY started LIMIT 1",
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


def _begin(db: Connection, owner: str, now: float, lease: float, merging: frozenset[str]) -> Claim | None:
    if db.execute(f"SELECT 1 FROM inbox WHERE {_EXPIRED} LIMIT 1", (now,)).fetchone():
        db.execute(f"UPDATE inbox SET state = 'refused', reason = 'it expired before it could be answered' WHERE {_EXPIRED}", (now,))
    while (row := _first(db)) is not None:
        chat, session, transport, inbox_id, kind, overheard = row
        if session is None:
            session = new_session(db, chat, now)
        if kind != "notice":
            return _start(db, chat, session, kind, owner, now, lease, _items(db, chat, inbox_id, kind, merges=transport in merging))
        if overheard:
            _take_in_line(db, session, chat, inbox_id, now)
        else:
            runs.take_in_notice(db, session, chat, inbox_id, now)
    return None


def _first(db: Connection) -> tuple[int, str | None, str, int, Any, int] | None:
    """(chat, its session, transport, inbox row, kind, whether it is a line that is kept) of the oldest arrival whose session is free and
    whose files are there."""
    row: tuple[int, str | None, str, int, Any, int] | None = db.execute(
        "SELECT chats.id, chats.session, inbox.transport, inbox.id, inbox.kind, inbox.overheard"
        " FROM (SELECT chat, min(id) AS id FROM inbox WHERE state = 'new' AND kind <> 'job' GROUP BY chat) AS first"
        " JOIN inbox ON inbox.id = first.id JOIN chats ON chats.id = first.chat"
        " WHERE NOT EXISTS (SELECT 1 FROM turns WHERE turns.session = chats.session AND turns.state IN ('running', 'waiting'))"
        f" AND NOT EXISTS (SELECT 1 FROM attachments WHERE attachments.inbox = inbox.id AND attachments.{files.OPEN})"
        " ORDER BY inbox.id LIMIT 1"
    ).fetchone()
    return row


def _begin_run(db: Connection, owner: str, now: float, lease: float) -> Claim | None:
    """A job's turn. What it asks is decided in it: see `open_run`."""
    row = runs.waiting(db)
    if row is None:
        return None
    inbox_id, chat, runs_in = row
    item = _item(db.execute(f"SELECT {_ITEM} FROM inbox WHERE id = ?", (inbox_id,)).fetchone())
    if runs_in == "chat" and db.execute("SELECT session FROM chats WHERE id = ?", (chat,)).fetchone()[0] is None:
        new_session(db, chat, now)
    return _start(db, chat, runs.session_for(db, chat, runs_in, now), "job", owner, now, lease, (item,))


def open_run(db: Connection, claim: Claim, text: str, now: float) -> Claim:
    """Append what a job asks, with which its turn begins for the model. Raises LeaseLost."""
    chat = _hold(db, claim)
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


def _items(db: Connection, chat: int, first: int, kind: str, *, merges: bool) -> tuple[Item, ...]:
    waiting = f"SELECT {_ITEM} FROM inbox WHERE chat = ? AND state = 'new' AND kind <> 'job' AND id >= ? ORDER BY id"
    rows = db.execute(waiting, (chat, first)).fetchall()
    items: list[Item] = []
    for row in rows:
        item = _item(row)
        if items and not (merges and item.kind == kind == "message" and item.person == items[0].person):
            break
        if items and files.are_open(db, item.id):
            break
        items.append(item)
    return tuple(items)


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


def _take_in_line(db: Connection, session: str, chat: int, line: int, now: float) -> None:
    """Append a line of a group that nobody answers."""
    item = _item(db.execute(f"SELECT {_ITEM} FROM inbox WHERE id = ?", (line,)).fetchone())
    turn = OVERHEARD + new_id()
    _mark(db, turn, (item,), _take_in(db, session, chat, turn, (item,), now))
    db.execute("UPDATE inbox SET state = 'answered' WHERE id = ?", (line,))


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
    address, direct, chat_person = db.execute("SELECT address, direct, person FROM chats WHERE id = ?", (chat,)).fetchone()
    person = items[-1].person if items and items[-1].person else chat_person
    return Claim(
        turn=turn,
        session=session,
        address=Address.parse(address),
        direct=bool(direct),
        kind=kind,
        owner=owner,
        epoch=epoch,
        items=items,
        person=people.get(db, person),
        first_seq=first_seq,
        started=started,
        attempts=attempts,
        more=claimable(db, now),
        failures=runs.failures(db, items[-1].job) if kind == "job" and items else 0,
        opening=opening,
    )


def _shown(db: Connection, claim: Claim, now: float, seen: Seen = UNSEEN) -> Claim:
    """`claim` with what its model is shown, if it is for one."""
    if claim.kind not in FOR_THE_AGENT:
        return claim
    rows = compactions.view(db, claim.session, joined(seen, claim.opening))
    return replace(claim, rows=rows, notes=reading.standing(db, str(claim.address), rows.prompt, now))


def new_session(db: Connection, chat: int, now: float, title: str = "") -> str:
    """Make a session and let the chat's next message join it."""
    session = new_id()
    db.execute("INSERT INTO sessions (id, chat, title, created) VALUES (?, ?, ?, ?)", (session, chat, title, now))
    db.execute("UPDATE chats SET session = ? WHERE id = ?", (session, chat))
    return session


def steerable(db: Connection, turn: str) -> bool:
    """Whether something has arrived in the chat of a running turn."""
    row = db.execute(
        "SELECT EXISTS (SELECT 1 FROM turns JOIN inbox ON inbox.chat = turns.chat WHERE turns.id = ? AND inbox.state = 'new'"
        " AND inbox.kind NOT IN ('job', 'notice'))",
        (turn,),
    ).fetchone()
    return bool(row[0])


def steer(db: Connection, claim: Claim, now: float) -> tuple[tuple[Item, ...], tuple[Message, ...]]:
    """Take messages of the same person that arrived meanwhile into a running turn, up to the first command. Raises LeaseLost."""
    chat = _hold(db, claim)
    first = db.execute(
        "SELECT id, kind, person FROM inbox WHERE chat = ? AND state = 'new' AND kind <> 'job' ORDER BY id LIMIT 1", (chat,)
    ).fetchone()
    if first is None or first[1] != "message" or claim.person is None or first[2] != claim.person.id or files.are_open(db, first[0]):
        return (), ()
    items = _items(db, chat, first[0], "message", merges=True)
    stored = _take_in(db, claim.session, chat, claim.turn, items, now)
    _mark(db, claim.turn, items, stored)
    return items, stored


def record(db: Connection, claim: Claim, step: Step) -> tuple[Message, ...]:
    """Append a step. Raises LeaseLost."""
    return _write(db, claim, _hold(db, claim), step)


def park(db: Connection, claim: Claim, question: Question, now: float) -> bool:
    """Ask a person, and let the turn wait for the answer. False: it was stopped meanwhile. Raises LeaseLost."""
    _hold(db, claim)
    if db.execute("SELECT 1 FROM turns WHERE id = ? AND stop_requested_at IS NOT NULL", (claim.turn,)).fetchone():
        return False
    approvals.ask(db, claim.turn, claim.session, question, now)
    return True


def finish(
    db: Connection, claim: Claim, outcome: Outcome, replies: Sequence[Reply], now: float, known: Collection[str] = ()
) -> tuple[tuple[str, ...], tuple[Message, ...], bool]:
    """End a turn, with its last step and its replies. Returns their ids, the step's messages, and whether a claim may find something.

    known: secrets of this installation, which no note may hold. Raises LeaseLost.
    """
    chat = _hold(db, claim)
    messages = _write(db, claim, chat, outcome.step)
    db.execute("UPDATE turns SET state = ?, ended = ?, error = ? WHERE id = ?", (outcome.state, now, outcome.error, claim.turn))
    db.execute(
        "UPDATE inbox SET state = ?, reason = ? WHERE turn = ?",
        ("failed" if outcome.state == "failed" else "answered", outcome.error, claim.turn),
    )
    if outcome.boundary:
        boundaries.put(db, claim.session, outcome.boundary)
    for effect in outcome.effects:
        if isinstance(effect, Withdrawn):
            approvals.withdraw(db, effect)
        elif isinstance(effect, NoteEffect):
            history.take(db, effect, now, known)
        elif isinstance(effect, JobEffect):
            jobs.take(db, effect, now)
        elif isinstance(effect, ExportLink):
            exports.offer(db, effect, now)
        elif isinstance(effect, Switch):
            branches.switch(db, chat, effect, now)
        elif isinstance(effect, AccessEffect):
            access.take(db, effect, now)
        elif isinstance(effect, LinkCode):
            links.put(db, effect)
        elif isinstance(effect, LoginLink):
            logins.offer(db, effect, now)
        elif isinstance(effect, LoggedOut):
            logins.end(db, person=effect.person)
        else:
            marks.take(db, claim.session, effect, now, known)
    if outcome.new_session:
        new_session(db, chat, now)
    put = outbox.put_last(db, replies, claim.session, claim.turn, now)
    deletions.of_turn(db, claim.turn, now)
    if claim.kind == "job":
        runs.end(db, claim, chat, outcome, list(zip(put, replies, strict=True)), now)
    return put, messages, claimable(db, now)


def _hold(db: Connection, claim: Claim) -> int:
    """The chat of a turn that is still ours."""
    row = db.execute(
        "SELECT chat FROM turns WHERE id = ? AND owner = ? AND epoch = ? AND state = 'running'",
        (claim.turn, claim.owner, claim.epoch),
    ).fetchone()
    if row is None:
        raise LeaseLost(claim.turn)
    return int(row[0])


def holds(db: Connection, claim: Claim) -> bool:
    """Whether a turn runs that was claimed so."""
    return (
        db.execute(
            "SELECT 1 FROM turns WHERE id = ? AND owner = ? AND epoch = ? AND state = 'running'", (claim.turn, claim.owner, claim.epoch)
        ).fetchone()
        is not None
    )


def _write(db: Connection, claim: Claim, chat: int, step: Step) -> tuple[Message, ...]:
    messages = transcript.append(db, claim.session, chat, claim.turn, step.messages)
    for call in step.calls:
        model_calls.put(db, call, claim.session, claim.turn)
    for tool in step.tools:
        _put_tool(db, claim.turn, tool)
    model_calls.put_cache(db, step.cache)
    for each in step.recalled:
        recalled.put(db, claim.turn, each)
    if step.prompt is not None:
        compactions.save_prompt(db, claim.session, step.prompt)
    return messages


def _put_tool(db: Connection, turn: str, tool: ToolState) -> None:
    ended = tool.at if tool.state in ("denied", "done", "interrupted") else None
    db.execute(
        "INSERT INTO tool_calls (turn, call_id, name, arguments, state, started, ended) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (turn, call_id) DO UPDATE SET state = excluded.state, ended = excluded.ended",
        (turn, tool.call_id, tool.name, tool.arguments, tool.state, tool.at, ended),
    )


def void(db: Connection) -> int:
    """Take the turns from whoever has no lease (any more); they write nothing of them from now on. Returns how many were interrupted."""
    return db.execute(
        f"UPDATE turns SET lease_until = 0, epoch = epoch + 1 WHERE {RUNNING} AND owner NOT IN (SELECT owner FROM leases)"
    ).rowcount


def release(db: Connection, claim: Claim) -> None:
    """Leave a turn to the next start: it was interrupted on purpose, which does not count as an attempt."""
    db.execute("UPDATE turns SET lease_until = 0 WHERE id = ? AND epoch = ?", (claim.turn, claim.epoch))
    db.execute("UPDATE inbox SET attempts = attempts - 1 WHERE turn = ?", (claim.turn,))


def tool_states(db: Connection, turn: str) -> dict[str, str]:
    """State of every tool call of a turn, by call id."""
    return dict(db.execute("SELECT call_id, state FROM tool_calls WHERE turn = ?", (turn,)).fetchall())


def _item(row: Sequence[Any]) -> Item:
    identifier, kind, text, client_id, person, sender_name, context, received, job, reply_to, instant = row
    return Item(identifier, kind, text, client_id, person, sender_name, readable(context, {}), received, job, reply_to, instant)
