"""Somebody who answers as no person does is left alone for a while, and the owner is told once."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from clew.config import Person
from clew.context.loops import IN_A_ROW, REST
from clew.transport import Inbound
from tests.emulators.scripts import numbered, say
from tests.integration.engine import PEOPLE, Clock, World, engine

pytestmark = pytest.mark.asyncio

DEN = "den"


def with_owner(world: World) -> None:
    """ada is the owner, and has been heard."""
    people = {**PEOPLE, "ada": Person(role="owner", identities=("desk:ada",))}
    world.config = world.config.model_copy(update={"people": people})


def mention(world: World, text: str, sender: str = "bob") -> Inbound:
    return world.desk.message(text, DEN, sender=sender, direct=False)


async def answered(world: World, message: Inbound) -> bool:
    """Whether it was taken, once it is answered."""
    (receipt,) = await world.desk.accept(message)
    if receipt.status == "stored":
        await world.desk.until(lambda: bool(world.desk.answers(message)))
        await world.idle()
    return receipt.status == "stored"


async def test_a_bot_that_answers_every_reply_gets_only_so_many(tmp_path: Path) -> None:  # P46, BO-074
    clock = Clock()
    async with engine(tmp_path, numbered(), clock=clock) as world:
        with_owner(world)
        async with world.running():
            await world.desk.ask("hello", "ada")
            clock.at += 60
            with capture_logs() as logs:
                taken = [await answered(world, mention(world, f"beep {number}")) for number in range(20)]
            assert taken == [True] * (IN_A_ROW + 1) + [False] * (19 - IN_A_ROW), "the first answers nothing yet"
            assert len([line for line in logs if line["event"] == "inbox.parked"]) == 19 - IN_A_ROW
            assert await answered(world, mention(world, "and me?", "eve")), "others there are answered"
            (told,) = [each.text for each in world.desk.sent if str(each.address) == "desk:ada" and not each.answers]
            assert "desk:bob at desk:den" in told
            clock.at += REST
            assert await answered(world, mention(world, "a person again"))


async def test_stop_is_heard_from_anybody(tmp_path: Path) -> None:  # P44
    async with engine(tmp_path, numbered(), clock=Clock()) as world, world.running():
        for number in range(IN_A_ROW + 2):
            await answered(world, mention(world, f"beep {number}"))
        stop = mention(world, "/stop")
        assert await answered(world, stop)
        assert world.desk.answers(stop)[0].text == "There is nothing to stop."


async def test_a_fast_person_in_a_group_is_never_taken_for_one(tmp_path: Path) -> None:  # BO-074
    clock = Clock()
    async with engine(tmp_path, numbered(), clock=clock) as world, world.running():
        for number in range(4 * IN_A_ROW):
            clock.at += 2.5
            assert await answered(world, mention(world, "next"))
            if number % 3 == 0:  # now and then one that was typed already
                assert await answered(world, mention(world, f"and {number}?"))


async def test_a_program_that_asks_one_thing_after_another_is_served(tmp_path: Path) -> None:
    async with engine(tmp_path, numbered(), clock=Clock()) as world, world.running():
        for number in range(4 * IN_A_ROW):
            assert "reply" in await world.desk.ask(f"question {number}")


async def test_an_automatic_answer_in_a_direct_chat_is_a_loop(tmp_path: Path) -> None:  # BO-074
    async with engine(tmp_path, numbered(), clock=Clock()) as world, world.running():
        messages = [world.desk.message("I am out of office.") for _ in range(20)]
        assert [await answered(world, each) for each in messages].count(True) == IN_A_ROW + 1


async def test_clews_own_words_that_come_back_are_a_loop_however_late(tmp_path: Path) -> None:  # BO-072
    clock = Clock()
    count = iter(range(99))
    async with engine(tmp_path, lambda body: say(f"**Reply** number {next(count)}."), clock=clock) as world, world.running():
        await world.desk.ask("hello")
        taken = 0
        for _ in range(20):
            clock.at += 5
            taken += await answered(world, world.desk.message(world.desk.sent[-1].text.replace("*", "")))
        assert taken == IN_A_ROW


async def test_a_loop_survives_a_restart_and_loses_no_person_their_place(tmp_path: Path) -> None:  # P48
    clock = Clock()
    async with engine(tmp_path, numbered(), clock=clock) as world:
        async with world.running():
            for number in range(IN_A_ROW + 2):
                await answered(world, mention(world, f"beep {number}"))
        async with world.running():
            assert not await answered(world, mention(world, "beep"))
            clock.at -= 86_400  # the clock is set back: nobody rests for a day
            assert await answered(world, mention(world, "beep again"))
