"""Turns as they were: what each did, and what it was shown, as far as rows that stay tell of it."""

from clew.errors import NotFound
from clew.messages import Message
from clew.store import AskedRow, Past, Sight, ToolRow, TurnRow, compactions, model_calls, pages, transcript
from clew.store.connection import Connection

MOST_SAID = 500
"""Rows of one turn that are given, the first."""
DAY = 86_400.0


def past(db: Connection, turn: str) -> Past:
    """A turn by its id, with all that it did. Raises NotFound."""
    found = _turn(db, turn)
    return Past(
        found,
        said=_said(db, found),
        calls=tuple(model_calls.of_turn(db, found.session, turn, found.started - DAY)),  # a clock may have gone back
        tools=tuple(
            ToolRow(*each)
            for each in db.execute(
                "SELECT call_id, name, arguments, state, started, ended FROM tool_calls WHERE turn = ? ORDER BY started, call_id", (turn,)
            )
        ),
        asked=tuple(
            AskedRow(*each)
            for each in db.execute(
                "SELECT a.tool, a.person, c.address, a.question, a.state, a.how, a.asked, a.answered FROM approvals AS a"
                " JOIN chats AS c ON c.id = a.chat WHERE a.turn = ? ORDER BY a.asked, a.call_id",
                (turn,),
            )
        ),
        compacted=tuple(pages.made_between(db, found.session, found.started, found.ended)),
    )


def _turn(db: Connection, turn: str) -> TurnRow:
    row = db.execute(
        "SELECT t.id, t.session, c.address, t.kind, t.state, t.started, t.ended, t.error, coalesce(t.first_seq, 0)"
        " FROM turns AS t JOIN chats AS c ON c.id = t.chat WHERE t.id = ?",
        (turn,),
    ).fetchone()
    if row is None:
        raise NotFound(f"There is no turn {turn[:40]!r}.", hint="The transcript of a thread leads to its turns.")
    return TurnRow(*row)


def _said(db: Connection, turn: TurnRow) -> tuple[Message, ...]:
    found = []
    rows = db.execute(
        f"SELECT {transcript.COLUMNS} FROM messages WHERE session = ? AND seq >= ? AND id NOT IN"
        " (SELECT message FROM retractions WHERE reason = 'deleted') ORDER BY seq",
        (turn.session, turn.first_seq or 2**62),
    )
    for row in rows:
        message = transcript.message(row)
        if message.turn == turn.id:
            found.append(message)
        elif not message.overheard or len(found) >= MOST_SAID:
            break
    return tuple(found)


def sight(db: Connection, turn: str, at: float, limit: int) -> Sight:
    """What was shown of its session to a turn's model call that began then, the newest `limit` rows of it. Raises NotFound.

    at: seconds since the epoch. What was taken back or undone since is there; what was deleted is not.
    """
    found = _turn(db, turn)
    session, until = _base(db, found)
    newest = compactions.stood(db, session, at)
    to_seq = newest.to_seq if newest else 0
    condition = (
        " FROM messages AS m LEFT JOIN retractions AS r ON r.message = m.id"
        " WHERE (m.session = ? AND m.seq > ? AND m.seq <= ?"
        " OR m.session = ? AND m.seq >= ? AND m.turn = ? AND (m.role = 'user' OR m.at <= ?))"
        " AND (r.message IS NULL OR (r.reason = 'undo' AND r.at > ?))"
    )
    values = (session, to_seq, until, found.session, found.first_seq or 2**62, turn, at, at)
    total: int = db.execute(f"SELECT count(*){condition}", values).fetchone()[0]
    columns = ", ".join(f"m.{name}" for name in transcript.COLUMNS.split(", "))
    rows = db.execute(f"SELECT {columns}{condition} ORDER BY m.seq DESC LIMIT ?", (*values, limit)).fetchall()
    number = pages.number_of(db, newest.id) if newest else 0
    return Sight(newest, number, tuple(transcript.message(row) for row in rows[::-1]), total)


def _base(db: Connection, turn: TurnRow) -> tuple[str, int]:
    """(the session whose view a turn goes on from, the last row of that in front of it)."""
    forked = db.execute("SELECT parent, fork_seq FROM sessions WHERE id = ? AND parent IS NOT NULL AND run = 1", (turn.session,)).fetchone()
    return (forked[0], forked[1]) if forked else (turn.session, (turn.first_seq or 2**62) - 1)
