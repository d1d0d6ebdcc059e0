"""What model calls leave behind: their rows, and the prefixes that providers hold since."""

import json
from collections.abc import Sequence
from math import inf
from typing import Any

from clew.context.tokens import learned
from clew.messages import Usage
from clew.store import CacheEntry, ModelCall
from clew.store.connection import Connection
from clew.store.damage import readable

_CACHE_COLUMNS = "provider, model, hash, tokens, ttl, expires"


def put(db: Connection, call: ModelCall, session: str | None, turn: str | None) -> None:
    usage = call.usage
    db.execute(
        "INSERT INTO model_calls (id, purpose, session, turn, compaction, payer, provider, model, input, output,"
        " cache_read, cache_write, segments, marks, started, first_byte, ended, error, cost, expected, ttl)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            call.id,
            call.purpose,
            session,
            turn,
            call.compaction,
            call.payer,
            call.provider,
            call.model,
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_write,
            json.dumps(call.segments),
            json.dumps(call.marks),
            call.started,
            call.first_byte,
            call.ended,
            call.error,
            call.cost,
            call.held,
            call.ttl,
        ),
    )
    if call.estimated:
        _learn(db, call)


_CALLS = (
    "SELECT id, purpose, payer, provider, model, input, output, cache_read, cache_write, started, first_byte, ended, error, segments,"
    " marks, compaction, cost, expected, ttl, coalesce(turn, '') FROM model_calls WHERE session = ?"
)


def of_session(db: Connection, session: str, limit: int, until: float = inf) -> list[ModelCall]:
    """The newest calls of a session that had begun by `until` (seconds since the epoch), the newest first."""
    rows = db.execute(f"{_CALLS} AND started <= ? ORDER BY started DESC, rowid DESC LIMIT ?", (session, until, limit))
    return [_call(row) for row in rows]


def of_turn(db: Connection, session: str, turn: str, since: float) -> list[ModelCall]:
    """The calls of a turn that began at `since` (seconds since the epoch) or later, in order."""
    rows = db.execute(f"{_CALLS} AND started >= ? AND turn = ? ORDER BY started, rowid", (session, since, turn))
    return [_call(row) for row in rows]


def _call(row: Sequence[Any]) -> ModelCall:
    identifier, purpose, payer, provider, model, *usage, started, first_byte, ended, error = row[:13]
    segments, marks, compaction, cost, held, ttl, turn = row[13:]
    nothing: list[Any] = []
    return ModelCall(
        identifier,
        purpose,
        payer,
        provider,
        model,
        Usage(*usage),
        started,
        first_byte,
        ended,
        error,
        tuple((name, digest, tokens) for name, digest, tokens in readable(segments, nothing)),
        tuple(readable(marks, nothing)),
        compaction,
        cost=cost,
        held=held,
        ttl=ttl,
        turn=turn,
    )


def holds(db: Connection, calls: Sequence[ModelCall]) -> bool:
    """Whether these calls are there, which were written together."""
    return bool(calls) and db.execute("SELECT 1 FROM model_calls WHERE id = ?", (calls[0].id,)).fetchone() is not None


def note(db: Connection, session: str, calls: Sequence[ModelCall]) -> None:
    """Write down calls outside of any turn, unless their session was deleted meanwhile."""
    if db.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone():
        for call in calls:
            put(db, call, session, None)


def note_some(db: Connection, calls: Sequence[tuple[str, ModelCall]]) -> None:
    """Write down calls outside of any turn, each for a session (empty: for none). Of a session that was deleted meanwhile nobody's."""
    for session, call in calls:
        there = db.execute("SELECT 1 FROM sessions WHERE id = ?", (session,)).fetchone()
        put(db, call, session if there else None, None)


def session_at(db: Connection, address: str) -> str:
    """The session that a message at an address would join, empty where there is none yet."""
    row = db.execute("SELECT session FROM chats WHERE address = ?", (address,)).fetchone()
    return (row[0] or "") if row else ""


def _learn(db: Connection, call: ModelCall) -> None:
    """Let a call teach what its model's tokens are to the estimated ones."""
    place = (call.provider, call.model)
    row = db.execute("SELECT ratio FROM token_ratios WHERE provider = ? AND model = ?", place).fetchone()
    ratio = learned(row[0] if row else None, call.estimated, call.usage.prompt)
    if ratio is not None and (row is None or ratio != row[0]):
        db.execute(
            "INSERT INTO token_ratios (provider, model, ratio) SELECT ?1, ?2, CAST(?3 AS DOUBLE PRECISION)"
            f" WHERE {_free(db, 'token_ratios', 'provider = ?1 AND model = ?2')}"
            " ON CONFLICT (provider, model) DO UPDATE SET ratio = excluded.ratio",
            (*place, ratio),
        )


def _free(db: Connection, table: str, row: str) -> str:
    """That nobody else is about to write a row which all sessions share: what is learned of it now is not worth waiting for them."""
    if not db.unlocked:  # one writes at a time
        return "true"
    mine = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {row}{db.unlocked}) AS mine"
    return f"({mine}) = (SELECT count(*) FROM {table} WHERE {row})"


def put_cache(db: Connection, entries: Sequence[CacheEntry]) -> None:
    """Note what a provider holds since. A prefix that another process notes at the same moment is held for as long as that says."""
    db.executemany(
        "INSERT INTO cache_entries (provider, model, hash, tokens, ttl, expires)"
        " SELECT ?1, ?2, ?3, CAST(?4 AS BIGINT), CAST(?5 AS DOUBLE PRECISION), CAST(?6 AS DOUBLE PRECISION)"
        f" WHERE {_free(db, 'cache_entries', 'provider = ?1 AND model = ?2 AND hash = ?3')}"
        " ON CONFLICT (provider, model, hash) DO UPDATE SET tokens = excluded.tokens, ttl = excluded.ttl,"
        " expires = CASE WHEN excluded.expires > cache_entries.expires THEN excluded.expires ELSE cache_entries.expires END",
        [(e.provider, e.model, e.hash, e.tokens, e.ttl, e.expires) for e in entries],
    )


def cache(db: Connection, limit: int) -> list[CacheEntry] | None:
    """All prefixes that some provider may still hold, None where they are more than `limit`."""
    if db.execute("SELECT count(*) FROM cache_entries").fetchone()[0] > limit:
        return None
    return [CacheEntry(*row) for row in db.execute(f"SELECT {_CACHE_COLUMNS} FROM cache_entries")]


def cached(db: Connection, provider: str, model: str, hashes: Sequence[str], now: float) -> dict[str, CacheEntry]:
    """Which of these prefixes the provider still holds."""
    rows = db.execute(
        f"SELECT {_CACHE_COLUMNS} FROM cache_entries"
        " WHERE provider = ? AND model = ? AND expires > ? AND hash IN (SELECT value FROM json_each(?))",
        (provider, model, now, json.dumps(hashes)),
    )
    return {row[2]: CacheEntry(*row) for row in rows}


def summary_tokens(db: Connection, since: float) -> int:
    """Tokens that calls of summarisers took since then, read and written."""
    row = db.execute(
        "SELECT coalesce(sum(input + output + cache_read + cache_write), 0) FROM model_calls WHERE purpose = 'summary' AND started >= ?",
        (since,),
    ).fetchone()
    return int(row[0])


def expire_cache(db: Connection, now: float) -> None:
    db.execute("DELETE FROM cache_entries WHERE expires <= ?", (now,))
