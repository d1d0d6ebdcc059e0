"""`/jobs`: what a person may do with jobs in a chat."""

from dataclasses import dataclass

from clew import booking
from clew.errors import UsageError
from clew.store import Claim, JobEffect
from clew.store.sql import SqlStore

USAGE = "/jobs [add WHEN PROMPT | change NAME [WHEN] [PROMPT] | remove NAME | pause NAME | resume NAME | run NAME | history NAME]"
HOW = (
    "It is written so: /jobs add cron 30 8 * * 1-5 What is on today? — or /jobs add cron @daily …, /jobs add every 6h …,"
    " /jobs add at 2027-03-01T17:30 …, /jobs add at 17:30 …"
)
CHANGES = "It is written so: /jobs change NAME cron 30 8 * * 1-5, or /jobs change NAME What is on today?, or both at once."
RUNS = 10
"""Runs that /jobs history shows."""


@dataclass(frozen=True, slots=True)
class Said:
    """What is answered, and what takes place with it."""

    text: str
    effects: tuple[JobEffect, ...] = ()


async def answer(store: SqlStore, claim: Claim, rest: str, zone: str) -> Said:
    """What `/jobs REST` comes to. zone: the asker's. Raises NotFound or UsageError."""
    person = claim.person.id if claim.person else None
    match rest.split(maxsplit=1):
        case []:
            lines = booking.lines(booking.seen(await store.jobs(), person, str(claim.address), zone, direct=claim.direct), person)
            return Said("\n".join(lines) or f"There are no jobs here. {HOW}")
        case ["history", name]:
            return await _history(store, claim, name, zone)
        case ["add" | "change" | "remove" | "pause" | "resume" | "run" as verb, words]:
            if claim.person is None or claim.person.role == "guest":
                raise UsageError("Only members and owners may have jobs.")
            return await _changed(store, claim, claim.person.id, verb, words, zone)
    raise UsageError(f"It is written so: {USAGE}")


async def _changed(store: SqlStore, claim: Claim, person: str, verb: str, words: str, zone: str) -> Said:
    if verb == "add":
        fields = {**clock(words), "deliver_to": str(claim.address)}
        taken = {job.name for job in await store.jobs()}
        effect, made = booking.booked(fields, taken=taken, origin="chat", person=person, now=claim.started, zone=zone)
        return Said(f"Made: {booking.line(made, person)}", (effect,))
    if verb == "change":
        return await _rewritten(store, claim, person, words, zone)
    job = await booking.own(store, words, person, str(claim.address), direct=claim.direct)
    if verb == "remove":
        return Said(f"Removed: {job.name}.", (JobEffect("remove", job.name, person),))
    if verb == "run":
        return Said(f"{job.name} runs.", (JobEffect("run", job.name, person, next_at=claim.started),))
    effect = booking.switch(job, enabled=verb == "resume", now=claim.started, zone=zone)
    return Said(f"{job.name} is {'on' if verb == 'resume' else 'off'}.", (effect,))


async def _rewritten(store: SqlStore, claim: Claim, person: str, words: str, zone: str) -> Said:
    name, _, rest = words.partition(" ")
    job = await booking.own(store, name, person, str(claim.address), direct=claim.direct)
    kind, when, prompt = _parted(rest)
    if not (when or prompt):
        raise UsageError(f"What is to be different? {CHANGES}")
    fields = ({kind: when} if when else {}) | ({"prompt": prompt} if prompt else {})
    effect, changed = booking.rebooked(job, fields, claim.started, zone)
    return Said(f"Changed: {booking.line(changed, person)}", (effect,))


async def _history(store: SqlStore, claim: Claim, name: str, zone: str) -> Said:
    person = claim.person.id if claim.person else None
    named = [job for job in await store.jobs() if job.name == name]
    if not booking.seen(named, person, str(claim.address), zone, direct=claim.direct):
        await booking.own(store, name, person or "", str(claim.address), direct=claim.direct)  # raises: it is none that may be shown here
    lines = []
    for run in await store.job_history(name, RUNS):
        arrived = f", {run['delivery']}" if run["delivery"] else ""
        note = f" ({run['note']})" if run["note"] else ""
        lines.append(f"{booking.iso(run['instant'], zone)}: {run['outcome']}{arrived}{note}")
    return Said("\n".join(lines) or f"{name} has not run yet.")


def clock(words: str) -> dict[str, str]:
    """`cron M H D M W PROMPT`, `cron @daily PROMPT`, `every 6h PROMPT` or `at TIME PROMPT` as fields of an entry. Raises UsageError."""
    kind, when, prompt = _parted(words)
    if not when or not prompt:
        raise UsageError(HOW)
    return {kind: when, "prompt": prompt}


def _parted(words: str) -> tuple[str, str, str]:
    """(the kind of clock, its words, what is asked): of words without a clock in front, only what is asked."""
    kind, _, rest = words.strip().partition(" ")
    if kind not in ("cron", "every", "at"):
        return "", "", words.strip()
    parts = 1 if kind != "cron" or rest.lstrip().startswith("@") else 5
    given = rest.split(maxsplit=parts)
    return kind, " ".join(given[:parts]), given[parts] if len(given) > parts else ""
