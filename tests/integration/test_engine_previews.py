"""What is being said, shown by a message that is edited and in the end becomes the reply."""

import asyncio
from pathlib import Path

import pytest

from clew.agent import WORDS
from clew.transport import Capabilities, Refused, Retry, Unknown
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import DropAfter, Fault, JsonObject, Reply, Stall
from tests.integration.board import Board, Faults
from tests.integration.engine import World, engine
from tests.integration.test_engine_approvals import Ledger

pytestmark = pytest.mark.asyncio

LONG = "a rather long answer " * 30
SECOND = "the second part"
EDITS = Capabilities(stream="edit", edit_every_s=0.01)


def talks(body: JsonObject) -> Reply:
    return say(f"{LONG}\n---\n{SECOND}")


async def shown(world: World, board: Board, chat: str = "ada") -> Stall:
    """Ask something whose answer stands half on the board. Returns what lets the model go on."""
    stall = Stall(after=30)
    world.model.faults.append(stall)
    posts = len(board.posts)
    await board.accept(board.message("talk", chat))
    await board.until(lambda: len(board.posts) > posts)
    return stall


async def test_a_message_shows_what_is_said_and_becomes_the_reply(tmp_path: Path) -> None:  # P43
    board = Board()
    async with engine(tmp_path, talks, desk=board) as world, world.running():
        stall = await shown(world, board)
        assert board.posts[0].text
        assert LONG.startswith(board.posts[0].text)
        (draft,) = await world.store.outbox(("draft", "pending", "sending"))
        assert (draft["state"], draft["id"]) == ("draft", board.posts[0].id)
        stall.until.set()
        await board.until(lambda: bool(board.sent))
        await world.idle()
        assert board.texts() == [LONG, SECOND]
        assert len(board.posts) == 2
        assert [row["state"] for row in await world.store.outbox(("draft", "pending", "sent"))] == ["sent"]


async def test_a_reply_that_is_there_at_once_is_posted_once(tmp_path: Path) -> None:  # P43
    board = Board(Capabilities(stream="edit", edit_every_s=60.0))
    async with engine(tmp_path, desk=board) as world, world.running():
        assert "answer" in await board.ask("hello")
        assert [post.versions for post in board.posts] == [[board.sent[0].text]]


async def test_where_only_some_chats_can_be_edited_only_they_are(tmp_path: Path) -> None:
    board = Board(Capabilities(stream="ephemeral", stream_at=lambda to: "edit" if to.chat == "ada" else "ephemeral", edit_every_s=0.01))
    async with engine(tmp_path, talks, desk=board) as world, world.running():
        ada = await shown(world, board)
        (draft,) = await world.store.outbox(("draft",))
        assert draft["address"] == "desk:ada"
        bob = await shown(world, board, "bob")
        assert await world.store.outbox(("draft",)) == [draft]
        for stall in (ada, bob):
            stall.until.set()
        await board.until(lambda: len(board.sent) == 2)


async def test_a_platform_that_asks_to_wait_is_left_alone_and_gets_the_reply_behind(tmp_path: Path) -> None:  # P43, BO-064
    board = Board()
    board.waits = {3: Retry("429", 0.3)}
    async with engine(tmp_path, lambda body: say("word " * 400), desk=board) as world, world.running():
        stalls = [Stall(after=each) for each in (30,)]
        world.model.faults.extend(stalls)
        await board.accept(board.message("talk"))
        await board.until(lambda: len(board.calls) >= 1)
        stalls[0].until.set()
        await board.until(lambda: bool(board.sent))
        assert board.hurried == []
        assert board.texts() == [("word " * 400).strip()]
        assert len(board.calls) < 15


