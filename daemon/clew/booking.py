"""Jobs that people make, in a chat, through their model, the command line or the API: checked, named, described."""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any, Literal
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from clew.clock import new_id
from clew.config import Job as Entry
from clew.context.text import clean
from clew.errors import NotFound, UsageError
from clew.store import Job, JobEffect
from clew.store.sql import SqlStore
from clew.timetable import span, upcoming, when

SHOWN = 5
"""Coming instants that a listing shows."""
CONFIRMED = 3
"""Coming instants that whoever makes a job is told."""
SHORTEST = 60.0
"""Seconds of the shortest interval that may be asked for outside of the config."""
PROMPT_CHARS = 10_000
"""Characters of the longest prompt that may be asked for outside of the config."""
MARK = 4
"""Random characters behind the name of a person's job: 20 bits, drawn again where another job has them."""
_NAME_CHARS = 64
_CLOCKS = ("cron", "every", "at")
_NOT_IN_NAMES = re.compile(r"[^\w]+")


@dataclass(frozen=True, slots=True)
class Described:
    """A job as listings show it. coming: its next instants, seconds since the epoch; zone: IANA name in which they are meant."""

    name: str
    origin: str
    person: str | None
    schedule: str
    zone: str
    enabled: bool
    coming: tuple[float, ...]
    entry: Entry
    failures: int = 0

    def times(self, count: int = SHOWN) -> list[str]:
        return [iso(at, self.zone) for at in self.coming[:count]]


def described(job: Job, zone: str, count: int = SHOWN) -> Described:
    """A stored job. zone: where its entry names none."""
    entry = Entry.model_validate_json(job.spec)
    where = entry.timezone or zone
    following = () if job.next_at is None else chain((job.next_at,), upcoming(entry, job.next_at, where))
    coming = tuple(islice(following, count)) if job.enabled else ()
    return Described(job.name, job.origin, job.person, when(entry), where, job.enabled, coming, entry, job.failures)


def iso(at: float, zone: str) -> str:
    """A time in its zone, with the offset: 2027-01-15T08:30:00+01:00."""
    return datetime.fromtimestamp(at, ZoneInfo(zone)).isoformat(timespec="seconds")


def booked(
    fields: Mapping[str, Any],
    *,
    taken: Collection[str],
    origin: Literal["cli", "chat", "api"],
    person: str | None,
    now: float,
    zone: str,
) -> tuple[JobEffect, Described]:
    """(what makes a new job of these fields of a `schedule` entry, the job). Without `name` it gets one from its prompt.

    What a person's job is called ends in random characters, whatever they ask for, so that it says nothing of others' jobs. The zone is
    stored with it, so that it does not change with the config. Raises UsageError with what is wrong.
    """
    given = {key: value for key, value in fields.items() if value is not None}
    asked = str(given.pop("name", ""))
    if person is None:
        name = asked or free_name(str(given.get("prompt", "")), taken)
    else:
        name = marked_name(asked or free_name(str(given.get("prompt", "")), ()), taken)
    entry = checked(_dated({"timezone": zone, **given, "name": name}, now))
    job = Job(name, entry.model_dump_json(), True, first(entry, now, zone), origin, person)
    return JobEffect("add", name, person, job.spec, job.next_at, origin), described(job, zone)


def rebooked(job: Job, fields: Mapping[str, Any], now: float, zone: str, *, enabled: bool | None = None) -> tuple[JobEffect, Described]:
    """(what changes these fields of a job, the job as it is then). A field that is None is as if it had never been given; one clock takes
    the place of another. enabled: whether it is turned on or off with the same step; None leaves that.

    Its clock begins anew where another one is given, and where it is turned on. Raises UsageError.
    """
    if not fields and enabled is None:
        raise UsageError("Nothing to change was given.")
    entry = before = Entry.model_validate_json(job.spec)
    if fields:
        known = before.model_dump(mode="json", exclude_none=True)
        if any(fields.get(key) is not None for key in _CLOCKS):
            known = {key: value for key, value in known.items() if key not in _CLOCKS}
        merged = {**known, **fields}
        entry = checked(_dated({"timezone": zone} | {key: value for key, value in merged.items() if value is not None}, now))
    on = job.enabled if enabled is None else enabled
    anew = _clock(entry) != _clock(before) or (on and not job.enabled)
    begins = first(entry, now, zone) if anew else None
    spec = entry.model_dump_json() if fields else ""
    changed = Job(job.name, spec or job.spec, on, begins if anew else job.next_at, job.origin, job.person)
    return JobEffect("update", job.name, job.person, spec, begins, was=job.spec, enabled=enabled), described(changed, zone)


def _dated(fields: Mapping[str, Any], now: float) -> Mapping[str, Any]:
    """The fields of an entry in which `at` may be a time of day alone, 17:30: the next one there is in its zone."""
    try:
        time = datetime.strptime(str(fields.get("at")), "%H:%M").time()
        local = datetime.fromtimestamp(now, ZoneInfo(fields["timezone"])).replace(tzinfo=None)
    except (ValueError, LookupError, OSError):  # no such time, or no such zone, which is told where the fields are checked
        return fields
    day = local.date() if time > local.time() else local.date() + timedelta(days=1)
    return {**fields, "at": datetime.combine(day, time).isoformat(timespec="minutes")}


