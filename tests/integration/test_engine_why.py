"""What was recalled for a turn, and why; and what is not recalled because it is there already."""

import json
from pathlib import Path

import pytest

from clew.assembly import unix_user
from tests.emulators.scripts import say
from tests.emulators.server import JsonObject, Reply
from tests.integration.engine import Clock, World, assistant, engine, exchanges, spoken, system_text, user, words_of

OTHER = "Previously in another session:"
SAME = "Earlier in this session:"


def quiet(body: JsonObject) -> Reply:
    return say("ok")


async def fresh(world: World, chat: str = "ada") -> None:
    await world.desk.ask("/new", chat)


@pytest.mark.asyncio
async def test_why_names_terms_score_age_chat_and_speaker(tmp_path: Path) -> None:  # P31
    clock = Clock()
    async with engine(tmp_path, quiet, clock=clock) as world, world.running():
        assert await world.desk.ask("/why") == "Nothing was asked here yet."
        await world.desk.ask("my locker code is 5512")
        (source, _) = await world.transcript()
        await fresh(world)
        clock.at += 3 * 86_400
        await world.desk.ask("what was my locker code?")
        calls = len(world.model.calls)
        heading, line = (await world.desk.ask("/why")).splitlines()
        assert heading == "Recalled for “what was my locker code?”:"
        assert line.startswith("- 2027-01-15 08:00 (3 days before) ada in desk:ada: my locker code is 5512 [")
        assert line.split("[")[1].startswith(f"{source.id}; by locker, code, score ")
        assert len(world.model.calls) == calls


@pytest.mark.asyncio
async def test_why_of_an_earlier_message_and_of_one_that_recalled_nothing(tmp_path: Path) -> None:  # P31
    async with engine(tmp_path, quiet) as world, world.running():
        await world.desk.ask("my locker code is 5512")
        await fresh(world)
        await world.desk.ask("hello there")
        await world.desk.ask("what was my locker code?")
        question = (await world.transcript())[2]
        assert await world.desk.ask("/why #1") == "Nothing was recalled for “hello there”."
        by_place = await world.desk.ask("/why #3")
        assert "my locker code is 5512" in by_place
        assert await world.desk.ask(f"/why {question.id[:8]}") == by_place
        assert await world.desk.ask("/why", reply_to=f"{question.id}") != by_place  # no id that the platform knows
        assert "no message 'nonsense'" in await world.desk.ask("/why nonsense")


@pytest.mark.asyncio
async def test_why_tells_of_what_stood_there_already(tmp_path: Path) -> None:  # P29, P31
    async with engine(tmp_path, quiet) as world, world.running():
        await world.desk.ask("my locker code is 5512")
        await fresh(world)
        await world.desk.ask("what was my locker code?")
        await world.desk.ask("thanks")
        assert "5512" in system_text(world.replies[-1])
        told = await world.desk.ask("/why")
        assert told.startswith("Recalled for “thanks”:\n- ")
        assert "my locker code is 5512" in told
        assert told.endswith("; it stood there already]")


@pytest.mark.asyncio
async def test_why_shows_nothing_that_may_not_be_seen_where_it_is_asked(tmp_path: Path) -> None:  # P33
    async with engine(tmp_path, quiet) as world:
        people = {**world.config.people, "ada": world.config.people["ada"].model_copy(update={"role": "owner"})}
        world.config = world.config.model_copy(update={"people": people})
        async with world.running():
            await world.desk.ask("my locker code is 5512")
            await fresh(world)
            await world.desk.ask("what was my locker code?")
            session = await world.session("ada")
            item = world.desk.message("hi", "team", sender="bob", direct=False)
            await world.store.join_chat(item, "bob", session, 0.0)  # the thread goes on in a group
            told = await world.desk.ask("/why", "team", sender="bob", direct=False)
            assert "5512" not in told
            assert told.endswith("is not shown here: 1.")
            assert (await world.store.recalled_for(await world.store.scope_for(operator=True), session)) is not None
            assert unix_user()


