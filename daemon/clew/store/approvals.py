"""Questions to people: a turn waits for the answer, in the file alone; a yes for good is remembered."""

from collections.abc import Sequence
from typing import Any

from clew.context.consent import QUESTION_CODE
from clew.errors import NotFound, UsageError
from clew.messages import ToolCall
from clew.store import Answered, Asked, Given, OpenQuestion, Question, StandingYes, Withdrawn, outbox
from clew.store.connection import Connection
from clew.transport import Address

CLOSED_KEPT = 7 * 86_400.0
"""Seconds for which an answer to a question that is closed is told so; later it is a message like any other."""


def ask(db: Connection, turn: str, session: str, question: Question, now: float) -> None:
    """Store a question with the calls that wait for it, and let its turn wait."""
    reply = question.reply
    identifier = outbox.complete(db, turn, reply, now, ends=False) or outbox.put(db, reply, session if question.here else "", "", now)
    if question.notice is not None and not outbox.complete(db, turn, question.notice, now, ends=False):
        outbox.put(db, question.notice, session, "", now)
    outbox.drop_drafts(db, turn, now)
    (chat,) = db.execute("SELECT id FROM chats WHERE address = ?", (str(reply.address),)).fetchone()
    db.executemany(
        "INSERT INTO approvals (id, turn, call_id, chat, person, question, state, asked, asking, tool, arguments, expires, behalf, outbox,"
        " wording) VALUES (?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                f"{question.id}/{number}",
                turn,
                call.id,
                chat,
                question.person,
                reply.text,
                now,
                question.id,
                call.name,
                call.arguments,
                question.expires,
                question.behalf,
                identifier,
                question.wordings.get(call.name, ""),
            )
            for number, call in enumerate(question.calls)
        ],
    )
    db.executemany("UPDATE tool_calls SET state = 'waiting' WHERE turn = ? AND call_id = ?", [(turn, call.id) for call in question.calls])
    db.execute("UPDATE turns SET state = 'waiting' WHERE id = ?", (turn,))
    db.execute("UPDATE inbox SET attempts = attempts - 1 WHERE turn = ?", (turn,))  # waiting is no attempt


ANSWERABLE = f"(a.state = 'open' OR a.asked > :now - {CLOSED_KEPT})"
"""That the question `a` may be answered, if only by being told that it is closed."""
_ASKED = (
    "SELECT a.asking, a.turn, a.state, t.chat = a.chat AND t.kind = 'message', o.id, o.ref, a.tool"
    " FROM approvals AS a JOIN turns AS t ON t.id = a.turn LEFT JOIN outbox AS o ON o.id = a.outbox"
)


def asked_at(db: Connection, chat: int, person: str, now: float) -> tuple[Asked, ...]:
    """Questions that something said by `person` in `chat` may answer: open ones, and those of theirs that were closed lately."""
    rows = db.execute(
        f"{_ASKED} WHERE a.chat = :chat AND a.person = :person AND {ANSWERABLE}",
        {"chat": chat, "person": person, "now": now},
    ).fetchall()
    return _questions(rows)


def reacted_to(db: Connection, address: Address, person: str, ref: str) -> tuple[Asked, ...]:
    """The open question to `person` that stands in the message `ref` of a chat, in whichever of its threads: platforms do not say that
    of a reaction."""
    rows = db.execute(
        f"{_ASKED} JOIN chats ON chats.id = a.chat WHERE a.person = :person AND a.state = 'open' AND o.ref = :ref"
        " AND (chats.address = :address OR substr(chats.address, 1, length(:address) + 1) = :address || '/')",
        {"person": person, "ref": ref, "address": str(address)},
    )
    return _questions(rows.fetchall())


def _questions(rows: Sequence[tuple[Any, ...]]) -> tuple[Asked, ...]:
    """One for each question, of the rows of the calls that it is about."""
    found: dict[str, Asked] = {}
    for asking, turn, state, joins, identifier, ref, tool in rows:
        known = found.get(asking)
        tools = (*(known.tools if known else ()), tool)
        refs = frozenset(each for each in (identifier, ref) if each)
        found[asking] = Asked(asking, turn, tools, refs, state == "open", bool(joins))
    return tuple(found.values())


def give(db: Connection, given: Given, now: float) -> bool:
    """Answer a question and let its turn go on. False: it is closed already."""
    turns = db.execute(
        "UPDATE approvals SET state = ?, how = ?, answered = ? WHERE asking = ? AND state = 'open' RETURNING turn, asked",
        ("yes" if given.yes else "no", given.how, now, given.asking),
    ).fetchall()
    if not turns:
        return False
    if given.yes and given.always:
        db.execute(
            "INSERT INTO standing_approvals (chat, person, tool, by, at, wording)"
            " SELECT t.chat, a.behalf, a.tool, a.person, CAST(? AS DOUBLE PRECISION), a.wording"
            " FROM approvals AS a JOIN turns AS t ON t.id = a.turn WHERE a.asking = ?"
            " ON CONFLICT (chat, person, tool) DO UPDATE SET by = excluded.by, at = excluded.at, wording = excluded.wording",
            (now, given.asking),
        )
    turn, asked = turns[0]
    db.execute(
        "UPDATE turns SET state = 'running', lease_until = 0, started = CASE kind WHEN 'job' THEN started + ? ELSE started END"
        " WHERE id = ? AND state = 'waiting'",  # a job's time does not run while a person thinks
        (max(now - asked, 0.0), turn),
    )
    return True