def _clock(entry: Entry) -> tuple[object, ...]:
    """What says when an entry is due; an interval is the same in every zone."""
    return (entry.cron, entry.every, entry.at, None if entry.every is not None else entry.timezone)


def checked(fields: Mapping[str, Any]) -> Entry:
    """Fields of an entry as one that people may make: with exactly one clock and a prompt, and no program. Raises UsageError."""
    clocks = [key for key in _CLOCKS if fields.get(key) is not None]
    if len(clocks) != 1:
        raise UsageError("A job has exactly one of cron, every and at.")
    if fields.keys() & {"command", "condition"}:
        raise UsageError("Programs can be named in the config alone.")
    prompt = clean(str(fields.get("prompt", "")))
    if not prompt.strip():
        raise UsageError("A job needs a prompt.")
    if (length := len(prompt)) > PROMPT_CHARS:
        raise UsageError(f"prompt: it has {length:,} characters, and {PROMPT_CHARS:,} are the most that a job's may have.")
    if fields.get("name") in (".", ".."):
        raise UsageError("name: it is one that no address of the API can have.", hint="Give it another name.")
    if not str(fields.get("name", "")).isprintable():
        raise UsageError("name: it has characters that cannot be seen.", hint="Write it in letters, digits, blanks and signs, on one line.")
    try:
        entry = Entry.model_validate({**fields, "prompt": prompt})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in fault["loc"]) or "job"
        raise UsageError(f"{key}: {str(fields.get(key, ''))[:60]!r} {fault['msg']}.") from None
    if entry.every is not None and entry.every < SHORTEST:
        raise UsageError(f"every: {span(SHORTEST)} is the shortest that may be asked for.")
    return entry


def first(entry: Entry, now: float, zone: str) -> float:
    """When it is due for the first time. Raises UsageError where that is over."""
    instant = next(upcoming(entry, now, zone), None)
    if instant is None:
        raise UsageError(f"{when(entry)} ({entry.timezone or zone}) has passed; it is {iso(now, entry.timezone or zone)} now.")
    return instant


def free_name(prompt: str, taken: Collection[str]) -> str:
    """A name made of the first words of a prompt, with a number where another job has it."""
    stem = "-".join(_NOT_IN_NAMES.sub(" ", prompt).lower().split()[:4])[:40].strip("-") or "job"
    number = 1
    while (name := stem if number == 1 else f"{stem}-{number}") in taken:
        number += 1
    return name


def marked_name(name: str, taken: Collection[str], draw: Callable[[], str] = new_id) -> str:
    """`name`, cut where it is too long, with `MARK` of the characters that `draw` gives behind it."""
    stem = name[: _NAME_CHARS - MARK - 1]
    while (marked := f"{stem}-{draw()[:MARK]}") in taken:
        pass
    return marked


def seen(jobs: Sequence[Job], person: str | None, address: str, zone: str, *, direct: bool) -> list[Described]:
    """The jobs that may be shown in a chat: those that speak there and, in a person's own chat, all of theirs."""
    own = person if direct else None
    shown = [job for job in jobs if (own is not None and job.person == own) or json.loads(job.spec).get("deliver_to") == address]
    return [described(job, zone) for job in shown]


async def own(store: SqlStore, name: str, person: str, address: str, *, direct: bool) -> Job:
    """A job of this person's that may be shown in this chat. Raises NotFound."""
    job = await store.job(name, person)
    if not seen([job], person, address, "UTC", direct=direct):
        raise NotFound(f"There is no job {name[:64]!r} of yours here.", hint="/jobs lists those that are.")
    return job


def switch(job: Job, *, enabled: bool, now: float, zone: str) -> JobEffect:
    """What turns a job on or off. Its clock begins anew when it is turned on. Raises UsageError where it is not due again."""
    if not enabled:
        return JobEffect("disable", job.name, job.person)
    return JobEffect("enable", job.name, job.person, next_at=first(described(job, zone).entry, now, zone))


def lines(jobs: Sequence[Described], person: str | None) -> list[str]:
    """A line for each job, for a chat: who made it, when it runs, what it asks."""
    return [line(each, person) for each in jobs]


def line(job: Described, person: str | None) -> str:
    state = ("next " + ", ".join(job.times(CONFIRMED)) if job.coming else "not due again") if job.enabled else "off"
    whose = "yours" if person is not None and job.person == person else f"from the {'config' if job.origin == 'config' else 'operator'}"
    asks = " ".join((job.entry.prompt or "(a program)").split())
    failing = f", failed {job.failures} times in a row" if job.failures else ""
    return f"{job.name} ({whose}): {job.schedule} {job.zone}, {state}{failing}: {asks[:80]}{'…' * (len(asks) > 80)}"
