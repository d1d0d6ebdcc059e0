"""From the inbox to turns: one at a time per session, many sessions side by side."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from clew import access, commands, tracing
from clew.agent import Agent, replies
from clew.asking import Plan
from clew.bus import LiveEvent, Replied
from clew.clock import Time
from clew.commands.command import Rooms
from clew.errors import NotFound, StoreError, UsageError
from clew.membership import Membership
from clew.running import Runs
from clew.stopping import Stop, Stopped
from clew.store import Claim, LeaseLost, Outcome, Room
from clew.store.sql import SqlStore
from clew.supervise import STORE_WAIT, cancelled, patiently, unless_lasting
from clew.transport import Address

log = structlog.get_logger()

LEASE = 100 * 365 * 24 * 3600.0
"""Seconds. A turn is its daemon's as long as that one lives: see `store.leases`. This has to outlast any turn and any jump of the wall
clock (a machine without a battery wakes in 1970)."""
LOOK = 5.0
"""Seconds between looks at the inbox when nothing was reported."""
RISKY_WAITS = 3.0
"""Seconds after a start in which a turn that may have brought the process down lets all others go first. Then they wait for it: under
a steady load it would never run otherwise."""
JOB_AFTER = 16
"""Turns of people in a row behind which a job that waits is begun first: where turns end as fast as they are begun people's places are
never all taken, and somebody always waits."""
ATTEMPTS = 5
"""Starts of a turn after which its message is given up."""
STOPPED = "Stopped. The conversation is as it was."
FULL, EVERYTHING = Room(people=False, jobs=False), Room()
BROKEN = "Something went wrong inside me; it is in the log of whoever runs me. Your message is stored."

Show = Callable[[Address, LiveEvent], None]
"""Tells whoever listens at an address."""


@dataclass(frozen=True, slots=True)
class Work:
    """What turns are run with; it changes as a whole. merging: transports whose waiting messages are answered together.

    turns_at_once: of people; jobs have a quarter of that beside it, so that no job keeps a person waiting for more than its beginning.
    """

    agent: Agent
    runs: Runs
    rooms: Rooms
    merging: frozenset[str]
    turns_at_once: int

    @property
    def jobs_at_once(self) -> int:
        return max(self.turns_at_once // 4, 1)


class Dispatcher:
    """Claims turns and runs them. stops: set for a turn that somebody stops; it has those that run."""

    def __init__(
        self, store: SqlStore, work: Work, plan: Plan, show: Show, time: Time, membership: Membership, stops: dict[str, Stop]
    ) -> None:
        self._store = store
        self._work = work
        self._plan = plan
        self._show = show
        self._time = time
        self._membership = membership
        self._stops = stops
        self._tasks: dict[asyncio.Task[None], Claim] = {}
        self._failure: BaseException | None = None
        self._begun = time.steady()
        self._in_a_row = 0  # turns of people, begun since a job could have been
        self.progress = 0.0

    def use(self, work: Work) -> None:
        """Begin new turns with this; those that run end with what they began with."""
        self._work = work

    async def run(self) -> None:
        """Until cancelled. Running turns outlive the cancelling: see `drain`."""
        while self._failure is None:
            seen = self._store.arrivals.version
            with unless_lasting():  # the disk is full, say: nothing can be begun, and this loop lives all the same
                await self._start_all()
            self.progress = self._time.steady()
            await self._store.arrivals.wait(seen, LOOK)
        raise self._failure

    async def heed_stops(self) -> None:
        """Stop the turns that somebody has stopped by taking access away."""
        for turn in await self._store.stopping():
            if turn in self._stops:
                self._stops[turn].set()

    async def heed(self) -> None:
        """Until cancelled: stop what somebody stopped whose words another daemon took."""
        while True:
            seen = self._store.stops.version
            with unless_lasting():
                await self.heed_stops()
            await self._store.stops.wait(seen, LOOK)

    async def abandon(self) -> None:
        """Leave the running turns as they are stored: somebody else goes on with them."""
        claims = list(self._tasks.values())
        await cancelled(list(self._tasks))
        for claim in claims:
            self._show(claim.address, Replied(claim.session))  # nothing more of it is shown

    async def drain(self, grace: float) -> int:
        """Let running turns end, at most `grace` seconds. Returns how many were interrupted; they are resumed at the next start."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel()
            claims = [self._tasks[task] for task in late]
            await asyncio.gather(*late, return_exceptions=True)
            with unless_lasting():  # they are resumed at the next start all the same, as if the process had died
                for claim in claims:
                    await self._store.release(claim)
            return len(late)
        return 0

    async def _start_all(self) -> None:
        while self._membership.lives() and (room := self._room()) != FULL:
            waited = self._time.steady() - self._begun >= RISKY_WAITS
            owner, now = self._membership.owner, self._time.wall()
            room = replace(room, jobs_first=self._in_a_row >= JOB_AFTER)
            try:
                claim = await self._store.claim_turn(owner, now, LEASE, self._work.merging, risky_first=waited, room=room)
            except LeaseLost:  # the membership will find out by itself
                return
            if claim is None or owner != self._membership.owner:
                return
            self._in_a_row = 0 if claim.kind == "job" or (room.jobs and room.jobs_first) else self._in_a_row + 1
            self._stops[claim.turn] = stop = Stop()
            if claim.stopping:
                stop.set()
            task = asyncio.create_task(self._run(claim, self._work), name=f"turn.{claim.turn}")
            self._tasks[task] = claim
            task.add_done_callback(self._ended)
            if not claim.more:
                return

    def _room(self) -> Room:
        jobs = sum(claim.kind == "job" for claim in self._tasks.values())
        return Room(len(self._tasks) - jobs < self._work.turns_at_once, jobs < self._work.jobs_at_once)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._room() != EVERYTHING:
            self._store.arrivals.tell()  # somebody may wait for the place
        del self._stops[self._tasks.pop(task).turn]
        if not task.cancelled() and (error := task.exception()):
            self._failure = error
            self._store.arrivals.tell()

    async def _run(self, claim: Claim, work: Work) -> None:
        structlog.contextvars.bind_contextvars(session=claim.session, turn=claim.turn, transport=claim.address.transport)
        about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clew", "gen_ai.conversation.id": claim.session}
        with tracing.span("invoke_agent clew", {**about, "clew.turn": claim.turn, "clew.kind": claim.kind}):
            while not await self._ran(claim, work):
                await asyncio.sleep(STORE_WAIT)
                claim = replace(claim, resumed=True, rows=None)
        self._show(claim.address, Replied(claim.session))

    async def _ran(self, claim: Claim, work: Work) -> bool:
        """Run a turn. False: the store could not be used; what is stored of it stands, and it can be resumed."""
        try:
            await self._handle(claim, work)
        except LeaseLost:
            log.info("turn.lost")
        except StoreError as error:
            if error.lasting:
                raise
            return False
        except Exception as error:
            log.exception("turn.failed", error=type(error).__name__)
            await self._give_up(claim, f"{type(error).__name__}: {error}")
        return True

    async def _handle(self, claim: Claim, work: Work) -> None:
        if claim.attempts > ATTEMPTS:
            await self._give_up(claim, f"it was interrupted {ATTEMPTS} times")
        elif claim.kind == "job":
            await work.runs.run(claim)
        elif claim.kind == "message":
            await work.agent.run(claim)
        elif claim.kind == "command":
            await self._command(claim, work)
        else:
            await self._finish(claim, Outcome("done"))

    async def _command(self, claim: Claim, work: Work) -> None:
        try:
            answer = await commands.answer(replace(work.rooms, stop=self._stops[claim.turn]), claim)
            outcome = Outcome("done", new_session=answer.new_session, effects=answer.effects)
            await self._finish(claim, outcome, answer.text)
            if answer.changed:
                await self.heed_stops()
            for changed in answer.changed:
                access.log_change(changed)
        except Stopped:
            await self._finish(claim, Outcome("stopped"), STOPPED)
        except (UsageError, NotFound) as error:  # the effect did not take place
            await self._finish(claim, Outcome("done"), error.told)

    async def _give_up(self, claim: Claim, why: str) -> None:
        log.error("turn.failed", error="given_up", detail=why)
        await self._finish(claim, Outcome("failed", error=why), BROKEN)

    async def _finish(self, claim: Claim, outcome: Outcome, text: str = "") -> None:
        said = replies(claim, text, self._plan) if text else []
        await patiently(lambda: self._store.finish(claim, outcome, said, self._time.wall()))
