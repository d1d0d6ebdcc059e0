"""Going on with another thread, branching off one, and threads that are not remembered: from a chat."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clew.store.notes import By, PutFact, Where
from tests.databases import BOTH, databases
from tests.emulators.scripts import say
from tests.emulators.server import JsonObject, Reply
from tests.integration.engine import (
    START,
    Clock,
    World,
    assistant,
    called,
    calling,
    engine,
    exchanges,
    result,
    spoken,
    system_text,
    user,
    words_of,
)

pytestmark = BOTH

WORD = "marmalade"


def quiet(body: JsonObject) -> Reply:
    return say("ok")


@asynccontextmanager
async def talking(folder: Path, *, keep_recent: int = 2) -> AsyncIterator[World]:
    async with engine(folder, quiet, clock=Clock(START)) as world:
        world.compression(trigger_messages=1000, keep_recent=keep_recent)
        async with world.running():
            yield world


def seen(body: JsonObject) -> str:
    return json.dumps(body["messages"], ensure_ascii=False)


@pytest.mark.asyncio
async def test_a_branch_knows_the_thread_up_to_its_message_and_both_go_on(tmp_path: Path) -> None:  # P2, P3, P5, P6
    async with talking(tmp_path) as world:
        old = await world.seed(*exchanges(3))
        answer = await world.desk.ask("/branch 4")
        branch = await world.session()
        assert branch != old
        assert branch in answer
        assert f"/resume {old}" in answer
        await world.desk.ask("and here?")
        assert [words_of(each).rpartition("] ")[2] for each in spoken(world.replies[-1])] == [
            "question 1", "answer 1", "question 2", "answer 2", "and here?",
        ]  # fmt: skip
        assert [row.seq for row in await world.store.transcript(branch)] == [1, 2, 3, 4, 5, 6]
        assert (await world.desk.ask(f"/resume {old[:6]}")).startswith(f"Your next message goes on with {old}")
        await world.desk.ask("and there?")
        assert "question 3" in seen(world.replies[-1])
        assert "and here?" not in seen(world.replies[-1])
        assert [row.text for row in (await world.store.transcript(old))[:6]] == [
            text for n in (1, 2, 3) for text in (f"question {n}", f"answer {n}")
        ]
        for session in (old, branch):
            assert await world.store.verify_session(session) == []
        assert await world.store.check() == []


@pytest.mark.asyncio
async def test_a_branch_behind_a_summary_has_it_and_can_be_compacted_and_exported(tmp_path: Path) -> None:  # P4, P6, P20, P21
    async with talking(tmp_path) as world:
        old = await world.seed(user("We must not paint the shed red."), assistant("ok"), user("keep it"), assistant("ok"), *exchanges(3))
        await world.desk.ask("/pin #3")
        await world.desk.ask("/compact")
        before = (await world.store.view(old)).compaction
        assert before is not None
        await world.desk.ask("/branch")
        branch = await world.session()
        await world.desk.ask("go on")
        assert "paint the shed red" in system_text(world.replies[-1])
        assert [row.seq for row in await world.store.transcript(branch)] == [9, 10, 11, 12]
        assert await world.desk.ask("/undo compaction") == (
            "This thread began with that summary. What is in it stands in the thread that it branched off."
        )
        for number in range(4):
            await world.desk.ask(f"more {number}")
        await world.desk.ask("/compact")
        await world.desk.ask("and now?")
        assert "paint the shed red" in system_text(world.replies[-1])
        assert (await world.store.view(old)).compaction == before
        for session in (old, branch):
            assert await world.store.verify_session(session) == []
        exported = await world.store.export_session(branch)
        assert [each["seq"] for each in exported["messages"]] == list(range(1, len(exported["messages"]) + 1))
        await world.store.delete_session(branch)
        await world.store.import_session(exported, START)
        assert await world.store.verify_session(branch) == []
        assert await world.store.export_session(branch) == exported
        assert await world.store.check() == []


@pytest.mark.asyncio
async def test_a_branch_that_began_without_a_summary_has_its_own_first_one_undone(tmp_path: Path) -> None:  # P4, P6, P21, BO-009
    async with talking(tmp_path) as world:
        for number in range(3):
            await world.desk.ask(f"message {number} of the trunk")
        await world.desk.ask("/branch 2")
        for number in range(3):
            await world.desk.ask(f"message {number} of the branch")
        branch = await world.session()
        before = [row.id for row in (await world.store.view(branch)).messages]
        await world.desk.ask("/compact")
        (own,) = await world.store.compactions(branch)
        assert own.to_seq > 2
        assert await world.store.verify_session(branch) == []
        exported = await world.store.export_session(branch)
        assert [each["seq"] for each in exported["messages"]] == list(range(1, 9))
        assert (await world.desk.ask("/undo compaction")).startswith("Undone: ")
        assert await world.store.verify_session(branch) == []
        assert [row.id for row in (await world.store.view(branch)).messages] == before


@pytest.mark.asyncio
async def test_a_branch_of_a_branch_goes_back_to_where_its_thread_began(tmp_path: Path) -> None:  # P6
    async with talking(tmp_path) as world:
        old = await world.seed(*exchanges(4))
        await world.desk.ask("/compact")
        await world.desk.ask("/branch")
        first = await world.session()
        await world.desk.ask("in the first")
        await world.desk.ask("/branch 2")
        second = await world.session()
        await world.desk.ask("in the second")
        assert [words_of(each).rpartition("] ")[2] for each in spoken(world.replies[-1])] == ["question 1", "answer 1", "in the second"]
        assert (
            await world.desk.ask("/branch 99")
            == "There is no message #99 here. `clew session show` numbers them; without a number it is the last one."
        )
        await world.desk.ask("/branch 1")
        assert " (this one): 1 message, last " in await world.desk.ask("/sessions")
        await world.store.delete_session(old)
        for session in (first, second):
            assert await world.store.verify_session(session) == []
        assert "answer 1" in [row.text for row in await world.store.transcript(second)]


@pytest.mark.asyncio
async def test_no_call_is_parted_from_its_result_by_a_branch(tmp_path: Path) -> None:  # P11
    async with talking(tmp_path) as world:
        await world.seed(user("what time?"), called("c1", "c2"), result("c1"), result("c2"), assistant("noon"), *exchanges(1))
        await world.desk.ask("/branch 2")
        assert [row.seq for row in await world.transcript()] == [1, 2, 3, 4]
        await world.desk.ask("and?")
        assert [each["role"] for each in spoken(world.replies[-1])] == ["user", "assistant", "tool", "tool", "user"]


@pytest.mark.asyncio
async def test_nobody_goes_on_with_a_thread_of_somebody_else_or_takes_one_into_a_group(tmp_path: Path) -> None:  # P33
    async with talking(tmp_path) as world:
        await world.desk.ask(f"my {WORD}")
        mine = await world.session()
        await world.desk.ask("hello", "ada/work")
        listed = await world.desk.ask("/sessions", "ada/work")
        assert mine in listed
        assert "at desk:ada" in listed
        assert ": 2 messages, last " in listed
        await world.desk.ask("hello", "bob")
        await world.desk.ask("hello", "team", sender="ada", direct=False)
        for chat, more in (("bob", {}), ("team", {"sender": "ada", "direct": False})):
            assert mine not in await world.desk.ask("/sessions", chat, **more)
            assert (await world.desk.ask(f"/resume {mine}", chat, **more)).startswith("There is no session")
        answer = await world.desk.ask(f"/resume {mine}", "ada/work")
        assert "It is answered here from now on, and stays at desk:ada too." in answer
        await world.desk.ask("and?", "ada/work")
        assert WORD in seen(world.replies[-1])
        assert await world.session() == mine
        assert await world.session("ada/work") == mine


@pytest.mark.asyncio
async def test_what_is_forgotten_in_a_thread_is_gone_from_its_branches(tmp_path: Path) -> None:  # P6, P13
    async with talking(tmp_path) as world:
        old = await world.seed(user(f"We must not open the {WORD}."), assistant("ok"), *exchanges(2))
        await world.desk.ask("/branch")
        copied = await world.session()
        await world.desk.ask(f"/resume {old}")
        await world.desk.ask("/compact")
        await world.desk.ask("/branch")
        behind = await world.session()
        await world.desk.ask(f"/resume {old}")
        await world.desk.ask("/forget #1")
        for session in (copied, behind):
            await world.desk.ask(f"/resume {session}")
            await world.desk.ask("and?")
            assert WORD not in json.dumps(world.replies[-1])
            assert await world.store.verify_session(session) == []


# Private ---------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_what_is_said_in_private_is_known_in_its_thread_alone_and_gone_with_it(tmp_path: Path) -> None:  # P1, P5, P33
    async with talking(tmp_path) as world:
        await world.desk.ask("the shed is green")
        assert (await world.desk.ask("/private on")).startswith("Private from now on.")
        await world.desk.ask(f"the jar of {WORD} is in the cellar")
        private = await world.session()
        assert "Private: nothing of it is remembered elsewhere" in await world.desk.ask("/status")
        note = {"entities": [{"name": "ada", "entityType": "person", "observations": [f"has {WORD}"]}]}
        world.model.script = calling(("memory_create_entities", note))
        await world.desk.ask("note it")
        assert "what is said in private is not noted" in json.dumps(await world.desk.ask("/memory") + seen(world.replies[-1]))
        assert (await world.desk.ask(f"/memory set jar {WORD}")).startswith("This conversation is private")
        world.model.script = calling(("session_search", {"query": f"{WORD} cellar"}))
        await world.desk.ask(f"where is the {WORD}?", "ada/work")
        told = json.dumps(world.replies[-2:])
        assert "cellar" not in told.replace(f"{WORD} cellar", "")
        assert "cellar" not in await world.desk.ask(f"/recall {WORD} cellar", "ada/work")
        world.model.script = quiet
        for number in range(3):
            await world.desk.ask(f"talk {number}")
        await world.desk.ask("/compact")
        assert "cellar" in await world.desk.ask(f"/recall jar {WORD}")
        assert await world.store.verify_session(private) == []

        answer = await world.desk.ask("/new")
        assert "What was said in private is deleted for good" in answer
        left = await world.store.transcript(private)
        assert [row.text for row in left][:2] == ["the shed is green", "ok"]
        assert WORD not in json.dumps([row.text for row in left])
        assert await world.store.verify_session(private) == []
        assert await world.store.check() == []
    for table, column in (("observations", "text"), ("preferences", "value"), ("note_changes", "rows"), ("compactions", "ledger")):
        assert not databases.rows(tmp_path, f"SELECT 1 FROM {table} WHERE {column} LIKE '%{WORD}%'"), table


@pytest.mark.asyncio
@pytest.mark.parametrize("typed", ["\u200e/private on", "\u202a/private\u202c on\u202c", "\ufeff/PRIVATE on", "\uff0f\uff50rivate\u3000on"])
async def test_private_begins_however_it_was_typed(tmp_path: Path, typed: str) -> None:  # P33, BO-109
    async with talking(tmp_path) as world:
        calls = len(world.replies)
        assert (await world.desk.ask(typed)).startswith("Private from now on.")
        assert len(world.replies) == calls


@pytest.mark.asyncio
async def test_private_ends_where_somebody_ends_it_and_what_was_said_stays_private(tmp_path: Path) -> None:  # P33
    async with talking(tmp_path) as world:
        assert await world.desk.ask("/private") == "This conversation is not private. /private [on | off] changes that."
        await world.desk.ask("/private on")
        await world.desk.ask(f"the {WORD} is in the cellar")
        await world.desk.ask("/private off")
        await world.desk.ask("the shed is green")
        for question, found in ((f"{WORD} cellar", False), ("shed green", True)):
            answer = await world.desk.ask(f"/recall {question}", "ada/work")
            assert ("Nothing was found" not in answer) is found
        assert await world.desk.ask("/private off") == "This conversation is not private. /private [on | off] changes that."


@pytest.mark.asyncio
async def test_no_fact_is_noted_whose_source_was_said_in_private(tmp_path: Path) -> None:  # P33, P39
    async with talking(tmp_path) as world:
        await world.desk.ask("I play the cello.")
        await world.desk.ask("/private on")
        await world.desk.ask(f"I play the {WORD}.")
        told = await world.transcript()
        for row, state in ((told[0], "noted"), (told[2], "refused")):
            by = By("clew", source=row.id, speaker="ada", at=row.at)
            done = await world.store.notes.change(Where(address="desk:ada"), None, [PutFact("ada", row.text)], by, START)
            assert [each.state for each in done] == [state]
        assert await world.desk.ask("/memory") == "ada: I play the cello."
