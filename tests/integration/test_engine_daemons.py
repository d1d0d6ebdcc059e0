"""Two daemons on one database, side by side in one process: each with its own clocks, its own end of the database, its own platform."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from clew.bus import Replied
from clew.clock import Time
from clew.config import Job
from clew.connections import ATTENDED
from clew.duties import CHORES, UPKEEP
from clew.membership import LEASE
from clew.plugins import Plugin, registry
from clew.service import Service
from clew.store import Reply
from clew.store.changes import Neighbours
from clew.store.sql import SqlStore
from clew.tools import Tool
from clew.transport import Address, Capabilities, Delivery, Host, Inbound, Part, Receipt, Sent, Transport
from tests.databases import BOTH
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import JsonObject, Script
from tests.emulators.server import Reply as Answer
from tests.integration.engine import DEADLINE_S, START, Clock, Desk, NoSettings, World, calling, engine, tool
from tests.unit.store_rows import Clock as Hands
from tests.unit.store_rows import beside

pytestmark = BOTH


def repeated(body: JsonObject) -> Answer:
    """Repeat what was said, without its head."""
    return say(f"answer to: {last_user_text(body).rpartition('] ')[2]}")


class PartByPart(Desk):
    """A platform that confirms each part by itself."""

    async def send(self, delivery: Delivery) -> Sent:
        await super().send(delivery)
        return Sent("ref", delivery.sent + 1)


class CallingIn(Desk):
    """A platform that calls any daemon, and is run by one. attends: whether calls are taken in the place of running it."""

    called = True
    attends = False

    async def attend(self, host: Host) -> None:
        self._host, self.attends = host, True
        host.report(True)
        try:
            await asyncio.Event().wait()
        finally:
            self.attends = False


@dataclass
class Daemon:
    """A service and what it alone has."""

    service: Service
    store: SqlStore
    steady: Hands
    desk: Desk

    @property
    def runs_the_desk(self) -> bool:
        return "desk" in self.service.connections.here

    async def accept(self, *messages: Inbound) -> list[Receipt]:
        return await self.service.host("desk").accept(messages)

    async def look(self) -> None:
        await self.service.membership.look()


@dataclass
class Several:
    """Daemons on one database. clock: the database's. desks: one for each, on the same platform."""

    world: World
    kind: Callable[[], Desk]
    clock: Hands = field(default_factory=lambda: Hands(START))
    neighbours: Neighbours = field(default_factory=Neighbours)
    daemons: list[Daemon] = field(default_factory=list)
    desks: list[Desk] = field(default_factory=list)

    def build(self, name: str, settings: object) -> Transport:
        desk = self.kind()
        desk._numbers = 100 * len(self.desks)  # of messages: they are one platform's
        self.desks.append(desk)
        return desk

    @asynccontextmanager
    async def daemon(self, *, skew: float = 0.0) -> AsyncIterator[Daemon]:
        """skew: seconds by which its wall clock is ahead."""
        steady = Hands(1000.0)
        config = self.world.config.model_copy(update={"data_dir": self.world.folder / f"daemon{len(self.daemons)}"})
        store = await beside(self.world.folder, self.clock, self.neighbours)
        try:
            async with Service.open(config, time=Time(Clock(START + skew), steady), store=store) as service:
                daemon = Daemon(service, store, steady, self.desks[-1])
                self.daemons.append(daemon)
                yield daemon
        finally:
            await store.close()

    @asynccontextmanager
    async def two(self, *, skew: float = 0.0) -> AsyncIterator[tuple[Daemon, Daemon]]:
        """The first runs what one of them does at a time."""
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(self.daemon(skew=skew))
            await first.desk.host()
            yield first, await stack.enter_async_context(self.daemon(skew=-skew))

    def passes(self, seconds: float, *, but: Daemon | None = None) -> None:
        """Time goes by, for the database and for all daemons but one that stands still."""
        self.clock.at += seconds
        for daemon in self.daemons:
            daemon.steady.at += 0 if daemon is but else seconds

    async def lapses(self, of: Daemon, renewed: Daemon, *, but: Daemon | None = None) -> None:
        """The lease of one daemon ends, while the other one renews its own."""
        self.passes(LEASE - 5, but=but)
        await renewed.look()
        self.passes(5, but=but)
        await renewed.look()

    @property
    def sent(self) -> list[Delivery]:
        return [delivery for desk in self.desks for delivery in desk.sent]

    async def idle(self) -> None:
        """Wait until everything is answered and sent, by whomever."""
        store = self.daemons[-1].store
        async with asyncio.timeout(DEADLINE_S):
            while True:
                seen = store.version
                counts = await store.counts(0.0)
                if not (counts["inbox_new"] or counts["turns_running"] or counts["outbox_pending"]):
                    return
                await store.changed(seen, 0.2)


