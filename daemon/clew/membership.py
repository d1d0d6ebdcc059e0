"""This process among the daemons that work on one database: whether it may go on, and what it alone does of what one of them has to do.

Where nobody else can be on the database it always may, does all of it, and nothing is written for that.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterable

import structlog

from clew.clock import Time, new_id
from clew.errors import StoreError
from clew.store.leases import DAEMON
from clew.store.records.leases import Lease, TakenOver
from clew.store.sql import SqlStore

log = structlog.get_logger()

LEASE = 15.0
"""Seconds after its last renewal, by the database's clock, for which what a daemon holds is its own."""
RENEW = 3.0
"""Seconds between two renewals."""
MARGIN = 4.0
"""Seconds before its lease ends at which a daemon that could not renew it lets go of everything: by then nothing of it may be under way."""
AGAIN = 1.0
"""Seconds after which a renewal that failed is tried again."""

Named = Callable[[str], Awaitable[None]]


def whose_leases(listed: Iterable[Lease], own: str) -> dict[str, list[str]]:
    """The daemons that live on the database, the one with the name `own` first, and what each of them holds."""
    found: dict[str, list[str]] = {own: []}
    for lease in listed:
        held = found.setdefault(lease.owner, []) if lease.left > 0 else []
        if not lease.name.startswith(DAEMON):
            held.append(lease.name)
    return {f"{owner} (this one)" if owner == own else owner: held or ["nothing but turns"] for owner, held in found.items()}


class Membership:
    """owner: under which name turns and deliveries are claimed; a new one after each loss.

    wanted: names that one daemon at a time may hold, and that this one would. idempotent: transports whose receivers drop repeats. begin:
    called with each name that is held from now on; end: with each that is not held any more, to stop at once what it stands for; lost: all
    is over, others may go on with what this process had under way.
    """

    def __init__(
        self,
        store: SqlStore,
        time: Time,
        wanted: Callable[[], Collection[str]],
        idempotent: Callable[[], frozenset[str]],
        begin: Named,
        end: Named,
        lost: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._time = time
        self._wanted = wanted
        self._idempotent = idempotent
        self._begin = begin
        self._end = end
        self._lost = lost
        self._held: set[str] = set()
        self._until = -math.inf if store.shared else math.inf  # by the steady clock
        self._looking = asyncio.Lock()
        self.owner = new_id()

    def lives(self) -> bool:
        """Whether what this process claimed is surely its own still. Asked before everything that others see."""
        return self._time.steady() < self._until

    def holds(self, name: str) -> bool:
        """Whether this process alone does what `name` stands for."""
        return name in self._held and self.lives()

    async def join(self) -> TakenOver:
        """Begin to live, under a new name where there was one before. Raises StoreError."""
        former, self.owner = self.owner, new_id()
        begun = self._time.steady()
        try:
            async with asyncio.timeout(LEASE - MARGIN):
                taken = await self._store.leases.join(self.owner, LEASE, self._idempotent(), self._time.wall(), former)
        except TimeoutError:
            raise StoreError("The store did not answer in time.", hint="Is another daemon busy with something long?") from None
        self._until = begun + LEASE - MARGIN
        self._tell(taken)
        return taken

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            pause, seen = RENEW, self._store.freed.version
            try:
                await self.look()
            except (StoreError, TimeoutError) as error:
                if isinstance(error, StoreError) and error.lasting:
                    raise
                pause = AGAIN
            left = self._until - self._time.steady()
            late = AGAIN if self._until == -math.inf else 0.0
            await self._store.freed.wait(seen, min(pause, left) if left > 0 else late)

    async def look(self) -> None:
        """Renew what is held, take over what others left, and hold what is wanted and free. Raises StoreError, TimeoutError."""
        async with self._looking:
            if not self._store.shared:
                for name in self._missing():
                    await self._take(name)
                return
            await self._renew()
            async with asyncio.timeout(RENEW):  # the next renewal waits for nothing
                if missing := self._missing():
                    for name in await self._store.leases.free(missing):
                        if await self._store.leases.acquire(self.owner, name):
                            await self._take(name)
                self._tell(await self._store.leases.take_over(self._idempotent(), self._time.wall()))

    def _missing(self) -> list[str]:
        return [name for name in self._wanted() if name not in self._held]

    async def _take(self, name: str) -> None:
        self._held.add(name)
        try:
            await self._begin(name)
        except BaseException:
            self._held.discard(name)
            await self._end(name)
            raise

    async def keep(self, names: Collection[str]) -> None:
        """Hold of what is held only these: what the others stand for has ended."""
        async with self._looking:
            gone, self._held = self._held - set(names), self._held & set(names)
            if gone and self._store.shared:
                await self._store.leases.release(self.owner, gone)

    async def leave(self) -> None:
        """Hold nothing any more; what is undone is anybody's. Where the store cannot be used, others find out."""
        self._held.clear()
        if self._store.shared:
            self._until = -math.inf
            try:
                async with asyncio.timeout(MARGIN):
                    await self._store.leases.leave(self.owner, self._idempotent(), self._time.wall())
            except (StoreError, TimeoutError) as error:
                log.warning("lease.not_left", err=str(error))
            else:
                self._store.tell_of_leaving()

    async def _renew(self) -> None:
        begun = self._time.steady()
        names: frozenset[str] = frozenset()
        if self.lives():
            async with asyncio.timeout(self._until - begun):
                names = await self._store.leases.renew(self.owner, LEASE)
        if DAEMON + self.owner not in names:
            await self._lose()
            await self.join()
            return
        self._until = begun + LEASE - MARGIN
        if stray := names - self._held - {DAEMON + self.owner}:  # it was not known that they were got, or let go
            await self._store.leases.release(self.owner, stray)
        for name in self._held - names:
            self._held.discard(name)
            log.warning("lease.lost", name=name)
            await self._end(name)

    async def _lose(self) -> None:
        """End everything before somebody else may go on with it."""
        if self._until == -math.inf:
            return
        self._until = -math.inf
        log.warning("lease.lost", name=DAEMON + self.owner)
        held, self._held = self._held, set()
        await self._lost()
        for name in held:
            await self._end(name)

    def _tell(self, taken: TakenOver) -> None:
        if taken.daemons or taken.turns or taken.unknown:
            log.info("daemon.recovered", daemons=list(taken.daemons), turns=taken.turns, sends_unknown=taken.unknown)
            self._store.look()