async def test_no_chat_waits_for_the_pause_of_another(tmp_path: Path) -> None:  # P43, BO-054
    board = Board()
    board.waits = {1: Retry("429", 3600.0)}
    async with engine(tmp_path, desk=board) as world, world.running():
        await board.accept(board.message("hello"))
        await board.until(lambda: bool(board.calls))
        for number in range(20):
            assert "answer" in await board.ask(f"hello {number}", "bob")
        assert [call for call in board.calls if "ada" in call] == board.calls[:1]
        assert board.hurried == []
        (row,) = await world.store.outbox(("pending",))
        assert row["next_at"] - row["created"] > 3500


async def test_a_storm_of_refusals_delays_each_chat_and_loses_nothing(tmp_path: Path) -> None:  # P43, BO-054, BO-064
    board = Board()
    board.waits = {number: Retry("429", 0.05 * (number % 3 + 1)) for number in range(1, 40)}
    async with engine(tmp_path, desk=board) as world, world.running():
        messages = [board.message(f"hello {number}", chat) for chat in ("ada", "bob", "eve") for number in range(4)]
        await board.accept(*messages)
        await board.until(lambda: len(board.sent) == len(messages))
        assert board.hurried == []
        for chat in ("ada", "bob", "eve"):
            assert [text.rpartition(" ")[2] for text in board.texts(chat)] == ["0", "1", "2", "3"]


async def test_a_wait_of_the_whole_account_is_kept_in_every_chat(tmp_path: Path) -> None:  # P43
    board = Board()
    board.waits = {1: Retry("429 of all", 0.3, everywhere=True)}
    async with engine(tmp_path, desk=board) as world, world.running():
        await board.accept(*(board.message("hello", chat) for chat in ("ada", "bob", "eve")))
        await board.until(lambda: len(board.sent) == 3)
        assert board.hurried == []


async def test_a_rate_of_the_whole_account_is_kept(tmp_path: Path) -> None:  # P43
    board = Board(Capabilities(stream="edit", edit_every_s=0.01, per_second=20.0))
    async with engine(tmp_path, desk=board) as world, world.running():
        await board.accept(*(board.message(f"hello {number}", chat) for number in range(3) for chat in ("ada", "bob", "eve")))
        await board.until(lambda: len(board.sent) == 9)
        assert board.hurried == []


@pytest.mark.parametrize("fault", ["deleted", "refused"])
async def test_a_reply_is_not_lost_with_the_message_that_it_was_to_replace(tmp_path: Path, fault: str) -> None:  # P43
    board = Board()
    async with engine(tmp_path, talks, desk=board) as world, world.running():
        stall = await shown(world, board)
        if fault == "deleted":
            board.posts[0].deleted = True
        else:
            board.faults["desk:ada"] = [Refused("it is too old to be edited")]
        stall.until.set()
        await board.until(lambda: bool(board.sent))
        assert board.texts()[-2:] == [LONG, SECOND]


async def test_an_edit_of_unknown_fate_is_made_again_until_it_is_known(tmp_path: Path) -> None:  # P43
    board = Board()
    async with engine(tmp_path, talks, desk=board) as world, world.running():
        stall = await shown(world, board)
        board.faults["desk:ada"] = [Unknown("no answer came")] * 3
        stall.until.set()
        await board.until(lambda: bool(board.sent))
        await world.idle()
        assert board.texts() == [LONG, SECOND]
        assert [row["state"] for row in await world.store.outbox(("sent", "unknown"))] == ["sent"]


@pytest.mark.parametrize("late", [False, True])
async def test_the_reply_waits_for_what_it_takes_the_place_of(tmp_path: Path, late: bool) -> None:  # P43
    board = Board()
    gate = asyncio.Event()
    board.previews["ada"] = Faults(gate=gate, late=late)
    async with engine(tmp_path, talks, desk=board) as world, world.running():
        stall = Stall(after=30)
        world.model.faults.append(stall)
        await board.accept(board.message("talk"))
        await board.until(lambda: "waiting" in board.calls)
        stall.until.set()
        seen = world.store.version
        while not await world.store.outbox(("sending",)):
            seen = await world.store.changed(seen, 20)
        assert "answer" in await board.ask("/help", "bob") or board.texts("bob")
        gate.set()
        await board.until(lambda: any(each.address.chat == "ada" for each in board.sent))
        assert board.texts() == [LONG, SECOND]