@asynccontextmanager
async def several(
    folder: Path,
    answer: Script = repeated,
    *,
    spread: bool = False,
    kind: type[Desk] = Desk,
    tools: Sequence[Tool] = (),
    **config: object,
) -> AsyncIterator[Several]:
    async with engine(folder, answer, tools=tools) as world:
        found = Several(world, lambda: kind(Capabilities(spread=spread)))
        registry("clew.transports")["desk"] = Plugin("desk", NoSettings, found.build)
        world.config = world.config.model_copy(update=config)
        yield found


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.01)


def texts(deliveries: list[Delivery]) -> list[str]:
    return [delivery.text for delivery in deliveries]


@pytest.mark.asyncio
async def test_one_runs_the_platform_and_whoever_is_there_when_it_leaves_goes_on(tmp_path: Path) -> None:  # P44, P48
    async with several(tmp_path) as all_of_them, AsyncExitStack() as second:
        async with all_of_them.daemon() as first:
            said = first.desk.message("one")
            await first.desk.accept(said)
            other = await second.enter_async_context(all_of_them.daemon())
            assert (first.runs_the_desk, other.runs_the_desk) == (True, False)
            assert await other.service.readiness() == []  # what another daemon runs is no fault of this one
            await first.desk.until(lambda: bool(first.desk.sent))
        await other.desk.host()
        assert await other.desk.ask("two") == "answer to: two"
        await other.desk.accept(said)  # the platform gives again what it is not sure of
        await all_of_them.idle()
        assert texts(all_of_them.sent) == ["answer to: one", "answer to: two"]


@pytest.mark.asyncio
@pytest.mark.parametrize("skew", [0.0, 86_400.0])
async def test_a_daemon_that_stands_still_is_taken_over_and_says_nothing_more_when_it_goes_on(
    tmp_path: Path, skew: float
) -> None:  # P42, P44, P48
    async with several(tmp_path) as all_of_them, all_of_them.two(skew=skew) as (paused, other):
        hold = all_of_them.world.model.hold()
        await paused.desk.accept(paused.desk.message("one"))
        await hold.reached.wait()
        await all_of_them.lapses(paused, other, but=paused)
        await other.desk.until(lambda: bool(other.desk.sent))
        assert paused.service.membership.lives()  # as far as it knows
        hold.release()
        await paused.accept(paused.desk.message("two"))  # it was received, so that it is stored; it is another's to answer
        await all_of_them.idle()
        await until(lambda: not paused.service.dispatcher._tasks)
        assert texts(other.desk.sent) == ["answer to: one", "answer to: two"]
        assert paused.desk.sent == []
        session = await other.store.current_session("desk:ada")
        assert session is not None
        spoken = [message.text for message in await other.store.transcript(session)]
        assert spoken == ["one", "answer to: one", "two", "answer to: two"]
        await paused.look()
        assert not paused.runs_the_desk
        assert [each.name for each in await other.store.leases.listing() if each.owner == other.service.membership.owner] == [
            CHORES,
            f"daemon:{other.service.membership.owner}",
            "transport:desk",
            UPKEEP,
        ]


@pytest.mark.asyncio
async def test_who_does_not_run_a_platform_that_calls_takes_its_calls(tmp_path: Path) -> None:  # P42, P48
    async with several(tmp_path, kind=CallingIn) as all_of_them, all_of_them.two() as (first, other):

        def attending() -> list[bool]:
            return [cast("CallingIn", each.desk).attends for each in (first, other)]

        await until(lambda: attending() == [False, True])
        said = first.desk.message("one")
        receipts = [*await other.accept(said), *await first.accept(said)]
        assert [receipt.status for receipt in receipts] == ["stored", "duplicate"]
        await all_of_them.idle()
        assert (texts(first.desk.sent), other.desk.sent) == (["answer to: one"], [])
        await all_of_them.lapses(first, other, but=first)
        await until(lambda: attending() == [False, False])
        await first.look()
        await until(lambda: attending() == [True, False])
        assert (first.runs_the_desk, other.runs_the_desk) == (False, True)
        assert first.service.transports["desk"].detail == ATTENDED
        await first.accept(first.desk.message("two"))
        await all_of_them.idle()
        assert texts(other.desk.sent) == ["answer to: two"]
        await first.service.reload(first.service.config.model_copy(update={"prices": {}}))
        await until(lambda: attending() == [True, False])


