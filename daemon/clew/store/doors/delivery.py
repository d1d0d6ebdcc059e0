"""What goes out."""

import asyncio
from collections.abc import Sequence
from typing import Any

from clew.store import Reply, Settlement, leases, outbox, people
from clew.store.connection import Connection
from clew.store.doors.opened import Opened
from clew.transport import Delivery


class DeliveryDoor(Opened):
    """What goes out."""

    def claim_delivery(self, owner: str, transport: str, now: float) -> asyncio.Future[tuple[Delivery | None, float | None]]:
        """The next delivery that is due, and when the one after it is, None if none waits."""

        def due(db: Connection) -> tuple[bool, tuple[None, float | None]]:
            at = outbox.next_due(db, transport, now)
            return at is not None and at <= now, (None, at)

        return self._sends.write_if(self.deliveries[transport], due, self._in_time(outbox.claim), owner, transport, now)

    async def advance(self, delivery: Delivery, parts: int) -> None:
        await self._db.write_relaxed(outbox.advance, delivery, parts)

    async def may_send(self, delivery: Delivery) -> bool:
        """Whether it is this process's to send still, asked right before each send. Where nobody else is on the database, it is."""
        return not self.shared or await self._db.read(lambda db: outbox.is_held(db, delivery) and leases.lives(db, delivery.claimed_by))

    async def settle(self, delivery: Delivery, result: Settlement, now: float) -> None:
        if await self._db.write_relaxed(outbox.settle, delivery, result, now):
            self._notify(self.deliveries[delivery.address.transport])
        else:
            self._notify()

    async def outbox(self, states: tuple[str, ...], limit: int = 2**62, skip: int = 0) -> list[dict[str, Any]]:
        return await self._db.read(outbox.listing, states, limit, skip)

    async def outbox_counts(self) -> dict[str, int]:
        """How many deliveries are in each state but `sent`."""
        return await self._db.read(outbox.counts)

    async def outbox_words(self, deliveries: Sequence[str]) -> dict[str, str]:
        """How deliveries begin, by id."""
        return await self._db.read(outbox.words, deliveries)

    async def say(self, reply: Reply, now: float) -> str:
        """Words of clew's own, outside of any turn. Returns their id."""
        identifier = await self._db.write(outbox.put, reply, "", "", now)
        self._notify(self.deliveries[reply.address.transport])
        self._told((reply,))
        return identifier

    async def owner_address(self) -> str | None:
        return await self._db.read(people.owner_address)

    async def owner_chat(self) -> tuple[str, str] | None:
        """(address, person): the direct chat in which an owner was heard last."""
        return await self._db.read(people.owner_chat)

    async def say_once(self, key: str, reply: Reply, now: float, again_after: float) -> bool:
        """`say`, unless it was said less than `again_after` seconds ago. Returns whether it was said now."""
        said = await self._db.write(outbox.put_once, key, reply, now, again_after)
        self._notify(self.deliveries[reply.address.transport])
        self._told((reply,))
        return said

    async def send_again(self, delivery: str, now: float) -> bool:
        done = await self._db.write(outbox.again, delivery, now)
        self._notify(*self.deliveries.values())
        return done

    async def discard_delivery(self, delivery: str) -> bool:
        done = await self._db.write(outbox.discard, delivery)
        self._notify(*self.deliveries.values())
        return done
