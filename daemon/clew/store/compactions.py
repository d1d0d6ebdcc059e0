"""The rolling summary's revisions, and the rows that a view is computed from."""

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

from clew.store import UNSEEN, CacheEntry, Compaction, ModelCall, PromptState, Reader, Seen, ViewRows, model_calls, transcript
from clew.store.connection import Connection
from clew.store.damage import readable
from clew.store.files import verbs as files
from clew.store.notes import Where, scopes

_COLUMNS = (
    "id, session, parent, from_seq, to_seq, ledger, text, trigger, prompt_version, report, messages, covered, created,"
    " held, model_call, undone_at, hold_until_seq, kind, shortened"
)

REMEMBERED = 64
"""Compactions that are not made of their rows anew: a session has the same one from turn to turn."""

_STATE = tuple(field.name for field in fields(PromptState))
_OF_SESSION = (
    "SELECT coalesce((SELECT failures FROM compaction_state WHERE session = :session), 0),"
    " (SELECT max(first_seq) FROM turns WHERE session = :session AND state IN ('running', 'waiting') AND first_seq > 0),"
    " EXISTS (SELECT 1 FROM pins WHERE session = :session), EXISTS (SELECT 1 FROM refused_files WHERE session = :session),"
    " EXISTS (SELECT 1 FROM compactions WHERE session = :session AND undone_at IS NOT NULL),"
    " (SELECT count(*) FROM retractions WHERE session = :session AND shown = 0),"
    " EXISTS (SELECT 1 FROM retractions WHERE session = :session AND shown = 1), sessions.parent, sessions.fork_seq,"
    f" {', '.join(_STATE)} FROM (SELECT 1) AS one LEFT JOIN prompt_state ON prompt_state.session = :session"
    " LEFT JOIN sessions ON sessions.id = :session AND sessions.parent IS NOT NULL AND sessions.run = 1"
)
_READ_STATE = f"SELECT {', '.join(_STATE)} FROM prompt_state WHERE session = ?"
_SAVE_STATE = (
    f"INSERT INTO prompt_state (session, {', '.join(_STATE)}) VALUES (?{', ?' * len(_STATE)})"
    f" ON CONFLICT (session) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _STATE)}"
)

READABLE = (
    "json_valid(held) AND json_valid(shortened) AND json_valid(ledger)"
    " AND CASE WHEN json_valid(report) THEN (report -> 'total') || (report -> 'first_at') END IS NOT NULL"
)
"""That a row of `compactions` can be used."""


def tip(db: Connection, session: str, until: int | None = None) -> Compaction | None:
    """The newest compaction that was not undone. One that is damaged is passed over: what it covered is in the window again.

    until: of those that cover no row behind this one. They are in the order of their commits, whatever the clock said.
    """
    row = db.execute(
        f"SELECT {_COLUMNS} FROM compactions WHERE session = ? AND undone_at IS NULL AND {READABLE}"
        " AND to_seq <= coalesce(?, 9000000000) ORDER BY rowid DESC LIMIT 1",
        (session, until),
    ).fetchone()
    return _compaction(row) if row else None


def damaged(db: Connection, session: str, newest: Compaction | None = None) -> tuple[str, ...]:
    """Ids of the compactions that cannot be read: those behind `newest`, which stands in their place, or all."""
    rows = db.execute(
        f"SELECT id FROM compactions WHERE session = ? AND undone_at IS NULL AND NOT ({READABLE})"
        " AND rowid > coalesce((SELECT rowid FROM compactions WHERE id = ?), 0) ORDER BY id",
        (session, newest.id if newest else None),
    )
    return tuple(identifier for (identifier,) in rows)


def listing(db: Connection, session: str) -> list[Compaction]:
    rows = db.execute(f"SELECT {_COLUMNS} FROM compactions WHERE session = ? ORDER BY rowid", (session,))
    return [_compaction(row) for row in rows]