@pytest.mark.parametrize(("idempotent", "texts"), [(True, [LONG, SECOND]), (False, [None, LONG, SECOND])])
async def test_a_first_message_of_which_nobody_knows(tmp_path: Path, idempotent: bool, texts: list[str | None]) -> None:  # P43
    board = Board(Capabilities(stream="edit", edit_every_s=0.01, idempotent_send=idempotent))
    board.previews["ada"] = Faults(raised=[Unknown("no answer came")] * 50, late=True)
    async with engine(tmp_path, talks, desk=board) as world, world.running():
        stall = await shown(world, board)
        board.previews.clear()
        stall.until.set()
        await board.until(lambda: bool(board.sent))
        assert len(board.posts) == len(texts)
        assert board.texts()[-2:] == texts[-2:]


async def test_a_turn_that_fails_says_so_where_it_spoke(tmp_path: Path) -> None:  # P43
    board = Board()
    async with engine(tmp_path, talks, desk=board) as world, world.running():
        world.model.faults.extend([Stall(after=30), *[Fault(401, "authentication_error", "invalid key")] * 4])
        stall = world.model.faults[0]
        assert isinstance(stall, Stall)
        await board.accept(board.message("talk"))
        await board.until(lambda: bool(board.posts))
        await board.ask("/stop")
        stall.until.set()
        await board.until(lambda: len(board.sent) == 2)
        assert board.posts[0].text == "Stopped."
        board.posts.clear()
        world.model.faults.clear()
        world.model.faults.append(Fault(401, "authentication_error", "invalid key"))
        assert await board.ask("again") == WORDS["auth"]


async def test_a_stream_that_breaks_goes_on_in_the_same_message(tmp_path: Path) -> None:  # P43
    board = Board()
    async with engine(tmp_path, talks, desk=board) as world, world.running():
        stall = Stall(after=30)
        world.model.faults.extend([DropAfter(40), stall])
        await board.accept(board.message("talk"))
        await stall.reached.wait()
        await board.until(lambda: bool(board.posts))
        stall.until.set()
        await board.until(lambda: bool(board.sent))
        assert board.texts() == [LONG, SECOND]


async def test_a_question_takes_the_place_of_what_was_said_before_it(tmp_path: Path) -> None:  # P43
    def script(body: JsonObject) -> Reply:
        if body["messages"][-1]["role"] == "tool":
            return say("It is done.")
        call = {"type": "tool_use", "id": "c1", "name": "pay", "input": {"note": "rent"}}
        return Reply([{"type": "text", "text": LONG}, call], "tool_use")

    board, ledger = Board(), Ledger()
    async with engine(tmp_path, script, desk=board, tools=[ledger.tool]) as world, world.running():
        stall = await shown(world, board)
        stall.until.set()
        await board.until(lambda: "pay" in board.texts()[0])
        assert len(board.posts) == 1
        await board.accept(board.message("yes"))
        await board.until(lambda: "It is done." in board.texts())
        assert len(board.texts()) == 2
        assert ledger.done == ["rent"]


async def test_an_interrupted_turn_goes_on_in_its_message(tmp_path: Path) -> None:  # P43, P48
    board = Board()
    async with engine(tmp_path, talks, desk=board) as world:
        async with world.running():
            stall = await shown(world, board)
            for task in list(world.service.dispatcher._tasks):
                task.cancel()  # as at the end of its grace
        assert [row["state"] for row in await states(world)] == ["draft"]
        stall.until.set()
        async with world.running():
            await board.until(lambda: bool(board.sent))
        assert board.texts() == [LONG, SECOND]
        assert last_user_text(world.replies[-1]).endswith("talk")


async def states(world: World) -> list[dict[str, object]]:
    async with world.file() as store:
        return await store.outbox(("draft", "pending", "sending", "sent"))