@pytest.mark.asyncio
async def test_a_daemon_that_could_not_renew_stops_before_another_may_begin(tmp_path: Path) -> None:  # P44, P48
    async with several(tmp_path) as all_of_them, all_of_them.two() as (late, other):
        hold = all_of_them.world.model.hold()
        await late.desk.accept(late.desk.message("one"))
        await hold.reached.wait()
        former = late.service.membership.owner
        all_of_them.passes(LEASE - 1)
        assert not late.service.membership.lives()
        assert not late.runs_the_desk
        assert await other.store.leases.renew(former, 0.5)  # by the database's clock it still is
        await late.look()
        assert late.service.membership.owner != former
        assert former not in {claim.owner for claim in late.service.dispatcher._tasks.values()}
        hold.release()
        await other.look()
        await all_of_them.idle()
        assert texts(all_of_them.sent) == ["answer to: one"]


@pytest.mark.asyncio
async def test_what_was_on_its_way_when_its_sender_stood_still_is_sent_once_more_and_says_so(tmp_path: Path) -> None:  # P43, BO-052
    async with several(tmp_path) as all_of_them, all_of_them.two() as (paused, other):
        paused.desk.stuck["desk:ada"] = asyncio.Event()
        await paused.desk.accept(paused.desk.message("one"))
        await paused.desk.until(lambda: bool(paused.desk.tries))
        await all_of_them.lapses(paused, other, but=paused)
        await other.desk.until(lambda: bool(other.desk.sent))
        paused.desk.stuck["desk:ada"].set()  # the platform took it after all: nobody could have known
        await paused.desk.until(lambda: bool(paused.desk.sent))
        await all_of_them.idle()
        assert [(each.attempt, each.repeat) for each in all_of_them.sent] == [(1, False), (2, True)]


@pytest.mark.asyncio
async def test_a_daemon_that_does_not_know_yet_that_its_lease_is_over_stops_in_order(tmp_path: Path) -> None:  # P44
    async with several(tmp_path) as all_of_them, all_of_them.two() as (paused, other):
        await all_of_them.lapses(paused, other, but=paused)
        sending = other.service.connections.delivering["desk"]
        sending.connected(False)  # so that there is something to claim
        await other.store.say(Reply(Address("desk", "ada"), "hello", (Part("hello"),)), START)
        await paused.service.connections.delivering["desk"].drain(60.0)
        assert not paused.desk.tries
        sending.connected(True)
        await other.desk.until(lambda: bool(other.desk.sent))


@pytest.mark.asyncio
async def test_of_a_reply_in_parts_a_sender_that_stood_still_sends_no_further_part(tmp_path: Path) -> None:  # P43, BO-052
    async with several(tmp_path, kind=PartByPart) as all_of_them, all_of_them.two() as (paused, other):
        paused.desk.stuck["desk:ada"] = asyncio.Event()
        address = Address("desk", "ada")
        await paused.store.say(Reply(address, "1 2 3", (Part("1", 1, 3), Part("2", 2, 3), Part("3", 3, 3))), START)
        await paused.desk.until(lambda: bool(paused.desk.tries))
        await all_of_them.lapses(paused, other, but=paused)
        await other.desk.until(lambda: len(other.desk.sent) == 3)
        paused.desk.stuck["desk:ada"].set()
        await until(lambda: not paused.service.connections.delivering["desk"]._tasks)
        assert [each.sent for each in paused.desk.tries] == [0]
        assert [each.sent for each in other.desk.sent] == [0, 1, 2]
        assert (await other.store.outbox_counts()).get("sending") is None


@pytest.mark.asyncio
async def test_a_stop_reaches_a_turn_that_another_daemon_runs(tmp_path: Path) -> None:  # P22, P44
    async with several(tmp_path, spread=True) as all_of_them, all_of_them.two() as (first, other):
        hold = all_of_them.world.model.hold()
        await first.accept(first.desk.message("a long story"))
        await hold.reached.wait()
        running = first if first.service.dispatcher._tasks else other
        asked = other if running is first else first
        await asked.accept(asked.desk.message("/stop", client_id="stop"))
        await until(lambda: "Stopped." in texts(all_of_them.sent))
        hold.release()
        assert sorted(texts(all_of_them.sent)) == ["Stopped.", "Stopping."]


@pytest.mark.asyncio
async def test_what_is_said_in_one_daemon_reaches_a_page_that_is_open_at_another(tmp_path: Path) -> None:  # P43
    async with several(tmp_path) as all_of_them, all_of_them.two() as (first, other):
        address = Address("web", "local")
        with other.service.bus.subscribe(address) as events:
            await first.service.host("web").accept([Inbound("web/1", address, "local", "/help", client_id="1")])
            async with asyncio.timeout(DEADLINE_S):
                while not any(line.role == "assistant" for line in await other.store.history(str(address), 0, 10)):
                    assert isinstance(await events.get(), Replied)


