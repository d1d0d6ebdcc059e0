"""Compactions that come from beside a turn, and what a full window does when nobody can summarise."""

import asyncio
import itertools
import json
from itertools import pairwise
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from clew.tools import ToolContext
from tests.databases import BOTH
from tests.emulators.anthropic_cache import Accounting
from tests.emulators.scripts import say
from tests.emulators.server import Fault, JsonObject, Reply, Script
from tests.integration.engine import (
    SUMMARY,
    World,
    assistant,
    engine,
    exchanges,
    spoken,
    system_text,
    tool,
    user,
    words_of,
)

pytestmark = BOTH

REFUSED = Fault(400, "invalid_request_error", "function arguments are malformed")
LONG = " ".join(["lorem ipsum dolor sit amet"] * 12)


async def looks(context: ToolContext, note: str) -> str:
    return "seen"


def looking(times: int) -> Script:
    """Look so many times, then say so."""
    rounds = 0

    def script(body: JsonObject) -> Reply:
        nonlocal rounds
        rounds += 1
        if rounds > times:
            return say("all seen")
        return Reply([{"type": "tool_use", "id": f"c{rounds}", "name": "look", "input": {}}], "tool_use")

    return script


@pytest.mark.asyncio
async def test_compacting_by_hand_leaves_the_running_turn_whole(tmp_path: Path) -> None:  # P11, P12, P24
    async with engine(tmp_path, looking(5), tools=[tool("look", looks)]) as world:
        world.compression(keep_recent=2)
        async with world.running():
            session = await world.seed(*exchanges(4))
            held = world.model.hold(lambda body: "'c5'" in str(body))
            message = world.desk.message("look five times, exactly so")
            await world.desk.accept(message)
            await held.reached.wait()
            outcome = await world.service.compactor.compact(session, "command")
            assert (outcome.state, outcome.covered) == ("done", 8)
            assert "exactly so" not in str(world.summaries)
            held.release()
            await world.desk.until(lambda: bool(world.desk.answers(message)))
            assert world.desk.answers(message)[0].text == "all seen"
            assert await world.store.verify_session(session) == []
            await world.desk.ask("and then?")
            assert "exactly so" in json.dumps(spoken(world.replies[-1]))
            assert SUMMARY in system_text(world.replies[-1])


@pytest.mark.asyncio
async def test_a_turn_whose_window_was_compacted_meanwhile_demotes_nothing_twice(tmp_path: Path) -> None:  # P6, P12
    async with engine(tmp_path, looking(4), tools=[tool("look", looks)]) as world:
        world.compression(trigger_messages=14, keep_recent=4)
        async with world.running():
            session = await world.seed(*exchanges(5))
            held = world.model.hold()
            message = world.desk.message("look four times, exactly so")
            await world.desk.accept(message)
            await held.reached.wait()
            assert (await world.service.compactor.compact(session, "command")).state == "done"
            held.release()
            await world.desk.until(lambda: bool(world.desk.answers(message)))
            assert await world.store.verify_session(session) == []
            for body in world.summaries:
                assert "exactly so" not in str(body)
            demoted = "".join(words_of(spoken(body)[-1]) for body in world.summaries)
            assert [demoted.count(f"] question {n}") for n in range(1, 6)] in ([1, 1, 1, 1, 0], [1, 1, 1, 1, 1])
            assert sum("exactly so" in words_of(each) for each in spoken(world.replies[-1])) == 1


@pytest.mark.asyncio
async def test_of_two_compactions_at_once_one_is_thrown_away(tmp_path: Path) -> None:  # P6, P15
    async with engine(tmp_path) as world:
        world.compression(keep_recent=4)
        async with world.running():
            session = await world.seed(*exchanges(8))
            outcomes = await asyncio.gather(*(world.service.compactor.compact(session, "command") for _ in range(2)))
            assert sorted(outcome.state for outcome in outcomes) == ["done", "lost"]
            assert len(await world.store.compactions(session)) == 1
            assert await world.store.verify_session(session) == []


@pytest.mark.asyncio
async def test_after_three_failures_a_full_window_is_cut_to_an_extract_without_a_call(tmp_path: Path) -> None:  # P25
    async with engine(tmp_path, lambda body: say(f"ok {LONG}"), summary=lambda body: REFUSED, window=8192) as world, world.running():
        await world.seed(*[user(f"part {n}: {LONG}") if n % 2 else assistant(f"part {n}: {LONG}") for n in range(1, 50)])
        with capture_logs() as logs:
            times = itertools.count()
            while len(world.summaries) < 3:
                assert "ok" in await world.desk.ask(f"more {next(times)} {LONG * 4}")
            before = len(await world.store.compactions(await world.session()))
            for _ in range(16):
                assert "ok" in await world.desk.ask(f"more {next(times)} {LONG * 4}")
        assert len(world.summaries) == 3
        assert len(await world.store.compactions(await world.session())) > before
        assert not [line for line in logs if line["event"] == "turn.failed"]


@pytest.mark.asyncio
async def test_the_model_reads_how_much_was_compacted_and_how_to_open_it(tmp_path: Path) -> None:  # P16
    async with engine(tmp_path) as world:
        world.compression(keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(8))
            await world.desk.ask("/compact")
            await world.desk.ask("go on")
            body = world.replies[-1]
            line = "[12 messages between "
            assert (system_text(body) + words_of(spoken(body)[0])).count(line) == 1
            assert "session_open opens them" in system_text(body) + words_of(spoken(body)[0])
            await world.desk.ask("/compact")
            await world.desk.ask("go on")
            body = world.replies[-1]
            assert "[14 messages between " in system_text(body) + words_of(spoken(body)[0])
            assert line not in json.dumps(body)


def accountings(world: World) -> list[Accounting]:
    """What each call read from the cache and wrote to it."""
    found = [record.accounting for record in world.model.calls]
    return [each for each in found if isinstance(each, Accounting)]


@pytest.mark.asyncio
async def test_a_call_reads_from_the_cache_all_that_the_one_before_it_wrote(tmp_path: Path) -> None:  # P28, P29
    async with engine(tmp_path, looking(2), tools=[tool("look", looks)], provider="anthropic", min_tokens=1) as world:
        world.compression(trigger_messages=14, keep_recent=4)
        async with world.running():
            for n in range(4):
                await world.desk.ask(f"message {n}")
            calls = accountings(world)
            assert len(calls) == 6
            for before, after in pairwise(calls):
                assert after.read == before.read + before.created
            usage = await world.store.session_usage(await world.session())
            assert usage.usage.cache_read == sum(call.read for call in calls)
            world.model.calls.clear()
            while not world.summaries:
                await world.desk.ask("more")
            await world.desk.ask("after it")
            first, second = accountings(world)[-2:]
            assert second.read == first.read + first.created
