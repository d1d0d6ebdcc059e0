"""People: who may speak, what commands do, and how replies reach them."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from clew import delivery as sending
from clew.errors import ClewError
from clew.transport import Address, Capabilities, Delivery, Host, Inbound, Preview, Refused, Retry, Sent, Typing, Unknown
from tests.databases import BOTH, SQLITE
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import DropAfter, JsonObject, Reply, Stall
from tests.integration.engine import Clock, Desk, World, assistant, engine, exchanges, is_summary, spoken, tool, user, words_of

pytestmark = BOTH


def access(world: World, unknown: str) -> None:
    settings = world.config.access.model_copy(update={"unknown": unknown})
    world.config = world.config.model_copy(update={"access": settings})


# Who may ---------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_stranger_gets_one_code_and_no_model_call(tmp_path: Path) -> None:  # P46, BO-101
    async with engine(tmp_path) as world, world.running():
        with capture_logs() as logs:
            receipts = await world.desk.accept(*(world.desk.message("let me in", "mallory") for _ in range(3)))
            assert {receipt.status for receipt in receipts} == {"refused"}
            await world.desk.until(lambda: len(world.desk.sent) == 1)
            await world.idle()
        assert len(world.desk.sent) == 1
        (request,) = await world.store.access_requests("open")
        assert request.code in world.desk.sent[0].text
        assert [line["identity"] for line in logs if line["event"] == "access.denied"] == ["desk:mallory"] * 3
        assert world.model.calls == []
        await world.store.answer_access(request.code, True, "guest", 0.0)
        assert "answer" in await world.desk.ask("thank you", "mallory")


@pytest.mark.asyncio
async def test_denied_strangers_get_no_reply_at_all(tmp_path: Path) -> None:  # P46, BO-101
    async with engine(tmp_path) as world:
        access(world, "deny")
        async with world.running():
            with capture_logs() as logs:
                await world.desk.accept(world.desk.message("let me in", "mallory"), world.desk.message("/stop", "mallory"))
            await world.desk.ask("hello", "ada")
            await world.idle()
            assert {delivery.address.chat for delivery in world.desk.sent} == {"ada"}
            assert await world.store.access_requests() == []
            assert len([line for line in logs if line["event"] == "access.denied"]) == 2
            assert (await world.service.status())["access"] == "unknown senders are ignored"


@pytest.mark.asyncio
async def test_strangers_are_guests_where_the_config_lets_them_in(tmp_path: Path) -> None:  # P46, BO-101
    async with engine(tmp_path) as world:
        access(world, "allow")
        async with world.running():
            assert "answer" in await world.desk.ask("hello", "mallory")


@pytest.mark.asyncio
async def test_a_stranger_in_a_group_stays_one(tmp_path: Path) -> None:  # P46
    async with engine(tmp_path) as world, world.running():
        await world.desk.ask("hello", "team", sender="ada", direct=False)
        (receipt,) = await world.desk.accept(world.desk.message("and me", "team", sender="mallory", direct=False))
        assert receipt.reason == "unknown sender"
        await world.desk.ask("again", "team", sender="ada", direct=False)
        assert "and me" not in str(world.replies[-1])


# Commands --------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_commands_answer_without_a_model(tmp_path: Path) -> None:  # P24
    async with engine(tmp_path) as world, world.running():
        listed = await world.desk.ask("/help")
        assert [f"/{name}" in listed for name in ("help", "new", "status", "compact", "stop")] == [True] * 5
        assert await world.desk.ask("/nosuch thing") == "I do not know /nosuch. /help lists what I do know."
        assert await world.desk.ask("/STOP") == "There is nothing to stop."
        assert world.model.calls == []
        await world.desk.ask("hello")
        status = await world.desk.ask("/status")
        assert await world.session() in status
        assert "In view: 2 messages" in status
        assert "Model calls: 1" in status
        assert len(world.model.calls) == 1
        assert [m.text for m in await world.transcript() if m.role == "user"] == ["hello"]


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ["/etc/hosts is empty", "//comment", "/ what", "/2 of it", "half /new"])
async def test_what_merely_begins_with_a_slash_is_a_message(tmp_path: Path, text: str) -> None:  # P42
    async with engine(tmp_path) as world, world.running():
        assert text in await world.desk.ask(text)


@pytest.mark.asyncio
async def test_new_begins_a_session_and_keeps_the_old_one(tmp_path: Path) -> None:  # P5
    async with engine(tmp_path) as world, world.running():
        await world.desk.ask("the old one")
        old = await world.session()
        await world.desk.ask("/new")
        await world.desk.ask("the new one")
        assert await world.session() != old
        assert len(spoken(world.replies[-1])) == 1
        assert (await world.store.transcript(old))[0].text == "the old one"


@pytest.mark.asyncio
async def test_stop_ends_a_turn_while_the_model_speaks(tmp_path: Path) -> None:  # P44
    stall = Stall(after=4)
    async with engine(tmp_path, lambda body: say("a very long answer " * 20)) as world, world.running():
        world.model.faults.append(stall)
        message = world.desk.message("talk at length")
        await world.desk.accept(message)
        await stall.reached.wait()
        assert await world.desk.ask("/stop") == "Stopping."
        stall.until.set()
        await world.desk.until(lambda: bool(world.desk.answers(message)))
        assert world.desk.answers(message)[0].text == "Stopped."
        assert "very long" in await world.desk.ask("go on then")
        assert (await world.transcript())[1].text == "Stopped."


@pytest.mark.asyncio
async def test_stop_ends_a_turn_whose_model_says_nothing(tmp_path: Path) -> None:  # P44
    async with engine(tmp_path) as world, world.running():
        held = world.model.hold()
        message = world.desk.message("think")
        await world.desk.accept(message)
        await held.reached.wait()
        await world.desk.ask("/stop")
        await world.desk.until(lambda: bool(world.desk.answers(message)))
        assert world.desk.answers(message)[0].text == "Stopped."
        held.release()
        assert "answer" in await world.desk.ask("and now?")


@pytest.mark.asyncio
async def test_stop_never_waits_behind_the_queue(tmp_path: Path) -> None:  # P44
    async with engine(tmp_path) as world:
        world.config = world.config.model_copy(update={"limits": world.config.limits.model_copy(update={"queued_per_chat": 1})})
        async with world.running():
            held = world.model.hold()
            await world.desk.accept(world.desk.message("think"))
            await held.reached.wait()
            await world.desk.accept(world.desk.message("waiting"))
            assert await world.desk.ask("/stop") == "Stopping."
            held.release()
            await world.desk.until(lambda: len(world.desk.sent) == 3)


# On the way out --------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_refused_send_is_tried_again_after_a_restart(tmp_path: Path) -> None:  # P43, BO-054
    clock = Clock()
    async with engine(tmp_path, clock=clock) as world:
        world.desk.faults["desk:ada"] = [Retry("429", after=30.0)]
        async with world.running():
            await world.desk.accept(world.desk.message("hello"))
            await world.desk.until(lambda: len(world.desk.tries) == 1)
            assert "answer" in await world.desk.ask("hello", "bob")
        assert not [delivery for delivery in world.desk.sent if delivery.address.chat == "ada"]
        clock.at += 31
        async with world.running():
            await world.desk.until(lambda: len(world.desk.sent) == 2)
            await world.idle()
        assert [delivery.attempt for delivery in world.desk.tries if delivery.address.chat == "ada"] == [1, 2]
        assert len(world.model.calls) == 2


@pytest.mark.asyncio
async def test_a_chat_that_is_stuck_holds_up_no_other_and_keeps_its_order(tmp_path: Path) -> None:  # P43, P44, BO-055
    async with engine(tmp_path) as world, world.running():
        world.desk.stuck["desk:ada"] = asyncio.Event()
        await world.desk.accept(*(world.desk.message(f"message {n}") for n in range(4)))
        await world.desk.until(lambda: len(world.desk.tries) == 1)
        for n in range(3):
            assert f"bob {n}" in await world.desk.ask(f"bob {n}", "bob")
        world.desk.stuck.pop("desk:ada").set()
        await world.desk.until(lambda: len(world.desk.sent) == 7)
        texts = [delivery.text for delivery in world.desk.sent if delivery.address.chat == "ada"]
        assert [f"message {n}" in text for n, text in enumerate(texts)] == [True] * 4


@pytest.mark.asyncio
async def test_parts_are_planned_once_and_sent_as_one_delivery(tmp_path: Path) -> None:  # P43, BO-055
    async with engine(tmp_path, lambda body: say("one\n---\ntwo\n---\nthree\n---\nfour")) as world, world.running():
        await world.desk.ask("four parts")
        (delivery,) = world.desk.sent
        assert [(part.text, part.index, part.total) for part in delivery.parts] == [
            (word, n, 4) for n, word in enumerate(("one", "two", "three", "four"), 1)
        ]


@pytest.mark.asyncio
async def test_a_delivery_that_is_refused_for_ever_is_dead_and_shown(tmp_path: Path) -> None:  # P43
    async with engine(tmp_path) as world, world.running():
        world.desk.faults["desk:ada"] = [Refused("the chat is gone")]
        with capture_logs() as logs:
            await world.desk.accept(world.desk.message("hello"))
            await world.desk.until(lambda: len(world.desk.tries) == 1)
            assert "and again" in await world.desk.ask("and again")
        (dead,) = await world.store.outbox(("dead",))
        assert dead["reason"] == "the chat is gone"
        assert [line["log_level"] for line in logs if line["event"] == "outbox.dead"] == ["error"]


@pytest.mark.asyncio
async def test_chats_that_hang_hold_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # P43
    monkeypatch.setattr(sending, "HANGS_AFTER", 0.05)
    hanging = [f"ada/{number}" for number in range(3 * sending.SIDE_BY_SIDE)]
    async with engine(tmp_path) as world, world.running():
        for chat in hanging:
            world.desk.stuck[f"desk:{chat}"] = asyncio.Event()
        waiting = [world.desk.message("hello", chat) for chat in hanging]
        for message in waiting:
            await world.desk.accept(message)
        await world.desk.until(lambda: len(world.desk.tries) == len(hanging))
        assert "and I" in await world.desk.ask("and I?", "bob")
        for event in world.desk.stuck.values():
            event.set()
        for message in waiting:
            await world.desk.until(lambda message=message: len(world.desk.answers(message)) == 1)  # type: ignore[misc]
        await world.idle()
        assert len(world.desk.tries) == len(hanging) + 1


@pytest.mark.asyncio
async def test_a_reply_that_its_adapter_always_breaks_on_is_given_up_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # P43
    monkeypatch.setattr(sending, "RETRY_BASE", 0.001)
    async with engine(tmp_path) as world, world.running():
        world.desk.faults["desk:ada"] = [KeyError("emoji")] * sending.BROKEN
        await world.desk.accept(world.desk.message("hello"))
        assert "and again" in await world.desk.ask("and again")
        (dead,) = await world.store.outbox(("dead",))
        assert dead["reason"] == "KeyError: 'emoji'"
        assert dead["attempts"] == sending.BROKEN


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("capabilities", "there", "state", "tries"),
    [
        (Capabilities(), False, "unknown", 2),
        (Capabilities(can_find=True), True, "sent", 1),
        (Capabilities(can_find=True), False, "unknown", 2),
        (Capabilities(idempotent_send=True), False, "sent", 3),
    ],
)
async def test_an_unknown_outcome_is_looked_up_repeated_once_or_shown(
    tmp_path: Path, capabilities: Capabilities, there: bool, state: str, tries: int
) -> None:  # P43
    async with engine(tmp_path, capabilities=capabilities) as world, world.running():
        world.desk.faults["desk:ada"] = [Unknown("no answer came"), Unknown("none again")]
        if there:
            world.desk.known["desk:ada"] = Sent("found")
        await world.desk.accept(world.desk.message("hello"))
        await world.desk.until(lambda: len(world.desk.tries) == tries)
        await world.idle()
        assert [row["state"] for row in await world.store.outbox(("sent", "unknown", "dead", "pending"))] == [state]


@pytest.mark.asyncio
async def test_an_adapter_that_breaks_costs_no_reply(tmp_path: Path) -> None:  # P43
    async with engine(tmp_path) as world, world.running():
        world.desk.faults["desk:ada"] = [KeyError("a fault of the adapter")]
        assert "answer" in await world.desk.ask("hello")
        assert len(world.desk.tries) == 2


@pytest.mark.asyncio
async def test_the_sending_platform_sees_that_something_goes_on(tmp_path: Path) -> None:  # P44
    async with engine(tmp_path, lambda body: say("a rather long answer " * 5)) as world, world.running():
        with world.service.bus.subscribe(world.desk.message("").address) as events:
            await world.desk.ask("hello")
            first = await events.get()
            second = await events.get()
        assert isinstance(first, Typing)
        assert isinstance(second, Preview)
        assert ("a rather long answer " * 5).startswith(second.text)


@pytest.mark.asyncio
async def test_a_web_reply_counts_as_sent_when_it_is_committed(tmp_path: Path) -> None:  # P43
    async with engine(tmp_path) as world, world.running():
        address = Address("web", "local")
        with world.service.bus.subscribe(address) as events:
            await world.service.host("web").accept([Inbound("web/local/1", address, "local", "hello", client_id="1")])
            async with asyncio.timeout(20):
                while len(said := await world.store.history("web:local", 0, 10)) < 2:
                    await events.get()
        assert [(line.role, line.id if line.role == "user" else line.answers) for line in said] == [("user", "1"), ("assistant", ("1",))]
        assert [row["state"] for row in await world.store.outbox(("pending", "sent"))] == ["sent"]


@pytest.mark.asyncio
async def test_one_process_per_data_directory(tmp_path: Path) -> None:  # P42, BO-080
    async with engine(tmp_path) as world, world.running():
        first = world.service
        with pytest.raises(ClewError, match="another clew uses this data directory"):
            async with world.running():
                pass
        world.service = first
        assert "answer" in await world.desk.ask("still here")
    async with engine(tmp_path) as world, world.running():
        assert "answer" in await world.desk.ask("free again", client_id="another")


@pytest.mark.asyncio
async def test_readiness_says_what_is_missing(tmp_path: Path) -> None:  # P48
    async with engine(tmp_path) as world, world.running():
        await world.desk.host()
        assert await world.service.readiness() == []
        (await world.desk.host()).report(False, "the network is gone")
        assert await world.service.readiness() == ["desk: the network is gone"]


@pytest.mark.asyncio
async def test_a_turn_in_which_everything_happens_keeps_its_order(tmp_path: Path) -> None:  # P42, P44, BO-056
    def script(body: JsonObject) -> Reply:
        return say(f"re {last_user_text(body).rpartition('] ')[2]}")

    async with engine(tmp_path, script) as world:
        world.compression(trigger_messages=10, keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(6))
            held = world.model.hold(is_summary)
            messages = [world.desk.message(text) for text in ("one", "/status", "two", "three")]
            await world.desk.accept(*messages)
            await held.reached.wait()
            world.model.faults.append(DropAfter(3))
            held.release()
            await world.desk.until(lambda: len(world.desk.sent) == 4)
            assert [delivery.answers[0] for delivery in world.desk.sent] == [each.client_id for each in messages]
            assert [d.text for d in world.desk.sent if d.text.startswith("re")] == ["re one", "re two", "re three"]


class Shaky(Desk):
    """A platform whose first connections fail in a way that its adapter did not foresee."""

    failures = 1

    async def run(self, host: Host) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("no network yet")
        await super().run(host)


@pytest.mark.asyncio
async def test_a_transport_that_fails_is_started_again(tmp_path: Path) -> None:  # P48, BO-098
    async with engine(tmp_path, desk=Shaky()) as world:
        with capture_logs() as logs:
            async with world.running():
                assert "answer" in await world.desk.ask("there you are")
                assert await world.service.readiness() == []
        assert [line["task"] for line in logs if line["event"] == "task.restarted"] == ["transport.desk"]
        assert [line["detail"] for line in logs if line["event"] == "transport.disconnected"] == ["OSError: no network yet"]


@pytest.mark.asyncio
async def test_a_full_window_is_compacted_even_where_compression_is_off(tmp_path: Path) -> None:  # P8, P9
    long = " ".join(["lorem ipsum dolor sit amet"] * 12)
    async with engine(tmp_path, window=8192) as world:
        world.compression(enabled=False)
        async with world.running():
            await world.seed(*exchanges(2), *[each for n in range(25) for each in (user(f"{n} {long}"), assistant(f"{n} {long}"))])
            assert "answer" in await world.desk.ask("does it fit?")
            assert [each.trigger for each in await world.store.compactions(await world.session())] == ["limit"]


class Blind(Desk):
    """A platform that cannot be asked either while its network is down."""

    async def find(self, delivery: Delivery) -> Sent | None:
        raise OSError("still no network")


@pytest.mark.asyncio
@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_lookup_that_fails_blocks_no_lane(tmp_path: Path, idempotent: bool) -> None:  # P43
    desk = Blind(Capabilities(can_find=True, idempotent_send=idempotent))
    async with engine(tmp_path, desk=desk) as world, world.running():
        desk.faults["desk:ada"] = [Unknown("no answer came")]
        first = desk.message("hello")
        await desk.accept(first)
        assert "and again" in await desk.ask("and again")
        await world.idle()
        assert [row["state"] for row in await world.store.outbox(("unknown", "sent", "sending"))] == ["sent", "sent"]


@SQLITE
@pytest.mark.asyncio
async def test_stopping_at_any_moment_leaves_no_reply_behind(tmp_path: Path) -> None:  # P43, P48
    async with engine(tmp_path) as world, world.running(remote=False):
        delivering = world.service.connections.delivering["desk"]
        delivering.connected(True)
        host = world.service.host("desk")
        for steps in (*range(0, 40, 2), *range(40, 400, 20)):
            message = world.desk.message(f"step {steps}")
            await host.accept([message])
            async with asyncio.timeout(20):
                seen = world.store.version
                while not (await world.store.counts(0.0))["outbox_pending"]:
                    seen = await world.store.changed(seen, 20)
            sending = asyncio.create_task(delivering.run())
            for _ in range(steps):
                await asyncio.sleep(0)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await delivering.drain(20)
            assert len(world.desk.answers(message)) == 1, steps


class PartByPart(Desk):
    """A platform that drops no repeats: it takes one part at a time."""

    async def send(self, delivery: Delivery) -> Sent:
        await super().send(delivery)
        return Sent(f"ref-{delivery.sent}", delivery.sent + 1)


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", [Retry("429", 0.0), Unknown("no answer")])
async def test_a_failure_between_two_parts_repeats_no_part_that_was_confirmed(tmp_path: Path, fault: Exception) -> None:  # P43, BO-055
    desk = PartByPart()

    async def send(delivery: Delivery) -> Sent:
        if delivery.sent == 1 and not desk.faults:
            desk.faults["desk:ada"] = [fault]
        return await PartByPart.send(desk, delivery)

    desk.send = send  # type: ignore[method-assign]
    async with engine(tmp_path, lambda body: say("one\n---\ntwo\n---\nthree"), desk=desk) as world, world.running():
        await world.desk.ask("hello")
        await world.desk.until(lambda: len(world.desk.sent) == 3)
        await world.idle()
        assert [(each.sent, each.repeat) for each in world.desk.sent] == [(0, False), (1, isinstance(fault, Unknown)), (2, False)]
        assert [row["state"] for row in await world.store.outbox(("sent", "unknown", "dead"))] == ["sent"]


@pytest.mark.asyncio
async def test_typing_is_told_again_until_the_reply_where_the_platform_forgets_it(tmp_path: Path) -> None:  # P44
    async with engine(tmp_path, capabilities=Capabilities(typing_s=0.05)) as world, world.running():
        held = world.model.hold()
        message = world.desk.message("hello")
        await world.desk.accept(message)
        await held.reached.wait()
        async with asyncio.timeout(20):
            while len(world.desk.hints) < 3:
                await asyncio.sleep(0.01)
        held.release()
        await world.desk.until(lambda: bool(world.desk.answers(message)))
        assert not world.service.hints._typing


@pytest.mark.asyncio
async def test_words_of_two_people_never_share_a_turn(tmp_path: Path) -> None:  # P44
    async with engine(tmp_path, capabilities=Capabilities(merges=True)) as world, world.running():
        held = world.model.hold()
        await world.desk.accept(world.desk.message("first", "club", sender="ada", direct=False))
        await held.reached.wait()
        said = (("second", "ada"), ("third", "ada"), ("fourth", "bob"), ("fifth", "ada"))
        waiting = [world.desk.message(text, "club", sender=sender, direct=False) for text, sender in said]
        await world.desk.accept(*waiting)
        held.release()
        await world.desk.until(lambda: len(world.desk.sent) == 4)
        ids = [each.client_id for each in waiting]
        assert [each.answers for each in world.desk.sent[1:]] == [(ids[0], ids[1]), (ids[2],), (ids[3],)]


@pytest.mark.asyncio
async def test_in_a_group_nobody_ends_the_turn_of_another(tmp_path: Path) -> None:  # P44, BO-033
    began, goes_on = asyncio.Event(), asyncio.Event()

    async def looks(context: object, note: str) -> str:
        began.set()
        await goes_on.wait()
        return "found"

    def script(body: JsonObject) -> Reply:
        said = last_user_text(body)
        if "look it up" in said and body["messages"][-1]["role"] == "user":
            return Reply([{"type": "tool_use", "id": "c1", "name": "look", "input": {}}], "tool_use")
        return say("looked up" if "look it up" in said else "good morning")

    async with engine(tmp_path, script, tools=[tool("look", looks)]) as world, world.running():
        asked = world.desk.message("look it up", "team", sender="ada", direct=False, sender_name="Ada")
        await world.desk.accept(asked)
        await began.wait()
        greeted = world.desk.message("morning", "team", sender="bob", direct=False, sender_name="Bob")
        await world.desk.accept(greeted)
        goes_on.set()
        await world.desk.until(lambda: bool(world.desk.answers(asked)) and bool(world.desk.answers(greeted)))
        assert [each.text for each in world.desk.answers(asked) + world.desk.answers(greeted)] == ["looked up", "good morning"]
        rows = [row for row in await world.transcript("team") if row.role == "user"]
        assert [(row.sender_name, row.text) for row in rows] == [("Ada", "look it up"), ("Bob", "morning")]
        told = [words_of(message) for message in spoken(world.replies[-1]) if message["role"] == "user"]
        assert ["Ada" in told[0], "Bob" in told[-1]] == [True, True]
