"""The token trigger and the cheap way, through the whole engine."""

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from clew.context.tokens import estimate, window
from clew.messages import Block
from clew.store import Compaction
from clew.tools import ToolContext
from clew.transport import Attachment
from tests.databases import databases
from tests.emulators.anthropic_cache import Accounting
from tests.emulators.scripts import say
from tests.emulators.server import Fault, JsonObject, Reply
from tests.integration.engine import (
    Clock,
    World,
    assistant,
    called,
    engine,
    exchanges,
    result,
    spoken,
    tool,
    user,
    words_of,
)
from tests.pictures import png

REFUSED = Fault(400, "invalid_request_error", "function arguments are malformed")
LONG = " ".join(["lorem ipsum dolor sit amet"] * 12)
BOUNDS = window(8192)
"""T 4,334, target 3,096, hard limit 6,144."""


async def compactions(world: World) -> list[Compaction]:
    return await world.store.compactions(await world.session())


def counted(world: World) -> list[int]:
    """Tokens of each request for a reply, as the model's server counted them."""
    found = [record.accounting for record in world.model.calls if record.body and "<new_messages>" not in str(record.body)]
    return [each.total for each in found if each is not None]


def talk(count: int) -> list[tuple[str, tuple[Block, ...]]]:
    return [user(f"part {n}: {LONG}") if n % 2 else assistant(f"part {n}: {LONG}") for n in range(1, count + 1)]


def looked_up(count: int, size: int = 40) -> list[tuple[str, tuple[Block, ...]]]:
    """So many turns with a long result, each answered."""
    rounds: list[tuple[str, tuple[Block, ...]]] = []
    for n in range(1, count + 1):
        rounds += [user(f"look {n}"), called(f"c{n}", name="look"), result(f"c{n}", f"seen{n} " * size * 8, "look"), assistant("yes")]
    return rounds


@pytest.mark.asyncio
async def test_above_its_threshold_a_window_is_compacted_to_its_target_and_below_it_never(tmp_path: Path) -> None:  # P9
    async with engine(tmp_path, lambda body: say("short"), window=8192, emulated_window=BOUNDS.hard_limit, tok=estimate) as world:
        world.compression(trigger_messages=1000)
        async with world.running():
            await world.desk.ask(f"to begin with: {LONG * 2}")  # from now on clew measures as the server counts
            fired = 0
            for n in range(60):
                with capture_logs() as logs:
                    assert await world.desk.ask(f"part {n}: {LONG * 3}") == "short"
                triggers = [line["trigger"] for line in logs if line["event"] == "agent.compressed"]
                assert triggers in ([], ["tokens"])
                fired += len(triggers)
                assert counted(world)[-1] <= (BOUNDS.target if triggers else BOUNDS.threshold) * 1.05
            assert 5 <= fired == len(world.summaries) <= 15
            assert all(record.status == 200 for record in world.model.calls)


@pytest.mark.asyncio
async def test_the_threshold_can_be_set_and_turned_off(tmp_path: Path) -> None:  # P9
    async with engine(tmp_path, lambda body: say("short"), tok=estimate) as world:
        world.compression(trigger_tokens=4000)
        async with world.running():
            await world.seed(*talk(40))
            await world.desk.ask("does it fit?")
            (compaction,) = await compactions(world)
            assert (compaction.trigger, counted(world)[-1] <= 4000) == ("tokens", True)
    async with engine(tmp_path / "off", lambda body: say("short"), window=8192, tok=estimate) as world:
        world.compression(trigger_tokens="off")
        async with world.running():
            await world.seed(*talk(34))
            await world.desk.ask("does it fit?")
            assert await compactions(world) == []
            assert BOUNDS.threshold < counted(world)[-1] <= BOUNDS.hard_limit
            await world.desk.ask("and now? " + LONG * 12)
            assert [each.trigger for each in await compactions(world)] == ["limit"]


@pytest.mark.asyncio
async def test_the_threshold_is_tested_between_the_tool_calls_of_one_turn(tmp_path: Path) -> None:  # P7, P9
    async def looks(context: ToolContext, note: str) -> str:
        return LONG * 3

    rounds = 0

    def script(body: JsonObject) -> Reply:
        nonlocal rounds
        rounds += 1
        if rounds == 6:
            return say("all seen")
        return Reply([{"type": "tool_use", "id": f"c{rounds}", "name": "look", "input": {}}], "tool_use")

    async with engine(tmp_path, script, tools=[tool("look", looks)], window=8192, emulated_window=BOUNDS.hard_limit, tok=estimate) as world:
        world.compression(trigger_messages=1000)
        async with world.running():
            await world.seed(*talk(14))
            assert await world.desk.ask("look five times, exactly so") == "all seen"
            assert await compactions(world)
            assert all(record.status == 200 for record in world.model.calls)
            assert max(counted(world)) <= BOUNDS.threshold
            assert all("exactly so" in json.dumps(spoken(body)) for body in world.replies)
            # What the model has not read yet stands there in full.
            for body in world.replies[1:]:
                assert [message["content"] for message in spoken(body) if message["role"] == "tool"][-1] == LONG * 3


