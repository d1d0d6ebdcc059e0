"""Search: who may see a text is a term of the MATCH and a condition of the SQL that finds it."""

import json
import re
import sqlite3
from collections.abc import Sequence
from math import inf
from typing import Any

from clew.context.ranking import Candidate
from clew.messages import blocks_from_json
from clew.store import Ask, Found, Scope, transcript

NEIGHBOURS = 2
"""Messages on each side of a hit that are read with it."""
_EVER = 9e18
"""Seconds: what stands for infinity, which JSON has not."""

_POSITION = re.compile(r"#[0-9]{1,9}\Z")
_IN_SPAN = (
    "EXISTS (WITH span(chat, since, until) AS MATERIALIZED (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))"
    " SELECT 1 FROM span WHERE span.chat = m.chat AND m.at BETWEEN since AND until)"
)
"""The condition that a row of `messages AS m` was written in one of the spans (chat, since, until) of a JSON list. Materialized, so that
it is read once for a query, not for each row."""
_COLUMNS = "m.id, m.session, c.address, coalesce(nullif(m.sender_name, ''), m.sender), m.role, m.at, m.blocks, m.seq"


def scope_of_session(db: sqlite3.Connection, session: str, address: str, after_seq: int) -> Scope:
    """What may reach a prompt of `session` that is answered at `address`: a group sees itself, a person's chats see their person's."""
    chat = db.execute("SELECT id, direct, person FROM chats WHERE address = ?", (address,)).fetchone()
    if chat is None:
        return Scope((), session, after_seq)
    number, direct, person = chat
    if not direct:
        return Scope(((number, -inf, inf),), session, after_seq)
    return Scope(_chats_of(db, person, own=number), session, after_seq)


def scope_of_person(db: sqlite3.Connection, person: str) -> Scope:
    """What `person` may see: their direct chats, and of groups what was written while they were in them."""
    return Scope(_chats_of(db, person))


def scope_of_chat(db: sqlite3.Connection, address: str) -> Scope:
    """What may be seen at `address`."""
    return scope_of_session(db, "", address, 0)


def scope_of_operator() -> Scope:
    return Scope(None)


def _chats_of(db: sqlite3.Connection, person: str | None, own: int | None = None) -> tuple[tuple[int, float, float], ...]:
    spans = [(own, -inf, inf)] if own is not None else []
    if person is not None:
        direct = db.execute("SELECT id FROM chats WHERE direct = 1 AND person = ?", (person,))
        spans += [(number, -inf, inf) for (number,) in direct if number != own]
        groups = db.execute(
            "SELECT chat, joined, coalesce(left_at, 9e18) FROM chat_members JOIN chats ON chats.id = chat"
            " WHERE chat_members.person = ? AND direct = 0",
            (person,),
        )
        spans += list(groups)
    return tuple(spans)


def search(db: sqlite3.Connection, scope: Scope, ask: Ask, limit: int, shown: Sequence[str] = ()) -> Found:
    """Ask the index what `ask` makes of its word counts. Hits come best first.

    Messages of the asking session that are in view are not found, and neither is what somebody took back. `shown`: ids of messages
    of which it is to be said whether they may (still) be seen.
    """
    query = ask(lambda term: _frequency(db, term), _total(db))
    if query is None or scope.chats == ():
        return Found(query, (), (), visible(db, scope, shown))
    expression = f"text : ({query.match})"
    if scope.chats is not None:
        terms = " OR ".join(dict.fromkeys(transcript.scope_term(chat) for chat, _, _ in scope.chats))
        expression = f"(scope : ({terms})) AND {expression}"
    allowed, values = _allowed(scope)
    rows = db.execute(
        f"SELECT {_COLUMNS}, bm25(messages_fts, 1.0, 0.0) AS rank FROM messages_fts"
        " CROSS JOIN messages AS m ON m.number = messages_fts.rowid JOIN chats AS c ON c.id = m.chat"
        f" WHERE messages_fts MATCH ? AND {allowed} ORDER BY rank LIMIT ?",
        (expression, *values, limit),
    ).fetchall()
    hits = [_candidate(scope, row[:-1], row[-1]) for row in rows]
    return Found(query, tuple(hits), tuple(_neighbours(db, scope, hits)), visible(db, scope, shown))


