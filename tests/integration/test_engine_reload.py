"""A changed config is taken over whole, while clew runs."""

import asyncio
import gc
import weakref
from collections.abc import Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from clew.config import Config, Job, TransportSection
from clew.errors import ClewError, StoreError
from clew.plugins import Plugin, registry
from clew.providers import Provider
from clew.store.sqlite.database import _run
from clew.transport import Transport
from tests.emulators.scripts import say
from tests.integration.engine import NoSettings, World, engine, system_text

BRIEF = "You are brief."


@pytest.mark.asyncio
async def test_new_turns_use_the_new_config_and_running_ones_end_with_their_own(tmp_path: Path) -> None:  # P48
    async with engine(tmp_path, lambda body: say("so be it")) as world, world.running():
        held = world.model.hold()
        await world.desk.accept(world.desk.message("a long question"))
        await held.reached.wait()
        world.agent(system_prompt=BRIEF)
        with capture_logs() as logs:
            await world.service.reload(world.config)
        assert [line["transports"] for line in logs if line["event"] == "config.reloaded"] == [[]]
        assert await world.desk.ask("another one", "bob") == "so be it"
        held.release()
        await world.desk.until(lambda: len(world.desk.sent) == 2)
        first, second = world.replies
        assert BRIEF not in system_text(first)
        assert BRIEF in system_text(second)
        assert await world.desk.ask("and once more") == "so be it"
        assert BRIEF in system_text(world.replies[-1])


def other_window(world: World, tokens: int) -> Config:
    local = world.config.providers["local"]
    local = local.model_copy(update={"settings": local.settings.model_copy(update={"context_window": tokens})})
    return world.config.model_copy(update={"providers": {"local": local}})


async def until_gone(providers: Sequence[weakref.ref[Provider]]) -> None:
    """Wait until nothing has these providers any more."""
    async with asyncio.timeout(20):
        while any(each() for each in providers):
            gc.collect()
            await asyncio.sleep(0.01)


@pytest.mark.asyncio
async def test_a_provider_that_was_replaced_is_closed_when_its_last_turn_has_ended(tmp_path: Path) -> None:  # P48, BO-119
    async with engine(tmp_path, lambda body: say("so be it")) as world, world.running():
        first = weakref.ref(world.service.providers[0])
        await world.service.reload(world.config)
        assert world.service.providers[0] is first()  # nothing changed for it
        held = world.model.hold()
        await world.desk.accept(world.desk.message("a long question"))
        await held.reached.wait()
        between = []
        for tokens in (100_000, 110_000, 120_000, 130_000):
            await world.service.reload(other_window(world, tokens))
            between.append(weakref.ref(world.service.providers[0]))
        last = between.pop()
        await until_gone(between)
        assert await world.desk.ask("another one", "bob") == "so be it"
        assert first() is not None
        held.release()
        await world.desk.until(lambda: len(world.desk.sent) == 2)
        assert {delivery.text for delivery in world.desk.sent} == {"so be it"}
        await until_gone([first])
        assert last() is world.service.providers[0]


@pytest.mark.asyncio
async def test_only_a_transport_that_changed_is_restarted(tmp_path: Path) -> None:  # P48
    async with engine(tmp_path) as world, world.running():
        before = dict(world.service.transports)
        desk = world.config.transports["desk"]
        world.config = world.config.model_copy(
            update={"transports": {**world.config.transports, "desk": desk.model_copy(update={"enabled": False})}}
        )
        await world.service.reload(world.config)
        assert "desk" not in world.service.transports
        assert await world.service.readiness() == []
        world.config = world.config.model_copy(update={"transports": {**world.config.transports, "desk": desk}})
        await world.service.reload(world.config)
        async with asyncio.timeout(20):
            assert "answer" in await world.desk.ask("back again?")
        assert world.service.transports["web"] is before["web"]


@pytest.mark.asyncio
async def test_what_needs_a_restart_is_said_and_left(tmp_path: Path) -> None:  # P48
    async with engine(tmp_path) as world, world.running():
        http = world.config.http.model_copy(update={"port": 1})
        with capture_logs() as logs:
            await world.service.reload(world.config.model_copy(update={"http": http}))
        assert [line["keys"] for line in logs if line["event"] == "config.needs_restart"] == [["http"]]
        assert world.service.config.http == world.config.http


def without_desk(world: World) -> Config:
    desk = world.config.transports["desk"].model_copy(update={"enabled": False})
    return world.config.model_copy(update={"transports": {**world.config.transports, "desk": desk}})


@pytest.mark.asyncio
async def test_a_reload_that_cannot_be_stored_changes_nothing(tmp_path: Path) -> None:  # P48
    async with engine(tmp_path) as world, world.running():
        job = Job.model_validate({"name": "tea", "cron": "0 16 * * *", "prompt": "tea?", "deliver_to": "desk:ada"})
        changed = without_desk(world).model_copy(update={"schedule": (job,), "people": {}})
        await _run(world.database._writer, lambda db: db.execute("PRAGMA query_only = ON"))
        with pytest.raises(StoreError, match="readonly"):
            await world.service.reload(changed)
        assert world.service.config is not changed
        assert "desk" in world.service.transports
        await _run(world.database._writer, lambda db: db.execute("PRAGMA query_only = OFF"))
        assert "answer" in await world.desk.ask("still here?")
        assert await world.store.jobs() == []
        await world.service.reload(changed)
        assert "desk" not in world.service.transports
        assert [each.name for each in await world.store.jobs()] == ["tea"]


@pytest.mark.asyncio
async def test_a_transport_that_cannot_be_built_changes_nothing(tmp_path: Path) -> None:  # P48
    def broken(section: str, settings: object) -> Transport:
        raise ClewError("its certificate is gone")

    async with engine(tmp_path) as world, world.running():
        registry("clew.transports")["broken"] = Plugin("broken", NoSettings, broken)
        section = TransportSection(kind="broken", name="broken", enabled=True, settings=NoSettings())
        changed = without_desk(world).model_copy(update={"providers": other_window(world, 100_000).providers})
        provider = world.service.providers[0]
        with pytest.raises(ClewError, match="certificate"):
            await world.service.reload(changed.model_copy(update={"transports": {**changed.transports, "broken": section}}))
        del registry("clew.transports")["broken"]
        assert world.service.providers[0] is provider
        assert "answer" in await world.desk.ask("still here?")


@pytest.mark.asyncio
async def test_the_metric_of_a_transport_comes_and_goes_with_it(tmp_path: Path) -> None:
    async with engine(tmp_path) as world, world.running():
        await world.desk.host()
        up = world.service.metrics.registry.get_sample_value
        assert up("clew_transport_up", {"transport": "desk"}) == 1
        (await world.desk.host()).report(False, "the network is gone")
        assert up("clew_transport_up", {"transport": "desk"}) == 0
        await world.service.reload(without_desk(world))
        assert up("clew_transport_up", {"transport": "desk"}) is None
