"""Calls that need somebody's yes: asked for, waited for in the file alone, and run once or not at all."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from clew.config import Approver, Config, Job
from clew.plugins import Plugin, registry
from clew.tools import Tool, ToolContext
from clew.transport import Delivery, Inbound
from tests.databases import BOTH, databases
from tests.emulators.scripts import say
from tests.emulators.server import JsonObject, Reply
from tests.integration.engine import PEOPLE, Clock, NoSettings, World, calling, engine, spoken, tool
from tests.integration.test_engine_tools import query, results

pytestmark = BOTH


class Ledger:
    """A tool that changes the world, and what it did to it."""

    def __init__(self, name: str = "pay") -> None:
        self.done: list[str] = []
        self.tool: Tool = replace(tool(name, self._run), asks=True)

    async def _run(self, context: ToolContext, note: str) -> str:
        self.done.append(note)
        return f"paid {note}"


def asked(delivery: Delivery) -> bool:
    return "May I call" in delivery.text


async def question(world: World, chat: str = "ada", number: int = 1) -> Delivery:
    """The question that was asked in a chat, waited for."""
    found: Callable[[], list[Delivery]] = lambda: [d for d in world.desk.sent if str(d.address) == f"desk:{chat}" and asked(d)]  # noqa: E731
    await world.desk.until(lambda: len(found()) >= number)
    return found()[number - 1]


async def begun(world: World, text: str = "pay the rent", chat: str = "ada", **more: Any) -> Inbound:
    message = world.desk.message(text, chat, **more)
    await world.desk.accept(message)
    return message


def code_of(delivery: Delivery) -> str:
    return delivery.text.rpartition("[")[2].rstrip("]")


async def answered(world: World, message: Inbound) -> Delivery:
    await world.desk.until(lambda: bool(world.desk.answers(message)))
    return world.desk.answers(message)[0]


@pytest.mark.asyncio
@pytest.mark.parametrize("words", ["yes", "Ja!", "👍"])
async def test_a_call_waits_for_a_yes_and_runs_once(tmp_path: Path, words: str) -> None:
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world, world.running():
        with capture_logs() as logs:
            first = await begun(world)
            said = await question(world)
            assert '- note: "rent"' in said.text
            assert (said.in_reply_to, said.answers) == (first.client_id, ())
            assert ledger.done == []
            yes = await begun(world, words)
            reply = await answered(world, yes)
            assert reply.text == "done"
            assert reply.answers == (first.client_id, yes.client_id), "what was said is part of the turn, and answered with it"
            await world.idle()
        assert ledger.done == ["rent"]
        assert results(world.replies[-1]) == [("c1_0", "paid rent")]
        assert query(tmp_path, "SELECT state, how FROM approvals") == [("yes", "said")]
        assert [row.role for row in await world.transcript()] == ["user", "assistant", "tool", "assistant"]
    told = {line["event"]: line for line in logs if line["event"].startswith("approval.")}
    assert told["approval.asked"]["tools"] == ["pay"]
    assert (told["approval.answered"]["answer"], told["approval.answered"]["how"]) == ("yes", "said")
    assert "rent" not in str(logs)


async def reacted(world: World, emoji: str, on: Delivery, chat: str = "ada", **more: Any) -> str:
    """Put an emoji on what was sent; what the door says of it."""
    (receipt,) = await world.desk.accept(world.desk.message(emoji, chat, kind="reaction", reply_to=f"ref-{on.id}", **more))
    return receipt.status


@pytest.mark.asyncio
@pytest.mark.parametrize(("emoji", "paid"), [("👍🏽", ["rent"]), ("✅", ["rent"]), ("👎", []), ("❌", [])])
async def test_an_emoji_on_the_question_answers_it_in_a_thread_too(tmp_path: Path, emoji: str, paid: list[str]) -> None:
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world, world.running():
        first = await begun(world, "pay the rent", "room/7", sender="ada", direct=False)
        said = await question(world, "room/7")
        await world.idle()
        assert await reacted(world, emoji, said, "room", sender="bob", direct=False) == "refused", "it was not bob who was asked"
        assert await reacted(world, "🎉", said, "room", sender="ada", direct=False) == "refused"
        assert await reacted(world, emoji, replace(said, id="other"), "room", sender="ada", direct=False) == "refused"
        assert await reacted(world, emoji, said, "roo", sender="ada", direct=False) == "refused"
        ((ref,),) = databases.rows(tmp_path, "SELECT ref FROM outbox")
        databases.altered(tmp_path, "UPDATE outbox SET ref = ''")  # of a platform that gives its messages no ids
        nowhere = world.desk.message(emoji, "room", kind="reaction", sender="ada", direct=False)
        receipts = await world.desk.accept(nowhere, replace(nowhere, reply_to=""))
        assert [each.status for each in receipts] == ["refused", "refused"]
        databases.beside(tmp_path, lambda db: db.execute("UPDATE outbox SET ref = ?", (ref,)))
        assert query(tmp_path, "SELECT state FROM approvals") == [("open",)]
        assert await reacted(world, emoji, said, "room", sender="ada", direct=False) == "stored"
        assert (await answered(world, first)).answers == (first.client_id,)
        await world.idle()
        assert await reacted(world, "👎", said, "room", sender="ada", direct=False) == "refused", "it is closed"
        assert query(tmp_path, "SELECT count(*), max(kind) FROM inbox") == [(1, "message")], "an emoji is no message"
        assert query(tmp_path, "SELECT address FROM chats") == [("desk:room/7",)]
    assert ledger.done == paid


@pytest.mark.asyncio
async def test_emoji_that_answer_nothing_cost_nothing(tmp_path: Path) -> None:
    async with engine(tmp_path, lambda body: say("hello")) as world, world.running():
        await world.desk.ask("hi")
        calls = len(world.replies)
        with capture_logs() as logs:
            assert await reacted(world, "👍", world.desk.sent[-1]) == "refused"
            assert await reacted(world, "👍", world.desk.sent[-1], sender="stranger") == "refused"
        await world.idle()
        assert (len(world.replies), len(world.desk.sent), logs) == (calls, 1, [])
        assert query(tmp_path, "SELECT count(*) FROM access_requests") == [(0,)]


@pytest.mark.asyncio
async def test_a_no_is_told_to_the_model_and_nothing_runs(tmp_path: Path) -> None:
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world, world.running():
        await begun(world)
        await question(world)
        reply = await answered(world, await begun(world, "No."))
        assert reply.text == "done"
        ((_, text),) = results(world.replies[-1])
        assert text.startswith("ada said no to this call. It was not run")
        assert set((await world.store.tool_states((await world.transcript())[0].turn)).values()) == {"denied"}
    assert ledger.done == []


@pytest.mark.asyncio
async def test_other_words_of_the_asked_person_mean_no_and_are_answered_too(tmp_path: Path) -> None:
    ledger = Ledger()

    def script(body: JsonObject) -> Reply:
        last = spoken(body)[-1]
        if last["role"] == "tool":
            return say("then not")
        if "rent" in str(last["content"]):
            return Reply([{"type": "tool_use", "id": "c1", "name": "pay", "input": {"note": "rent"}}], "tool_use")
        return say("a new answer")

    async with engine(tmp_path, script, tools=[ledger.tool]) as world, world.running():
        first = await begun(world)
        await question(world)
        other = await begun(world, "what is the weather?")
        assert (await answered(world, first)).text == "then not"
        assert (await answered(world, other)).text == "a new answer"
        late = await begun(world, f"yes {code_of(await question(world))}")
        assert (await answered(world, late)).text == "That question is closed already."
    assert ledger.done == []


@pytest.mark.asyncio
async def test_a_question_that_nobody_answers_is_a_no_when_its_time_is_over(tmp_path: Path) -> None:
    ledger, clock = Ledger(), Clock()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool], clock=clock) as world, world.running():
        first = await begun(world)
        assert "within 1 hour" in (await question(world)).text
        await world.service.upkeep.look()
        assert query(tmp_path, "SELECT state FROM approvals") == [("open",)]
        clock.at += 3601
        await world.service.upkeep.look()
        assert (await answered(world, first)).text == "done"
        assert "did not answer in time" in results(world.replies[-1])[0][1]
    assert ledger.done == []


@pytest.mark.asyncio
async def test_a_question_outlives_restarts_and_so_does_its_answer(tmp_path: Path) -> None:  # P48
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world:
        async with world.running():
            first = await begun(world)
            await question(world)
        for _ in range(4):  # waiting is no attempt: more restarts than a turn has
            async with world.running():
                assert query(tmp_path, "SELECT state FROM turns") == [("waiting",)]
        assert ledger.done == []
        async with world.running(remote=False):
            await world.service.host("desk").accept([world.desk.message("yes")])
        async with world.running():
            assert (await answered(world, first)).text == "done"
    assert ledger.done == ["rent"]
    assert len([d for d in world.desk.sent if asked(d)]) == 1


@pytest.mark.asyncio
async def test_stop_closes_the_question_and_ends_the_turn(tmp_path: Path) -> None:
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world, world.running():
        first = await begun(world)
        await question(world)
        await begun(world, "/stop")
        assert (await answered(world, first)).text == "Stopped."
        assert query(tmp_path, "SELECT state, how FROM approvals") == [("no", "stopped")]
        world.model.script = lambda body: say("as you like")
        assert await world.desk.ask("and now?") == "as you like"
    assert ledger.done == []


@pytest.mark.asyncio
async def test_calls_that_need_no_yes_run_while_the_others_wait_and_results_stand_in_order(tmp_path: Path) -> None:  # P11
    ledger, read = Ledger(), []

    async def reads(context: ToolContext, note: str) -> str:
        read.append(note)
        return f"read {note}"

    calls: tuple[tuple[str, JsonObject], ...] = (("pay", {"note": "a"}), ("read", {"note": "b"}), ("pay", {"note": "c"}))
    async with engine(tmp_path, calling(*calls), tools=[ledger.tool, tool("read", reads)]) as world, world.running():
        await begun(world)
        said = await question(world)
        assert '- note: "a"' in said.text
        assert '- note: "c"' in said.text
        assert read == ["b"]
        await answered(world, await begun(world, "yes"))
        assert [text for _, text in results(world.replies[-1])] == ["paid a", "read b", "paid c"]
        assert await world.store.verify_session(await world.session()) == []
    assert sorted(ledger.done) == ["a", "c"]


@pytest.mark.asyncio
async def test_always_is_remembered_for_this_tool_here_listed_and_taken_back(tmp_path: Path) -> None:
    ledger, other = Ledger(), Ledger("wire")
    tools = [ledger.tool, other.tool]
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=tools) as world:
        async with world.running():
            await begun(world)
            said = await question(world)
            (waiting,) = await world.store.open_questions()
            assert (waiting.code, waiting.tools, waiting.person, waiting.address) == (code_of(said), ("pay",), "ada", "desk:ada")
            assert waiting.until > waiting.asked
            await answered(world, await begun(world, "always"))
            assert await world.desk.ask("again") == "done"
            assert await world.store.open_questions() == []
            (yes,) = await world.store.standing()
            assert (yes.address, yes.tool, yes.person, yes.by) == ("desk:ada", "pay", "ada", "ada")
            assert ledger.done == ["rent", "rent"]
        async with world.running():
            assert await world.desk.ask("and after a restart") == "done"
            assert "pay, for ada: ada said always" in await world.desk.ask("/allowed")
            await begun(world, "pay for bob", "bob")
            await question(world, "bob")  # not there
            world.model.script = calling(("wire", {"note": "x"}))
            await begun(world)
            await question(world, number=2)  # not this tool
            await answered(world, await begun(world, "no"))
            assert "will ask again" in await world.desk.ask("/allowed remove pay")
            assert "Nothing may run here" in await world.desk.ask("/allowed")
            world.model.script = calling(("pay", {"note": "rent"}))
            await begun(world)
            await question(world, number=3)
    assert ledger.done == ["rent"] * 3
    assert other.done == []


def given(built: Tool, section: str, settings: NoSettings) -> Tool:
    """The `build` of a plug-in."""
    return built


@pytest.mark.asyncio
async def test_always_holds_for_what_a_server_said_of_its_tool_then(tmp_path: Path) -> None:
    ledger = Ledger()
    foreign = replace(ledger.tool, foreign='{"type": "object", "properties": {"note": {"type": "string"}}}')
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[foreign]) as world:
        async with world.running():
            await begun(world)
            await question(world)
            await answered(world, await begun(world, "always"))
        async with world.running():
            assert await world.desk.ask("again") == "done"
        for number, changed in enumerate((replace(foreign, description="Pays twice."), replace(foreign, foreign='{"type": "object"}')), 2):
            registry("clew.tools")["pay"] = Plugin("pay", NoSettings, partial(given, changed))
            async with world.running():
                await begun(world)
                await question(world, number=number)
                await answered(world, await begun(world, "always"))
                assert await world.desk.ask("again") == "done"
    assert ledger.done == ["rent"] * 6


@pytest.mark.asyncio
async def test_in_a_group_only_the_person_who_was_asked_answers(tmp_path: Path) -> None:
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world, world.running():
        first = await begun(world, "pay the rent", "room", sender="ada", direct=False)
        said = await question(world, "room")
        await begun(world, f"yes {code_of(said)}", "room", sender="bob", direct=False)
        assert query(tmp_path, "SELECT state FROM approvals") == [("open",)]
        await begun(world, "no", "room", sender="ada", direct=False)
        await answered(world, first)
        await world.idle()
        assert query(tmp_path, "SELECT state FROM approvals WHERE turn = (SELECT turn FROM messages ORDER BY number LIMIT 1)") == [("no",)]
    assert ledger.done == []


def owned(config: Config, **people: str) -> Config:
    everybody = PEOPLE | {name: replace_role(name, role) for name, role in people.items()}
    return config.model_copy(update={"people": everybody})


def replace_role(name: str, role: str) -> Any:
    return PEOPLE["ada"].model_copy(update={"role": role, "identities": (f"desk:{name}",)})


@pytest.mark.asyncio
async def test_for_a_guest_the_owner_is_asked_where_they_were_heard_last(tmp_path: Path) -> None:
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world:
        world.config = owned(world.config, ada="owner", eve="guest")
        async with world.running():
            world.model.script = lambda body: say("hello")
            await world.desk.ask("hi")
            world.model.script = calling(("pay", {"note": "rent"}))
            wanted = await begun(world, chat="eve")
            said = await question(world, "ada")
            assert said.text.startswith("eve at desk:eve needs your yes. May I call pay?")
            await world.desk.until(lambda: any("whoever runs me" in d.text for d in world.desk.sent if str(d.address) == "desk:eve"))
            await begun(world, f"yes {code_of(said)}", "eve")  # a guest cannot answer it
            assert query(tmp_path, "SELECT state FROM approvals") == [("open",)]
            yes = await begun(world, "yes")
            assert (await answered(world, yes)).text == "Good. pay may run."
            assert (await answered(world, wanted)).text == "done"
    assert ledger.done == ["rent"]


@pytest.mark.asyncio
async def test_where_two_questions_are_open_a_bare_yes_answers_neither(tmp_path: Path) -> None:
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world:
        world.config = owned(world.config, ada="owner", eve="guest", bob="guest")
        async with world.running():
            world.model.script = lambda body: say("hello")
            await world.desk.ask("hi")
            world.model.script = calling(("pay", {"note": "rent"}))
            await begun(world, chat="eve")
            first = await question(world, "ada")
            bobs = await begun(world, chat="bob")
            second = await question(world, "ada", 2)
            unclear = await answered(world, await begun(world, "yes"))
            assert "2 questions are open" in unclear.text
            assert {code_of(first), code_of(second)} <= set(unclear.text.split())
            assert ledger.done == []
            await begun(world, "yes", reply_to=f"ref-{second.id}")
            assert (await answered(world, bobs)).text == "done"
            assert query(tmp_path, "SELECT state FROM approvals ORDER BY asked") == [("open",), ("yes",)]
    assert ledger.done == ["rent"]


@pytest.mark.asyncio
async def test_without_anybody_to_ask_nothing_runs(tmp_path: Path) -> None:
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world:
        world.config = owned(world.config, eve="guest")
        async with world.running():
            assert await world.desk.ask("pay", "eve") == "done"
            assert "nobody who could be asked" in results(world.replies[-1])[0][1]
    assert ledger.done == []


@pytest.mark.asyncio
async def test_a_scheduled_prompt_asks_the_owner_and_does_not_hold_up_its_chat(tmp_path: Path) -> None:
    ledger = Ledger()

    def script(body: JsonObject) -> Reply:
        last = spoken(body)[-1]
        if last["role"] != "tool" and "rent day" in str(last["content"]):
            return Reply([{"type": "tool_use", "id": "c1", "name": "pay", "input": {"note": "rent"}}], "tool_use")
        return say("well")

    async with engine(tmp_path, script, tools=[ledger.tool]) as world:
        job = Job(name="rent", cron="0 8 * * *", prompt="It is rent day.", deliver_to="desk:bob")
        world.config = owned(world.config, ada="owner").model_copy(update={"schedule": (job,)})
        async with world.running():
            await world.desk.ask("hi")
            await world.service.scheduler.run_now("rent")
            said = await question(world)
            assert said.text.startswith("The scheduled prompt rent needs your yes.")
            assert (await answered(world, await begun(world, "yes"))).text == "Good. pay may run."
            await world.desk.until(lambda: any(str(d.address) == "desk:bob" for d in world.desk.sent))
            assert ledger.done == ["rent"]
            await world.service.scheduler.run_now("rent")
            await question(world, number=2)
            assert await world.desk.ask("hello?", "bob") == "well"
            assert query(tmp_path, "SELECT state, how FROM approvals ORDER BY asked") == [("yes", "said"), ("open", "")]
            await begun(world, "/stop", "bob")
            await world.idle()
            assert query(tmp_path, "SELECT state, how FROM approvals ORDER BY asked")[1] == ("no", "stopped")
    assert ledger.done == ["rent"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("approver", "runs"),
    [
        (Approver(mode="allow"), True),
        (Approver(mode="deny"), False),
        (Approver(allow=("pay",)), True),
        (Approver(mode="pattern", allow=("p*(note=rent)",)), True),
        (Approver(mode="pattern", allow=("*",), deny=("pay(note=r*)",)), False),
    ],
)
async def test_a_rule_of_the_config_asks_nobody(tmp_path: Path, approver: Approver, runs: bool) -> None:
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world:
        world.agent(approver=approver)
        async with world.running():
            assert await world.desk.ask("pay") == "done"
            assert query(tmp_path, "SELECT count(*) FROM approvals") == [(0,)]
    assert ledger.done == (["rent"] if runs else [])


@pytest.mark.asyncio
async def test_nobody_is_asked_about_a_call_that_cannot_run(tmp_path: Path) -> None:
    ledger = Ledger()
    async with engine(tmp_path, calling(("pay", {"note": 5})), tools=[ledger.tool]) as world, world.running():
        assert await world.desk.ask("pay") == "done"
        assert "arguments of pay are wrong" in results(world.replies[-1])[0][1]
    assert ledger.done == []


@pytest.mark.asyncio
async def test_a_yes_without_a_question_is_a_message(tmp_path: Path) -> None:
    async with engine(tmp_path, lambda body: say("yes what?")) as world, world.running():
        assert await world.desk.ask("yes") == "yes what?"


@pytest.mark.asyncio
async def test_a_yes_is_for_the_call_that_was_shown_and_no_later_one(tmp_path: Path) -> None:
    """The model gives every call the same id."""
    ledger, rounds = Ledger(), 0

    def script(body: JsonObject) -> Reply:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            return say("done")
        return Reply([{"type": "tool_use", "id": "c", "name": "pay", "input": {"note": f"rent {rounds}"}}], "tool_use")

    async with engine(tmp_path, script, tools=[ledger.tool]) as world, world.running():
        first = await begun(world)
        await question(world)
        await begun(world, "yes")
        second = await question(world, number=2)
        assert '- note: "rent 2"' in second.text
        assert ledger.done == ["rent 1"]
        await begun(world, "no")
        await answered(world, first)
    assert ledger.done == ["rent 1"]