@pytest.mark.asyncio
async def test_a_job_that_is_due_runs_once_and_the_next_time_where_one_is_left(tmp_path: Path) -> None:  # P45
    job = Job(name="daily", every=3600.0, prompt="how is it?", deliver_to="desk:ada")
    async with several(tmp_path, schedule=[job]) as all_of_them, all_of_them.two() as (first, other):
        assert [each.service.membership.holds(UPKEEP) for each in (first, other)] == [True, False]
        for daemon in (first, other):
            daemon.service.time.wall.at += 3600.0  # type: ignore[attr-defined]
        await asyncio.gather(*(daemon.service.scheduler.fire_due() for daemon in (first, other)))
        await first.desk.until(lambda: len(first.desk.sent) == 1)
        assert len(await other.store.job_history("daily", 10)) == 1
        await all_of_them.lapses(first, other, but=first)
        assert other.service.membership.holds(UPKEEP)
        await first.look()
        assert not first.service.membership.holds(UPKEEP)
        for daemon in (first, other):
            daemon.service.time.wall.at += 3600.0  # type: ignore[attr-defined]
        await other.service.scheduler.fire_due()
        await other.desk.until(lambda: len(other.desk.sent) == 1)
        assert len(await other.store.job_history("daily", 10)) == 2


@pytest.mark.asyncio
async def test_one_that_is_full_leaves_the_rest_to_others(tmp_path: Path) -> None:  # P44
    async with several(tmp_path) as all_of_them:
        limits = all_of_them.world.config.limits.model_copy(update={"turns_at_once": 1})
        all_of_them.world.config = all_of_them.world.config.model_copy(update={"limits": limits})
        async with all_of_them.two() as (first, other):
            hold = all_of_them.world.model.hold()
            await first.desk.accept(first.desk.message("one"))
            await hold.reached.wait()
            busy, free = (first, other) if first.service.dispatcher._tasks else (other, first)
            assert await first.desk.ask("two", "bob") == "answer to: two"
            assert [len(each.service.dispatcher._tasks) for each in (busy, free)] == [1, 0]
            hold.release()
            await first.desk.until(lambda: len(first.desk.sent) == 2)
        assert other.desk.sent == []  # whoever answers, the platform's owner sends


class Cut:
    """A daemon's way to its database, cut at one of its writes, before it or behind its commit. What it asks waits until `mend`."""

    def __init__(self, store: SqlStore, number: int, *, behind: bool) -> None:
        self.reached, self._mended = asyncio.Event(), asyncio.Event()
        self._number, self._behind, self._count = number, behind, 0
        self._waiting: set[asyncio.Task[None]] = set()
        database: Any = store._db
        self._write = database._enqueue
        database._enqueue = self._enqueue

    def mend(self) -> None:
        self._mended.set()

    def _enqueue(self, *write: Any) -> asyncio.Future[Any]:
        self._count += 1
        if self._count < self._number or self._mended.is_set():
            return cast("asyncio.Future[Any]", self._write(*write))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        committed = self._write(*write) if self._count == self._number and self._behind else None
        self.reached.set()
        task = asyncio.create_task(self._later(write, committed, answer))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        return answer

    async def _later(self, write: tuple[Any, ...], committed: asyncio.Future[Any] | None, answer: asyncio.Future[Any]) -> None:
        await self._mended.wait()
        try:
            value = await (committed or self._write(*write))
        except Exception as error:
            if not answer.done():
                answer.set_exception(error)
                answer.exception()
        else:
            if not answer.done():
                answer.set_result(value)


@pytest.mark.asyncio
@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("number", range(1, 8))
async def test_cut_off_at_any_write_nothing_is_lost_and_nothing_said_twice_without_a_word(
    tmp_path: Path, number: int, behind: bool
) -> None:  # P42, P43, P44, P48
    ran: list[str] = []

    async def run(context: object, note: str) -> str:
        ran.append(note)
        return "seen"

    async with (
        several(tmp_path, calling(("look", {"note": "x"})), tools=[tool("look", run)]) as all_of_them,
        all_of_them.two() as (lost, other),
    ):
        cut = Cut(lost.store, number, behind=behind)
        said = lost.desk.message("one")
        accepting = asyncio.create_task(lost.desk.accept(said))
        await cut.reached.wait()
        await all_of_them.lapses(lost, other, but=lost)
        await other.desk.accept(said)  # what was not acknowledged the platform gives to whoever asks next
        await other.desk.until(lambda: "done" in texts(all_of_them.sent))
        cut.mend()
        await accepting
        await lost.look()
        await all_of_them.idle()
        session = await other.store.current_session("desk:ada")
        assert session is not None
        spoken = [message.text for message in await other.store.transcript(session) if message.role != "tool" and message.text]
        assert spoken == ["one", "done"]
        sent = [each for each in all_of_them.sent if each.text == "done"]
        assert [each.repeat for each in sent] in ([False], [False, True], [True])
        assert len(ran) <= 2