def stood(db: Connection, session: str, at: float) -> Compaction | None:
    """The newest compaction that stood at a time (seconds since the epoch)."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM compactions WHERE session = ? AND created <= ? AND coalesce(undone_at, 9e18) > ? AND {READABLE}"
        " ORDER BY rowid DESC LIMIT 1",
        (session, at, at),
    ).fetchone()
    return _compaction(row) if row else None


def failing(db: Connection, session: str | None, limit: int) -> list[tuple[str, int, str]]:
    """(session, compactions that failed in a row, the last one's error) of those, or of one, where some did; those with the most first."""
    return db.execute(
        "SELECT session, failures, last_error FROM compaction_state WHERE failures > 0 AND (CAST(? AS TEXT) IS NULL OR session = ?)"
        " ORDER BY failures DESC, session LIMIT ?",
        (session, session, limit),
    ).fetchall()


def one(db: Connection, identifier: str) -> Compaction:
    """The compaction with this id, which is there."""
    return _compaction(db.execute(f"SELECT {_COLUMNS} FROM compactions WHERE id = ?", (identifier,)).fetchone())


class _Known(NamedTuple):
    """What is known of a session, in one look.

    failures: summaries that failed in a row. turn_seq: where the turn that runs begins. undone: there are undone compactions. taken_back:
    messages that were, and do not stand in its prompt any more; deleted: some still do. parent, fork_seq: of a run that goes on from
    another session, that one and its last row. prompt: what its prompt shows.
    """

    failures: int
    turn_seq: int | None
    pins: bool
    refused: bool
    undone: bool
    taken_back: int
    deleted: bool
    parent: str | None
    fork_seq: int
    prompt: PromptState


def _known(db: Connection, session: str) -> _Known:
    row = db.execute(_OF_SESSION, {"session": session}).fetchone()
    known, prompt = row[: -len(_STATE)], row[-len(_STATE) :]
    return _Known._make((*known, PromptState() if prompt[0] is None else PromptState(*prompt)))


def view(db: Connection, session: str, seen: Seen = UNSEEN) -> ViewRows:
    """All rows of a session's view, from one snapshot. seen: what of it is not read again, see `transcript.behind`."""
    known = _known(db, session)
    if known.parent is not None:
        return _forked(db, known, session, known.parent, known.fork_seq)
    newest, broken = _newest(db, session)
    return _view(db, known, session, newest, broken, seen)


def _newest(db: Connection, session: str) -> tuple[Compaction | None, tuple[str, ...]]:
    """(`tip`, those behind it that are `damaged`)."""
    row = db.execute(
        f"SELECT {_COLUMNS}, {READABLE} FROM compactions WHERE session = ? AND undone_at IS NULL ORDER BY rowid DESC LIMIT 1", (session,)
    ).fetchone()
    if row is None or row[-1]:
        return _compaction(row[:-1]) if row else None, ()
    newest = tip(db, session)
    return newest, damaged(db, session, newest)


def _forked(db: Connection, known: _Known, session: str, parent: str, fork_seq: int) -> ViewRows:
    """The view of a run that goes on from its chat's session as that was at row `fork_seq`. known: of the run."""
    newest = tip(db, parent, fork_seq)
    base = _view(db, _known(db, parent), parent, newest, damaged(db, parent, newest))
    own = _view(db, known, session, None, damaged(db, session))
    return replace(
        base,
        session=session,
        messages=(*(message for message in base.messages if message.seq <= fork_seq), *own.messages),
        prompt=base.prompt if own.prompt == PromptState() else own.prompt,
        turn_seq=own.turn_seq,
        base=parent,
    )


def reader(db: Connection, session: str) -> Reader:
    """For whom a session's messages are headed: the person of the chat in which it is gone on with."""
    row = db.execute(
        "SELECT c.direct, p.timezone FROM messages AS m JOIN chats AS c ON c.id = m.chat LEFT JOIN people AS p ON p.id = c.person"
        " WHERE m.session = ? ORDER BY m.seq DESC LIMIT 1",
        (session,),
    ).fetchone()
    own = db.execute("SELECT address FROM chats WHERE id = (SELECT chat FROM sessions WHERE id = ?)", (session,)).fetchone()
    seen = frozenset(scopes.reach(db, Where(address=own[0])).values()) if own else frozenset()
    return Reader(bool(row[0]), row[1], seen) if row else Reader(True, None, seen)


def before_summary(db: Connection, session: str) -> tuple[ViewRows, Compaction, Compaction] | None:
    """(the view without the newest summary, that summary, the newest compaction); None where there is no summary."""
    standing = [each for each in listing(db, session) if each.undone_at is None]
    newest = next((each for each in reversed(standing) if each.kind == "summary"), None)
    if newest is None or begins_branch(db, newest):
        return None
    parent = next((each for each in standing if each.id == newest.parent), None)
    return _view(db, _known(db, session), session, parent, damaged(db, session, parent)), newest, standing[-1]


def _view(db: Connection, known: _Known, session: str, newest: Compaction | None, broken: Sequence[str], seen: Seen = UNSEEN) -> ViewRows:
    """The rows of a view whose newest compaction is `newest`. broken: ids of those behind it that cannot be read."""
    to_seq = newest.to_seq if newest else 0
    pins = frozenset(pin for (pin,) in db.execute("SELECT message FROM pins WHERE session = ?", (session,))) if known.pins else frozenset()
    pinned = tuple(message for message in transcript.standing(db, pins) if message.seq <= to_seq) if pins else ()
    return ViewRows(
        session=session,
        compaction=newest,
        messages=transcript.behind(db, session, to_seq, seen, known.taken_back),
        pins=pins,
        pinned=pinned,
        prompt=known.prompt,
        failures=known.failures,
        turn_seq=known.turn_seq,
        damaged=tuple(f"compaction {each}: it cannot be read" for each in broken),
        hold_seq=_hold_seq(db, session, newest) if known.undone else 0,
        taken_back=known.taken_back,
        deleted=bool(known.deleted),
        ratios={(provider, model): ratio for provider, model, ratio in db.execute("SELECT provider, model, ratio FROM token_ratios")},
        refused=files.refused(db, session) if known.refused else frozenset(),
    )


def _hold_seq(db: Connection, session: str, newest: Compaction | None) -> int:
    row = db.execute(
        "SELECT max(hold_until_seq) FROM compactions WHERE session = ? AND undone_at IS NOT NULL"
        " AND rowid > coalesce((SELECT rowid FROM compactions WHERE id = ?), 0)",
        (session, newest.id if newest else None),
    ).fetchone()
    return row[0] or 0


def prompt_state(db: Connection, session: str) -> PromptState:
    row = db.execute(_READ_STATE, (session,)).fetchone()
    return PromptState(*row) if row else PromptState()


def save_prompt(db: Connection, session: str, state: PromptState) -> None:
    db.execute(_SAVE_STATE, (session, *(getattr(state, name) for name in _STATE)))


def begins_branch(db: Connection, compaction: Compaction) -> bool:
    """Whether a thread that branched off begins behind this compaction: what it covers is another thread's, so that it stands for good."""
    if compaction.parent is not None or compaction.from_seq != 1 or compaction.to_seq == 0:
        return False
    row = db.execute(
        "SELECT fork_seq > 0 AND run = 0 AND NOT EXISTS (SELECT 1 FROM messages WHERE session = ?1 AND seq <= ?2)"
        " FROM sessions WHERE id = ?1",
        (compaction.session, compaction.to_seq),
    ).fetchone()
    return bool(row and row[0])


def undo(db: Connection, session: str, expected: str, now: float) -> bool:
    """Undo the newest compaction, if that is still `expected`. The count trigger waits for messages behind the last row from now on."""
    newest = tip(db, session)
    if newest is None or newest.id != expected or begins_branch(db, newest):
        return False
    db.execute(
        "UPDATE compactions SET undone_at = ?, hold_until_seq = (SELECT max(seq) FROM messages WHERE session = ?) WHERE id = ?",
        (now, session, expected),
    )
    return True


def commit(
    db: Connection,
    parent: str | None,
    new: Compaction,
    calls: Sequence[ModelCall],
    tip_id: str | None = None,
    cache: Sequence[CacheEntry] = (),
) -> bool:
    """Compare and swap: commit `new` if `parent` is still the newest one.

    tip_id: `new` takes the place of all that stand behind `parent`, if this is still the newest of them. cache: prefixes that a provider
    holds since.
    """
    newest = tip(db, new.session)
    if not db.execute("SELECT 1 FROM sessions WHERE id = ?", (new.session,)).fetchone():
        return False  # deleted meanwhile
    if (newest.id if newest else None) != (tip_id or parent) or _stands_on_forgotten(db, new):
        return False
    if tip_id:
        db.execute(
            "UPDATE compactions SET undone_at = ? WHERE session = ? AND undone_at IS NULL"
            " AND rowid > coalesce((SELECT rowid FROM compactions WHERE id = ?), 0)",
            (new.created, new.session, parent),
        )
    put(db, new)
    for call in calls:
        model_calls.put(db, replace(call, compaction=new.id), new.session, None)
    model_calls.put_cache(db, cache)
    if calls:  # an extract made without the summariser says nothing of its health
        db.execute("DELETE FROM compaction_state WHERE session = ?", (new.session,))
    return True


def put(db: Connection, new: Compaction) -> None:
    db.execute(
        f"INSERT INTO compactions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new.id,
            new.session,
            new.parent,
            new.from_seq,
            new.to_seq,
            new.ledger,
            new.text,
            new.trigger,
            new.prompt_version,
            new.report,
            new.messages,
            new.covered,
            new.created,
            json.dumps(new.held),
            new.model_call,
            new.undone_at,
            new.hold_until_seq,
            new.kind,
            json.dumps(new.shortened),
        ),
    )