@pytest.mark.asyncio
async def test_answered_results_become_lines_without_a_call_and_stay_so_after_a_restart(tmp_path: Path) -> None:  # P10, P23, P2
    async with engine(tmp_path, lambda body: say("short"), window=8192) as world:
        async with world.running():
            session = await world.seed(*looked_up(6), *exchanges(2))
            before = await world.store.transcript(session)
            assert await world.desk.ask("and seen4?") == "short"
            assert not world.summaries
            (compaction,) = await compactions(world)
            assert (compaction.kind, compaction.trigger, compaction.covered, compaction.to_seq) == ("shorten", "tokens", 0, 0)
            shown = [message["content"] for message in spoken(world.replies[0]) if message["role"] == "tool"]
            short = [n for n, text in enumerate(shown, 1) if "left out here" in text]
            assert short == [1, 2, 3, 5, 6], "the one that the newest message refers to goes last"
            rows = {row.id: row for row in before}
            for n, identifier in zip(short, compaction.shortened, strict=True):
                line = shown[n - 1]
                assert line.startswith(f"[look answered {len(rows[identifier].results[0].text):,} characters left out here;")
                assert f'session_open with id "{identifier}"' in line
            assert (await world.store.transcript(session))[: len(before)] == before
            assert await world.store.verify_session(session) == []
            first = spoken(world.replies[-1])
        async with world.running():
            await world.desk.ask("once more")
            assert spoken(world.replies[-1])[: len(first)] == first
            assert len(await compactions(world)) == 1


@pytest.mark.asyncio
async def test_a_shortened_result_can_be_opened_again(tmp_path: Path) -> None:  # P20, P23
    asked: list[str] = []

    def script(body: JsonObject) -> Reply:
        last = spoken(body)[-1]
        if last["role"] != "user" or "open it" not in words_of(last):
            return say("short")
        return Reply([{"type": "tool_use", "id": "open1", "name": "session_open", "input": {"id": asked[0], "around": 0}}], "tool_use")

    async with engine(tmp_path, script, window=8192) as world, world.running():
        await world.seed(*looked_up(6))
        await world.desk.ask("go on")
        (compaction,) = await compactions(world)
        asked.append(compaction.shortened[0])
        assert await world.desk.ask("open it") == "short"
        opened = [message["content"] for message in spoken(world.replies[-1]) if message["role"] == "tool"][-1]
        assert "seen1 seen1" in opened


@pytest.mark.asyncio
async def test_with_what_is_shortened_too_large_still_the_rest_is_summarised(tmp_path: Path) -> None:  # P9, P10
    async with engine(tmp_path, lambda body: say("short"), window=8192) as world, world.running():
        session = await world.seed(*talk(30), *looked_up(3))
        await world.desk.ask("go on")
        (compaction,) = await compactions(world)
        assert (compaction.kind, compaction.trigger) == ("summary", "tokens")
        assert compaction.shortened
        sent = json.dumps(spoken(world.replies[0]))
        assert "left out here" in sent
        assert "part 1:" not in sent
        assert await world.store.verify_session(session) == []


@pytest.mark.asyncio
async def test_behind_an_expired_cache_old_results_become_lines_and_live_ones_stay(tmp_path: Path) -> None:  # P23
    clock = Clock()
    async with engine(tmp_path, lambda body: say("short"), clock=clock) as world, world.running():
        await world.seed(*looked_up(4))
        await world.desk.ask("the first")
        clock.at += 3500
        await world.desk.ask("still warm")
        assert await compactions(world) == []
        clock.at += 3700
        await world.desk.ask("cold")
        (compaction,) = await compactions(world)
        assert (compaction.kind, compaction.trigger) == ("shorten", "cold")
        shown = [message["content"] for message in spoken(world.replies[-1]) if message["role"] == "tool"]
        # The newest 8 messages begin with the last of the results.
        assert ["left out here" in text for text in shown] == [True, True, True, False]
        for _ in range(2):
            clock.at += 3700
            await world.desk.ask("cold again")
        assert len(await compactions(world)) == 2, "the last one, and then nothing is left"


