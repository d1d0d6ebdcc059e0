"""A summary by the session's own model goes on from the prefix that its provider holds, where that costs less."""

import json
from pathlib import Path
from typing import Any

import pytest

from clew.recall import SessionView
from clew.store.notes import By, PutPreference, Where
from clew.tools import ToolContext
from clew.transport import Address, Inbound
from tests.emulators.anthropic_cache import Accounting
from tests.emulators.scripts import say
from tests.emulators.server import JsonObject, Reply
from tests.integration.engine import START, Clock, World, engine, is_summary, spoken, system_text, tool, words_of

LONG = " ".join(["lorem ipsum dolor sit amet"] * 30)
ENTRY = "message 1, lorem ipsum dolor"
ANSWER = f"+ fact | ada | said | #1 | {ENTRY}"
RECALLED = "Previously in another session:\n> the safe is behind the mirror"


class Recalls:
    """Finds the same for everybody."""

    async def system_appendix(self, session: SessionView) -> str:
        return RECALLED


def plain(body: JsonObject) -> Any:
    """A request without its cache markers."""
    return json.loads(json.dumps(body), object_hook=lambda each: {key: value for key, value in each.items() if key != "cache_control"})


def blocks(body: JsonObject) -> list[tuple[str, JsonObject]]:
    return [(message["role"], part) for message in plain(body)["messages"] for part in message["content"]]


async def compacted(world: World, chat: str = "ada", **more: Any) -> tuple[JsonObject, JsonObject, Accounting]:
    """(the last reply's request in front of the first summary, the summary's request, what that read and wrote)."""
    n = 0
    while not world.summaries:
        n += 1
        await world.desk.ask(f"message {n}, {LONG}", chat, **more)
    at = next(index for index, record in enumerate(world.model.calls) if record.body and is_summary(record.body))
    before, summary = world.model.calls[at - 1], world.model.calls[at]
    assert before.body
    assert summary.body
    assert isinstance(summary.accounting, Accounting)
    return before.body, summary.body, summary.accounting


async def looks(context: ToolContext, note: str) -> str:
    return "seen"


def warm(folder: Path, **more: Any) -> Any:
    return engine(folder, lambda body: say(f"ok {LONG}"), provider="anthropic", min_tokens=1, **{"summary": ANSWER, **more})


@pytest.mark.asyncio
@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
@pytest.mark.parametrize("direct", [True, False])
async def test_the_summary_call_reads_the_prefix_of_the_replies_from_the_cache(  # P15, P28
    tmp_path: Path, zone: str | None, direct: bool
) -> None:
    async with warm(tmp_path, tools=[tool("look", looks)]) as world:
        people = {name: person.model_copy(update={"timezone": zone}) for name, person in world.config.people.items()}
        world.config = world.config.model_copy(update={"people": people})
        world.compression(trigger_messages=15, keep_recent=4)
        async with world.running():
            reply, summary, read = await compacted(world, "ada" if direct else "room", sender="ada", direct=direct)
            assert summary["tools"] == reply["tools"]
            assert plain(summary)["system"] == plain(reply)["system"]
            *prefix, (role, instruction) = blocks(summary)
            assert prefix == blocks(reply)[: len(prefix)]
            assert role == "user"
            assert len(prefix) == 11
            assert "cache_control" not in summary["messages"][-1]["content"][-1]
            assert read.read == read.longest_unexpired_prefix > 0.9 * (read.total - read.input)
            assert read.created == 0
            assert "message 7" not in json.dumps(summary)
            assert "[#1 " in instruction["text"]
            assert "<current_summary>\n(none yet)" in instruction["text"]
            (done,) = await world.store.compactions(await world.session("ada" if direct else "room"))
            assert done.prompt_version == "summary-2 summary_format-2 summary_behind-1"
            assert ENTRY in system_text(world.replies[-1])
            assert await world.store.verify_session(done.session) == []


@pytest.mark.asyncio
async def test_the_next_summary_goes_on_from_the_one_before_it(tmp_path: Path) -> None:  # P15
    async with warm(tmp_path) as world:
        world.compression(trigger_messages=15, keep_recent=4)
        world.agent(recall=world.config.agent.recall.model_copy(update={"enabled": False}))
        async with world.running():
            await compacted(world)
            while len(world.summaries) < 2:
                await world.desk.ask(f"more, {LONG}")
            body = world.summaries[-1]
            assert ENTRY in system_text(body)
            assert "message 2," not in json.dumps(spoken(body))
            assert ENTRY in words_of(spoken(body)[-1])
            calls = [record.accounting for record in world.model.calls if record.body and is_summary(record.body)]
            assert all(isinstance(each, Accounting) and each.read > each.input for each in calls)


@pytest.mark.asyncio
async def test_where_the_cache_is_cold_it_has_a_prompt_of_its_own(tmp_path: Path) -> None:  # P15
    clock = Clock()
    async with warm(tmp_path, clock=clock) as world:
        world.compression(trigger_messages=15, keep_recent=4)
        async with world.running():
            for n in range(7):
                await world.desk.ask(f"message {n}, {LONG}")
            clock.at = START + 7_200
            _, summary, _ = await compacted(world)
            assert_own_prompt(summary)


