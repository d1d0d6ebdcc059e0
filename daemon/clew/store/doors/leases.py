"""The verbs of leases, one transaction each."""

from collections.abc import Collection

from clew.store import leases
from clew.store.database import Database
from clew.store.records.leases import Lease, TakenOver


class LeasesDoor:
    """What the daemons on one database hold. Lengths are seconds, by the database's clock; `now` is the caller's own, for the rows."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def join(self, owner: str, length: float, idempotent: frozenset[str], now: float, former: str = "") -> TakenOver:
        """Begin to live as `owner`, and take back what those held who do not live any more, and what `former` held: oneself, before."""
        return await self._db.write(leases.join, owner, length, idempotent, now, former)

    async def renew(self, owner: str, length: float) -> frozenset[str]:
        """The names that are held for longer; none where the daemon's own lease is over."""
        return await self._db.write_aside(leases.renew, owner, length)

    async def free(self, names: Collection[str]) -> list[str]:
        """Those of `names` that nobody holds who lives."""
        return await self._db.read(leases.free, names)

    async def acquire(self, owner: str, name: str) -> bool:
        """Hold a name, if nobody does who lives."""
        return await self._db.write_aside(leases.acquire, owner, name)

    async def release(self, owner: str, names: Collection[str]) -> None:
        await self._db.write_aside(leases.release, owner, names)

    async def take_over(self, idempotent: frozenset[str], now: float) -> TakenOver:
        """Take back what those held whose lease is over."""
        nothing = TakenOver((), 0, 0)
        return await self._db.write_if(lambda db: (leases.any_over(db), nothing), leases.take_over, idempotent, now)

    async def leave(self, owner: str, idempotent: frozenset[str], now: float) -> TakenOver:
        """Hold nothing any more; what is left undone is anybody's."""
        return await self._db.write(leases.take_over, idempotent, now, owner)

    async def listing(self) -> list[Lease]:
        """Who holds what."""
        return await self._db.read(leases.listing)
