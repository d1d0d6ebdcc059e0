"""What is due in the background, asked of the store."""

import asyncio
from collections.abc import Callable

import structlog

from clew.clock import Time
from clew.compactor import Compactor
from clew.metrics import Metrics
from clew.store import Boundary
from clew.store.sqlite import SqliteStore
from clew.supervise import unless_lasting

log = structlog.get_logger()

EVERY = 10.0
"""Seconds between two looks, if nothing is due in between."""
SOONEST = 0.5
LANES_EVERY = 1_000
"""Messages after which it is looked again whether a segment of a chat is full."""
AT_ONCE = 2
"""Background compactions that run side by side."""


class Upkeep:
    """Threads are compacted at their boundaries, expired cache entries go, the store's log is kept short, common words of long chats get
    their lanes, gauges are brought up to date.

    compactor: gives the one that goes by the config of now; None in a process that will soon end.
    """

    def __init__(self, store: SqliteStore, compactor: Callable[[], Compactor] | None, time: Time, metrics: Metrics) -> None:
        self._store = store
        self._compactor = compactor
        self._time = time
        self._metrics = metrics
        self._compacting: set[asyncio.Task[None]] = set()
        self._lanes_from = 0

    async def run(self) -> None:
        try:
            while True:
                wait = EVERY
                with unless_lasting():
                    await self.look()
                    wait = await self._until_next()
                await asyncio.sleep(wait)
        finally:
            for task in self._compacting:
                task.cancel()
            await self.settled()

    async def _until_next(self) -> float:
        """Seconds until the next look."""
        now = self._time.wall()
        due = await self._store.next_boundary(now)
        return EVERY if due is None else min(max(due - now, SOONEST), EVERY)

    async def settled(self) -> None:
        """Wait until the compactions that run have ended."""
        await asyncio.gather(*self._compacting, return_exceptions=True)

    async def look(self) -> None:
        counts = await self._store.counts(self._time.wall())
        self._metrics.inbox_pending.set(counts["inbox_new"])
        self._metrics.outbox_pending.set(counts["outbox_pending"])
        self._metrics.outbox_dead.set(counts["outbox_dead"])
        await self._store.bound_log()
        if counts["cache_expired"]:
            await self._store.expire_cache(self._time.wall())
        if counts["messages"] >= self._lanes_from:
            more = await self._store.make_lanes()
            self._lanes_from = 0 if more else counts["messages"] + LANES_EVERY
        if self._compactor is not None and len(self._compacting) < AT_ONCE:
            for boundary in await self._store.take_boundaries(self._time.wall(), AT_ONCE - len(self._compacting)):
                task = asyncio.create_task(self._compact(self._compactor(), boundary), name=f"compact.{boundary.session}")
                self._compacting.add(task)
                task.add_done_callback(self._compacting.discard)

    async def _compact(self, compactor: Compactor, boundary: Boundary) -> None:
        try:
            await compactor.at_boundary(boundary)
        except Exception as error:  # the thread goes on as it is, and its other triggers stand
            log.warning("agent.compress_failed", session=boundary.session, trigger=boundary.reason, err=f"{type(error).__name__}: {error}")
