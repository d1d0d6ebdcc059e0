"""Runs of jobs: the session each has, what it comes to, and how its words enter the chat where they are read."""

import json
from collections.abc import Sequence
from typing import Any

from clew.clock import new_id
from clew.messages import Text
from clew.store import Claim, NewMessage, Outcome, Reply, transcript
from clew.store.connection import Connection
from clew.store.damage import readable
from clew.timetable import pause

PROMPT_CHARS = 1000
"""Characters of a run's prompt that stand in its chat."""


def waiting(db: Connection) -> tuple[int, int, str] | None:
    """(inbox row, chat, where it runs) of the oldest run that may begin: one at a time of each job, and in each named session."""
    row: tuple[int, int, str] | None = db.execute(
        "SELECT i.id, i.chat, coalesce(i.runs_in, 'chat') FROM inbox AS i"
        " LEFT JOIN job_sessions AS named ON named.chat = i.chat AND named.name = i.runs_in"
        " WHERE i.state = 'new' AND i.kind = 'job' AND NOT EXISTS (SELECT 1 FROM turns CROSS JOIN inbox AS other"
        "  WHERE other.turn = turns.id AND turns.state IN ('running', 'waiting') AND other.job || '' = i.job)"
        " AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session = named.session AND turns.state IN ('running', 'waiting'))"
        " ORDER BY i.id LIMIT 1"
    ).fetchone()
    return row


def session_for(db: Connection, chat: int, runs_in: str, now: float) -> str:
    """The session of a run: of its own beside its chat's (`chat`), of its own (`isolated`), or the one of this name."""
    if runs_in == "isolated":
        return _new(db, chat, now, None)
    if runs_in == "chat":
        current = db.execute("SELECT session FROM chats WHERE id = ?", (chat,)).fetchone()[0]
        return _new(db, chat, now, current)
    named = db.execute("SELECT session FROM job_sessions WHERE chat = ? AND name = ?", (chat, runs_in)).fetchone()
    if named:
        return str(named[0])
    session = _new(db, chat, now, None)
    db.execute("INSERT INTO job_sessions (chat, name, session) VALUES (?, ?, ?)", (chat, runs_in, session))
    return session


def _new(db: Connection, chat: int, now: float, parent: str | None) -> str:
    session = new_id()
    db.execute("INSERT INTO sessions (id, chat, run, parent, created) VALUES (?, ?, 1, ?, ?)", (session, chat, parent, now))
    return session


def fork(db: Connection, session: str) -> None:
    """Let a run that goes on from its chat's session see it as it is now, up to the turn that runs there."""
    db.execute(
        "UPDATE sessions SET fork_seq = (SELECT min(seq) FROM"
        " (SELECT coalesce(max(seq), 0) AS seq FROM messages WHERE session = sessions.parent UNION ALL"
        "  SELECT first_seq - 1 FROM turns WHERE turns.session = sessions.parent AND state IN ('running', 'waiting') AND first_seq > 0"
        " ) AS ends) WHERE id = ? AND parent IS NOT NULL",
        (session,),
    )


def end(db: Connection, claim: Claim, chat: int, outcome: Outcome, said: Sequence[tuple[str, Reply]], now: float) -> None:
    """Write down what a run came to, with what it said: (outbox id, reply)."""
    job = claim.items[-1].job
    state = outcome.run or outcome.state
    db.execute(
        "UPDATE job_runs SET outcome = ?, note = ?, turn = ?, session = ?, delivery = ?, ended = ?"
        " WHERE (job, instant) IN (SELECT job, instant FROM inbox WHERE turn = ?)",
        (state, outcome.error, claim.turn, claim.session, said[0][0] if said else None, now, claim.turn),
    )
    if state == "failed":
        db.execute("UPDATE jobs SET failures = failures + 1, rests_until = ? WHERE name = ?", (now + pause(failures(db, job) + 1), job))
    elif state != "stopped":
        db.execute("UPDATE jobs SET failures = 0, rests_until = NULL WHERE name = ? AND failures > 0", (job,))
        # What somebody asked for once is done; of the config's the entry stays.
        db.execute("DELETE FROM jobs WHERE name = ? AND origin <> 'config' AND next_at IS NULL AND spec ->> 'at' IS NOT NULL", (job,))
    if said:
        _announce(db, claim, chat, said[0][1], now)
    if outcome.run == "skipped":
        _drop_empty(db, claim.session)


def failures(db: Connection, job: str | None) -> int:
    """How often a job has failed in a row."""
    row = db.execute("SELECT failures FROM jobs WHERE name = ?", (job,)).fetchone()
    return int(row[0]) if row else 0


