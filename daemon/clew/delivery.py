"""From the outbox to the transports: one lane per chat."""

import asyncio
import random
from dataclasses import replace

import structlog

from clew.clock import Time
from clew.membership import Membership
from clew.metrics import Metrics
from clew.pace import LONGEST, Pace
from clew.previews import Previews
from clew.providers import backoff
from clew.store import LeaseLost, Settlement
from clew.store.sql import SqlStore
from clew.supervise import STORE_WAIT, cancelled, patiently, unless_lasting
from clew.transport import Delivery, Gone, Preview, Refused, Retry, Sent, Transport, Unknown

log = structlog.get_logger()

SIDE_BY_SIDE = 8
"""Chats of one transport that are served at the same time, those that hang apart."""
HANGS_AFTER, HANGING = 2.0, 256
"""Seconds after which a send leaves its place to another chat, and how many of a transport may go on so."""
BROKEN = 10
"""Tries, over some minutes, after which a delivery that the adapter fails at for a reason of its own is given up: its chat has
others waiting."""
RETRY_BASE, RETRY_CAP = 1.0, 300.0
"""Seconds; the first and the longest wait before a delivery is tried again, where the platform states none."""
SEND = 120.0
"""Seconds a transport may take over one delivery; its own, shorter bounds come first."""
LOOK = 30.0
"""Seconds between looks at the outbox when nothing was reported."""


Claiming = asyncio.Future[tuple[Delivery | None, float | None]]
"""A claim under way: the delivery, and when the one after it is due."""


