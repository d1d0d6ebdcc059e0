"""What only the owner can mend is told to them: once, and over the outbox where that is possible."""

import math
from collections.abc import Mapping

from clew import access
from clew.asking import Plan
from clew.bus import Bus, Replied
from clew.clock import Time, new_id
from clew.store import AccessRequest, Reply
from clew.store.sql import SqlStore
from clew.transport import Address, Delivery, Retry, Transport, Unknown

TOLD, TOLD_WINDOW = 5, 3600.0
"""Requests to be let in that the owner is told of in an hour; those beyond it are listed."""
WARN_AGAIN = 86_400.0
"""Seconds before the owner is told again of what is still not mended."""

NEVER_AGAIN = math.inf


class Owner:
    """Whoever runs this clew, where they were heard last. Nobody is told anything as long as no owner has written."""

    def __init__(self, store: SqlStore, transports: Mapping[str, Transport], plan: Plan, bus: Bus, time: Time) -> None:
        self._store = store
        self._transports = transports
        self._plan = plan
        self._bus = bus
        self._time = time

    async def warn(self, key: str, text: str, met_at: Address | None, again: float = WARN_AGAIN) -> None:
        """Tell something, and again after so many seconds; not where the same was said to them already (`met_at`)."""
        to = await self._store.owner_address()
        if to is None or to == str(met_at):
            return
        reply = self._reply(Address.parse(to), text)
        await self._once(key, reply, again)

    async def tell(self, key: str, text: str, address: Address) -> None:
        """Tell somebody else something that they are told once."""
        await self._once(key, self._reply(address, text), NEVER_AGAIN)

    async def _once(self, key: str, reply: Reply, again: float) -> None:
        if await self._store.say_once(key, reply, self._time.wall(), again):
            self._bus.publish(reply.address, Replied(""))

    async def asked(self, request: AccessRequest) -> None:
        """Tell that somebody asks to be let in: each request once, and not more than a few in an hour."""
        to = await self._store.owner_address()
        if to is None:
            return
        now = self._time.wall()
        waiting = len(await self._store.access_requests("open", now))
        reply = self._reply(Address.parse(to), access.asked(request, waiting))
        if await self._store.tell_of_request(request.identity, reply, now, TOLD_WINDOW, TOLD):
            self._bus.publish(reply.address, Replied(""))

    async def say(self, text: str) -> None:
        """Tell something now."""
        if to := await self._store.owner_address():
            reply = self._reply(Address.parse(to), text)
            await self._store.say(reply, self._time.wall())
            self._bus.publish(reply.address, Replied(""))

    async def notice(self, text: str) -> Delivery | None:
        """`text` as it is sent past the outbox. None: nobody is to be told, or what is said there counts only once it is stored."""
        to = await self._store.owner_address()
        address = Address.parse(to) if to else None
        transport = self._transports.get(address.transport) if address else None
        if address is None or transport is None or transport.capabilities.instant:
            return None
        return Delivery(new_id(), address, text, tuple(transport.parts(text)), self._time.wall())

    async def send(self, notice: Delivery) -> None:
        """Send `notice` past the outbox. Raises Retry, Refused, and Unknown where the receiver drops a repeat."""
        transport = self._transports.get(notice.address.transport)
        if transport is None:
            raise Retry("its transport is gone")
        try:
            await transport.send(notice)
        except Unknown:
            if transport.capabilities.idempotent_send:
                raise

    def _reply(self, address: Address, text: str) -> Reply:
        parts, instant = self._plan(address, text)
        return Reply(address, text, parts, instant=instant)
