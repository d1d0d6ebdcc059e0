"""What is due in the background, asked of the store."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import tzinfo

import structlog

from clew.clock import Time
from clew.compactor import Compactor
from clew.config import Sessions
from clew.library import Watch
from clew.metrics import Metrics
from clew.store import Boundary, retention
from clew.store.sql import SqlStore
from clew.supervise import unless_lasting

log = structlog.get_logger()

EVERY = 10.0
"""Seconds between two looks, if nothing is due in between."""
SOONEST = 0.5
LANES_EVERY = 1_000
"""Messages after which it is looked again whether a segment of a chat is full."""
SUM_EVERY = 500
"""Model calls that are taken into the sums of what was spent together."""
SWEEP_EVERY, UPLOADS_LIVE = 3600.0, 86_400.0
"""Seconds between two looks for files that nobody holds, and for which an upload waits for its message."""
SLICES = 50
"""Slices of the search indexes that are cleaned in one look after something was deleted, and of calls that are summed up after an update: a
few per cent of the writer's time."""
EXPIRE_EVERY = 3600.0
"""Seconds between two looks for what is older than it may be."""
AT_ONCE = 2
"""Background compactions that run side by side."""


@dataclass(frozen=True, slots=True)
class Due:
    """Who carries out what is due: each gives the one that goes by the config of now. sessions: how long what was said is kept.
    zone: of the dates in summaries."""

    compactor: Callable[[], Compactor]
    watch: Callable[[], Watch]
    sessions: Callable[[], Sessions]
    zone: Callable[[], tzinfo]


class Upkeep:
    """Threads are compacted at their boundaries, questions that nobody answered in time are closed, watched folders are looked at, expired
    cache entries, files that nobody holds and what is older than it may be go, what was deleted leaves the indexes' pages, the store's log
    is kept short, common words of long chats get their lanes, what was spent is summed up, gauges are brought up to date.

    due: None in a process that will soon end. owns: whether this process does it, of those on the database; the gauges are its own.
    """

    def __init__(self, store: SqlStore, due: Due | None, time: Time, metrics: Metrics, owns: Callable[[], bool] = lambda: True) -> None:
        self._owns = owns
        self._store = store
        self._due = due
        self._time = time
        self._metrics = metrics
        self._compacting: set[asyncio.Task[None]] = set()
        self._lanes_from = 0
        self._expire_from = time.steady()
        self._sweep_from = time.steady() + SWEEP_EVERY
        self._watching: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()

    async def run(self) -> None:
        try:
            while True:
                wait = EVERY
                with unless_lasting():
                    await self.look()
                    wait = await self._until_next()
                await asyncio.sleep(wait)
        finally:
            for task in self._working():
                task.cancel()
            await self.settled()

    def _working(self) -> list[asyncio.Task[None]]:
        return [*self._compacting, *([self._watching] if self._watching else [])]

    async def _until_next(self) -> float:
        """Seconds until the next look."""
        now = self._time.wall()
        due = [each for each in (await self._store.next_boundary(now), await self._store.next_expiry()) if each is not None]
        return min(max(min(due) - now, SOONEST), EVERY) if due else EVERY

    async def settled(self) -> None:
        """Wait until what was begun has ended."""
        await asyncio.gather(*self._working(), return_exceptions=True)

    async def look(self) -> None:
        """Begin what is due. What an earlier look found is begun before this one looks."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        counts = await self._store.counts(self._time.wall())
        self._metrics.inbox_pending.set(counts["inbox_new"])
        self._metrics.outbox_pending.set(counts["outbox_pending"])
        self._metrics.outbox_dead.set(counts["outbox_dead"])
        await self._store.bound_log()
        if not self._owns():
            return
        for each in await self._store.expire_questions(self._time.wall()):
            log.info("approval.answered", answer="no", how=each.how, turn=each.turn)
        if counts["cache_expired"]:
            await self._store.expire_cache(self._time.wall())
        for _ in range(min(counts["calls_unsummed"] // SUM_EVERY, SLICES)):
            await self._store.spending.roll(SUM_EVERY)
        if counts["messages"] >= self._lanes_from:
            more = await self._store.make_lanes()
            self._lanes_from = 0 if more else counts["messages"] + LANES_EVERY
        if self._time.steady() >= self._sweep_from:
            self._sweep_from = self._time.steady() + SWEEP_EVERY
            await self._store.files.sweep(uploads_before=self._time.wall() - UPLOADS_LIVE)
            await self._store.spending.sweep(self._time.wall())
        for _ in range(SLICES):
            if not await self._store.clean_some():
                break
        try:
            await self._store.note_erasures()
        except OSError as error:  # the next look tries again
            log.warning("erasure.not_noted", err=str(error))
        if self._due is None:
            return
        await self._expire(self._due)
        watch = self._due.watch()
        if watch.due() and (self._watching is None or self._watching.done()):
            self._watching = asyncio.create_task(self._watch(watch), name="documents.watch")
        if len(self._compacting) < AT_ONCE:
            for boundary in await self._store.take_boundaries(self._time.wall(), AT_ONCE - len(self._compacting)):
                task = asyncio.create_task(self._compact(self._due.compactor(), boundary), name=f"compact.{boundary.session}")
                self._compacting.add(task)
                task.add_done_callback(self._compacting.discard)

    async def _expire(self, due: Due) -> None:
        """Forget what is older than the config lets it be: some of it in each look, once an hour all of it."""
        settings = due.sessions()
        if not retention.anything(settings) or self._time.steady() < self._expire_from:
            return
        messages = threads = 0
        for _ in range(SLICES):
            gone = await self._store.expire_some(settings, due.zone(), self._time.wall())
            messages, threads = messages + gone.messages, threads + gone.threads
            if gone == retention.Gone():
                self._expire_from = self._time.steady() + EXPIRE_EVERY
                await self._store.files.sweep()
                break
        if messages or threads:
            log.info("retention.applied", messages=messages, threads=threads)

    async def _watch(self, watch: Watch) -> None:
        try:
            await watch.look()
        except Exception as error:  # the documents stay as they are, and the next look tries again
            log.warning("documents.failed", err=f"{type(error).__name__}: {error}")

    async def _compact(self, compactor: Compactor, boundary: Boundary) -> None:
        try:
            await compactor.at_boundary(boundary)
        except Exception as error:  # the thread goes on as it is, and its other triggers stand
            log.warning("agent.compress_failed", session=boundary.session, trigger=boundary.reason, err=f"{type(error).__name__}: {error}")