def _allowed(scope: Scope) -> tuple[str, list[Any]]:
    """The condition that a row of `messages AS m` may be seen, and its values."""
    conditions = ["m.id NOT IN (SELECT message FROM retractions)"]
    values: list[Any] = []
    if scope.session is not None:
        conditions.append("NOT (m.session = ? AND m.seq > ?)")
        values += [scope.session, scope.after_seq]
    if scope.chats is not None:
        conditions.append(_IN_SPAN)
        values.append(json.dumps([(chat, max(since, -_EVER), min(until, _EVER)) for chat, since, until in scope.chats]))
    return " AND ".join(conditions), values


def _neighbours(db: sqlite3.Connection, scope: Scope, hits: Sequence[Candidate]) -> list[Candidate]:
    places = {(hit.session, hit.seq) for hit in hits}
    wanted = {(s, seq + d) for s, seq in places for d in range(-NEIGHBOURS, NEIGHBOURS + 1)} - places
    allowed, values = _allowed(scope)
    if not wanted:
        return []
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM messages AS m JOIN chats AS c ON c.id = m.chat"
        f" WHERE (m.session, m.seq) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?)) AND {allowed}",
        (json.dumps(sorted(wanted)), *values),
    )
    return [_candidate(scope, row, 0.0) for row in rows]


def _candidate(scope: Scope, row: Sequence[Any], rank: float) -> Candidate:
    identifier, session, address, sender, role, at, blocks, seq = row
    text = transcript.searchable(blocks_from_json(blocks))
    speaker = sender or ("clew" if role == "assistant" else role)
    return Candidate(identifier, session, address, speaker, role, at, text, rank, seq, session == scope.session)


def visible(db: sqlite3.Connection, scope: Scope, ids: Sequence[str]) -> frozenset[str]:
    """Which of these messages may (still) be seen and are not in view."""
    if scope.chats == () or not ids:
        return frozenset()
    allowed, values = _allowed(scope)
    rows = db.execute(
        f"SELECT m.id FROM messages AS m WHERE m.id IN (SELECT value FROM json_each(?)) AND {allowed}", (json.dumps(ids), *values)
    )
    return frozenset(identifier for (identifier,) in rows)


def around(db: sqlite3.Connection, scope: Scope, message: str, before: int, after: int) -> list[Candidate]:
    """A message that may be seen, with what stands around it in its session; empty where it may not or is not.

    message: its id or, in the session that asks, `#` and its position, as a summary names it.
    """
    if scope.chats == ():
        return []
    everywhere = Scope(scope.chats)  # opened by id: what is in view may be opened too
    allowed, values = _allowed(everywhere)
    seq = int(message[1:]) if _POSITION.match(message) else 0
    place = db.execute(
        f"SELECT m.session, m.seq FROM messages AS m WHERE (m.id = ? OR (m.session = ? AND m.seq = ?)) AND {allowed}",
        (message, scope.session, seq, *values),
    ).fetchone()
    if place is None:
        return []
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM messages AS m JOIN chats AS c ON c.id = m.chat"
        f" WHERE m.session = ? AND m.seq BETWEEN ? AND ? AND {allowed} ORDER BY m.seq",
        (place[0], place[1] - before, place[1] + after, *values),
    )
    return [_candidate(scope, row, 0.0) for row in rows]


def _frequency(db: sqlite3.Connection, term: str) -> int:
    """In how many messages a term occurs."""
    row = db.execute("SELECT messages FROM document_frequency WHERE term = ?", (term,)).fetchone()
    return row[0] if row else 0


def _total(db: sqlite3.Connection) -> int:
    """Messages in the store, near enough: the newest row's number."""
    row = db.execute("SELECT coalesce(max(number), 0) FROM messages").fetchone()
    return int(row[0])