class Delivering:
    """Sends one transport's replies."""

    def __init__(
        self,
        name: str,
        transport: Transport,
        store: SqlStore,
        time: Time,
        metrics: Metrics,
        membership: Membership,
        pace: Pace,
        previews: Previews,
    ) -> None:
        self._pace = pace
        self._previews = previews
        self._name = name
        self._transport = transport
        self._store = store
        self._time = time
        self._metrics = metrics
        self._membership = membership
        self._tasks: dict[asyncio.Task[None], asyncio.TimerHandle | None] = {}  # None: it hangs, and has no place any more
        self._claiming: Claiming | None = None
        self._room = asyncio.Semaphore(SIDE_BY_SIDE)
        self._up = False
        self._next: float | None = None  # when the next delivery is due

    def connected(self, up: bool) -> None:
        """Nothing is tried while the transport is not connected: trying would only make the next wait longer."""
        self._up = up
        if up:
            self._store.deliveries[self._name].tell()

    async def run(self) -> None:
        """Until cancelled. A send that runs then is left to `drain`."""
        news = self._store.deliveries[self._name]
        while True:
            seen = news.version
            with unless_lasting():
                await self._start_all()
            await news.wait(seen, self._pause())

    async def drain(self, grace: float) -> None:
        """Send what is due, at most `grace` seconds."""
        try:
            async with asyncio.timeout(grace):
                await self._claimed()
                with unless_lasting():
                    await self._start_all()
                    while self._tasks:
                        await asyncio.wait(self._tasks)
                        await self._start_all()
                if self._tasks:
                    await asyncio.wait(self._tasks)
        except TimeoutError:
            log.warning("outbox.retry", transport=self._name, reason="the daemon stops; the rest is sent at the next start")
            await self._claimed()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def abandon(self) -> None:
        """Leave what is on its way as it is: whoever takes it over goes on with it, as after a crash."""
        await cancelled(list(self._tasks))

    def _pause(self) -> float:
        due = LOOK if self._next is None else self._next - self._time.wall()
        return min(max(self._pace.rests or due, 0.05), LOOK)

    async def _start_all(self) -> None:
        while self._up and not self._pace.rests and self._membership.lives():
            await self._room.acquire()
            now = self._time.wall()
            self._claiming = claiming = self._store.claim_delivery(self._membership.owner, self._name, now)
            claiming.add_done_callback(self._begin)  # what was claimed is sent, even if whoever waits here is cancelled
            try:
                delivery, due = await asyncio.shield(claiming)
            except LeaseLost:  # the membership will find out by itself
                return
            if delivery is None or due is None or due > now:
                return

    def _begin(self, claiming: Claiming) -> None:
        """Send what was claimed."""
        if claiming.cancelled() or claiming.exception():
            self._room.release()
            self._next = self._time.wall() + STORE_WAIT
            return
        delivery, self._next = claiming.result()
        if delivery is None or delivery.claimed_by != self._membership.owner:
            self._room.release()
            return
        task = asyncio.create_task(self._send(delivery), name=f"send.{delivery.id}")
        self._tasks[task] = asyncio.get_running_loop().call_later(HANGS_AFTER, self._give_place, task)
        task.add_done_callback(self._ended)

    async def _claimed(self) -> None:
        """Wait until no claim is under way."""
        if self._claiming is not None:
            await asyncio.wait((self._claiming,))

    def _give_place(self, task: asyncio.Task[None]) -> None:
        if len(self._tasks) < HANGING:
            self._tasks[task] = None
            self._room.release()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if timer := self._tasks.pop(task):
            timer.cancel()
            self._room.release()

    async def _send(self, delivery: Delivery) -> None:
        about = {"transport": self._name, "address": str(delivery.address), "id": delivery.id}
        about |= {"session": delivery.session, "turn": delivery.turn}
        try:
            delivery = await self._placed(delivery)
            while True:
                try:
                    sent = await self._sent(delivery)
                except (Gone, Refused) as why:  # a reply is not lost because of a message that cannot be edited
                    delivery = await self._anew(delivery, why)
                    continue
                if sent.upto is None or sent.upto >= len(delivery.parts):
                    break
                upto = sent.upto
                await patiently(lambda: self._store.advance(delivery, upto))  # noqa: B023 - it is awaited here
                delivery = replace(delivery, sent=upto, repeat=False)
            result = Settlement("sent", sent.ref, sent_parts=len(delivery.parts))
            log.info("outbox.sent", parts=len(delivery.parts), attempt=delivery.attempt, **about)
            self._metrics.messages.labels(self._name, "out").inc(bool(delivery.parts))
        except LeaseLost:
            log.warning("outbox.lost", **about)
            return
        except Retry as again:
            self._pace.rest(delivery.address, again)
            result = self._again(delivery, str(again), again.after)
            log.warning("outbox.retry", reason=str(again), attempt=delivery.attempt, **about)
        except Refused as refused:
            result = Settlement("dead", reason=str(refused), sent_parts=delivery.sent)
            log.error("outbox.dead", reason=str(refused), **about)
        except Unknown as unknown:
            result = await self._resolved(delivery, str(unknown))
            log.warning("outbox.unknown", reason=str(unknown), state=result.state, **about)
        except TimeoutError:
            result = await self._resolved(delivery, f"the transport did not answer within {SEND:.0f} s")
            log.warning("outbox.unknown", reason=result.reason, state=result.state, **about)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            if delivery.attempt < BROKEN:
                result = self._again(delivery, reason, None)
                log.warning("outbox.retry", reason=reason, attempt=delivery.attempt, **about)
            else:
                result = Settlement("dead", reason=reason, sent_parts=delivery.sent)
                log.error("outbox.dead", reason=reason, attempt=delivery.attempt, **about)
        await patiently(lambda: self._store.settle(delivery, result, self._time.wall()))

    async def _placed(self, delivery: Delivery) -> Delivery:
        """A delivery with the message that it takes the place of, if there is one. Raises Retry where its chat is to be left alone."""
        if left := self._pace.left(delivery.address):
            raise Retry("the platform asked to wait", left)
        delivery = await self._previews.settled(delivery)
        if delivery.preview_ref == "" and not self._looks_itself:
            return replace(delivery, preview_ref=await self._lost_preview(delivery))
        return delivery

    @property
    def _looks_itself(self) -> bool:
        """Whether the adapter looks for a first preview of which nobody noted what the platform said."""
        return self._transport.capabilities.can_find and not self._transport.capabilities.idempotent_send

    async def _anew(self, delivery: Delivery, why: Gone | Refused) -> Delivery:
        """A delivery without the message that it was to take the place of. Raises `why` where there is none."""
        if not delivery.preview_ref or delivery.sent:
            raise why
        log.info("preview.gone", transport=self._name, id=delivery.id, reason=str(why))
        await patiently(lambda: self._store.previewed(delivery.id, None))
        return replace(delivery, preview_ref=None)

    async def _lost_preview(self, delivery: Delivery) -> str | None:
        """The message that a first preview came to, of which nobody noted what the platform said; None where it cannot be asked for."""
        if not self._transport.capabilities.idempotent_send or delivery.sent or not delivery.parts:
            return None
        words = delivery.parts[0].text
        event = Preview(delivery.turn, words, "", delivery.in_reply_to, id=delivery.id, context=delivery.context)
        async with asyncio.timeout(SEND):
            return await self._transport.hint(delivery.address, event)

    async def _sent(self, delivery: Delivery) -> Sent:
        if not delivery.parts and delivery.preview_ref is None:
            return Sent()
        await self._pace.turn()
        async with asyncio.timeout(SEND):
            found = await self._found(delivery) if delivery.repeat else None
            if found is None:
                await self._fenced(delivery)
                found = await self._transport.send(delivery)
            return found

    async def _fenced(self, delivery: Delivery) -> None:
        """Raises LeaseLost where somebody else may have the delivery by now. What comes between this and the platform is a crash's to mend:
        whoever took it over knows that it may have been sent."""
        if not await self._store.may_send(delivery) or not self._membership.lives():
            raise LeaseLost(delivery.id)

    def _again(self, delivery: Delivery, reason: str, after: float | None) -> Settlement:
        """Not before a stated wait is over; without one, later each time."""
        wait = min(max(after, 0.0), LONGEST) if after is not None else _backed_off(delivery.attempt)
        return Settlement("pending", reason=reason, next_at=self._time.wall() + wait, sent_parts=delivery.sent)

    async def _resolved(self, delivery: Delivery, reason: str) -> Settlement:
        """An unknown outcome: asked where one can ask, sent again where the receiver drops repeats, elsewhere once and marked as a
        repeat; then nobody knows, and it is shown as such."""
        if found := await self._found(delivery):
            if found.upto is None or found.upto >= len(delivery.parts):
                return Settlement("sent", found.ref, sent_parts=len(delivery.parts))
            return self._again(replace(delivery, sent=found.upto), reason, None)
        edits = bool(delivery.preview_ref) and not delivery.sent  # to the same words: that is no repeat
        if edits or self._transport.capabilities.idempotent_send:
            return self._again(delivery, reason, None)
        if delivery.repeat:
            return Settlement("unknown", reason=reason, sent_parts=delivery.sent)
        return replace(self._again(delivery, reason, None), repeat=True)

    async def _found(self, delivery: Delivery) -> Sent | None:
        """Whether the platform has it after all, where it can be asked."""
        if not self._transport.capabilities.can_find:
            return None
        try:
            return await self._transport.find(delivery)
        except Exception as error:  # most often the network that swallowed the answer is still down
            log.warning("outbox.unknown", transport=self._name, id=delivery.id, reason=f"asking failed: {type(error).__name__}: {error}")
            return None


def _backed_off(attempt: int) -> float:
    return backoff(attempt, None, random.random(), base=RETRY_BASE, cap=RETRY_CAP)  # noqa: S311 - jitter