def _stands_on_forgotten(db: Connection, new: Compaction) -> bool:
    """Whether something was forgotten while a summary of it was being written."""
    row = db.execute(
        "SELECT EXISTS (SELECT 1 FROM json_each(?) AS entry CROSS JOIN json_each(entry.value ->> 'sources') AS source"
        " JOIN retractions ON message = source.value WHERE reason = 'deleted')",
        (new.ledger,),
    ).fetchone()
    return bool(row[0])


def failed(db: Connection, session: str, error: str, calls: Sequence[ModelCall]) -> int:
    """Count a failure. Returns how many there are in a row, 0 where the session was deleted meanwhile."""
    if not db.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone():
        return 0
    for call in calls:
        model_calls.put(db, call, session, None)
    count: int = db.execute(
        "INSERT INTO compaction_state (session, failures, last_error) VALUES (?, 1, ?) ON CONFLICT (session) DO UPDATE"
        " SET failures = compaction_state.failures + 1, last_error = excluded.last_error RETURNING failures",
        (session, error),
    ).fetchone()[0]
    return count


@lru_cache(maxsize=REMEMBERED)
def _compaction(row: tuple[Any, ...]) -> Compaction:
    named = dict(zip(_COLUMNS.split(", "), row, strict=True))
    nothing: list[str] = []
    held, shortened = (tuple(readable(named[name], nothing)) for name in ("held", "shortened"))
    return Compaction(**{**named, "held": held, "shortened": shortened})
