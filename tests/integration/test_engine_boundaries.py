"""Compactions at boundaries: in the background, once, and nobody waits for them."""

import asyncio
import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from clew.context.tokens import estimate
from clew.store import Compaction
from clew.tools import ToolContext
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import Fault, JsonObject, Reply
from tests.integration.engine import Clock, World, assistant, engine, exchanges, is_summary, spoken, system_text, tool, user, words_of

REFUSED = Fault(400, "invalid_request_error", "function arguments are malformed")
HOUR = 3600.0


async def looks(context: ToolContext, note: str) -> str:
    return "seen"


def looking(body: JsonObject) -> Reply:
    """Look once where that is asked for, then say so."""
    last = spoken(body)[-1]
    if last["role"] == "user" and "look" in words_of(last):
        return Reply([{"type": "tool_use", "id": f"c{len(spoken(body))}", "name": "look", "input": {}}], "tool_use")
    return say("seen" if last["role"] == "tool" else f"About {last_user_text(body)[-20:]}")


async def compactions(world: World) -> list[Compaction]:
    return await world.store.compactions(await world.session())


async def upkeep(world: World) -> None:
    """One look of the background, and what came of it."""
    await world.idle()
    await world.service.upkeep.look()
    await world.service.upkeep.settled()


@pytest.mark.asyncio
async def test_a_thread_that_went_quiet_is_compacted_once_and_then_an_idle_clew_calls_no_model(tmp_path: Path) -> None:  # P22
    clock = Clock()
    async with engine(tmp_path, clock=clock) as world, world.running():
        await world.seed(*exchanges(15))
        await world.desk.ask("good night")
        clock.at += HOUR - 60
        await upkeep(world)
        assert len(world.model.calls) == 1
        clock.at += 120
        with capture_logs() as logs:
            await upkeep(world)
        (compaction,) = await compactions(world)
        assert (compaction.trigger, compaction.covered) == ("quiet", 24)
        assert [(line["trigger"], line["messages"]) for line in logs if line["event"] == "agent.compressed"] == [("quiet", 9)]
        for _ in range(20):
            clock.at += HOUR
            await upkeep(world)
        assert len(world.model.calls) == 2
        await world.desk.ask("good morning")
        clock.at += 2 * HOUR
        await upkeep(world)
        assert len(world.model.calls) == 3, "two messages are less than half of the mark"


@pytest.mark.asyncio
async def test_quiet_after_is_set_and_outlives_a_restart(tmp_path: Path) -> None:  # P22, P2
    clock = Clock()
    async with engine(tmp_path, clock=clock) as world:
        world.compression(quiet_after=600.0, trigger_messages=20, keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(5))
            await world.desk.ask("good night")
        clock.at += 700
        async with world.running():
            await upkeep(world)
            assert [each.trigger for each in await compactions(world)] == ["quiet"]


@pytest.mark.asyncio
@pytest.mark.parametrize("setting", [{"quiet_after": "off"}, {"enabled": False}])
async def test_it_can_be_turned_off(tmp_path: Path, setting: dict[str, object]) -> None:  # P22
    clock = Clock()
    async with engine(tmp_path, clock=clock) as world:
        world.compression(trigger_messages=20, keep_recent=4, **setting)
        async with world.running():
            await world.seed(*exchanges(8))
            await world.desk.ask("good night")
            clock.at += 24 * HOUR
            await upkeep(world)
            assert await compactions(world) == []


@pytest.mark.asyncio
async def test_a_window_with_less_than_half_of_either_mark_is_left(tmp_path: Path) -> None:  # P22
    clock = Clock()
    async with engine(tmp_path, looking, tools=[tool("look", looks)], clock=clock) as world, world.running():
        await world.seed(*exchanges(12))
        await world.desk.ask("look at it")
        clock.at += 24 * HOUR
        await upkeep(world)
        assert await compactions(world) == []


@pytest.mark.asyncio
async def test_half_of_the_threshold_is_enough_however_few_the_messages(tmp_path: Path) -> None:  # P22
    clock = Clock()
    async with engine(tmp_path, lambda body: say("short"), window=8192, clock=clock, tok=estimate) as world, world.running():
        await world.seed(*[user("lorem ipsum dolor " * 35) if n % 2 else assistant("sit amet " * 35) for n in range(12)])
        await world.desk.ask("good night")
        clock.at += 2 * HOUR
        await upkeep(world)
        (compaction,) = await compactions(world)
        assert (compaction.trigger, compaction.covered) == ("quiet", 6)


@pytest.mark.asyncio
async def test_a_finished_task_marks_the_place_and_the_background_compacts_there(tmp_path: Path) -> None:  # P22
    clock = Clock()
    async with engine(tmp_path, looking, tools=[tool("look", looks)], clock=clock) as world, world.running():
        await world.seed(*exchanges(14))
        await world.desk.ask("look at it")
        assert not world.summaries, "not while somebody may still be writing"
        clock.at += 10
        await upkeep(world)
        (compaction,) = await compactions(world)
        assert (compaction.trigger, compaction.covered) == ("task", 24)
        await world.desk.ask("and then?")
        assert "seen" in json.dumps(spoken(world.replies[-1]))