@pytest.mark.asyncio
async def test_no_result_is_shortened_while_the_cache_is_warm_and_the_window_fits(tmp_path: Path) -> None:  # P23, P29
    async def looks(context: ToolContext, note: str) -> str:
        return f"seen {LONG * 10}"

    def script(body: JsonObject) -> Reply:
        if spoken(body)[-1]["role"] == "user" and "look" in words_of(spoken(body)[-1]):
            return Reply([{"type": "tool_use", "id": f"c{len(world.model.calls)}", "name": "look", "input": {}}], "tool_use")
        return say("short")

    async with engine(tmp_path, script, tools=[tool("look", looks)], clock=Clock()) as world, world.running():
        for _ in range(5):
            await world.desk.ask("look")
            await world.desk.ask("and then?")
        shown = [message["content"] for message in spoken(world.replies[-1]) if message["role"] == "tool"]
        assert shown == [f"seen {LONG * 10}"] * 5
        assert await compactions(world) == []


def reads(world: World) -> list[Accounting]:
    return [each for each in (record.accounting for record in world.model.calls) if isinstance(each, Accounting)]


@pytest.mark.asyncio
async def test_between_two_steps_of_shortening_the_prefix_is_read_from_the_cache(tmp_path: Path) -> None:  # P23, P28
    async def looks(context: ToolContext, note: str) -> str:
        return f"seen {LONG * 5}"

    rounds = 0

    def script(body: JsonObject) -> Reply:
        nonlocal rounds
        rounds += 1
        if rounds % 2:
            return Reply([{"type": "tool_use", "id": f"c{rounds}", "name": "look", "input": {}}], "tool_use")
        return say("short")

    async with engine(
        tmp_path, script, tools=[tool("look", looks)], provider="anthropic", min_tokens=1, window=8192, tok=estimate
    ) as world:
        world.compression(trigger_messages=1000)
        async with world.running():
            steps: list[int] = []
            for number in range(16):
                await world.desk.ask(f"look {number}")
                steps.append(len(await compactions(world)))
            assert "shorten" in {each.kind for each in await compactions(world)}
            assert 1 <= steps[-1] <= 6, "in steps, not with every turn"
            for accounting in reads(world):
                assert accounting.read == accounting.longest_unexpired_prefix


@pytest.mark.asyncio
async def test_a_compaction_between_two_calls_lets_go_of_thinking_that_was_bound_to_what_stood_before(tmp_path: Path) -> None:  # P7, P12
    async def looks(context: ToolContext, note: str) -> str:
        return "seen"

    rounds = 0

    def script(body: JsonObject) -> Reply:
        nonlocal rounds
        rounds += 1
        thought: JsonObject = {"type": "thinking", "thinking": f"round {rounds}"}
        if rounds == 8:
            return say("all seen")
        return Reply([thought, {"type": "tool_use", "id": f"c{rounds}", "name": "look", "input": {}}], "tool_use")

    async with engine(tmp_path, script, tools=[tool("look", looks)], provider="anthropic", strict_thinking=True) as world:
        world.compression(trigger_messages=10, keep_recent=2)
        async with world.running():
            await world.seed(*exchanges(3))
            assert await world.desk.ask("look seven times") == "all seen"
            assert len(world.summaries) == 1
            assert all(record.status == 200 for record in world.model.calls)
            thinking = [str(body).count("'thinking': 'round") for body in world.replies]
            # Replayed up to the compaction, and none of it since.
            assert thinking[:2] == [0, 1]
            assert thinking[-1] == 0


# Calibration -----------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_estimate_is_calibrated_by_what_the_model_reports_and_remembered(tmp_path: Path) -> None:  # P9
    async with engine(tmp_path, lambda body: say("short"), window=8192, tok=lambda text: 2 * estimate(text)) as world:
        world.compression(trigger_messages=1000)
        async with world.running():
            session = await world.seed(*talk(8))
            assert (await world.store.view(session)).ratio("local", "any") == 1.0
            await world.desk.ask("how large is this?")
            learned = (await world.store.view(session)).ratio("local", "any")
            assert 1.5 < learned <= 2.2
        async with world.running():
            assert (await world.store.view(session)).ratio("local", "any") == learned
            while not await compactions(world):
                await world.desk.ask(f"more {LONG}")
            # By the plain estimate there was room for twice as much.
            assert max(counted(world)) <= BOUNDS.threshold * 1.1


@pytest.mark.asyncio
async def test_a_model_that_counts_three_times_as_much_keeps_the_newest_messages(tmp_path: Path) -> None:  # P9, BO-024
    async with engine(tmp_path, lambda body: say("short"), window=32_768, tok=lambda text: 3 * estimate(text)) as world:
        world.compression(trigger_messages=1000, keep_recent=6)
        async with world.running():
            await world.seed(*talk(10))
            while not await compactions(world):
                await world.desk.ask(f"more of it {len(world.model.calls)}")
            kept = [words_of(message) for message in spoken(world.replies[-1])]
            assert len(kept) >= 6
            assert f"more of it {len(world.model.calls) - len(world.summaries) - 1}" in kept[-1]


