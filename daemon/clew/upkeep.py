"""What is due in the background, asked of the store."""

import asyncio

from clew.clock import Time
from clew.metrics import Metrics
from clew.store.sqlite import SqliteStore

EVERY = 10.0
"""Seconds between two looks."""


class Upkeep:
    """Expired cache entries go, the store's log is kept short, gauges are brought up to date."""

    def __init__(self, store: SqliteStore, time: Time, metrics: Metrics) -> None:
        self._store = store
        self._time = time
        self._metrics = metrics

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(EVERY)

    async def look(self) -> None:
        counts = await self._store.counts(self._time.wall())
        self._metrics.inbox_pending.set(counts["inbox_new"])
        self._metrics.outbox_pending.set(counts["outbox_pending"])
        self._metrics.outbox_dead.set(counts["outbox_dead"])
        await self._store.bound_log()
        if counts["cache_expired"]:
            await self._store.expire_cache(self._time.wall())
