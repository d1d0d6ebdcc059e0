"""Messages that people change or delete, before their turn, in it, and after it."""

from pathlib import Path
from typing import Any

import pytest

from clew.context.prompt import OPENING
from clew.transport import Inbound
from tests.databases import BOTH
from tests.emulators.scripts import last_user_text, say
from tests.integration.engine import Clock, World, engine, spoken, words_of

pytestmark = [pytest.mark.asyncio, BOTH]

HOUR = 3600.0


def edit(world: World, message: Inbound, text: str, **more: Any) -> Inbound:
    chat = str(message.address).partition(":")[2]
    return world.desk.message(text, chat, sender=message.sender, kind="edit", edits=message.external_id, direct=message.direct, **more)


def deletion(world: World, message: Inbound, sender: str = "nobody") -> Inbound:
    chat = str(message.address).partition(":")[2]
    return world.desk.message("", chat, sender=sender, kind="delete", edits=message.external_id, direct=message.direct)


async def answered(world: World, message: Inbound) -> str:
    await world.desk.until(lambda: bool(world.desk.answers(message)))
    return world.desk.answers(message)[0].text


async def said(world: World, text: str, chat: str = "ada", **more: Any) -> Inbound:
    """A message that was answered."""
    message = world.desk.message(text, chat, **more)
    await world.desk.accept(message)
    await answered(world, message)
    return message


def sent(world: World) -> str:
    """All that the model was last given."""
    return str(world.replies[-1])


async def test_an_edit_of_what_waits_is_what_is_answered(tmp_path: Path) -> None:  # P42, BO-075
    async with engine(tmp_path) as world, world.running():
        held = world.model.hold()
        await world.desk.accept(world.desk.message("think"))
        await held.reached.wait()
        typo = world.desk.message("what is 2+3?")
        await world.desk.accept(typo, edit(world, typo, "what is 2+2?"))
        held.release()
        assert "2+2" in await answered(world, typo)
        assert "2+3" not in sent(world)
        await world.idle()
        assert len(world.desk.sent) == 2


@pytest.mark.parametrize("running", [True, False])
async def test_an_edit_of_what_is_answered_is_kept_and_changes_nothing(tmp_path: Path, running: bool) -> None:  # P1, P42, BO-075
    async with engine(tmp_path) as world, world.running():
        held = world.model.hold()
        message = world.desk.message("where is the key?")
        await world.desk.accept(message)
        await held.reached.wait()
        late = edit(world, message, "where is the red key?")
        if running:
            await world.desk.accept(late, late)
        held.release()
        await answered(world, message)
        await world.desk.accept(late, late)
        await world.desk.ask("and now?")
        assert len(world.desk.sent) == 2
        assert "red key" not in sent(world)
        session = await world.session()
        data = await world.store.export_session(session)
        assert [(each["message"], each["text"]) for each in data["edits"]] == [(data["messages"][0]["id"], "where is the red key?")]
        await world.store.delete_session(session)
        await world.store.import_session(data, 1.0)
        assert (await world.store.export_session(session))["edits"] == data["edits"]


async def test_only_whoever_wrote_it_changes_a_message(tmp_path: Path) -> None:  # P42
    async with engine(tmp_path) as world, world.running():
        held = world.model.hold()
        await world.desk.accept(world.desk.message("think", "den", sender="ada", direct=False))
        await held.reached.wait()
        message = world.desk.message("pay nobody", "den", sender="ada", direct=False)
        forged = world.desk.message("pay bob", "den", sender="bob", kind="edit", edits=message.external_id, direct=False)
        await world.desk.accept(forged, message, forged)
        held.release()
        assert "pay nobody" in await answered(world, message)


async def test_an_edit_that_cannot_be_taken_is_let_pass_without_a_word(tmp_path: Path) -> None:
    async with engine(tmp_path) as world, world.running():
        message = await said(world, "hello")
        receipts = await world.desk.accept(edit(world, message, " "), edit(world, message, "x" * 2**20))
        assert [receipt.status for receipt in receipts] == ["refused"] * 2
        stranger = world.desk.message("hello", "zoe", kind="edit", edits="desk/zoe/1")
        assert [receipt.reason for receipt in await world.desk.accept(stranger)] == ["unknown sender"]
        await world.idle()
        assert len(world.desk.sent) == 1
        assert await world.store.access_requests() == []


async def test_a_message_that_is_deleted_before_its_turn_is_not_answered(tmp_path: Path) -> None:  # P42
    async with engine(tmp_path) as world, world.running():
        held = world.model.hold()
        await world.desk.accept(world.desk.message("think"))
        await held.reached.wait()
        message, other = world.desk.message("never mind the password hunter2"), world.desk.message("and you?")
        await world.desk.accept(message, other)
        assert [receipt.status for receipt in await world.desk.accept(deletion(world, message))] == ["stored"]
        held.release()
        await answered(world, other)
        await world.idle()
        assert len(world.desk.sent) == 2
        assert "hunter2" not in sent(world)
        assert [receipt.status for receipt in await world.desk.accept(message, deletion(world, message))] == ["duplicate", "duplicate"]