@pytest.mark.asyncio
async def test_a_change_of_topic_is_cut_in_front_of_the_new_one(tmp_path: Path) -> None:  # P22
    clock = Clock()
    garden = [
        user(f"How much water do the tomatoes in the greenhouse need in week {n}?") if n % 2 else assistant(f"Water them {n} times, early.")
        for n in range(1, 41)
    ]
    async with engine(tmp_path, clock=clock) as world, world.running():
        await world.seed(*garden)
        await world.desk.ask("More water for the tomatoes in the greenhouse in week 41, too?")
        clock.at += 10
        await upkeep(world)
        assert await compactions(world) == []
        await world.desk.ask("Please check the invoice of the plumber and transfer 480 euros to his bank account.")
        clock.at += 10
        await upkeep(world)
        (compaction,) = await compactions(world)
        assert compaction.trigger == "topic"
        await world.desk.ask("done?")
        assert "invoice" in json.dumps(spoken(world.replies[-1]))
        assert "week 12?" not in json.dumps(spoken(world.replies[-1]))


@pytest.mark.asyncio
async def test_a_message_waits_for_no_background_compaction_and_none_is_lost_by_it(tmp_path: Path) -> None:  # P22, P6
    clock = Clock()
    async with engine(tmp_path, clock=clock) as world, world.running():
        session = await world.seed(*exchanges(20))
        await world.desk.ask("good night")
        clock.at += 2 * HOUR
        held = world.model.hold(is_summary)
        await world.idle()
        await world.service.upkeep.look()
        await held.reached.wait()
        for n in range(12):
            assert "answer" in await world.desk.ask(f"awake {n}")
        # At 60 messages the count trigger would have fired: what is being done is not done twice.
        assert len(world.summaries) == 1
        assert "awake 11" in json.dumps(spoken(world.replies[-1]))
        held.release()
        await world.service.upkeep.settled()
        (compaction,) = await compactions(world)
        assert (compaction.trigger, compaction.to_seq) == ("quiet", 34)
        await world.desk.ask("and now")
        sent = json.dumps(spoken(world.replies[-1]))
        assert all(f"awake {n}" in sent for n in range(12))
        assert "question 17" not in sent
        assert await world.store.verify_session(session) == []


@pytest.mark.asyncio
async def test_a_running_turn_keeps_its_view_while_the_background_compacts(tmp_path: Path) -> None:  # P22, P29
    clock = Clock()
    async with engine(tmp_path, looking, tools=[tool("look", looks)], clock=clock) as world, world.running():
        session = await world.seed(*exchanges(20))
        await world.desk.ask("good night")
        clock.at += 2 * HOUR
        summing = world.model.hold(is_summary)
        await world.idle()
        await world.service.upkeep.look()
        await summing.reached.wait()
        replying = world.model.hold(lambda body: not is_summary(body) and spoken(body)[-1]["role"] == "tool")
        message = world.desk.message("look at it")
        await world.desk.accept(message)
        await replying.reached.wait()
        summing.release()
        await world.service.upkeep.settled()
        assert len(await compactions(world)) == 1
        replying.release()
        await world.desk.until(lambda: bool(world.desk.answers(message)))
        first, second = world.replies[-2:]
        assert spoken(second)[: len(spoken(first))] == spoken(first)
        assert system_text(first) == system_text(second)
        await world.desk.ask("and then?")
        assert len(spoken(world.replies[-1])) < len(spoken(second))
        assert await world.store.verify_session(session) == []


@pytest.mark.asyncio
async def test_a_background_compaction_that_fails_is_tried_once_and_counted(tmp_path: Path) -> None:  # P22, P25
    clock = Clock()
    async with engine(tmp_path, summary=lambda body: REFUSED, clock=clock) as world, world.running():
        session = await world.seed(*exchanges(16))
        for expected in (1, 2, 3, 3):
            await world.desk.ask("good night")
            for _ in range(3):
                clock.at += 2 * HOUR
                await upkeep(world)
            assert len(world.summaries) == expected
            assert (await world.store.view(session)).failures == expected


@pytest.mark.asyncio
async def test_after_an_undo_no_boundary_brings_it_back_at_once(tmp_path: Path) -> None:  # P21, P22
    clock = Clock()
    async with engine(tmp_path, clock=clock) as world, world.running():
        await world.seed(*exchanges(16))
        await world.desk.ask("good night")
        clock.at += 2 * HOUR
        await upkeep(world)
        assert len(await compactions(world)) == 1
        await world.desk.ask("/undo compaction")
        await world.desk.ask("good morning")
        clock.at += 2 * HOUR
        await upkeep(world)
        assert len(world.summaries) == 1


@pytest.mark.asyncio
async def test_the_background_stops_with_the_service(tmp_path: Path) -> None:  # P22, P48
    clock = Clock()
    async with engine(tmp_path, clock=clock) as world:
        async with world.running():
            await world.seed(*exchanges(16))
            await world.desk.ask("good night")
            clock.at += 2 * HOUR
            held = world.model.hold(is_summary)
            await world.idle()
            await world.service.upkeep.look()
            await held.reached.wait()
        held.release()
        async with world.running():
            assert await compactions(world) == []
            await asyncio.wait_for(world.desk.ask("still here"), 10)