@pytest.mark.asyncio
async def test_another_model_has_a_prompt_of_its_own(tmp_path: Path) -> None:  # P14, P15
    async with warm(tmp_path) as world:
        world.compression(trigger_messages=15, keep_recent=4, model="claude-haiku-4-5")
        async with world.running():
            _, summary, _ = await compacted(world)
            assert summary["model"] == "claude-haiku-4-5"
            assert_own_prompt(summary)


@pytest.mark.asyncio
async def test_what_is_recalled_from_other_sessions_is_in_no_summary_call(tmp_path: Path) -> None:  # P15, P33
    async with warm(tmp_path, recall=Recalls()) as world:
        world.compression(trigger_messages=15, keep_recent=4)
        async with world.running():
            reply, summary, _ = await compacted(world)
            assert RECALLED in system_text(reply)
            assert_own_prompt(summary)


@pytest.mark.asyncio
async def test_recall_in_the_message_stands_behind_what_is_shared(tmp_path: Path) -> None:  # P15, P33
    async with warm(tmp_path, recall=Recalls()) as world:
        world.compression(trigger_messages=15, keep_recent=4)
        world.agent(recall=world.config.agent.recall.model_copy(update={"placement": "message"}))
        async with world.running():
            reply, summary, read = await compacted(world)
            assert RECALLED in json.dumps(reply).encode().decode("unicode_escape")
            assert "the safe" not in json.dumps(summary)
            assert read.read > read.input


@pytest.mark.asyncio
async def test_short_messages_are_cheaper_without_the_tools(tmp_path: Path) -> None:  # P15
    async with warm(tmp_path) as world:
        world.compression(trigger_messages=4, keep_recent=1)
        async with world.running():
            for n in range(3):
                await world.desk.ask(f"message {n}")
            await world.desk.ask("/compact")
            assert_own_prompt(world.summaries[0])


@pytest.mark.asyncio
async def test_one_that_calls_a_tool_instead_is_asked_apart_the_next_time(tmp_path: Path) -> None:  # P25
    def summary(body: JsonObject) -> Reply:
        return Reply([{"type": "tool_use", "id": "c1", "name": "look", "input": {}}], "tool_use") if body.get("tools") else say(ANSWER)

    looked: list[str] = []

    async def look(context: ToolContext, note: str) -> str:
        looked.append(note)
        return "seen"

    async with warm(tmp_path, tools=[tool("look", look)], summary=summary) as world:
        world.compression(trigger_messages=15, keep_recent=4)
        async with world.running():
            await compacted(world)
            assert await world.store.compactions(await world.session()) == []
            await world.desk.ask("go on")
            assert_own_prompt(world.summaries[-1])
            assert len(world.summaries) == 2
            assert len(await world.store.compactions(await world.session())) == 1
            assert not looked


@pytest.mark.asyncio
async def test_words_beside_a_call_are_taken_for_the_answer(tmp_path: Path) -> None:  # P14
    answer: list[JsonObject] = [{"type": "text", "text": ANSWER}, {"type": "tool_use", "id": "c1", "name": "look", "input": {}}]
    async with warm(tmp_path, tools=[tool("look", looks)], summary=lambda body: Reply(answer, "tool_use")) as world:
        world.compression(trigger_messages=15, keep_recent=4)
        async with world.running():
            await compacted(world)
            (done,) = await world.store.compactions(await world.session())
            assert ENTRY in done.text


@pytest.mark.asyncio
async def test_a_preview_reckons_with_the_cache(tmp_path: Path) -> None:  # P24
    async with warm(tmp_path) as world, world.running():
        for n in range(8):
            await world.desk.ask(f"message {n}, {LONG}")
        preview = await world.service.compactor.preview(await world.session())
        read, written = preview.call_tokens
        assert preview.cost is not None
        assert preview.cost < (2 * read / 2 + 10 * written) / 1e6
        await world.desk.ask("/compact")
        (done,) = await world.store.compactions(await world.session())
        assert 0 < json.loads(done.report)["cost"] < (2 * read + 10 * written) / 1e6


def assert_own_prompt(body: JsonObject) -> None:
    assert "tools" not in body
    assert "cache_control" not in json.dumps(body)
    assert len(body["messages"]) == 1
    assert "You keep the running summary" in system_text(body)


@pytest.mark.asyncio
@pytest.mark.parametrize("elsewhere", [True, False])
async def test_no_notes_are_in_front_of_it_that_the_sessions_own_chat_may_not_see(tmp_path: Path, elsewhere: bool) -> None:  # P33, P39
    async with warm(tmp_path) as world:
        world.compression(trigger_messages=15, keep_recent=4)
        world.agent(recall=world.config.agent.recall.model_copy(update={"enabled": False}))
        async with world.running():
            edit = PutPreference("style", "secretly short")
            await world.store.notes.change(Where(person="ada"), "user", [edit], By(hand=True), START)
            if elsewhere:
                await world.desk.ask("hello", "room", sender="bob", direct=False)
                session = await world.session("room")
                await world.store.join_chat(Inbound("", Address("desk", "ada"), "ada", ""), "ada", session, START)
            reply, summary, _ = await compacted(world)
            assert "secretly short" in system_text(reply)
            assert ("secretly short" in json.dumps(summary)) != elsewhere
