"""What a store has to do for the rest of clew: the door that another database would be put behind."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from clew.messages import Message
from clew.store import Ask, Claim, Compaction, Decide, Found, ModelCall, Outcome, Reply, Scope, Settlement, Step, Verdict, ViewRows
from clew.transport import Address, Cursor, Delivery, Inbound, Receipt


class Store(Protocol):
    """Verbs, one transaction each; no cursor, connection or row id gets out. Every `now` is seconds since the epoch."""

    async def accept(
        self, transport: str, items: Sequence[Inbound], cursor: Cursor | None, now: float, decide: Decide, instant: bool = False
    ) -> tuple[list[Receipt], list[Verdict]]:
        """Store arrivals and the transport's cursor. Durable when it returns. instant: replies count as sent when committed."""

    async def claim_turn(self, owner: str, now: float, lease: float, merging: frozenset[str], *, risky_first: bool = False) -> Claim | None:
        """The next turn that may run, its user messages appended. merging: transports whose waiting messages share a turn. risky_first:
        nothing is begun before a turn that may have brought the process down."""

    async def record(self, claim: Claim, step: Step) -> tuple[Message, ...]:
        """Append a step of a running turn. Raises LeaseLost."""

    async def finish(self, claim: Claim, outcome: Outcome, replies: Sequence[Reply], now: float) -> tuple[str, ...]:
        """End a turn: turn, inbox, transcript, outbox in one commit. Returns the replies' ids. Raises LeaseLost."""

    async def view(self, session: str) -> ViewRows: ...

    async def compact(self, parent: str | None, new: Compaction, calls: Sequence[ModelCall]) -> bool:
        """Commit a compaction if `parent` is still the newest one. False: somebody else was first."""

    def claim_delivery(self, owner: str, transport: str, now: float) -> asyncio.Future[tuple[Delivery | None, float | None]]:
        """The next delivery that is due, and when the one after it is, None if none waits. Cancelling it undoes no claim."""

    async def settle(self, delivery: Delivery, result: Settlement, now: float) -> None: ...

    async def advance(self, delivery: Delivery, parts: int) -> None:
        """The first `parts` parts are with the platform; a crash of the process sends only those behind them again."""

    async def fire(self, job: str, instant: float, next_at: float | None, now: float, text: str, to: Address) -> bool: ...

    async def search(self, scope: Scope, ask: Ask, limit: int, shown: Sequence[str] = ()) -> Found: ...

    async def changed(self, seen: int, timeout: float) -> int:
        """Wait until something changed since `seen` (a number from an earlier call), at most `timeout` seconds."""
