"""A store that cannot be written for a while: the owner hears of it once, nothing that is stored is lost, nothing has to be restarted."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from clew import delivery, dispatcher, outage, scheduler, service, supervise
from clew.config import Job, Person
from clew.delivery import SIDE_BY_SIDE
from clew.errors import StoreError
from clew.store.sqlite.database import _run
from clew.transport import Capabilities, Delivery, Refused, Retry
from tests.databases import BOTH, databases
from tests.emulators.scripts import say
from tests.integration.engine import DEADLINE_S, World, engine

pytestmark = BOTH

OWNER = {"ada": Person(role="owner", identities=("desk:ada",)), "bob": Person(role="member", identities=("desk:bob",))}
REFUSED = {"sqlite": "attempt to write a readonly database", "postgresql": "in a read-only transaction"}
TOLD = "I cannot store anything."


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "LOOK", 0.02)
    monkeypatch.setattr(outage, "PASSING", 0.0)
    for room in (supervise, delivery, dispatcher):
        monkeypatch.setattr(room, "STORE_WAIT", 0.02)


@asynccontextmanager
async def owned(folder: Path, capabilities: Capabilities = Capabilities()) -> AsyncIterator[World]:  # noqa: B008 - frozen
    async with engine(folder, lambda body: say("yes"), capabilities=capabilities) as world:
        world.config = world.config.model_copy(update={"people": OWNER})
        try:
            yield world
        finally:
            if databases.kind == "postgresql":
                connecting(world, writes=True)


async def writable(world: World, *, yes: bool) -> None:
    """Let the store refuse every write, as SQLite does in a folder that has become read-only, and a server that has become a standby; or
    take them again."""
    if databases.kind == "sqlite":
        await _run(world.database._writer, lambda db: db.execute(f"PRAGMA query_only = {'OFF' if yes else 'ON'}"))
        return
    await asyncio.to_thread(connecting, world, writes=yes)
    if not yes:
        await world.store._db.everywhere(lambda db: db.execute("SET default_transaction_read_only = on"))


def connecting(world: World, *, writes: bool) -> None:
    """Whether whoever connects to the server from now on may write."""
    name = databases.store(world.folder).rpartition("/")[2]
    change = "RESET default_transaction_read_only" if writes else "SET default_transaction_read_only = on"
    databases.server.sql(f"ALTER DATABASE {name} {change}")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.01)


async def refused(world: World) -> None:
    with pytest.raises(StoreError, match=REFUSED[databases.kind]):
        await world.desk.accept(world.desk.message("hello?", "bob"))


@pytest.mark.asyncio
async def test_the_owner_is_told_once_while_it_lasts_and_again_when_it_comes_again(tmp_path: Path) -> None:  # P48, BO-046
    async with owned(tmp_path) as world, world.running():
        await world.desk.ask("good morning")
        for time in range(2):
            with capture_logs() as logs:
                await writable(world, yes=False)
                for _ in range(20):
                    await refused(world)
                await until(lambda time=time: len(told(world)) == time + 1)  # type: ignore[misc]
                (reason,) = await world.service.readiness()
                assert reason.startswith("store: ")
                assert "he store cannot be used just now (" in reason
                assert REFUSED[databases.kind] in reason
                assert (await world.service.status())["reasons"] == [reason]
                assert [line["event"] for line in logs if line["log_level"] in ("error", "warning")] == ["store.unavailable"]
                await writable(world, yes=True)
                await until(lambda: not world.service.outage.reason)
            assert await world.service.readiness() == []
            assert await world.desk.ask("and now?", "bob") == "yes"
        assert [str(delivery.address) for delivery in told(world)] == ["desk:ada"] * 2
        await world.idle()
        assert await world.store.outbox(("pending", "sending", "dead", "unknown")) == []


def told(world: World) -> list[Delivery]:
    return [delivery for delivery in world.desk.sent if delivery.text.startswith(TOLD)]


@pytest.mark.asyncio
async def test_an_owner_out_of_reach_is_told_when_it_is_over(tmp_path: Path) -> None:  # P48, BO-046
    async with owned(tmp_path) as world, world.running():
        await world.desk.ask("good morning")
        world.desk.faults["desk:ada"] = [Retry("no connection")] * 1000
        await writable(world, yes=False)
        await refused(world)
        await until(lambda: len(world.desk.faults["desk:ada"]) < 995)
        assert len({delivery.id for delivery in world.desk.tries if delivery.text.startswith(TOLD)}) == 1
        await writable(world, yes=True)
        await until(lambda: not world.service.outage.reason)
        world.desk.faults.clear()
        await world.desk.until(lambda: "I could not store anything." in world.desk.sent[-1].text)
        assert REFUSED[databases.kind] in world.desk.sent[-1].text
        assert told(world) == []


@pytest.mark.asyncio
async def test_an_owner_whose_platform_refuses_is_not_tried_for_ever(tmp_path: Path) -> None:  # BO-046
    async with owned(tmp_path) as world, world.running():
        await world.desk.ask("good morning")
        world.desk.faults["desk:ada"] = [Refused("there is no way back")]
        await writable(world, yes=False)
        await refused(world)
        await until(lambda: not world.desk.faults["desk:ada"])
        await writable(world, yes=True)
        await world.desk.until(lambda: "I could not store anything." in world.desk.sent[-1].text)
        assert len([delivery for delivery in world.desk.tries if delivery.text.startswith(TOLD)]) == 1


@pytest.mark.asyncio
async def test_where_a_reply_counts_once_it_is_stored_the_owner_is_told_when_it_is_over(tmp_path: Path) -> None:  # P48
    async with owned(tmp_path, Capabilities(instant=True)) as world, world.running():
        await world.desk.accept(world.desk.message("good morning"))
        await world.idle()
        await writable(world, yes=False)
        await refused(world)
        await until(lambda: bool(world.service.outage.reason))
        await writable(world, yes=True)
        async with asyncio.timeout(DEADLINE_S):
            while len(said := await world.store.history("desk:ada", 0, 10)) < 3:
                await world.store.changed(world.store.version, DEADLINE_S)
        assert [line.role for line in said] == ["user", "assistant", "assistant"]
        assert "I could not store anything." in said[-1].text
        assert world.desk.tries == []


@pytest.mark.asyncio
async def test_a_hiccup_is_logged_and_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "PASSING", 3600.0)
    async with owned(tmp_path) as world, world.running():
        await world.desk.ask("good morning")
        with capture_logs() as logs:
            await writable(world, yes=False)
            await refused(world)
            await until(lambda: bool(world.service.outage.reason))
            await writable(world, yes=True)
            await until(lambda: not world.service.outage.reason)
            await world.desk.ask("well?")
        assert [line["event"] for line in logs if line["event"].startswith("store.")] == ["store.unavailable", "store.recovered"]
        assert len(world.desk.sent) == 2


@pytest.mark.asyncio
async def test_what_waited_goes_on_by_itself_however_often_it_was_tried(tmp_path: Path) -> None:  # P43, P48
    async with owned(tmp_path) as world, world.running():
        first = world.desk.message("one", "bob")
        host = await world.desk.host()
        host.report(False, "the network is gone")
        await world.desk.accept(first)
        while not (await world.store.counts(0.0))["outbox_pending"]:
            await world.store.changed(world.store.version, DEADLINE_S)
        hold = world.model.hold()
        waiting = world.desk.message("two")
        await world.desk.accept(waiting)
        await hold.reached.wait()
        await writable(world, yes=False)
        hold.release()
        host.report(True)
        before = world.service.dispatcher.progress
        for _ in range(4 * SIDE_BY_SIDE):
            world.store.deliveries["desk"].tell()
            world.store.arrivals.tell()
            await asyncio.sleep(0.02)
        assert world.service.dispatcher.progress > before, "the watchdog would end a process that only waits for its disk"
        await writable(world, yes=True)
        world.store.deliveries["desk"].tell()
        for asked in (first, waiting):
            await world.desk.until(lambda asked=asked: bool(world.desk.answers(asked)))  # type: ignore[misc]


@pytest.mark.asyncio
async def test_it_can_be_stopped_meanwhile_and_goes_on_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # P48, BO-095, BO-096
    monkeypatch.setattr(service, "GRACE", 0.05)
    async with owned(tmp_path) as world:
        async with world.running():
            with capture_logs() as logs:
                waiting = world.desk.message("one", "bob")
                hold = world.model.hold()
                await world.desk.accept(waiting)
                await hold.reached.wait()
                await writable(world, yes=False)
                hold.release()
                await refused(world)
        assert [line for line in logs if line["event"] == "task.restarted"] == []
        if databases.kind == "postgresql":  # which refuses whoever comes, not a connection
            connecting(world, writes=True)
        async with world.running():
            await world.desk.until(lambda: bool(world.desk.answers(waiting)))
            assert len(world.desk.answers(waiting)) == 1
            assert await world.store.check() == []


@pytest.mark.asyncio
async def test_a_job_that_is_due_meanwhile_runs_once_when_it_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # P45, P48
    monkeypatch.setattr(scheduler, "LOOK", 0.02)
    async with owned(tmp_path) as world:
        job = Job.model_validate({"name": "tea", "every": "1s", "prompt": "tea?", "deliver_to": "desk:ada", "misfire": "once"})
        world.config = world.config.model_copy(update={"schedule": (job,)})
        with capture_logs() as logs:
            async with world.running():
                await writable(world, yes=False)
                due = (await world.store.jobs())[0].next_at
                assert due is not None
                await until(lambda: world.service.time.wall() > due)
                await until(lambda: bool(world.service.outage.reason))
                await writable(world, yes=True)
                await world.desk.until(lambda: any(delivery.text == "yes" for delivery in world.desk.sent))
        assert [line for line in logs if line["event"] == "task.restarted"] == []
