"""Turns: recorded step by step, finished in one commit; an epoch fences those who lost their lease. `claiming` begins them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from clew.clock import new_id
from clew.messages import Message
from clew.store import (
    AccessEffect,
    Claim,
    ExportLink,
    JobEffect,
    LeaseLost,
    LinkCode,
    LoggedOut,
    LoginLink,
    Outcome,
    Question,
    Reply,
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
    recalled,
    runs,
    transcript,
)
from clew.store.connection import Connection
from clew.store.grouping import lane, shared
from clew.store.notes import NoteEffect, history

RUNNING = "state IN ('running', 'waiting') AND state = 'running'"
"""That a turn runs, in the words of the index `turns_open`."""
CLAIMABLE = (
    "(EXISTS (SELECT 1 FROM inbox WHERE state = 'new' AND kind <> 'job')"
    " OR EXISTS (SELECT 1 FROM inbox WHERE state = 'new' AND kind = 'job')"
    f" OR EXISTS (SELECT 1 FROM turns WHERE {RUNNING} AND lease_until <= :now))"
)
"""Whether a claim may find something."""


def claimable(db: Connection, now: float) -> bool:
    """Whether a claim may find something; asked of a reader, so that looking costs no write."""
    return bool(db.execute(f"SELECT {CLAIMABLE}", {"now": now}).fetchone()[0])


def new_session(db: Connection, chat: int, now: float, title: str = "") -> str:
    """Make a session and let the chat's next message join it."""
    session = new_id()
    db.execute("INSERT INTO sessions (id, chat, title, created) VALUES (?, ?, ?, ?)", (session, chat, title, now))
    db.execute("UPDATE chats SET session = ? WHERE id = ?", (session, chat))
    return session


def record(db: Connection, claim: Claim, step: Step) -> tuple[Message, ...]:
    """Append a step. Raises LeaseLost."""
    return _write(db, claim, hold(db, claim), step)


def park(db: Connection, claim: Claim, question: Question, now: float) -> bool:
    """Ask a person, and let the turn wait for the answer. False: it was stopped meanwhile. Raises LeaseLost."""
    hold(db, claim)
    if db.execute("SELECT 1 FROM turns WHERE id = ? AND stop_requested_at IS NOT NULL", (claim.turn,)).fetchone():
        return False
    approvals.ask(db, claim.turn, claim.session, question, now)
    return True


def _held_to_finish(
    claim: Claim, outcome: Outcome, replies: Sequence[Reply], now: float, known: Collection[str] = ()
) -> Iterable[str] | None:
    """Where the turn is, and where it says something; what it does beyond may be about anything."""
    if claim.kind == "job" or outcome.effects or outcome.new_session:
        return None
    return [lane(claim.address), *(lane(reply.address) for reply in replies)]


@shared(_held_to_finish)
def finish(
    db: Connection, claim: Claim, outcome: Outcome, replies: Sequence[Reply], now: float, known: Collection[str] = ()
) -> tuple[tuple[str, ...], tuple[Message, ...], bool]:
    """End a turn, with its last step and its replies. Returns their ids, the step's messages, and whether a claim may find something.

    known: secrets of this installation, which no note may hold. Raises LeaseLost.
    """
    chat, drafted, deleted, more = _held(
        db, claim, f", EXISTS ({_DRAFT}), EXISTS ({_DELETED}), {CLAIMABLE}", {"now": now}
    )  # of what arrives in its chat from here on nothing is stored before this is
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
    put_replies = outbox.put_last if drafted else outbox.put_all
    put = put_replies(db, replies, claim.session, claim.turn, now)
    if deleted:
        deletions.of_turn(db, claim.turn, now)
    if claim.kind == "job":
        runs.end(db, claim, chat, outcome, list(zip(put, replies, strict=True)), now)
    makes_work = claim.kind == "job" or outcome.effects
    return put, messages, claimable(db, now) if makes_work else bool(more)


_DRAFT = "SELECT 1 FROM outbox WHERE outbox.turn = turns.id AND outbox.state = 'draft'"
_DELETED = "SELECT 1 FROM inbox JOIN deletions ON deletions.external_id = inbox.external_id WHERE inbox.turn = turns.id"


def hold(db: Connection, claim: Claim) -> int:
    """The chat of a turn that is still ours. Raises LeaseLost."""
    return int(_held(db, claim)[0])


def _held(db: Connection, claim: Claim, more: str = "", values: Mapping[str, Any] = {}) -> tuple[Any, ...]:
    """Its chat, and more of it."""
    row: tuple[Any, ...] | None = db.execute(
        f"SELECT chat{more} FROM turns WHERE id = :turn AND owner = :owner AND epoch = :epoch AND state = 'running'{db.locked}",
        {"turn": claim.turn, "owner": claim.owner, "epoch": claim.epoch, **values},
    ).fetchone()
    if row is None:
        raise LeaseLost(claim.turn)
    return row


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