@pytest.mark.asyncio
async def test_a_question_that_was_asked_before_recalls_its_answer_and_not_itself(tmp_path: Path) -> None:  # P36, BO-032
    async with engine(tmp_path, quiet) as world, world.running():
        await world.desk.ask("my locker code is 5512")
        for _ in range(3):
            await fresh(world)
            await world.desk.ask("What was my locker code?")
        block = system_text(world.replies[-1]).partition(OTHER)[2]
        assert "my locker code is 5512" in block
        assert "What was my locker code?" not in block


@pytest.mark.asyncio
async def test_what_the_summary_shows_word_for_word_is_not_recalled(tmp_path: Path) -> None:  # P36
    async with engine(tmp_path, quiet) as world:
        world.compression(trigger_messages=1000, keep_recent=4)
        async with world.running():
            await world.seed(user("my locker has a blue door on the left"), assistant("noted"), *exchanges(5))
            await world.desk.ask("/pin #1")
            await world.desk.ask("/compact")
            await world.desk.ask("what was on my locker, which door?")
            prompt = system_text(world.replies[-1])
            assert prompt.count("my locker has a blue door on the left") == 1
            assert SAME not in prompt or "blue door" not in prompt.partition(SAME)[2]


@pytest.mark.asyncio
async def test_what_was_recalled_a_moment_ago_makes_room_for_what_was_not(tmp_path: Path) -> None:  # P31
    async with engine(tmp_path, quiet) as world:
        world.agent(recall=world.config.agent.recall.model_copy(update={"placement": "message", "max_excerpts": 1}))
        async with world.running():
            for text in ("the boat lies at pier nine by the harbour", "the harbour boat trip leaves pier nine at noon"):
                await world.desk.ask(text)
                await fresh(world)
            shown = []
            for question in ("the boat at the harbour, pier nine?", "and the harbour boat, pier nine?"):
                await world.desk.ask(question)
                shown.append(words_of(spoken(world.replies[-1])[-1]).partition(OTHER)[2])
            assert all("pier nine" in block for block in shown)
            assert ("lies at" in shown[0]) != ("lies at" in shown[1])
            await fresh(world)
            await world.desk.ask("the boat at the harbour, pier nine?")  # a new thread has seen neither
            assert words_of(spoken(world.replies[-1])[-1]).partition(OTHER)[2] == shown[0]


@pytest.mark.asyncio
async def test_what_is_asked_for_squarely_comes_again(tmp_path: Path) -> None:  # P29, P31
    async with engine(tmp_path, quiet) as world, world.running():
        await world.desk.ask("the code of the green locker at the station is 5512")
        await fresh(world)
        await world.desk.ask("the frobnicator manual is on page 77 of the blue binder")
        await fresh(world)
        for question, fact in (
            ("what is the code of the green locker at the station?", "5512"),
            ("where is the frobnicator manual, on which page of the blue binder?", "page 77"),
            ("and the code of the green locker at the station, once more?", "5512"),
        ):
            await world.desk.ask(question)
            assert fact in system_text(world.replies[-1])


@pytest.mark.asyncio
async def test_reasons_are_stored_for_every_turn(tmp_path: Path) -> None:  # P31
    async with engine(tmp_path, quiet) as world, world.running():
        await world.desk.ask("my locker code is 5512")
        (source, _) = await world.transcript()
        await fresh(world)
        await world.desk.ask("what was my locker code?")
        given = await world.store.recalled_for(await world.store.scope_for(operator=True), await world.session("ada"))
        assert given is not None
        (quote,) = given.quotes
        assert (quote.message.id, quote.why, quote.shown) == (source.id, ("locker", "code"), True)
        assert quote.score > 1
        assert given.asked == "what was my locker code?"
        assert json.dumps(given.at)
