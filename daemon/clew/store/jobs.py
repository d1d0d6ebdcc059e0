"""Jobs and their clocks: `next_at` is the only state of a clock, and firing is one transaction. What runs come to is in `runs`."""

import json
from collections.abc import Sequence
from itertools import count

from clew.errors import NotFound, UsageError
from clew.store import Job, JobEffect
from clew.store.connection import Connection
from clew.transport import Address

MOST = 50
"""Jobs that one person may have."""
MOST_OF_OPERATOR = 1_000
"""Jobs that the command line and the API may make, as many as the config may have."""
_COLUMNS = "name, spec, enabled, next_at, origin, person, failures, rests_until"


def sync(db: Connection, jobs: Sequence[Job], now: float) -> None:
    """Make config-born jobs exactly `jobs`. One whose entry did not change keeps its clock, and stays disabled if it was.

    Somebody else's job of the same name gets another one.
    """
    names = {job.name for job in jobs}
    for (name,) in db.execute("SELECT name FROM jobs WHERE origin = 'config'").fetchall():
        if name not in names:
            db.execute("DELETE FROM jobs WHERE name = ?", (name,))
    for job in jobs:
        if db.execute("SELECT 1 FROM jobs WHERE name = ? AND origin <> 'config'", (job.name,)).fetchone():
            db.execute("UPDATE jobs SET name = ? WHERE name = ?", (_free(db, job.name, names), job.name))
        db.execute(
            "INSERT INTO jobs (name, origin, spec, enabled, next_at, created) VALUES (?, 'config', ?, 1, ?, ?)"
            " ON CONFLICT (name) DO UPDATE SET spec = excluded.spec,"
            " next_at = CASE WHEN jobs.spec = excluded.spec THEN jobs.next_at ELSE excluded.next_at END,"
            " failures = CASE WHEN jobs.spec = excluded.spec THEN jobs.failures ELSE 0 END,"
            " rests_until = CASE WHEN jobs.spec = excluded.spec THEN jobs.rests_until END",
            (job.name, job.spec, job.next_at, now),
        )


def _free(db: Connection, name: str, taken: set[str]) -> str:
    names = (f"{name[:60]}-{number}" for number in count(2))
    return next(each for each in names if each not in taken and not db.execute("SELECT 1 FROM jobs WHERE name = ?", (each,)).fetchone())


def listing(db: Connection) -> list[Job]:
    rows = db.execute(f"SELECT {_COLUMNS} FROM jobs ORDER BY name")
    return [Job(name, spec, bool(enabled), *rest) for name, spec, enabled, *rest in rows]


def find(db: Connection, name: str, person: str | None = None) -> Job:
    """A job by its name; person: theirs alone. Raises NotFound."""
    found = next((job for job in listing(db) if job.name == name and person in (None, job.person)), None)
    if found is None:
        hint = "`clew cron list` shows those that are." if person is None else "/jobs lists yours."
        raise NotFound(f"There is no job {name[:64]!r}{'' if person is None else ' of yours'}.", hint=hint)
    return found


def take(db: Connection, effect: JobEffect, now: float) -> None:
    """Carry out what somebody does to a job. Raises NotFound, or UsageError with what stands against it."""
    if effect.kind == "add":
        _add(db, effect, now)
        return
    job = find(db, effect.name, effect.person)
    if job.origin == "config" and (effect.kind == "remove" or (effect.kind == "update" and effect.spec)):
        raise UsageError(f"The job {job.name} is in the config.", hint="Change it there; it can be disabled here.")
    match effect.kind:
        case "remove":
            db.execute("DELETE FROM jobs WHERE name = ?", (job.name,))
        case "enable":  # a clock that stood still begins anew: nothing of the time between is made up for
            db.execute(
                "UPDATE jobs SET enabled = 1, next_at = ?, failures = 0, rests_until = NULL WHERE name = ? AND enabled = 0",
                (effect.next_at, job.name),
            )
        case "disable":
            db.execute("UPDATE jobs SET enabled = 0 WHERE name = ?", (job.name,))
        case "run":
            entry = json.loads(job.spec)
            to = Address.parse(entry["deliver_to"])
            run_now(db, job.name, effect.next_at or now, now, entry.get("prompt") or "", to, entry.get("session") or "chat")
        case "update":
            if job.spec != effect.was:
                raise UsageError(f"The job {job.name} was changed by somebody else just now.", hint="Look at it, and try again.")
            db.execute(
                "UPDATE jobs SET spec = coalesce(nullif(?, ''), spec), next_at = coalesce(?, next_at), enabled = coalesce(?, enabled),"
                " failures = 0, rests_until = NULL WHERE name = ?",
                (effect.spec, effect.next_at, effect.enabled, job.name),
            )


