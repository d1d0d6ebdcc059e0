"""Upper bounds: what compactions may take in a day, what tools and their results may take of a window, and who is told."""

import itertools
import json
import re
import sqlite3
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from clew.config import Person
from clew.context.tokens import estimate, window
from clew.messages import Usage
from clew.tools import ToolContext, schedules
from clew.tools.notes import specs
from tests.databases import BOTH
from tests.emulators.scripts import say
from tests.emulators.server import Fault, JsonObject, Reply
from tests.integration.engine import Clock, World, engine, exchanges, spoken, system_text, tool, user, words_of

pytestmark = BOTH

REFUSED = Fault(400, "invalid_request_error", "function arguments are malformed")
LONG = " ".join(["lorem ipsum dolor sit amet"] * 12)


async def compactions(world: World) -> list[str]:
    return [each.trigger for each in await world.store.compactions(await world.session())]


# What compactions may take ---------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_days_tokens_for_compactions_are_kept_to_over_a_restart_and_the_next_day_has_its_own(tmp_path: Path) -> None:  # P25
    clock = Clock()
    async with engine(tmp_path, clock=clock, tok=estimate) as world:
        world.compression(trigger_messages=10, keep_recent=4, daily_tokens=60_000)
        with capture_logs() as logs:
            async with world.running():
                await world.seed(*exchanges(6))
                for n in range(3):
                    await world.desk.ask(f"more {n}")
                assert len(world.summaries) == 1
                used = (await world.store.export_session(await world.session()))["model_calls"]
                spent = sum(Usage(c["input"], c["output"]).prompt + c["output"] for c in used if c["purpose"] == "summary")
                assert await world.store.summary_tokens(0.0) == spent
                planned = (await world.service.compactor.preview(await world.session())).call_tokens
            # Room for any one compaction, and not for another beside the first.
            world.compression(daily_tokens=planned[0] + 1500 + 700)
            async with world.running():
                for n in range(6):
                    assert "answer" in await world.desk.ask(f"still more {n}")
                assert len(world.summaries) == 1
                assert len(spoken(world.replies[-1])) > 10
                assert "Compacted" in await world.desk.ask("/compact"), "somebody asked for it"
                for n in range(6):
                    await world.desk.ask(f"and more {n}")
                assert len(world.summaries) == 2
                clock.at += 86_400
                await world.desk.ask("the next day")
                assert len(world.summaries) == 3
        reached = [line for line in logs if line["event"] == "budget.reached"]
        assert [(line["log_level"], line["budget"]) for line in reached] == [("warning", "agent.compression.daily_tokens")] * len(reached)
        assert 1 <= len(reached) <= 2, "once a day and process"


@pytest.mark.asyncio
async def test_without_tokens_left_a_full_window_is_cut_to_an_extract(tmp_path: Path) -> None:  # P25
    async with engine(tmp_path, lambda body: say("short"), window=8192, tok=estimate) as world:
        world.compression(trigger_messages=1000, daily_tokens=0)
        async with world.running():
            await world.seed(user("Never deploy on Fridays, and the host is db-7.example.org."), *exchanges(3))
            times = itertools.count()
            while not await compactions(world):
                assert await world.desk.ask(f"more {next(times)} {LONG * 2}") == "short"
            assert not world.summaries
            assert await compactions(world) == ["limit"]


@pytest.mark.asyncio
async def test_the_owner_is_told_once_that_nothing_is_summarised_any_more(tmp_path: Path) -> None:  # P25, BO-006, BO-017
    async with engine(tmp_path, summary=lambda body: REFUSED) as world:
        world.config = world.config.model_copy(
            update={"people": {**world.config.people, "zoe": Person(role="owner", identities=("desk:zoe",))}}
        )
        world.compression(trigger_messages=10, keep_recent=4)
        for start in range(2):
            async with world.running():
                if start == 0:
                    await world.desk.ask("it is me", "zoe")
                    await world.seed(*exchanges(6))
                for n in range(5):
                    assert "answer" in await world.desk.ask(f"failing {start} {n}")
                await world.idle()
        told = [delivery.text for delivery in world.desk.sent if str(delivery.address) == "desk:zoe" and "answer" not in delivery.text]
        assert len(told) == 1
        assert "Summaries of the conversation seeded234567 at desk:ada failed" in told[0]
        assert len(world.summaries) == 3


