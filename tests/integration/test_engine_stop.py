"""Somebody writes /stop while a conversation is being compacted, by hand or by itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clew import service
from clew.dispatcher import STOPPED
from tests.databases import BOTH, databases
from tests.emulators.server import JsonObject
from tests.integration.engine import World, engine, exchanges, is_summary

pytestmark = BOTH


@asynccontextmanager
async def long_thread(folder: Path) -> AsyncIterator[World]:
    """A thread that is compacted with its next message but one."""
    async with engine(folder) as world:
        world.compression(trigger_messages=12, keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(5))
        yield world


def summarising(body: JsonObject) -> bool:
    return is_summary(body)


@pytest.mark.asyncio
async def test_stop_ends_a_compact_that_runs_and_nothing_was_compacted(tmp_path: Path) -> None:  # P24
    async with long_thread(tmp_path) as world, world.running():
        hold = world.model.hold(summarising)
        asked, stop = world.desk.message("/compact"), world.desk.message("/stop")
        await world.desk.accept(asked)
        await hold.reached.wait()
        await world.desk.accept(stop)
        await world.desk.until(lambda: bool(world.desk.answers(asked)))
        assert [world.desk.answers(each)[0].text for each in (stop, asked)] == ["Stopping.", STOPPED]
        session = await world.session()
        assert await world.store.compactions(session) == []
        assert (await world.store.view(session)).failures == 0
        assert (await world.store.session_usage(session)).calls == 1, "what was paid for is written down"
        hold.release()
        assert (await world.desk.ask("/compact")).startswith("Compacted: 6 messages")
        assert await world.store.verify_session(session) == []


@pytest.mark.asyncio
async def test_stop_ends_a_turn_that_is_compacting_and_nothing_was_compacted(tmp_path: Path) -> None:  # P25
    async with long_thread(tmp_path) as world, world.running():
        await world.desk.ask("the 11th")
        hold = world.model.hold(summarising)
        asked = world.desk.message("the 13th")
        await world.desk.accept(asked)
        await hold.reached.wait()
        assert await world.desk.ask("/stop") == "Stopping."
        await world.desk.until(lambda: bool(world.desk.answers(asked)))
        assert world.desk.answers(asked)[0].text == "Stopped."
        session = await world.session()
        assert await world.store.compactions(session) == []
        hold.release()
        assert (await world.desk.ask("and now?")).endswith("and now?")
        assert len(await world.store.compactions(session)) == 1
        assert await world.store.verify_session(session) == []


@pytest.mark.asyncio
async def test_what_was_stopped_stays_stopped_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # P44, P48
    monkeypatch.setattr(service, "GRACE", 0.0)
    async with engine(tmp_path) as world:
        hold = world.model.hold()
        async with world.running():
            asked = world.desk.message("a long story, please")
            await world.desk.accept(asked)
            await hold.reached.wait()
        hold.release()
        databases.altered(tmp_path, "UPDATE turns SET stop_requested_at = started + 1")  # stored, and then the process died
        async with world.running():
            await world.desk.until(lambda: bool(world.desk.answers(asked)))
            assert world.desk.answers(asked)[0].text == "Stopped."
            assert len(world.model.calls) == 1
