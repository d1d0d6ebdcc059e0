"""What comes in, and the turns that it makes."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from clew.messages import Message, ToolCall
from clew.store import (
    AccessEffect,
    Answered,
    Claim,
    Decide,
    Effect,
    Given,
    Item,
    JobEffect,
    LeaseLost,
    OpenQuestion,
    Outcome,
    Question,
    Reply,
    Room,
    StandingYes,
    Step,
    Verdict,
    Withdrawn,
    accept,
    approvals,
    claiming,
    leases,
    outbox,
    transcript,
    turns,
)
from clew.store.connection import Connection
from clew.store.doors.opened import Opened
from clew.store.grouping import lane, shared
from clew.store.windows import Windows
from clew.transport import Address, Cursor, Delivery, Inbound, Receipt

BUSY_FOR = 0.05
"""Seconds after which a chat is looked at again that another daemon had in hand: some time longer than a transaction."""


class TurnsDoor(Opened):
    """What comes in, and the turns that it makes."""

    async def accept(
        self, transport: str, items: Sequence[Inbound], cursor: Cursor | None, now: float, decide: Decide, instant: bool = False
    ) -> tuple[list[Receipt], list[Verdict]]:
        self.arrivals.tell()  # before: the claim joins the commit
        result = await self._db.write_joined(accept.accept, transport, items, cursor, now, decide, instant)
        replied = {transport} if any(verdict.reply for verdict in result[1]) else set()
        replied |= {Address.parse(each.spent.address).transport for each in result[1] if each.spent and each.confirm}
        self._notify(*(self.deliveries[each] for each in replied))
        self._tell_others(self.arrivals, said=[item.address for item in items] if instant else ())
        if any(verdict.stop for verdict in result[1]):
            self._tell_others(self.stops)
        if any(item.attachments for item in items):
            self.files.news.tell()
            self._tell_others(self.files.news)
        return result

    async def cursor(self, transport: str) -> str | None:
        return await self._db.read(accept.cursor, transport)

    async def recover(self, idempotent: frozenset[str], now: float) -> tuple[int, int]:
        """At a start of the only process on the database: nobody holds anything. Returns how many turns were interrupted and how many
        sends have an unknown outcome."""
        taken = await self._db.write(leases.alone, idempotent, now)
        return taken.turns, taken.unknown

    async def claim_turn(
        self, owner: str, now: float, lease: float, merging: frozenset[str], *, risky_first: bool = False, room: Room = claiming.EVERYTHING
    ) -> Claim | None:
        nothing = (claiming.Looked(None), 0)
        doubted = self._claims.of(self)
        windows = self._windows
        (found, busy), gone = await self._claims.write_if(
            self,
            lambda db: (turns.claimable(db, now), nothing),
            _claim,
            owner,
            now,
            lease,
            merging,
            risky_first,
            room,
            windows,
            self.shared,
        )
        if busy and found is None:
            asyncio.get_running_loop().call_later(BUSY_FOR, self.arrivals.tell)
        if found is not None and doubted:  # it was read some time ago
            return replace(found, resumed=True, rows=None)
        if found is not None and found.rows is not None:
            self._windows.keep(found.rows, gone)
        return found

    async def open_run(self, claim: Claim, text: str, now: float) -> Claim:
        """Append what a job asks. Returns its claim as it goes to a model. Raises LeaseLost."""
        return await self._opened.write(claim, claiming.open_run, claim, text, now)

    async def steer(self, claim: Claim, now: float) -> tuple[tuple[Item, ...], tuple[Message, ...]]:
        """Messages that arrived in the chat of a running turn, taken into it. Raises LeaseLost."""
        nothing: tuple[tuple[Item, ...], tuple[Message, ...]] = ((), ())
        return await self._steered.write_if(claim, lambda db: (claiming.steerable(db, claim.turn), nothing), claiming.steer, claim, now)

    async def record(self, claim: Claim, step: Step) -> tuple[Message, ...]:
        messages, _ = await self._recorded.write(step, _record, claim, step)
        self._windows.add(claim.session, messages)
        self._prefixes.add(step.cache)
        return messages

    async def finish(self, claim: Claim, outcome: Outcome, replies: Sequence[Reply], now: float) -> tuple[str, ...]:
        for transport in {reply.address.transport for reply in replies if not reply.instant}:
            self.deliveries[transport].tell()  # before: the delivery's claim joins the commit
        result, messages, waiting = await self._db.write_joined(turns.finish, claim, outcome, replies, now, self._known)
        self._windows.add(claim.session, messages)
        self._prefixes.add(outcome.step.cache)
        changed = [self.jobs_changed] if any(isinstance(effect, JobEffect) for effect in outcome.effects) else []
        self._notify(*([self.arrivals] if waiting else []), *changed)
        notices = [each for effect in outcome.effects if isinstance(effect, AccessEffect) for each in effect.notices]
        self._notify(*(self.deliveries[transport] for transport in {each.address.transport for each in notices}))
        self._told((*replies, *notices))
        if any(isinstance(effect, Effect) and effect.kind == "forget" for effect in outcome.effects):
            await self.files.sweep()
        return result

    async def park(self, claim: Claim, question: Question, now: float) -> bool:
        """Ask a person, and let the turn wait for the answer. False: it was stopped meanwhile. Raises LeaseLost."""
        parked = await self._db.write(turns.park, claim, question, now)
        asked = [each for each in (question.reply, question.notice) if each]
        self._notify(*(self.deliveries[each.address.transport] for each in asked))
        self._told(asked)
        return parked

    async def answers(self, turn: str) -> dict[ToolCall, Answered]:
        """What people answered for the calls of a turn."""
        return await self._db.read(approvals.answers, turn)

    async def standing(self, address: str | None = None, person: str | None = None) -> list[StandingYes]:
        """The yeses for good: those at `address` and on behalf of `person`, None for all."""
        return await self._db.read(approvals.standing, address, person)

    async def withdraw(self, effect: Withdrawn) -> bool:
        """Take back a yes for good. False: there is none."""
        return await self._db.write(approvals.withdraw, effect)

    async def open_questions(self) -> list[OpenQuestion]:
        """Those that wait for an answer, the oldest first."""
        return await self._db.read(approvals.open_questions)

    async def answer_question(self, code: str, yes: bool, now: float) -> Given:
        """Answer a question that an owner was asked, as an owner; its turn goes on. Raises NotFound or UsageError."""
        given = await self._db.write(approvals.answer, code, yes, now)
        self._notify(self.arrivals)
        return given

    async def expire_questions(self, now: float) -> list[Given]:
        """Close the questions that nobody answered in time; their turns go on."""
        closed = await self._db.write_if(lambda db: (approvals.any_due(db, now), []), approvals.expire, now)
        self._notify(*([self.arrivals] if closed else []))
        return closed

    async def next_expiry(self) -> float | None:
        """When the next open question ends, None where none is open."""
        return await self._db.read(approvals.next_due)

    async def release(self, claim: Claim) -> None:
        await self._db.write(turns.release, claim)
        self._tell_others(self.arrivals)

    async def draft(self, turn: str, now: float) -> Delivery | None:
        """The reply that a turn is still writing. None: it does not run any more."""
        return await self._db.write(outbox.draft, turn, now)

    async def previewed(self, delivery: str, ref: str | None) -> None:
        """By which message a reply is shown while it is written; None: by none (any more)."""
        await self._db.write_relaxed(outbox.previewed, delivery, ref)

    async def tool_states(self, turn: str) -> dict[str, str]:
        return await self._db.read(turns.tool_states, turn)


@shared(lambda owner, now, lease, merging, risky_first, room, windows, others: ())
def _claim(
    db: Connection,
    owner: str,
    now: float,
    lease: float,
    merging: frozenset[str],
    risky_first: bool,
    room: Room,
    windows: Windows,
    others: bool,
) -> tuple[claiming.Looked, int]:
    """A turn, and what was gone of rows when its window was read: what is kept of windows holds where no other process took some. others:
    there may be some. Raises LeaseLost where the owner's lease is over."""
    gone = _gone(db, owner) if others else 0
    return claiming.claim(db, owner, now, lease, merging, risky_first, room, windows.seen(gone)), gone


def _gone(db: Connection, owner: str) -> int:
    lives, gone = db.execute(f"SELECT {leases.LIVES}, {transcript.ROWS_GONE}", {"daemon": leases.DAEMON + owner}).fetchone()
    if not lives:
        raise LeaseLost(owner)
    return int(gone)


@shared(lambda claim, step: [lane(claim.address)])
def _record(db: Connection, claim: Claim, step: Step) -> tuple[tuple[Message, ...], Step]:
    """The messages of a step, and the step itself, by which it is known again."""
    return turns.record(db, claim, step), step
