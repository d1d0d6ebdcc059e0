"""Scheduled prompts: from the clock to the inbox. `jobs.next_at` is the only state; APScheduler merely wakes us."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import takewhile

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from clew.clock import Time
from clew.config import Job as Entry
from clew.errors import NotFound
from clew.metrics import Metrics
from clew.store import Job
from clew.store.sqlite import SqliteStore
from clew.supervise import supervise, unless_lasting
from clew.timetable import ON_TIME, newest, plan, upcoming
from clew.transport import Address

log = structlog.get_logger()

LOOK = 30.0
"""Seconds, of a clock that never jumps, between looks at the jobs whatever the timers say: clocks are set and machines sleep."""
NEW_AT = 3600.0
"""Seconds by which the `at` of a new entry without `grace` may have passed and still run."""


class _Waking(BaseTrigger):  # type: ignore[misc]  # apscheduler has no types
    """Wakes at a job's next instants. APScheduler's own CronTrigger misses midnight after a spring change and doubles in autumn."""

    def __init__(self, entry: Entry, zone: str, first: float | None) -> None:
        self._entry = entry
        self._zone = zone
        self._first = first

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime | None:
        instant = self._first if previous is None else next(upcoming(self._entry, previous.timestamp(), self._zone), None)
        return None if instant is None else datetime.fromtimestamp(instant, UTC)


class Scheduler:
    """Fires jobs. `zone`: for entries that name none; `fired`: told of every run that began."""

    def __init__(self, store: SqliteStore, time: Time, zone: str, metrics: Metrics, entries: Sequence[Entry]) -> None:
        self._store = store
        self._time = time
        self._zone = zone
        self._metrics = metrics
        self._entries = tuple(entries)
        self._timers = AsyncIOScheduler(timezone=UTC)
        self._looking: asyncio.Task[None] | None = None

    def jobs(self, now: float) -> list[Job]:
        """The jobs of the config as they are stored; one whose entry changed begins its clock anew."""
        return [Job(each.name, each.model_dump_json(), True, self._first(each, now)) for each in self._entries]

    def _first(self, entry: Entry, now: float) -> float | None:
        """The first instant of an entry that is new: an `at` that has just passed counts too, and one long ago is said to be missed."""
        if entry.at is None:
            return next(upcoming(entry, now, self._zone), None)
        instant = next(upcoming(entry, 0.0, self._zone), None)
        late = 0.0 if instant is None else now - instant
        if late > (NEW_AT if entry.grace is None else entry.grace):
            log.warning("cron.missed", job=entry.name, instants=1, newest=_stamp(now - late))
            return None
        return instant

    async def start(self) -> None:
        for job in await self._store.jobs():
            trigger = _Waking(Entry.model_validate_json(job.spec), self._zone, job.next_at)
            # The default grace of one second would drop a wake-up on a busy machine.
            self._timers.add_job(self._wake, trigger, id=job.name, misfire_grace_time=None, coalesce=True)
        self._timers.start()
        self._looking = asyncio.create_task(supervise("scheduler", self._look), name="scheduler")
        self._looking.add_done_callback(_seen)

    async def _look(self) -> None:
        await asyncio.sleep(0.1)
        while True:
            await self._wake()
            await asyncio.sleep(LOOK)

    async def _wake(self) -> None:
        with unless_lasting():  # what is due now is due at the next look too
            await self.fire_due()

    def stop(self) -> None:
        if self._timers.running:
            self._timers.shutdown(wait=False)
        if self._looking is not None:
            self._looking.cancel()

    async def fire_due(self) -> None:
        """Put every run that is due into its chat's lane."""
        now = self._time.wall()
        for job in await self._store.jobs():
            if not job.enabled or job.next_at is None:
                continue
            if job.next_at > now:
                await self._mind_the_clock(job, job.next_at, now)
            else:
                await self._fire(job, job.next_at, now)

    async def _mind_the_clock(self, job: Job, next_at: float, now: float) -> None:
        """Where the clock went back, take the instants in between for what they are: still to come."""
        entry = Entry.model_validate_json(job.spec)
        if entry.every is not None:
            nearest: float | None = now + (next_at - now) % entry.every if next_at > now + entry.every else None
        else:
            nearest = next(upcoming(entry, now, self._zone), None)
        if nearest is not None and nearest < next_at:
            await self._store.set_job_back(job.name, nearest)

    async def _fire(self, job: Job, first: float, now: float) -> None:
        entry = Entry.model_validate_json(job.spec)
        due, following = await asyncio.to_thread(self._since, entry, first, now)
        runs, missed = plan(due, now, entry)
        if runs and entry.overlap == "skip" and await self._store.job_runs(job.name):
            runs, missed = [], sorted([*missed, *runs])
        if missed:
            log.warning("cron.missed", job=job.name, instants=len(missed), newest=_stamp(missed[-1]))
            self._metrics.cron_runs.labels(job.name, "missed").inc(len(missed))
            await self._store.missed(job.name, missed, runs[0] if runs else following, now)
        for run, after in zip(runs, [*runs[1:], following], strict=False):  # no runs: nothing follows
            text = entry.prompt or ""
            if now - run > ON_TIME:
                text = f"{text}\n\n(This was due at {_stamp(run)} and runs late.)"
            if await self._store.fire(job.name, run, after, now, text, Address.parse(entry.deliver_to)):
                log.info("cron.fired", job=job.name, instant=_stamp(run))
                self._metrics.cron_runs.labels(job.name, "fired").inc()

    def _since(self, entry: Entry, first: float, now: float) -> tuple[list[float], float | None]:
        """(the instants from `first` until now, the one after that). After a long absence they are many, so not on the loop."""
        due = [first, *newest(takewhile(lambda instant: instant <= now, upcoming(entry, first, self._zone)))]
        return due, next((instant for instant in upcoming(entry, due[-1], self._zone) if instant > now), None)

    async def run_now(self, name: str) -> None:
        """Run a job once, now, beside its clock. Raises NotFound."""
        job = next((each for each in await self._store.jobs() if each.name == name), None)
        if job is None:
            raise NotFound(f"There is no job {name!r}.", hint="`clew cron list` shows those that are.")
        entry = Entry.model_validate_json(job.spec)
        await self._store.run_job(name, self._time.wall(), entry.prompt or "", Address.parse(entry.deliver_to))
        log.info("cron.fired", job=name, instant="now")


def _seen(task: asyncio.Task[None]) -> None:
    """A store that is lost ends the daemon through the dispatcher; here it only must not count as unseen."""
    if not task.cancelled():
        task.exception()


def _stamp(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
