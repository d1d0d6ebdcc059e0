import asyncio
from pathlib import Path

import pytest

from clew.messages import Text
from clew.transport import Capabilities
from tests.databases import BOTH, SQLITE
from tests.emulators.scripts import echo, say
from tests.integration.engine import calling, engine, spoken, words_of

pytestmark = BOTH


@pytest.mark.asyncio
async def test_a_message_is_answered_stored_and_sent(tmp_path: Path) -> None:  # P1, P42, P43
    async with engine(tmp_path, lambda body: say("Lima.")) as world, world.running():
        message = world.desk.message("The capital of Peru?")
        (receipt,) = await world.desk.accept(message)
        assert receipt.status == "stored"
        await world.desk.until(lambda: len(world.desk.sent) == 1)
        await world.idle()
        (delivery,) = world.desk.sent
        assert (delivery.text, delivery.in_reply_to, delivery.answers) == ("Lima.", message.client_id, (message.client_id,))
        question, answer = await world.transcript()
        assert (question.role, question.text, question.sender) == ("user", "The capital of Peru?", "ada")
        assert (answer.role, answer.blocks) == ("assistant", (Text("Lima."),))
        assert (await world.store.outbox(("sent",)))[0]["id"] == delivery.id
        (told,) = [words_of(each) for each in spoken(world.replies[0])]
        assert told.endswith("] The capital of Peru?")


@pytest.mark.asyncio
async def test_the_same_chat_finds_its_session_again_after_a_restart(tmp_path: Path) -> None:  # P2, P5
    async with engine(tmp_path) as world:
        async with world.running():
            await world.desk.ask("one")
            first = await world.session()
        async with world.running():
            await world.desk.ask("two")
            assert await world.session() == first
            assert [m.text.split(": ")[0] for m in await world.transcript()] == ["one", "answer to", "two", "answer to"]


@pytest.mark.asyncio
async def test_sessions_run_side_by_side_and_one_session_in_order(tmp_path: Path) -> None:  # P44, BO-056, BO-057
    async with engine(tmp_path) as world, world.running():
        held = world.model.hold(lambda body: "first of ada" in str(body))
        first, second = world.desk.message("first of ada"), world.desk.message("second of ada")
        await world.desk.accept(first)
        await held.reached.wait()
        await world.desk.accept(second)
        assert "hello" in await world.desk.ask("hello", "bob")
        assert len(world.replies) == 2
        assert not world.desk.answers(first)
        held.release()
        await world.desk.until(lambda: bool(world.desk.answers(second)))
        texts = [d.text for d in world.desk.sent if d.address.chat == "ada"]
        assert ["first of ada" in texts[0], "second of ada" in texts[1]] == [True, True]
        assert [m.role for m in await world.transcript()] == ["user", "assistant", "user", "assistant"]


@pytest.mark.asyncio
async def test_waiting_messages_share_a_turn_where_the_platform_merges(tmp_path: Path) -> None:  # P44, BO-056
    async with engine(tmp_path, capabilities=Capabilities(merges=True)) as world, world.running():
        held = world.model.hold()
        await world.desk.accept(world.desk.message("capital of Peru?"))
        await held.reached.wait()
        waiting = [world.desk.message("and of Chile?"), world.desk.message("thanks")]
        await world.desk.accept(*waiting)
        held.release()
        await world.desk.until(lambda: len(world.desk.sent) == 2)
        assert world.desk.sent[1].answers == tuple(each.client_id for each in waiting)
        assert len(world.replies) == 2
        asked = " ".join(words_of(each) for each in spoken(world.replies[1]) if each["role"] == "user")
        assert asked.index("Peru") < asked.index("Chile") < asked.index("thanks")


@pytest.mark.asyncio
@pytest.mark.parametrize("merges", [True, False])
async def test_what_comes_between_two_tool_calls_joins_the_turn_where_it_may(tmp_path: Path, merges: bool) -> None:  # P44
    async with engine(tmp_path, calling(("current_time", {})), capabilities=Capabilities(merges=merges)) as world:
        world.agent(while_busy="steer")
        async with world.running():
            held = world.model.hold()
            first = world.desk.message("what time is it?")
            await world.desk.accept(first)
            await held.reached.wait()
            second = world.desk.message("in Lima, I mean")
            await world.desk.accept(second)
            held.release()
            await world.desk.until(lambda: len(world.desk.sent) == (1 if merges else 2))
            both = (first.client_id, second.client_id)
            assert world.desk.sent[0].answers == (both if merges else both[:1])
            assert world.desk.sent[0].in_reply_to == (both[-1] if merges else both[0])
            asked = " ".join(words_of(each) for each in spoken(world.replies[1]) if each["role"] == "user")
            assert ("Lima" in asked) is merges


@pytest.mark.asyncio
async def test_each_message_has_its_reply_where_the_platform_does_not_merge(tmp_path: Path) -> None:  # P44, BO-056
    async with engine(tmp_path) as world, world.running():
        held = world.model.hold()
        asked = [world.desk.message(text) for text in ("capital of Peru?", "and of Chile?", "thanks")]
        await world.desk.accept(*asked)
        await held.reached.wait()
        held.release()
        await world.desk.until(lambda: len(world.desk.sent) == 3)
        assert [d.answers for d in world.desk.sent] == [(each.client_id,) for each in asked]
        assert [echoed.text.rpartition("] ")[2] for echoed in world.desk.sent] == [each.text for each in asked]