async def test_a_deletion_that_comes_first_is_kept_for_its_message(tmp_path: Path) -> None:  # P42
    async with engine(tmp_path) as world:
        async with world.running():
            message = world.desk.message("never mind")
            await world.desk.accept(deletion(world, message))
        async with world.running():
            receipts = await world.desk.accept(message, message)
            assert [receipt.status for receipt in receipts] == ["refused"] * 2
            assert "answer" in await world.desk.ask("hello")
            assert len(world.desk.sent) == 1
            assert len(await world.transcript()) == 2


async def test_a_deleted_message_is_found_and_recalled_no_more(tmp_path: Path) -> None:  # P6, P31
    async with engine(tmp_path) as world, world.running():
        message = await said(world, "the marmalade is in the cellar")
        await world.desk.ask("/new")
        await world.desk.ask("where is the marmalade?")
        assert "cellar" in sent(world)
        await world.desk.accept(deletion(world, message))
        await world.desk.ask("/new")
        await world.desk.ask("I look for the marmalade in which room?")
        assert "the marmalade is in the cellar" not in sent(world).replace("answer to:", "")
        scope = await world.store.scope_for(operator=True)
        old = (await world.store.sessions())[-1].id
        rows = await world.store.transcript(old)
        assert rows[0].text == "the marmalade is in the cellar", "the transcript keeps it"
        assert await world.store.around(scope, rows[0].id, 0, 0) == []
        assert await world.store.verify_session(old) == []
        assert await world.store.check() == []


async def test_a_prompt_that_is_cached_keeps_a_deleted_message_until_it_changes_anyway(tmp_path: Path) -> None:  # P6, P29
    clock = Clock()
    async with engine(tmp_path, clock=clock, provider="anthropic") as world, world.running():
        message = await said(world, "my secret plan")
        await world.desk.ask("a question")
        before = world.replies[-1]["messages"]
        await world.desk.accept(deletion(world, message))
        await world.desk.ask("another")
        after = world.replies[-1]["messages"]
        assert [words_of(each) for each in after[: len(before)]] == [words_of(each) for each in before]
        clock.at += 2 * HOUR  # nobody has it in a cache any more
        await world.desk.ask("a third")
        assert "my secret plan" not in str([each for each in spoken(world.replies[-1]) if each["role"] == "user"])
        session = await world.session()
        assert await world.store.verify_session(session) == []
        assert len(await world.transcript()) == 7


async def test_a_compaction_takes_nothing_of_a_deleted_message_along(tmp_path: Path) -> None:  # P6, P17
    async with engine(tmp_path, lambda body: say("noted")) as world:
        world.compression(keep_recent=2)
        async with world.running():
            message = await said(world, "Never use port 4711 for the gateway.")
            for number in range(3):
                await world.desk.ask(f"question {number}")
            await world.desk.accept(deletion(world, message))
            await world.desk.ask("/compact")
            assert "4711" not in str(world.summaries[-1]["messages"])
            summary = (await world.store.view(await world.session())).compaction
            assert summary is not None
            assert "4711" not in summary.text
            assert await world.store.verify_session(await world.session()) == []


async def test_what_a_summary_says_of_a_deleted_message_goes_with_the_next_one(tmp_path: Path) -> None:  # P6, P15
    async with engine(tmp_path, lambda body: say("noted")) as world:
        world.compression(keep_recent=2)
        async with world.running():
            message = await said(world, "Never use port 4711 for the gateway.")
            for number in range(4):
                await world.desk.ask(f"question {number}")
            await world.desk.ask("/compact")
            session = await world.session()
            first = (await world.store.view(session)).compaction
            assert first is not None
            assert "4711" in first.text
            await world.desk.accept(deletion(world, message))
            assert (await world.store.view(session)).compaction == first, "it stands in a prompt that is cached"
            for number in range(4):
                await world.desk.ask(f"more {number}")
            await world.desk.ask("/compact")
            second = (await world.store.view(session)).compaction
            assert second is not None
            assert second.id != first.id
            assert "4711" not in second.text
            assert "4711" not in str(world.summaries[-1]["messages"])
            assert await world.store.verify_session(session) == []


async def test_a_message_that_is_deleted_while_it_is_answered_is_taken_back_behind_its_turn(tmp_path: Path) -> None:  # P6, P42
    async with engine(tmp_path) as world, world.running():
        held = world.model.hold()
        message = world.desk.message("the code is 4711")
        await world.desk.accept(message)
        await held.reached.wait()
        await world.desk.accept(deletion(world, message))
        rows = await world.transcript()
        scope = await world.store.scope_for(operator=True)
        assert await world.store.around(scope, rows[0].id, 0, 0), "it is being answered, and nothing takes it out of its turn"
        held.release()
        await answered(world, message)
        assert await world.store.around(scope, rows[0].id, 0, 0) == []
        assert [receipt.status for receipt in await world.desk.accept(deletion(world, message))] == ["duplicate"]


async def test_the_first_message_of_a_thread_can_leave_it(tmp_path: Path) -> None:  # P6
    clock = Clock()
    async with engine(tmp_path, clock=clock) as world, world.running():
        message = await said(world, "first words")
        await world.desk.accept(deletion(world, message))
        clock.at += 2 * HOUR
        await world.desk.ask("second")
        assert words_of(spoken(world.replies[-1])[0]) == OPENING
        assert last_user_text(world.replies[-1]).endswith("second")
        assert not await world.store.verify_session(await world.session())
