"""Jobs, from the clock to the inbox. `jobs.next_at` is the only state; APScheduler merely wakes us."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import takewhile

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from clew.clock import Time
from clew.config import Job as Entry
from clew.metrics import Metrics
from clew.store import Job, JobEffect
from clew.store.sql import SqlStore
from clew.supervise import supervise, unless_lasting
from clew.timetable import LONGEST_PAUSE, delay, newest, plan, upcoming
from clew.transport import Address

log = structlog.get_logger()

LOOK = 30.0
"""Seconds, of a clock that never jumps, between looks at the jobs whatever the timers say: clocks are set and machines sleep."""
SOONEST = 0.05
"""Seconds between two looks at least."""
SET_BACK = 1.0
"""Seconds by which a wall clock has to fall behind to have been set back."""
NEW_AT = 3600.0
"""Seconds by which the `at` of a new entry without `grace` may have passed and still run."""
OVERLAPS = "the run before it was still going on"
LATE = "nothing ran when it was due"
TOO_LATE = "it had passed before clew knew of it"


KeepsFrom = Callable[[Job, Entry], Awaitable[str]]


class Scheduler:
    """Fires jobs. `zone`: for entries that name none; entries: those of the config. keeps_from: why a job that is due is not run for want
    of money or tokens, empty where it is."""

    def __init__(self, store: SqlStore, time: Time, zone: str, metrics: Metrics, entries: Sequence[Entry], keeps_from: KeepsFrom) -> None:
        self._keeps_from = keeps_from
        self._store = store
        self._time = time
        self._zone = zone
        self._metrics = metrics
        self._entries = tuple(entries)
        self._timers = AsyncIOScheduler(timezone=UTC)
        self._looking: asyncio.Task[None] | None = None
        self._firing = asyncio.Lock()
        self._ahead = math.inf  # the wall clock less the steady one, the most since it was last set back

    def jobs(self, now: float) -> list[Job]:
        """The jobs of the config as they are stored; one whose entry changed begins its clock anew."""
        return [Job(each.name, each.model_dump_json(), True, self._first(each, now)) for each in self._entries]

    def _first(self, entry: Entry, now: float) -> float | None:
        """The first instant of an entry that is new: an `at` that has just passed counts too, one long ago does not."""
        if entry.at is None:
            return next(upcoming(entry, now, self._zone), None)
        instant = next(upcoming(entry, 0.0, self._zone), None)
        late = 0.0 if instant is None else now - instant
        return None if late > (NEW_AT if entry.grace is None else entry.grace) else instant

    async def start(self) -> None:
        self._timers.start()
        jobs = await self._store.jobs()
        for job in jobs:
            if job.next_at is None and job.origin == "config":
                await self._tell_missed(job, entry_of(job.spec))
        self._be_woken(jobs, self._time.wall())
        self._looking = asyncio.create_task(supervise("scheduler", self._look), name="scheduler")
        self._looking.add_done_callback(_seen)

    async def _tell_missed(self, job: Job, entry: Entry) -> None:
        """A single time that had passed long before its entry came is listed as missed, once."""
        at = next(upcoming(entry, 0.0, self._zone), None) if entry.at is not None else None
        if at is None or await self._store.job_history(job.name, 1):
            return
        log.warning("cron.missed", job=job.name, instants=1, newest=_stamp(at), reason=TOO_LATE)
        self._metrics.cron_runs.labels(job.name, "missed").inc()
        await self._store.missed(job.name, [at], None, self._time.wall(), TOO_LATE)

    async def _look(self) -> None:
        await asyncio.sleep(2 * SOONEST)
        while True:
            seen = self._store.jobs_changed.version
            await self._wake()
            await self._store.jobs_changed.wait(seen, LOOK)

    async def _wake(self) -> None:
        with unless_lasting():  # what is due now is due at the next look too
            await self.fire_due()

    async def _ring(self) -> None:
        self._store.jobs_changed.tell()

    def stop(self) -> None:
        if self._timers.running:
            self._timers.remove_all_jobs()  # one that is begun and then cancelled would be logged as a failure
            self._timers.shutdown(wait=False)
        if self._looking is not None:
            self._looking.cancel()

    async def fire_due(self) -> None:
        """Put every run that is due into its job's lane, and be woken for the next."""
        async with self._firing:
            now = self._time.wall()
            jobs = [job for job in await self._store.jobs() if job.enabled and job.next_at is not None]
            if self._went_back(now):
                for job in jobs:
                    await self._mind_the_clock(job, now)
                    await asyncio.sleep(0)
            for job in jobs:
                await self._look_at(job, now)
            self._be_woken(await self._store.jobs(), self._time.wall())

    def _went_back(self, now: float) -> bool:
        """Whether the wall clock was set back since the last look, or may have been before the first."""
        ahead = now - self._time.steady()
        went_back = ahead < self._ahead - SET_BACK
        self._ahead = ahead if went_back else max(self._ahead, ahead)
        return went_back

    def _be_woken(self, jobs: Sequence[Job], now: float) -> None:
        due = [job.next_at + self._delay(job, job.next_at) for job in jobs if job.enabled and job.next_at is not None]
        if not due or not self._timers.running:
            return
        at = datetime.now(UTC) + timedelta(seconds=min(max(min(due) - now, SOONEST), 2 * LOOK))
        # The default grace of one second would drop a wake-up on a busy machine.
        self._timers.add_job(self._ring, "date", run_date=at, id="next", replace_existing=True, misfire_grace_time=None)

    def _delay(self, job: Job, instant: float) -> float:
        return delay(job.name, instant, entry_of(job.spec).jitter)

    async def _look_at(self, job: Job, now: float) -> None:
        if job.next_at is not None and job.next_at + self._delay(job, job.next_at) <= now:
            await self._fire(job, entry_of(job.spec), job.next_at, now)

    async def _mind_the_clock(self, job: Job, now: float) -> None:
        """Where the clock went back, take the instants in between for what they are: still to come."""
        entry, next_at = entry_of(job.spec), job.next_at
        if next_at is None or next_at <= now:
            return
        if entry.every is not None:
            nearest: float | None = now + (next_at - now) % entry.every if next_at > now + entry.every else None
        else:
            nearest = next(upcoming(entry, now, self._zone), None)
        if nearest is not None and nearest < next_at:
            await self._store.set_job_back(job.name, nearest)

    async def _fire(self, job: Job, entry: Entry, first: float, now: float) -> None:
        due, following = await asyncio.to_thread(self._since, entry, first, now)
        runs, missed = plan(due, now, entry)
        note = LATE
        if runs and (reason := await self._hindrance(job, entry, now)):
            runs, missed, note = [], sorted([*missed, *runs]), reason
        if missed:
            log.warning("cron.missed", job=job.name, instants=len(missed), newest=_stamp(missed[-1]), reason=note)
            self._metrics.cron_runs.labels(job.name, "missed").inc(len(missed))
            await self._store.missed(job.name, missed, runs[0] if runs else following, now, note)
        for run, after in zip(runs, [*runs[1:], following], strict=False):  # no runs: nothing follows
            to = Address.parse(entry.deliver_to)
            if await self._store.fire(job.name, run, after, now, entry.prompt or "", to, entry.session):
                log.info("cron.fired", job=job.name, instant=_stamp(run))
                self._metrics.cron_runs.labels(job.name, "fired").inc()

    async def _hindrance(self, job: Job, entry: Entry, now: float) -> str:
        """Why a job does not run now though it is due, empty if it does."""
        if job.rests_until is not None and now < job.rests_until <= now + LONGEST_PAUSE:
            return f"it failed {job.failures} times in a row and rests until {_stamp(job.rests_until)}"
        if entry.overlap == "skip" and await self._store.job_runs(job.name):
            return OVERLAPS
        return await self._keeps_from(job, entry)

    def _since(self, entry: Entry, first: float, now: float) -> tuple[list[float], float | None]:
        """(the instants from `first` that are due now, the one after those). After a long absence they are many, so not on the loop."""

        def is_due(instant: float) -> bool:
            return instant + delay(entry.name, instant, entry.jitter) <= now

        due = [first, *newest(takewhile(is_due, upcoming(entry, first, self._zone)))]
        return due, next((instant for instant in upcoming(entry, due[-1], self._zone) if not is_due(instant)), None)

    async def run_now(self, name: str, person: str | None = None) -> None:
        """Run a job once, now, beside its clock. person: only if it is theirs. Raises NotFound."""
        now = self._time.wall()
        await self._store.change_job(JobEffect("run", name, person, next_at=now), now)
        log.info("cron.fired", job=name, instant="now")


@lru_cache(maxsize=2_000)
def entry_of(spec: str) -> Entry:
    """A stored entry; each is asked for at every look."""
    return Entry.model_validate_json(spec)


def _seen(task: asyncio.Task[None]) -> None:
    """A store that is lost ends the daemon through the dispatcher; here it only must not count as unseen."""
    if not task.cancelled():
        task.exception()


def _stamp(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