@pytest.mark.asyncio
async def test_redelivery_makes_no_second_turn_even_after_a_restart(tmp_path: Path) -> None:  # P42, BO-047, BO-050, BO-051
    async with engine(tmp_path) as world:
        async with world.running():
            messages = [world.desk.message(f"message {n}") for n in range(30)]
            for _ in range(2):
                await asyncio.gather(*(world.desk.accept(each) for each in messages))
            await world.desk.until(lambda: len(world.desk.sent) == 30)
        async with world.running():
            receipts = await world.desk.accept(*messages)
            assert {receipt.status for receipt in receipts} == {"duplicate"}
            assert len([m for m in await world.transcript() if m.role == "user"]) == 30
        assert len(world.replies) == len(world.desk.sent) == 30


@pytest.mark.asyncio
async def test_messages_that_waited_for_the_first_start_are_answered_in_order(tmp_path: Path) -> None:  # P42, P44, BO-053
    async with engine(tmp_path) as world, world.running():
        waiting = [world.desk.message(f"update {n}") for n in range(6)]
        await world.desk.accept(*waiting, cursor="6")
        await world.desk.until(lambda: len(world.desk.sent) == 6)
        assert [d.answers[0] for d in world.desk.sent] == [each.client_id for each in waiting]
        assert await (await world.desk.host()).cursor() == "6"


@pytest.mark.asyncio
async def test_a_plain_turn_takes_three_commits(tmp_path: Path) -> None:  # P42, P43
    async with engine(tmp_path) as world, world.running():
        await world.desk.ask("warm up")
        await world.idle()
        before = world.store.commits
        await world.desk.ask("plain")
        await world.idle()
        assert world.store.commits - before == 3, "arrival and claim; end and what is sent; what came of sending"


@pytest.mark.asyncio
async def test_an_idle_service_calls_no_model(tmp_path: Path) -> None:  # P22
    async with engine(tmp_path) as world:
        async with world.running():
            await world.desk.ask("hello")
            await world.idle()
        async with world.running():
            await world.idle()
        assert len(world.model.calls) == 1


@pytest.mark.asyncio
async def test_the_queue_of_a_chat_is_bounded_and_a_refusal_is_said(tmp_path: Path) -> None:  # P42
    async with engine(tmp_path) as world:
        world.config = world.config.model_copy(update={"limits": world.config.limits.model_copy(update={"queued_per_chat": 2})})
        async with world.running():
            held = world.model.hold()
            await world.desk.accept(world.desk.message("running"))
            await held.reached.wait()
            receipts = await world.desk.accept(*(world.desk.message(f"waiting {n}") for n in range(3)))
            assert [receipt.status for receipt in receipts] == ["stored", "stored", "refused"]
            await world.desk.until(lambda: len(world.desk.sent) == 1)
            assert "2 messages of this chat must be answered first" in world.desk.sent[0].text
            held.release()
            await world.desk.until(lambda: len(world.desk.sent) == 4)
        assert not any("waiting 2" in str(body) for body in world.replies)


@pytest.mark.asyncio
async def test_a_message_without_words_or_too_long_is_refused_without_a_call(tmp_path: Path) -> None:  # P42, BO-126
    async with engine(tmp_path) as world, world.running():
        texts = [" \n ", "x" * 200_000]
        receipts = await world.desk.accept(*(world.desk.message(text) for text in texts))
        receipts += await world.desk.accept(world.desk.message("", refused="it is not valid UTF-8"))
        assert {receipt.status for receipt in receipts} == {"refused"}
        await world.desk.until(lambda: len(world.desk.sent) == 3)
        assert "it is empty" in world.desk.sent[0].text
        assert "200,000 bytes" in world.desk.sent[1].text
        assert "not valid UTF-8" in world.desk.sent[2].text
        assert "answer" in await world.desk.ask("and a normal one")
    assert len(world.model.calls) == 1


@pytest.mark.asyncio
async def test_a_turn_that_runs_when_the_service_stops_is_finished_first(tmp_path: Path) -> None:  # P48, BO-095
    async with engine(tmp_path) as world:
        async with world.running():
            held = world.model.hold()
            await world.desk.accept(world.desk.message("slow"))
            await held.reached.wait()
            asyncio.get_running_loop().call_soon(held.release)
        assert [d.text.rpartition("] ")[2] for d in world.desk.sent] == ["slow"]
        assert len(world.model.calls) == 1


@SQLITE
@pytest.mark.asyncio
async def test_fifty_rounds_of_two_chats_never_cross(tmp_path: Path) -> None:  # P33, P44, BO-058
    async with engine(tmp_path, echo) as world, world.running():
        for n in range(50):
            answers = await asyncio.gather(*(world.desk.ask(f"{name} asks {n}", name) for name in ("ada", "bob")))
            assert [answer.rpartition("] ")[2] for answer in answers] == [f"ada asks {n}", f"bob asks {n}"]
        for delivery in world.desk.sent:
            assert f"{delivery.address.chat} asks" in delivery.text