# What tools may take ---------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_results_of_one_message_take_a_quarter_of_the_window_and_the_rest_can_be_opened(tmp_path: Path) -> None:
    # P9, P20, BO-025
    async def reads(context: ToolContext, note: str) -> str:
        return "".join(f"line {n} of {note}\n" for n in range(900))

    def script(body: JsonObject) -> Reply:
        last = spoken(body)[-1]
        if last["role"] == "tool":
            return say("read")
        if "the rest" in words_of(last):
            return Reply([{"type": "tool_use", "id": "open", "name": "session_open", "input": asked}], "tool_use")
        calls = [{"type": "tool_use", "id": f"c{n}", "name": "read", "input": {"note": f"file {n}"}} for n in (1, 2)]
        return Reply(calls, "tool_use")

    bounds = window(8192)
    async with engine(tmp_path, script, tools=[tool("read", reads)], window=8192, emulated_window=bounds.hard_limit, tok=estimate) as world:
        async with world.running():
            assert await world.desk.ask("read both") == "read"
            first, second = [message["content"] for message in spoken(world.replies[-1]) if message["role"] == "tool"]
            assert estimate(first) + estimate(second) <= bounds.w // 4
            shown, line, end = re.split(r"\n(?=\[… )|(?<=\.\])\n", first)
            rows = await world.transcript()
            assert rows[2].results[0].text.startswith(shown)
            assert rows[2].results[0].text.endswith(end)
            assert "line 899 of file 1" in end
            assert f'session_open with id "{rows[2].id}", around 0 and offset {len(shown)} shows them.' in line
            asked = {"id": rows[2].id, "around": 0, "offset": len(shown)}
            assert await world.desk.ask("and the rest?") == "read"
            opened = [message["content"] for message in spoken(world.replies[-1]) if message["role"] == "tool"][-1]
            assert rows[2].results[0].text[len(shown) : len(shown) + 40].strip().partition("\n")[0] in opened
            # It can be searched for to its last line.
            assert await world.store.verify_session(await world.session()) == []
        async with world.running():
            await world.desk.ask("thanks")
            assert first in [message["content"] for message in spoken(world.replies[-1]) if message["role"] == "tool"]
        assert all(record.status == 200 for record in world.model.calls)


@pytest.mark.asyncio
async def test_one_result_as_large_as_the_window_ends_in_a_reply(tmp_path: Path) -> None:  # P9, BO-025
    async def dumps(context: ToolContext, note: str) -> str:
        return "datum " * 200_000

    def script(body: JsonObject) -> Reply:
        if spoken(body)[-1]["role"] == "tool":
            return say("too much to read at once")
        return Reply([{"type": "tool_use", "id": f"c{len(spoken(body))}", "name": "dump", "input": {}}], "tool_use")

    async with engine(tmp_path, script, tools=[tool("dump", dumps)], window=8192, emulated_window=6144, tok=estimate) as world:
        async with world.running():
            for _ in range(6):
                assert await world.desk.ask("dump it") == "too much to read at once"
        assert all(record.status == 200 for record in world.model.calls)


@pytest.mark.asyncio
async def test_a_small_window_goes_without_optional_tools_and_says_so(tmp_path: Path) -> None:  # P9
    async def nothing(context: ToolContext, note: str) -> str:
        return ""

    many = [tool(f"plugin{n}", nothing) for n in range(9)]
    async with engine(tmp_path, tools=many, window=8192) as world, world.running():
        await world.desk.ask("hello")
        sent = [each["function"]["name"] for each in world.replies[-1]["tools"]]
        status = await world.service.status()
        left = status["tools_left_out"]
        assert isinstance(left, list)
        named = [*specs(), *schedules.specs()]
        own = ["current_time", "document_search", "fetch_url", "session_open", "session_search", *(each.name for each in named)]
        assert sorted([*sent, *left]) == sorted([*(each.name for each in many), *own])
        assert {"session_open", "session_search", "memory_create_entities"} <= set(sent)
        assert {each.name for each in many} <= set(left), "plug-ins go first"
        await world.desk.ask("again")
        assert [each["function"]["name"] for each in world.replies[-1]["tools"]] == sent
    async with engine(tmp_path / "large", tools=many) as world, world.running():
        await world.desk.ask("hello")
        assert len(world.replies[-1]["tools"]) == 26
        assert (await world.service.status())["tools_left_out"] == []


@pytest.mark.asyncio
async def test_recall_takes_an_eighth_of_the_window_at_most(tmp_path: Path) -> None:  # P9, P32
    words = "灯台守は港の北にある古い灯台を毎晩点している。" * 12
    async with engine(tmp_path, window=8192) as world, world.running():
        for n in range(6):
            await world.desk.ask(f"灯台守 {n} {words}")
            await world.desk.ask("/new")
        await world.desk.ask("灯台守は港の北にある古い灯台を毎晩点していますか")
        block = system_text(world.replies[-1]).partition("Previously in another session:")
        assert block[1]
        assert estimate(block[1] + block[2]) <= window(8192).recall_limit


@pytest.mark.asyncio
async def test_a_summary_is_asked_for_within_an_eighth_of_the_window(tmp_path: Path) -> None:  # P9
    async with engine(tmp_path, lambda body: say("short"), window=8192, tok=estimate) as world:
        world.compression(trigger_messages=20, keep_recent=4, summary_tokens=5000)
        async with world.running():
            await world.seed(*exchanges(10))
            await world.desk.ask("go on")
            (asked,) = world.summaries
            assert int(asked.get("max_tokens") or asked["max_completion_tokens"]) <= window(8192).summary_limit


def test_the_index_on_summaries_serves_the_budget(tmp_path: Path) -> None:
    from clew.store.sqlite.database import migrations

    database = sqlite3.connect(":memory:")
    for _, script in migrations():
        database.executescript(script)
    plan = database.execute(
        "EXPLAIN QUERY PLAN SELECT sum(input) FROM model_calls WHERE purpose = 'summary' AND started >= ?", (1.0,)
    ).fetchall()
    database.close()
    assert "model_calls_summaries" in json.dumps(plan)