@pytest.mark.asyncio
async def test_a_size_that_was_reported_before_a_compaction_brings_no_second_one(tmp_path: Path) -> None:  # P9, BO-005
    factor = 6

    def counts(text: str) -> int:
        return factor * estimate(text)

    async with engine(tmp_path, lambda body: say("short"), tok=counts) as world:
        world.compression(trigger_messages=1000, trigger_tokens=9000)
        async with world.running():
            await world.seed(*talk(24))
            await world.desk.ask("reported as far too large")
            await world.desk.ask("compacts")
            assert len(await compactions(world)) == 1
            factor = 1
            for n in range(5):
                assert await world.desk.ask(f"short {n}") == "short"
            assert len(await compactions(world)) == 1


@pytest.mark.asyncio
async def test_a_tail_that_is_too_large_rewrites_no_summary_with_every_turn(tmp_path: Path) -> None:  # P9, BO-007
    async with engine(tmp_path, lambda body: say("short"), tok=estimate) as world:
        world.compression(trigger_messages=1000, trigger_tokens=10_000, keep_recent=4)
        async with world.running():
            await world.seed(*talk(60))
            await world.desk.ask("compacts")
            for n in range(4):
                await world.desk.ask(f"large {n}: {LONG * 25}")
            before = await compactions(world)
            for n in range(4):
                await world.desk.ask(f"short {n}")
            assert await compactions(world) == before
            assert len(world.summaries) == sum(each.kind == "summary" for each in before)


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ["我们昨天讨论了服务器迁移的问题，" * 8, "👩‍👩‍👧‍👦🎉" * 15])
async def test_scripts_without_spaces_and_emoji_never_overflow(tmp_path: Path, text: str) -> None:  # P9, BO-022
    def strict(said: str) -> int:
        return sum(1 if ord(char) > 0x2E7F else 0 for char in said) + len(said.encode("ascii", "ignore")) // 4

    async with engine(tmp_path, lambda body: say(text), window=16_384, emulated_window=12_288, tok=strict) as world:
        world.compression(trigger_messages=1000)
        async with world.running():
            for number in range(60):
                await world.desk.ask(f"{number} {text}")
            assert all(record.status == 200 for record in world.model.calls)
            assert await compactions(world)


@pytest.mark.asyncio
async def test_an_image_counts_by_its_size_and_the_words_for_a_file_by_theirs(tmp_path: Path) -> None:  # P9, P47
    async with engine(tmp_path, lambda body: say("I see."), tok=estimate) as world, world.running():
        world.desk.files = {"p": png(1120, 840), "z": b"PK\x03\x04" + bytes(90)}
        await world.desk.ask("look at this")
        await world.desk.ask("look at this", attachments=(Attachment("harbour.jpg", "image/jpeg", 0, "p"),) * 2)
        await world.desk.ask("look at this", attachments=(Attachment("all.zip", "application/zip", 0, "z"),) * 16)
        line = "[file all.zip, application/zip, 94 bytes]"
        assert words_of(spoken(world.replies[-1])[-1]).count(line) == 16
    stored = databases.rows(tmp_path, "SELECT segments FROM model_calls ORDER BY rowid")
    sizes = [sum(part[2] for part in json.loads(segments)) for (segments,) in stored]
    assert 2 * 40 * 30 < sizes[1] - sizes[0] < 2 * 40 * 30 + 100
    assert sizes[2] - sizes[1] >= 16 * estimate(line)


# Failure ---------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_while_no_summary_can_be_had_the_turn_goes_on_as_long_as_it_fits(tmp_path: Path) -> None:  # P9, P25
    async with engine(tmp_path, lambda body: say("short"), summary=lambda body: REFUSED, window=8192, tok=estimate) as world:
        world.compression(trigger_messages=1000)
        async with world.running():
            await world.seed(*talk(36))
            for n in range(3):
                assert await world.desk.ask(f"more {n}") == "short"
                assert counted(world)[-1] > BOUNDS.threshold
            assert len(world.summaries) == 3
            for n in range(3, 6):
                assert await world.desk.ask(f"more {n}") == "short"
            assert len(world.summaries) == 3
            assert await compactions(world) == []
            while not await compactions(world):
                await world.desk.ask(f"more {LONG}")
            assert max(counted(world)) <= BOUNDS.hard_limit * 1.01
            assert [each.trigger for each in await compactions(world)] == ["limit"]
