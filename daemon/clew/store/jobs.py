"""Scheduled prompts: `next_at` is the only state of a job's clock; firing is one transaction."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from clew.store import Job
from clew.transport import Address


def sync(db: sqlite3.Connection, jobs: Sequence[Job], now: float) -> None:
    """Make config-born jobs exactly `jobs`. One whose entry did not change keeps its clock, and stays disabled if it was."""
    names = {job.name for job in jobs}
    for (name,) in db.execute("SELECT name FROM jobs WHERE origin = 'config'").fetchall():
        if name not in names:
            db.execute("DELETE FROM jobs WHERE name = ?", (name,))
    for job in jobs:
        db.execute(
            "INSERT INTO jobs (name, origin, spec, enabled, next_at, created) VALUES (?, 'config', ?, 1, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET spec = excluded.spec, origin = 'config',"
            " next_at = CASE WHEN spec = excluded.spec THEN next_at ELSE excluded.next_at END",
            (job.name, job.spec, job.next_at, now),
        )


def listing(db: sqlite3.Connection) -> list[Job]:
    rows = db.execute("SELECT name, spec, enabled, next_at, origin, person FROM jobs ORDER BY name")
    return [Job(name, spec, bool(enabled), next_at, origin, person) for name, spec, enabled, next_at, origin, person in rows]


def due(db: sqlite3.Connection, now: float) -> list[Job]:
    return [job for job in listing(db) if job.enabled and job.next_at is not None and job.next_at <= now]


def fire(db: sqlite3.Connection, job: str, instant: float, next_at: float | None, now: float, text: str, deliver_to: Address) -> bool:
    """Put the run of `job` at `instant` into its chat's lane and move the clock. False: that instant had its run."""
    moved = db.execute("UPDATE jobs SET next_at = ? WHERE name = ? AND next_at <= ?", (next_at, job, instant)).rowcount
    # One that was missed comes again where the clock was put back.
    ran = db.execute("SELECT 1 FROM job_runs WHERE job = ? AND instant = ? AND outcome <> 'missed'", (job, instant)).fetchone()
    if not moved or ran:
        return False
    return run_now(db, job, instant, now, text, deliver_to)


def run_now(db: sqlite3.Connection, job: str, instant: float, now: float, text: str, deliver_to: Address) -> bool:
    """Put a run into its chat's lane without touching the clock."""
    chat = _chat(db, deliver_to, now)
    db.execute(
        "INSERT INTO inbox (external_id, client_id, kind, state, transport, address, chat, sender_name, text, context,"
        " job, instant, received) VALUES (?, '', 'job', 'new', ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            f"job/{job}/{instant!r}",
            deliver_to.transport,
            str(deliver_to),
            chat,
            job,
            text,
            json.dumps({}),
            job,
            instant,
            now,
        ),
    )
    db.execute(
        "INSERT INTO job_runs (job, instant, outcome, at) VALUES (?, ?, 'fired', ?)"
        " ON CONFLICT (job, instant) DO UPDATE SET outcome = excluded.outcome, at = excluded.at",
        (job, instant, now),
    )
    return True


def runs(db: sqlite3.Connection, job: str) -> bool:
    """Whether a run of `job` waits or is going on."""
    row = db.execute("SELECT EXISTS (SELECT 1 FROM inbox WHERE job = ? AND state IN ('new', 'claimed'))", (job,)).fetchone()
    return bool(row[0])


def missed(db: sqlite3.Connection, job: str, instants: Sequence[float], next_at: float | None, now: float) -> None:
    """Note runs that were due while nothing ran, and move the clock."""
    db.executemany(
        "INSERT OR IGNORE INTO job_runs (job, instant, outcome, at) VALUES (?, ?, 'missed', ?)",
        [(job, instant, now) for instant in instants],
    )
    db.execute("UPDATE jobs SET next_at = ? WHERE name = ?", (next_at, job))


def history(db: sqlite3.Connection, job: str, limit: int) -> list[dict[str, Any]]:
    rows = db.execute(
        "SELECT instant, outcome, turn, note, at FROM job_runs WHERE job = ? ORDER BY instant DESC LIMIT ?",
        (job, limit),
    )
    return [dict(zip(("instant", "outcome", "turn", "note", "at"), row, strict=True)) for row in rows]


def _chat(db: sqlite3.Connection, address: Address, now: float) -> int:
    """The chat a job speaks in. A direct chat belongs to whoever its address is an identity of."""
    identity = f"{address.transport}:{address.chat}"
    owner = db.execute("SELECT person FROM identities WHERE identity = ?", (identity,)).fetchone()
    db.execute(
        "INSERT INTO chats (address, transport, direct, person, created) VALUES (?, ?, ?, ?, ?) ON CONFLICT (address) DO NOTHING",
        (str(address), address.transport, int(owner is not None), owner[0] if owner else None, now),
    )
    row = db.execute("SELECT id FROM chats WHERE address = ?", (str(address),)).fetchone()
    return int(row[0])


def set_back(db: sqlite3.Connection, job: str, next_at: float) -> None:
    """The clock went back: the next run is earlier than it seemed."""
    db.execute("UPDATE jobs SET next_at = ? WHERE name = ? AND next_at > ?", (next_at, job, next_at))
