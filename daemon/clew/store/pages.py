"""Sessions, transcripts and compactions a page at a time: what is read is bounded, however much there is."""

import json
from collections.abc import Sequence
from typing import Any

from clew.errors import NotFound
from clew.store import Compaction, CompactionRow, Filed, Line, Lines, Listed, SessionRow, compactions, transcript
from clew.store.connection import Connection

_FILED = (
    "WITH found AS MATERIALIZED (SELECT s.id, (SELECT at FROM messages WHERE session = s.id ORDER BY seq DESC LIMIT 1) AS last"
    " FROM sessions AS s JOIN chats AS c ON c.id = s.chat WHERE s.run = ? AND (? = '' OR c.transport = ?)"
    " AND (? = '' OR lower(s.id) LIKE ? ESCAPE '\\' OR lower(s.title) LIKE ? ESCAPE '\\' OR lower(c.address) LIKE ? ESCAPE '\\'"
    " OR lower(c.person) LIKE ? ESCAPE '\\'))"
    " SELECT id, (SELECT count(*) FROM found WHERE last IS NOT NULL) FROM found WHERE last IS NOT NULL"
    " ORDER BY last DESC, id LIMIT ? OFFSET ?"
)
_LISTED = (
    "SELECT s.id, c.address, s.title, s.created, (SELECT at FROM messages WHERE session = s.id ORDER BY seq DESC LIMIT 1),"
    " (SELECT count(*) FROM messages WHERE session = s.id),"
    " (SELECT count(*) FROM compactions WHERE session = s.id AND undone_at IS NULL), c.person,"
    " (SELECT seq FROM messages WHERE session = s.id ORDER BY seq LIMIT 1),"
    " (SELECT input + cache_read + cache_write FROM model_calls WHERE session = s.id AND purpose = 'reply' AND error = ''"
    "  ORDER BY started DESC LIMIT 1)"
    " FROM json_each(?) AS wanted CROSS JOIN sessions AS s JOIN chats AS c ON c.id = s.chat WHERE s.id = wanted.value"
    " ORDER BY wanted.key"
)
_LINE = ", ".join(f"m.{column}" for column in transcript.COLUMNS.split(", "))


def sessions(db: Connection, filed: Filed, limit: int, offset: int) -> tuple[list[Listed], int]:
    """Sessions that have messages, the one spoken in last first, and how many there are in all."""
    lower = filed.words.encode().lower().decode()  # A to Z alone, as the databases do
    escaped = lower.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    values = (int(filed.runs), filed.transport, filed.transport, filed.words, *([f"%{escaped}%"] * 4))
    rows = db.execute(_FILED, (*values, limit, offset)).fetchall()
    first = rows or db.execute(_FILED, (*values, 1, 0)).fetchall()  # behind the last page, too, it is said how many there are
    return listed(db, [identifier for identifier, _ in rows]), first[0][1] if first else 0


def listed(db: Connection, ids: Sequence[str]) -> list[Listed]:
    """These sessions, in this order."""
    found = []
    for *row, first, prompt in db.execute(_LISTED, (json.dumps(ids),)).fetchall():
        newest = compactions.tip(db, row[0])
        behind = newest.to_seq - first + 1 if newest and first else 0
        found.append(Listed(SessionRow(*row), max(0, behind), prompt or 0))
    return found


def transports(db: Connection) -> list[str]:
    """Transports of which there are chats."""
    return [name for (name,) in db.execute("SELECT DISTINCT transport FROM chats ORDER BY transport")]


def lines(db: Connection, session: str, limit: int, *, before: int | None = None, after: int | None = None) -> Lines:
    """At most `limit` rows of a transcript: the first behind row `after`, else the last in front of row `before`, else the last."""
    forward = after is not None
    edge = after if after is not None else before if before is not None else 2**62
    rows = db.execute(
        f"SELECT {_LINE}, coalesce(r.reason, ''), coalesce(r.shown, 0), p.message IS NOT NULL, c.address,"
        " EXISTS (SELECT 1 FROM turns WHERE turns.id = m.turn),"
        " EXISTS (SELECT 1 FROM private_spans AS o WHERE o.session = m.session AND m.seq > o.from_seq"
        "  AND m.seq <= coalesce(o.until_seq, m.seq))"
        " FROM messages AS m JOIN chats AS c ON c.id = m.chat LEFT JOIN retractions AS r ON r.message = m.id"
        " LEFT JOIN pins AS p ON p.session = m.session AND p.message = m.id"
        f" WHERE m.session = ? AND m.seq {'>' if forward else '<'} ? ORDER BY m.seq {'ASC' if forward else 'DESC'} LIMIT ?",
        (session, edge, limit + 1),
    ).fetchall()
    more, rows = len(rows) > limit, rows[:limit]
    edits = _edits(db, [row[0] for row in rows])
    found = tuple(_line(row, edits.get(row[0], [])) for row in (rows if forward else rows[::-1]))
    other = bool(
        db.execute(
            f"SELECT EXISTS (SELECT 1 FROM messages WHERE session = ? AND seq {'<=' if forward else '>='} ?)", (session, edge)
        ).fetchone()[0]
    )
    return Lines(found, earlier=other if forward else more, later=more if forward else other)