def stop(db: Connection, turn: str, now: float) -> None:
    """Somebody stopped a turn: what it asks is closed."""
    for (asking,) in db.execute("SELECT DISTINCT asking FROM approvals WHERE turn = ? AND state = 'open'", (turn,)).fetchall():
        give(db, Given(asking, turn, yes=False, how="stopped"), now)


_DUE = "state = 'open' AND expires <= ?"


def any_due(db: Connection, now: float) -> bool:
    return bool(db.execute(f"SELECT EXISTS (SELECT 1 FROM approvals WHERE {_DUE})", (now,)).fetchone()[0])


def next_due(db: Connection) -> float | None:
    at: float | None = db.execute("SELECT min(expires) FROM approvals WHERE state = 'open'").fetchone()[0]
    return at


def expire(db: Connection, now: float) -> list[Given]:
    """Close what nobody answered in time."""
    found = db.execute(f"SELECT DISTINCT asking, turn FROM approvals WHERE {_DUE}", (now,)).fetchall()
    given = [Given(asking, turn, yes=False, how="expired") for asking, turn in found]
    return [each for each in given if give(db, each, now)]


def answers(db: Connection, turn: str) -> dict[ToolCall, Answered]:
    """What was answered for the calls of a turn, the newest for each."""
    rows = db.execute("SELECT call_id, tool, arguments, state, how, person FROM approvals WHERE turn = ? ORDER BY asked", (turn,))
    return {ToolCall(call, tool, arguments): Answered(state, how, person) for call, tool, arguments, state, how, person in rows}


def open_questions(db: Connection) -> list[OpenQuestion]:
    """Those that wait for an answer, the oldest first."""
    rows = db.execute(
        f"SELECT a.asking, a.person, chats.address, a.asked, a.expires, a.question, {_OWNERS}, a.tool FROM approvals AS a"
        " JOIN chats ON chats.id = a.chat WHERE a.state = 'open' ORDER BY a.asked, a.asking, a.id"
    )
    tools: dict[tuple[Any, ...], dict[str, None]] = {}
    for *question, tool in rows:
        tools.setdefault(tuple(question), {})[tool] = None
    return [
        OpenQuestion(asking[:QUESTION_CODE], tuple(about), person, address, asked, until, question, bool(owners))
        for (asking, person, address, asked, until, question, owners), about in tools.items()
    ]


_OWNERS = "EXISTS (SELECT 1 FROM people WHERE people.id = a.person AND people.role = 'owner')"


def answer(db: Connection, code: str, yes: bool, now: float) -> Given:
    """Answer a question that an owner was asked, as an owner. Raises NotFound or UsageError."""
    rows = db.execute(
        f"SELECT DISTINCT a.asking, a.turn FROM approvals AS a WHERE a.state = 'open' AND substr(a.asking, 1, ?) = ? AND {_OWNERS}",
        (QUESTION_CODE, code),
    ).fetchall()
    if not rows:
        raise NotFound(f"No question that an owner was asked and that still waits has the code {code!r}.")
    if len(rows) > 1:
        raise UsageError(f"Several questions have the code {code!r}.", hint="Answer them where they were asked.")
    asking, turn = rows[0]
    given = Given(asking, turn, yes)
    give(db, given, now)
    return given


def standing(db: Connection, address: str | None = None, person: str | None = None) -> list[StandingYes]:
    """The yeses for good: those at `address` and on behalf of `person`, None for all."""
    rows = db.execute(
        "SELECT chats.address, s.tool, s.person, s.by, s.at, s.wording FROM standing_approvals AS s JOIN chats ON chats.id = s.chat"
        " WHERE (CAST(:address AS TEXT) IS NULL OR chats.address = :address)"
        " AND (CAST(:person AS TEXT) IS NULL OR s.person = :person)"
        " ORDER BY chats.address, s.tool, s.person",
        {"address": address, "person": person},
    )
    return [StandingYes(*row) for row in rows]


def withdraw(db: Connection, effect: Withdrawn) -> bool:
    """Take back a yes for good. False: there is none."""
    gone = db.execute(
        "DELETE FROM standing_approvals WHERE chat = (SELECT id FROM chats WHERE address = ?) AND tool = ?"
        " AND person = coalesce(?, person)",
        (effect.address, effect.tool, effect.person),
    )
    return gone.rowcount > 0