def _add(db: Connection, effect: JobEffect, now: float) -> None:
    if db.execute("SELECT 1 FROM jobs WHERE name = ?", (effect.name,)).fetchone():
        raise UsageError(f"There is a job {effect.name} already.", hint="Give it another name.")
    theirs = db.execute(
        "SELECT count(*) FROM jobs WHERE person IS NOT DISTINCT FROM ? AND origin <> 'config'", (effect.person,)
    ).fetchone()[0]
    if theirs >= (MOST_OF_OPERATOR if effect.person is None else MOST):
        whose = "may be made by the command line and the API" if effect.person is None else "one person may have"
        raise UsageError(f"{theirs:,} jobs are the most that {whose}.", hint="Remove one first.")
    db.execute(
        "INSERT INTO jobs (name, origin, person, spec, enabled, next_at, created) VALUES (?, ?, ?, ?, 1, ?, ?)",
        (effect.name, effect.origin, effect.person, effect.spec, effect.next_at, now),
    )


def fire(db: Connection, job: str, instant: float, next_at: float | None, now: float, text: str, deliver_to: Address, runs_in: str) -> bool:
    """Put the run of `job` at `instant` into the job's lane and move the clock. False: that instant had its run."""
    moved = db.execute("UPDATE jobs SET next_at = ? WHERE name = ? AND next_at <= ?", (next_at, job, instant)).rowcount
    # One that was missed comes again where the clock was put back.
    ran = db.execute("SELECT 1 FROM job_runs WHERE job = ? AND instant = ? AND outcome <> 'missed'", (job, instant)).fetchone()
    if not moved or ran:
        return False
    return run_now(db, job, instant, now, text, deliver_to, runs_in)


def run_now(db: Connection, job: str, instant: float, now: float, text: str, deliver_to: Address, runs_in: str) -> bool:
    """Put a run into the job's lane without touching the clock."""
    person = db.execute("SELECT person FROM jobs WHERE name = ?", (job,)).fetchone()
    db.execute(
        "INSERT INTO inbox (external_id, client_id, kind, state, transport, address, chat, person, sender_name, text, context,"
        " job, instant, runs_in, received) VALUES (?, '', 'job', 'new', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            f"job/{job}/{instant!r}",
            deliver_to.transport,
            str(deliver_to),
            _chat(db, deliver_to, now),
            person[0] if person else None,
            job,
            text,
            json.dumps({}),
            job,
            instant,
            runs_in,
            now,
        ),
    )
    db.execute(
        "INSERT INTO job_runs (job, instant, outcome, at) VALUES (?, ?, 'fired', ?)"
        " ON CONFLICT (job, instant) DO UPDATE SET outcome = excluded.outcome, note = '', at = excluded.at",
        (job, instant, now),
    )
    return True


def runs(db: Connection, job: str) -> bool:
    """Whether a run of `job` waits or is going on."""
    row = db.execute(
        "SELECT EXISTS (SELECT 1 FROM inbox WHERE state = 'new' AND kind = 'job' AND job || '' = ?)"
        " OR EXISTS (SELECT 1 FROM turns CROSS JOIN inbox WHERE inbox.turn = turns.id AND turns.state IN ('running', 'waiting')"
        " AND job || '' = ?)",
        (job, job),
    ).fetchone()
    return bool(row[0])


def missed(db: Connection, job: str, instants: Sequence[float], next_at: float | None, now: float, note: str) -> None:
    """Note runs that did not take place, and why, and move the clock, if it still stands at them: it may have been set meanwhile."""
    db.executemany(
        "INSERT INTO job_runs (job, instant, outcome, note, at) VALUES (?, ?, 'missed', ?, ?) ON CONFLICT DO NOTHING",
        [(job, instant, note, now) for instant in instants],
    )
    db.execute("UPDATE jobs SET next_at = ? WHERE name = ? AND next_at <= ?", (next_at, job, max(instants)))


def _chat(db: Connection, address: Address, now: float) -> int:
    """The chat a job speaks in. A direct chat belongs to whoever its address is an identity of."""
    identity = f"{address.transport}:{address.chat}"
    owner = db.execute("SELECT person FROM identities WHERE identity = ?", (identity,)).fetchone()
    db.execute(
        "INSERT INTO chats (address, transport, direct, person, created) VALUES (?, ?, ?, ?, ?) ON CONFLICT (address) DO NOTHING",
        (str(address), address.transport, int(owner is not None), owner[0] if owner else None, now),
    )
    row = db.execute("SELECT id FROM chats WHERE address = ?", (str(address),)).fetchone()
    return int(row[0])


def set_back(db: Connection, job: str, next_at: float) -> None:
    """The clock went back: the next run is earlier than it seemed."""
    db.execute("UPDATE jobs SET next_at = ? WHERE name = ? AND next_at > ?", (next_at, job, next_at))
