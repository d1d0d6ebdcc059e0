"""`/forget`: what is forgotten comes up on no path that a model or a search takes, and what was made of it is gone."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.databases import BOTH, databases
from tests.emulators.scripts import echo, say
from tests.emulators.server import JsonObject, Reply
from tests.integration.engine import START, Clock, World, assistant, calling, engine, exchanges, system_text, user
from tests.integration.web_harness import Tab
from tests.integration.web_harness import running as served
from tests.integration.web_harness import settings as served_settings

pytestmark = BOTH

SECRET, ASKED = "marmalade", "orange jam jar in the cellar"
"""A word of what is forgotten, and what it is looked for by."""


def quiet(body: JsonObject) -> Reply:
    return say("ok")


@asynccontextmanager
async def talking(folder: Path) -> AsyncIterator[World]:
    async with engine(folder, quiet, clock=Clock(START)) as world:
        world.compression(trigger_messages=1000, keep_recent=2)
        async with world.running():
            yield world


async def everywhere(world: World, chat: str = "ada", *, session: str = "") -> str:
    """What a model is told in a new session of a chat when it looks for it by every tool, and what the commands and listings say."""
    first = len(world.model.calls)
    await world.desk.ask("/new", chat)
    names = [name for name, each in world.service.tools.tools.items() if "query" in each.Arguments.model_fields]
    asked: list[tuple[str, JsonObject]] = [(name, {"query": ASKED}) for name in names]
    asked += [("memory_open_nodes", {"names": ["ada", "jam"]}), ("memory_search_nodes", {})]
    if session:
        asked += [("session_open", {"id": row.id, "around": 20}) for row in await world.store.transcript(session)][:3]
    before, world.model.script = world.model.script, calling(*asked)
    await world.desk.ask("what was it about the jar of jam, the orange one?", chat)
    world.model.script = before
    told = [await world.desk.ask(command, chat) for command in (f"/recall {ASKED}", "/memory", "/memory history", "/why", "/dropped")]
    return json.dumps([told, [record.body for record in world.model.calls[first:]]])


@pytest.mark.asyncio
async def test_a_conversation_that_is_forgotten_is_gone_from_every_path(tmp_path: Path) -> None:  # P5, P13, P33
    async with talking(tmp_path) as world:
        note = {"entities": [{"name": "ada", "entityType": "person", "observations": [f"keeps her {SECRET} in the cellar"]}]}
        world.model.script = calling(("memory_create_entities", note), then=f"your {SECRET} is in the cellar")
        await world.desk.ask(f"my jar of orange jam, the {SECRET}, is in the cellar")
        world.model.script = quiet
        await world.desk.ask("/pin #1")
        for number in range(3):
            await world.desk.ask(f"talk {number}")
        await world.desk.ask("/compact")
        old = await world.session()
        assert SECRET in await everywhere(world, session=old)
        await world.desk.ask("what of the jar of orange jam?")
        assert SECRET in system_text(world.replies[-1])
        item = world.desk.message("x")
        await world.store.join_chat(item, "ada", old, START)
        answer = await world.desk.ask("/forget")
        assert answer == (
            "This conversation is forgotten for good: 10 messages, 1 note, 1 entry of the summary and 4 quotations in other conversations."
            " A new one begins with your next message."
        )
        assert await world.session() != old

        assert SECRET not in await everywhere(world, session=old)
        assert SECRET not in json.dumps([str(row) for row in await world.store.compactions(old)])
        assert await world.store.transcript(old) == ()
        assert await world.store.verify_session(old) == []
        assert await world.store.check() == []
    for table, column in (("prompt_state", "recall"), ("prompt_state", "notes"), ("observations", "text"), ("note_changes", "rows")):
        assert not databases.rows(tmp_path, f"SELECT 1 FROM {table} WHERE {column} LIKE '%{SECRET}%'"), table
    rows = databases.rows(tmp_path, "SELECT seq, blocks FROM messages WHERE session = ? ORDER BY seq", old)
    assert rows == [(seq, "[]") for seq in range(1, 11)]  # their places stay, empty


@pytest.mark.asyncio
async def test_one_exchange_is_forgotten_and_the_rest_of_the_summary_stays(tmp_path: Path) -> None:  # P6, P13, P17
    async with talking(tmp_path) as world:
        await world.seed(
            user(f"We must not open the {SECRET} before May."), assistant("ok"), user("We must not paint the shed red."), assistant("ok"),
            *exchanges(3),
        )  # fmt: skip
        await world.desk.ask("/compact")
        session = await world.session()
        rows = await world.store.view(session)
        assert rows.compaction is not None
        assert SECRET in rows.compaction.text
        await world.desk.ask("/forget #1")
        rows = await world.store.view(session)
        assert rows.compaction is not None
        assert SECRET not in rows.compaction.text + rows.compaction.ledger + rows.compaction.report
        assert "We must not paint the shed red." in rows.compaction.text
        await world.desk.ask("what now?")
        assert "paint the shed red" in system_text(world.replies[-1])
        assert SECRET not in json.dumps(world.replies[-1])
        for number in range(4):
            await world.desk.ask(f"more {number}")
        await world.desk.ask("/compact")
        await world.desk.ask("/undo compaction")
        await world.desk.ask("/undo compaction")
        await world.desk.ask("and now?")
        assert SECRET not in json.dumps(world.replies[-1])  # its message is back in the window's place, and stays forgotten
        assert await world.store.verify_session(session) == []


@pytest.mark.asyncio
async def test_results_of_tools_that_quoted_it_elsewhere_are_gone_too(tmp_path: Path) -> None:  # P33
    async with talking(tmp_path) as world:
        await world.desk.ask(f"the {SECRET} is in the cellar")
        session = await world.session()
        await world.desk.ask("/new")
        world.model.script = calling(("session_search", {"query": f"{SECRET} cellar"}))
        await world.desk.ask("look it up")
        other = await world.session()
        assert any(SECRET in row.results[0].text for row in await world.store.transcript(other) if row.results)
        item = world.desk.message("x")
        await world.store.join_chat(item, "ada", session, START)
        await world.desk.ask("/forget")
        await world.store.join_chat(item, "ada", other, START)
        assert not [row for row in await world.store.transcript(other) if row.results]
        world.model.script = quiet
        await world.desk.ask("and?")
        results = [each for each in world.replies[-1]["messages"] if each["role"] == "tool"]
        assert results
        assert SECRET not in json.dumps(results)
        assert await world.store.verify_session(other) == []


@pytest.mark.asyncio
async def test_a_summary_that_was_being_written_meanwhile_is_not_taken(tmp_path: Path) -> None:  # P6
    async with talking(tmp_path) as world:
        await world.seed(user(f"We must not open the {SECRET} before May."), assistant("ok"), *exchanges(3))
        session = await world.session()
        before = world.model.script

        def meanwhile(body: JsonObject) -> Reply:
            taken = "INSERT INTO retractions (message, reason, at) SELECT id, 'deleted', 0 FROM messages WHERE session = ? AND seq = 1"
            databases.beside(tmp_path, lambda db: db.execute(taken, (session,)))
            return say("They talked.")

        world.model.script = meanwhile
        outcome = await world.service.compactor.compact(session, "command")
        world.model.script = before
        assert outcome.state == "lost"
        assert (await world.store.view(session)).compaction is None


@pytest.mark.asyncio
async def test_in_a_group_everybody_has_their_own_words_forgotten_only(tmp_path: Path) -> None:  # P33
    async with talking(tmp_path) as world:
        await world.desk.ask(f"the {SECRET} is in the cellar", "team", sender="ada", direct=False)
        await world.desk.ask("what a day", "team", sender="bob", direct=False)
        for command in ("/forget", "/forget #1"):
            assert "only the owner" in await world.desk.ask(command, "team", sender="bob", direct=False)
        assert len(await world.transcript("team")) == 4
        assert (await world.desk.ask("/forget #1", "team", sender="ada", direct=False)).startswith("Forgotten for good: 2 messages")
        assert [row.text for row in await world.transcript("team")] == ["what a day", "ok"]
        await world.desk.ask("the jar?", "team", sender="bob", direct=False)
        assert SECRET not in json.dumps(world.replies[-1])


@pytest.mark.asyncio
async def test_where_nothing_was_said_there_is_nothing_to_forget(tmp_path: Path) -> None:
    async with talking(tmp_path) as world:
        assert await world.desk.ask("/forget") == "There is nothing here that could be forgotten."
        await world.desk.ask("hello")
        assert "no message 'nonsense'" in await world.desk.ask("/forget nonsense")
        assert len(await world.transcript()) == 2


@pytest.mark.asyncio
async def test_the_chat_page_shows_it_no_more(tmp_path: Path) -> None:
    async with served(served_settings(tmp_path / "c")) as clew:
        async with Tab.open(clew) as tab:
            for identifier, text in (("a", f"the {SECRET}"), ("f", "/forget"), ("b", "hello")):
                await tab.say(identifier, text)
                await tab.until("message", in_reply_to=identifier)
        shown = (await clew.get("/api/v1/chats/local/messages"))[1]["messages"]
        assert SECRET not in json.dumps(shown)
        assert [each["text"] for each in shown if each["role"] == "user"] == ["/forget", "hello"]


@pytest.mark.asyncio
async def test_a_long_conversation_is_forgotten_when_somebody_says_so_twice(tmp_path: Path) -> None:  # P5
    async with talking(tmp_path) as world:
        session = await world.seed(*exchanges(11))
        asked = await world.desk.ask("/forget")
        assert asked == "This deletes 22 messages for good, and cannot be undone. If you mean it, write /forget yes."
        assert len(await world.store.transcript(session)) == 22
        assert (await world.desk.ask("/forget yes")).startswith("This conversation is forgotten for good: 22 messages.")
        assert await world.store.transcript(session) == ()


def bytes_of(folder: Path) -> bytes:
    """All that lies in a data directory, and in the rows of its database where that is elsewhere."""
    files = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    rows = databases.dump(folder) if databases.kind == "postgresql" else ""
    contents = b"".join(map(bytes.fromhex, re.findall(r"\\x((?:[0-9a-f]{2})+)", rows)))
    return (files + rows.encode() + contents).lower()


async def cleaned(world: World) -> None:
    while await world.store.clean_some():
        pass


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["conversation", "exchange", "deleted", "private"])
async def test_what_is_forgotten_leaves_the_files_themselves(tmp_path: Path, how: str) -> None:  # P5, P6
    async with talking(tmp_path) as world:
        for number in range(30):
            await world.desk.ask(f"other talk {number} of sheds", "bob")
        note = {"entities": [{"name": "jar", "entityType": "thing", "observations": [f"the {SECRET} is in it"]}]}
        if how == "private":
            await world.desk.ask("/private on")
        calls = (("memory_create_entities", note),) if how != "deleted" else ()  # of a deleted session the notes stay
        world.model.script = calling(*calls, then=f"the {SECRET}, I see")
        await world.desk.ask(f"my jar of orange jam, the {SECRET}, is in the cellar")
        world.model.script = quiet
        for number in range(3):
            await world.desk.ask(f"talk {number}")
        await world.desk.ask("/compact")
        session = await world.session()
        if how != "private":
            await world.desk.ask("what of the jar of orange jam?", "ada/work")
            await world.desk.ask(f"/recall {SECRET}", "ada/work")
        assert SECRET in await world.desk.ask(f"/recall {SECRET}")
        if how in ("conversation", "private"):
            await world.desk.ask(f"/compact keep the {SECRET}")
        assert SECRET[:8].encode() in bytes_of(tmp_path)
        typed = tmp_path / "terminal_history"
        typed.write_text(f"\n# 2026-11-30 21:16:01\n+my jar of orange jam, the {SECRET}, is in the cellar\n")
        if how == "deleted":
            await world.desk.ask("/new")
            await world.store.delete_session(session)
        else:
            await world.desk.ask({"conversation": "/forget", "exchange": "/forget #1", "private": "/new"}[how])
        for number in range(5):
            await world.desk.ask(f"more talk {number}", "bob")
        await cleaned(world)
        assert await world.store.check() == []
        for row in await world.store.sessions():
            assert await world.store.verify_session(row.id) == []
        assert SECRET[:8].encode() not in bytes_of(tmp_path)


@pytest.mark.asyncio
@pytest.mark.parametrize("delete", [False, True], ids=["forget", "delete"])
async def test_a_reply_that_is_on_its_way_leaves_no_words_behind(tmp_path: Path, delete: bool) -> None:  # P5, P43
    async with engine(tmp_path, echo, clock=Clock(START)) as world, world.running():
        await world.desk.ask("hello")
        stuck = world.desk.stuck["desk:ada"] = asyncio.Event()
        await world.desk.accept(world.desk.message(f"the {SECRET} is in the cellar"))
        await world.desk.until(lambda: any(SECRET in each.text for each in world.desk.tries))
        old = await world.session()
        if delete:
            await world.store.delete_session(old)
        else:
            await world.desk.accept(world.desk.message("/forget yes"))
            while await world.store.current_session("desk:ada") == old:
                await world.store.changed(world.store.version, 0.2)
        del world.desk.stuck["desk:ada"]
        stuck.set()
        await world.idle()
        assert SECRET in world.desk.sent[1].text
        assert not [text for (text,) in databases.rows(tmp_path, "SELECT text || parts FROM outbox") if SECRET in text]


@pytest.mark.asyncio
async def test_an_edit_of_what_was_forgotten_brings_no_words_back(tmp_path: Path) -> None:  # P5
    async with talking(tmp_path) as world:
        asked = world.desk.message(f"the {SECRET} is in the cellar", client_id="e1")
        await world.desk.accept(asked)
        await world.desk.until(lambda: bool(world.desk.answers(asked)))
        await world.desk.ask("/forget yes")
        await world.desk.accept(world.desk.message(f"the {SECRET} was", kind="edit", edits=asked.external_id))
        await world.idle()
        await cleaned(world)
        assert SECRET[:8].encode() not in bytes_of(tmp_path)