def _edits(db: Connection, messages: Sequence[str]) -> dict[str, list[tuple[str, float]]]:
    """(words, when) of the edits of messages, in order."""
    found: dict[str, list[tuple[str, float]]] = {}
    listed = json.dumps(messages)
    for message, text, at in db.execute(
        "SELECT message, text, at FROM edits WHERE message IN (SELECT value FROM json_each(?)) ORDER BY id", (listed,)
    ):
        found.setdefault(message, []).append((text, at))
    return found


def _line(row: Sequence[Any], edits: Sequence[tuple[str, float]]) -> Line:
    *message, reason, shown, pinned, address, turn, private = row
    return Line(
        transcript.message(message),
        reason,
        bool(shown),
        bool(pinned),
        address,
        bool(turn),
        bool(private),
        tuple(edits),
    )


_ROW = (
    "SELECT number, id, kind, trigger, from_seq, to_seq, covered, messages, created, undone_at,"
    " CASE WHEN json_valid(report) THEN CAST(report ->> 'tokens_before' AS BIGINT) END,"
    " CASE WHEN json_valid(report) THEN CAST(report ->> 'tokens_after' AS BIGINT) END"
    " FROM (SELECT row_number() OVER (ORDER BY rowid) AS number, * FROM compactions WHERE session = ?) AS numbered"
)


def compaction_rows(db: Connection, session: str, limit: int, offset: int) -> tuple[list[CompactionRow], int]:
    """A session's compactions, the newest first, and how many there are."""
    total: int = db.execute("SELECT count(*) FROM compactions WHERE session = ?", (session,)).fetchone()[0]
    rows = db.execute(f"{_ROW} ORDER BY number DESC LIMIT ? OFFSET ?", (session, limit, offset)).fetchall()
    return [_compaction_row(row) for row in rows], total


def cuts(db: Connection, session: str, first: int, last: int) -> list[CompactionRow]:
    """Summaries of a session that stand and whose last covered row is one of these, in order."""
    rows = db.execute(
        f"{_ROW} WHERE undone_at IS NULL AND kind = 'summary' AND to_seq BETWEEN ? AND ? ORDER BY number", (session, first, last)
    ).fetchall()
    return [_compaction_row(row) for row in rows]


def made_between(db: Connection, session: str, since: float, until: float | None) -> list[CompactionRow]:
    """Compactions of a session that were made then (seconds since the epoch), in order."""
    rows = db.execute(f"{_ROW} WHERE created BETWEEN ? AND coalesce(?, 9e18) ORDER BY number", (session, since, until)).fetchall()
    return [_compaction_row(row) for row in rows]


def number_of(db: Connection, compaction: str) -> int:
    """The place of a compaction among those of its session, from 1."""
    row = db.execute(
        "SELECT count(*) FROM compactions AS c JOIN compactions AS this ON this.id = ? AND c.session = this.session"
        " AND c.rowid <= this.rowid",
        (compaction,),
    ).fetchone()
    return int(row[0])


def _compaction_row(row: Sequence[Any]) -> CompactionRow:
    before, after = row[10:]
    return CompactionRow(*(*row[:10], (before, after or 0) if before is not None else None))


def compaction(db: Connection, session: str, number: int) -> tuple[Compaction, Compaction | None, int]:
    """A session's compaction with this number, the one that it revises, and that one's number, 0 where there is none. Raises NotFound."""
    rows = db.execute("SELECT id, parent FROM compactions WHERE session = ? ORDER BY rowid", (session,)).fetchall()
    if not 0 < number <= len(rows):
        raise NotFound(f"There is no compaction {number}; there are {len(rows)}.")
    identifier, parent = rows[number - 1]
    before = next((at for at, (each, _) in enumerate(rows, 1) if each == parent), 0)
    return compactions.one(db, identifier), compactions.one(db, parent) if before else None, before