def _announce(db: Connection, claim: Claim, chat: int, reply: Reply, now: float) -> None:
    """Put the words of a run into its chat's lane, so that the chat's next turn knows them."""
    item = claim.items[-1]
    asked = db.execute(
        f"SELECT {transcript.COLUMNS} FROM messages WHERE session = ? AND turn = ? AND role = 'user' ORDER BY seq LIMIT 1",
        (claim.session, claim.turn),
    ).fetchone()
    prompt = transcript.message(asked).text if asked else ""
    shown = prompt if len(prompt) <= PROMPT_CHARS else f"{prompt[: PROMPT_CHARS - 1]}…"
    about = {"job": item.job, "session": claim.session, "turn": claim.turn, "prompt": shown}
    db.execute(
        "INSERT INTO inbox (external_id, client_id, kind, state, transport, address, chat, person, sender_name, text, context, received)"
        " VALUES (?, '', 'notice', 'new', ?, ?, ?, ?, '', ?, ?, ?)",
        (
            f"notice/{claim.turn}",
            reply.address.transport,
            str(reply.address),
            chat,
            item.person or None,
            reply.text,
            json.dumps(about, ensure_ascii=False),
            now,
        ),
    )


def _drop_empty(db: Connection, session: str) -> None:
    """A run that asked no model leaves no session behind, unless it is a named one."""
    db.execute(
        "DELETE FROM sessions WHERE id = ? AND run = 1 AND NOT EXISTS (SELECT 1 FROM messages WHERE session = sessions.id)"
        " AND NOT EXISTS (SELECT 1 FROM job_sessions WHERE session = sessions.id)",
        (session,),
    )


def take_in_notice(db: Connection, session: str, chat: int, notice: int, now: float) -> None:
    """Append the prompt and the words of a run to its chat's session."""
    text, person, about = db.execute("SELECT text, coalesce(person, ''), context FROM inbox WHERE id = ?", (notice,)).fetchone()
    known: dict[str, Any] = readable(about, {})
    turn = new_id()
    prompt = f"{known.get('prompt', '')}\n\n(The job {known.get('job')} ran by its schedule. What follows was sent here.)".strip()
    metadata = {"job": known.get("job"), "run": known.get("session"), "run_turn": known.get("turn")}
    stored = transcript.append(
        db,
        session,
        chat,
        turn,
        [
            NewMessage("user", (Text(prompt),), now, person, "", metadata),
            NewMessage("assistant", (Text(text),), now, metadata=metadata),
        ],
    )
    db.execute(
        "INSERT INTO turns (id, session, chat, kind, state, owner, epoch, lease_until, first_seq, started, ended)"
        " VALUES (?, ?, ?, 'notice', 'done', '', 1, 0, ?, ?, ?)",
        (turn, session, chat, stored[0].seq, now, now),
    )
    db.execute("UPDATE inbox SET state = 'claimed', turn = ? WHERE id = ?", (turn, notice))
    db.execute("UPDATE inbox SET state = 'answered' WHERE id = ?", (notice,))


def behind(db: Connection, ids: Sequence[str]) -> dict[str, list[str]]:
    """Of messages that tell in a chat what runs said, the runs' own: ids by session."""
    found: dict[str, list[str]] = {}
    rows = db.execute(
        "SELECT m.session, m.id FROM json_each(?) AS wanted JOIN messages AS told ON told.id = wanted.value"
        " JOIN messages AS m ON m.session = told.metadata ->> 'run' AND m.turn = told.metadata ->> 'run_turn'",
        (json.dumps(tuple(ids)),),
    )
    for session, identifier in rows:
        found.setdefault(session, []).append(identifier)
    return found


def history(db: Connection, job: str, limit: int) -> list[dict[str, Any]]:
    """Runs, the newest first. `delivery` is the state of what the run said, apart from how the run itself ended."""
    rows = db.execute(
        "SELECT instant, outcome, job_runs.turn, job_runs.session, note, at, ended, outbox.state, outbox.reason FROM job_runs"
        " LEFT JOIN outbox ON outbox.id = delivery WHERE job = ? ORDER BY instant DESC LIMIT ?",
        (job, limit),
    )
    names = ("instant", "outcome", "turn", "session", "note", "at", "ended", "delivery", "delivery_reason")
    return [dict(zip(names, row, strict=True)) for row in rows]


def last_reply(db: Connection, job: str) -> str:
    """What the job's newest run that came to something said, empty where there is none."""
    row = db.execute(
        "SELECT session, turn FROM job_runs WHERE job = ? AND outcome IN ('done', 'silent') ORDER BY instant DESC LIMIT 1", (job,)
    ).fetchone()
    if row is None:
        return ""
    said = db.execute(
        f"SELECT {transcript.COLUMNS} FROM messages WHERE session = ? AND turn = ? AND role = 'assistant'"
        " AND id NOT IN (SELECT message FROM retractions) ORDER BY seq DESC LIMIT 1",
        row,
    ).fetchone()
    return transcript.message(said).text if said else ""
