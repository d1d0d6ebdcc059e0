import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from clew import service
from clew.assembly import people_of
from clew.config import Approver, Config, Limits
from clew.inbox import decider
from clew.messages import Block, Text, ToolCall, ToolResult
from clew.store import Claim, NewMessage, Step, ToolState
from clew.store.sql import SqlStore
from clew.tools import Tool, ToolContext, ToolError, runner
from clew.tools.runner import ToolRunner
from clew.transport import Address, Inbound
from tests.databases import databases
from tests.emulators.scripts import say
from tests.emulators.server import JsonObject, Reply
from tests.integration.engine import PEOPLE, START, calling, context_of, engine, spoken, system_text, tool


async def shelved(context: ToolContext, note: str) -> str:
    return f"shelved {note}"


def query(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    return databases.rows(folder, sql)


def results(body: JsonObject) -> list[tuple[str, str]]:
    """(call id, text) of the results in a request, in order."""
    return [(message["tool_call_id"], message["content"]) for message in spoken(body) if message["role"] == "tool"]


@pytest.mark.asyncio
async def test_calls_of_one_message_run_side_by_side_and_answer_in_order(tmp_path: Path) -> None:  # P1, P11
    both = asyncio.Barrier(2)

    async def meets(context: ToolContext, note: str) -> str:
        await both.wait()
        return f"met {note}"

    script = calling(("meet", {"note": "a"}), ("meet", {"note": "b"}), then="both met", text="a moment")
    async with engine(tmp_path, script, tools=[tool("meet", meets)]) as world, world.running():
        assert await world.desk.ask("meet twice") == "both met"
        assert [text for _, text in results(world.replies[1])] == ["met a", "met b"]
        rows = await world.transcript()
        assert [row.role for row in rows] == ["user", "assistant", "tool", "tool", "assistant"]
        assert [row.results[0].text for row in rows[2:4]] == ["met a", "met b"]
        assert set((await world.store.tool_states(rows[1].turn)).values()) == {"done"}


@pytest.mark.asyncio
async def test_only_the_final_text_is_delivered(tmp_path: Path) -> None:  # BO-120
    rounds = 0

    def script(body: JsonObject) -> Reply:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            return say("The reminder is set.")
        note = {"type": "tool_use", "id": f"c{rounds}", "name": "shelve", "input": {"note": str(rounds)}}
        return Reply([{"type": "text", "text": f"working on step {rounds}"}, note], "tool_use")

    async with engine(tmp_path, script, tools=[tool("shelve", shelved)]) as world, world.running():
        assert await world.desk.ask("remind me") == "The reminder is set."
        await world.idle()
        assert [delivery.text for delivery in world.desk.sent] == ["The reminder is set."]


@pytest.mark.asyncio
async def test_a_tool_that_is_unknown_misused_or_failing_gives_an_error_result(tmp_path: Path) -> None:  # P11
    async def breaks(context: ToolContext, note: str) -> str:
        raise RuntimeError("secret inner detail")

    async def declines(context: ToolContext, note: str) -> str:
        raise ToolError("The shelf is full.")

    calls: tuple[tuple[str, JsonObject], ...] = (
        ("nowhere", {}),
        ("shelve", {"note": 5}),
        ("shelve", {"nota": "x"}),
        ("break", {}),
        ("decline", {}),
        ("shelve", {"note": "ok"}),
    )
    tools = [tool("shelve", shelved), tool("break", breaks), tool("decline", declines)]
    async with engine(tmp_path, calling(*calls), tools=tools) as world, world.running():
        assert await world.desk.ask("try everything") == "done"
        texts = [text for _, text in results(world.replies[1])]
        assert "There is no tool 'nowhere'" in texts[0]
        assert "note" in texts[1]
        assert "nota" in texts[2]
        assert texts[3] == "The tool break failed (RuntimeError)."
        assert texts[4:] == ["The shelf is full.", "shelved ok"]
        errors = [row.results[0].is_error for row in await world.transcript() if row.role == "tool"]
        assert errors == [True] * 5 + [False]


@pytest.mark.asyncio
async def test_a_tool_that_keeps_to_no_rule_ends_neither_its_turn_nor_the_daemon(tmp_path: Path) -> None:  # P11, P44
    async def leaves(context: ToolContext, note: str) -> str:
        sys.exit("I am done")

    async def waits_for_what_is_cancelled(context: ToolContext, note: str) -> str:
        other = asyncio.ensure_future(asyncio.Event().wait())
        other.cancel()
        await other
        return "never"

    async def answers_with_a_number(context: ToolContext, note: str) -> Any:
        return 5

    tools = [tool("leave", leaves), tool("lose", waits_for_what_is_cancelled), tool("count", answers_with_a_number)]
    calls: list[tuple[str, JsonObject]] = [(each.name, {"note": "x"}) for each in tools]
    async with engine(tmp_path, calling(*calls), tools=tools) as world, world.running():
        assert await world.desk.ask("all of them") == "done"
        assert [text for _, text in results(world.replies[1])] == [
            "The tool leave failed (SystemExit).",
            "The tool lose failed (RuntimeError).",
            "The tool count failed (TypeError).",
        ]


@pytest.mark.asyncio
async def test_so_many_calls_run_at_once_and_the_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # P11
    monkeypatch.setattr(runner, "AT_ONCE", 2)
    running, most = 0, 0

    async def counts(context: ToolContext, note: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return note

    calls: list[tuple[str, JsonObject]] = [("count", {"note": str(number)}) for number in range(7)]
    async with engine(tmp_path, calling(*calls), tools=[tool("count", counts)]) as world, world.running():
        assert await world.desk.ask("count") == "done"
        assert [text for _, text in results(world.replies[1])] == [str(number) for number in range(7)]
    assert most == 2


@pytest.mark.asyncio
async def test_arguments_that_are_no_json_are_told_to_the_model(tmp_path: Path) -> None:  # P11, BO-116
    # The runner alone: the emulators send well-formed JSON.
    runner = ToolRunner([tool("shelve", shelved)], Approver(), Limits().tool_output_chars)
    for broken in ("{not json", "[1]", "[" * 100_000):
        (ran,) = await runner.run([ToolCall("c1", "shelve", broken)], context_of())
        assert ran.result is not None
        assert ran.result.is_error
        assert "arguments of shelve are wrong" in ran.result.text


@pytest.mark.asyncio
async def test_a_denied_tool_does_not_run(tmp_path: Path) -> None:  # P37
    ran: list[str] = []

    async def counts(context: ToolContext, note: str) -> str:
        ran.append(note)
        return "ran"

    async with engine(tmp_path, calling(("count", {"note": "x"})), tools=[tool("count", counts)]) as world:
        world.agent(approver=Approver(deny=("count",)))
        async with world.running():
            assert await world.desk.ask("count") == "done"
            assert results(world.replies[1]) == [("c1_0", "The tool count is not allowed here.")]
            assert set((await world.store.tool_states((await world.transcript())[0].turn)).values()) == {"denied"}
    assert ran == []


@pytest.mark.asyncio
async def test_a_turn_ends_after_its_most_model_calls_and_says_so(tmp_path: Path) -> None:  # P44
    script = lambda body: Reply([{"type": "tool_use", "id": f"c{len(body['messages'])}", "name": "shelve", "input": {}}], "tool_use")  # noqa: E731
    async with engine(tmp_path, script, tools=[tool("shelve", shelved)]) as world:
        world.agent(max_model_calls=3)
        async with world.running():
            assert "I stopped after 3 model calls" in await world.desk.ask("for ever")
            world.model.script = lambda body: say("fresh")
            assert await world.desk.ask("and now?") == "fresh"
    assert len(world.replies) == 4


@pytest.mark.asyncio
async def test_of_a_long_result_both_ends_are_shown_and_the_whole_can_be_opened(tmp_path: Path) -> None:  # P1, P20
    async def floods(context: ToolContext, note: str) -> str:
        return "b" * 25_000 + "middle" + "e" * 25_000

    asked: JsonObject = {}

    def script(body: JsonObject) -> Reply:
        last = spoken(body)[-1]
        if last["role"] == "tool":
            return say("done")
        return Reply([{"type": "tool_use", "id": "c", "name": "session_open" if asked else "flood", "input": dict(asked)}], "tool_use")

    async with engine(tmp_path, script, tools=[tool("flood", floods)]) as world, world.running():
        assert await world.desk.ask("flood") == "done"
        ((_, text),) = results(world.replies[1])
        row = (await world.transcript())[2]
        how = f'session_open with id "{row.id}", around 0 and offset 15000 shows them.'
        assert text == "b" * 15_000 + f"\n[… 30,006 more characters left out here; {how}]\n" + "e" * 5_000
        assert len(row.results[0].text) == 50_006
        asked |= {"id": row.id, "around": 0, "offset": 24_000}
        assert await world.desk.ask("and the middle?") == "done"
        assert "bmiddlee" in results(world.replies[-1])[-1][1]


@pytest.mark.asyncio
async def test_what_is_stored_of_a_result_is_bounded(tmp_path: Path) -> None:  # P1
    async def floods(context: ToolContext, note: str) -> str:
        return "b" + "x" * 1_500_000 + "e"

    runner = ToolRunner([tool("flood", floods)], Approver(), Limits().tool_output_chars)
    (ran,) = await runner.run([ToolCall("c1", "flood", "{}")], context_of())
    assert ran.result is not None
    assert (ran.result.text[0], ran.result.text[-1], ran.result.shown) == ("b", "e", 20_000)
    assert "1,300,002 more characters were not stored" in ran.result.text
    assert len(ran.result.text) < 200_100


@pytest.mark.asyncio
async def test_a_tool_that_hangs_is_given_up_after_its_own_time(tmp_path: Path) -> None:  # P11
    async def hangs(context: ToolContext, note: str) -> str:
        await asyncio.Event().wait()
        return "never"

    runner = ToolRunner([replace(tool("hang", hangs), timeout=0.01)], Approver(), Limits().tool_output_chars)
    (ran,) = await runner.run([ToolCall("c1", "hang", "{}")], context_of())
    assert ran.result is not None
    assert ran.result.is_error
    assert ran.result.text == "The tool hang gave no answer within 0.01 seconds. Whether it took effect is unknown."


@pytest.mark.asyncio
async def test_stop_ends_a_turn_whose_tool_hangs_and_the_thread_goes_on(tmp_path: Path) -> None:  # P11, P44
    running = asyncio.Event()

    async def hangs(context: ToolContext, note: str) -> str:
        running.set()
        await asyncio.Event().wait()
        return "never"

    async with engine(tmp_path, calling(("hang", {})), tools=[tool("hang", hangs)]) as world, world.running():
        first = world.desk.message("hang")
        await world.desk.accept(first)
        async with asyncio.timeout(20):
            await running.wait()
        await world.desk.accept(world.desk.message("/stop"))
        await world.desk.until(lambda: len(world.desk.sent) == 2)
        assert {delivery.text for delivery in world.desk.sent} == {"Stopping.", "Stopped."}
        world.model.script = lambda body: say("as you like")
        assert await world.desk.ask("and now?") == "as you like"
        assert "unknown" in dict(results(world.replies[-1]))["c1_0"]


# After a crash ---------------------------------------------------------------------------------------------------


async def interrupted(store: SqlStore, *names: str, answered: Sequence[str] = ()) -> Claim:
    """What a daemon leaves that was killed between the calls of a message and their results."""
    people, local = people_of(Config(people=PEOPLE))
    await store.sync(people, local, (), START)
    message = Inbound("desk/ada/m0", Address("desk", "ada"), "ada", "do it", client_id="m0")
    await store.accept("desk", [message], None, START, decider("deny", Limits(), str))
    claim = await store.claim_turn("the dead one", START, 3600.0, frozenset())
    assert claim is not None
    calls: tuple[Block, ...] = tuple(ToolCall(f"c_{name}", name, '{"note":"x"}') for name in names)
    states = tuple(ToolState(f"c_{name}", name, '{"note":"x"}', "started", START) for name in names)
    await store.record(claim, Step(messages=(NewMessage("assistant", (Text("on it"), *calls), START),), tools=states))
    done = tuple(NewMessage("tool", (ToolResult(f"c_{name}", name, "done before"),), START) for name in answered)
    if done:
        await store.record(claim, Step(messages=done))
    return claim


@pytest.mark.asyncio
async def test_an_interrupted_call_is_run_again_only_where_that_is_harmless(tmp_path: Path) -> None:  # P11, P48, BO-052
    ran: list[str] = []

    def counting(name: str, *, idempotent: bool) -> Tool:
        async def run(context: ToolContext, note: str) -> str:
            ran.append(name)
            return f"{name} ran"

        return tool(name, run, idempotent=idempotent)

    tools = [counting("read", idempotent=True), counting("pay", idempotent=False), counting("paid", idempotent=False)]
    async with engine(tmp_path, lambda body: say("I looked into it."), tools=tools) as world:
        async with world.file() as store:
            claim = await interrupted(store, "read", "pay", "paid", answered=("paid",))
        async with world.running():
            await world.desk.until(lambda: len(world.desk.sent) == 1)
            assert world.desk.sent[0].answers == ("m0",)
            told = dict(results(world.replies[0]))
            assert told["c_read"] == "read ran"
            assert "outcome" in told["c_pay"] or "unknown" in told["c_pay"]
            assert told["c_paid"] == "done before"
            assert [row.turn for row in await world.transcript()] == [claim.turn] * 6
            states = await world.store.tool_states(claim.turn)
            assert (states["c_read"], states["c_pay"]) == ("done", "interrupted")
    assert ran == ["read"]


@pytest.mark.asyncio
async def test_a_turn_that_kills_the_process_each_time_is_given_up(tmp_path: Path) -> None:  # P48
    async with engine(tmp_path) as world:
        async with world.file() as store:
            await interrupted(store, "nothing")
            for _ in range(5):
                await store.recover(frozenset(), START)
                assert await store.claim_turn("another", START + 1, 3600.0, frozenset()) is not None
        async with world.running():
            await world.desk.until(lambda: len(world.desk.sent) == 1)
            assert "Something went wrong" in world.desk.sent[0].text
            assert "answer" in await world.desk.ask("and now?")
    assert len(world.replies) == 1


@pytest.mark.asyncio
async def test_a_stored_reply_is_sent_after_a_restart_without_a_model_call(tmp_path: Path) -> None:  # P43, P48, BO-052, BO-054
    async with engine(tmp_path) as world:
        async with world.running(remote=False):
            host = world.service.host("desk")
            await host.accept([world.desk.message("are you there?")])
            async with asyncio.timeout(20):
                seen = world.store.version
                while not (await world.store.counts(0.0))["outbox_pending"]:
                    seen = await world.store.changed(seen, 20)
        assert world.desk.sent == []
        async with world.running():
            await world.desk.until(lambda: len(world.desk.sent) == 1)
            await world.idle()
        assert len(world.model.calls) == len(world.desk.sent) == 1


@pytest.mark.asyncio
async def test_a_model_that_uses_one_id_for_every_call_is_understood(tmp_path: Path) -> None:  # P11
    rounds = 0

    def script(body: JsonObject) -> Reply:
        nonlocal rounds
        rounds += 1
        if rounds == 4:
            return say("all shelved")
        return Reply([{"type": "tool_use", "id": "call_0", "name": "shelve", "input": {"note": str(rounds)}}], "tool_use")

    async with engine(tmp_path, script, tools=[tool("shelve", shelved)]) as world, world.running():
        assert await world.desk.ask("shelve three") == "all shelved"
        told = results(world.replies[-1])
        assert [text for _, text in told] == ["shelved 1", "shelved 2", "shelved 3"]
        assert len({call_id for call_id, _ in told}) == 3
        assert await world.desk.ask("and thanks")


@pytest.mark.asyncio
async def test_an_interrupted_call_whose_id_was_used_before_is_settled_too(tmp_path: Path) -> None:  # P11, P48
    ran: list[str] = []

    async def reads(context: ToolContext, note: str) -> str:
        ran.append(note)
        return f"read {note}"

    async with engine(tmp_path, lambda body: say("done"), tools=[tool("read", reads, idempotent=True)]) as world:
        async with world.file() as store:
            claim = await interrupted(store, "read", answered=("read",))
            again = NewMessage("assistant", (ToolCall("c_read", "read", '{"note":"second"}'),), START)
            await store.record(claim, Step(messages=(again,)))
        async with world.running():
            await world.desk.until(lambda: len(world.desk.sent) == 1)
            assert [text for _, text in results(world.replies[0])] == ["done before", "read second"]
    assert ran == ["second"]


@pytest.mark.asyncio
async def test_a_turn_resumed_in_its_tool_loop_sends_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # P2, P29, P31, P48
    monkeypatch.setattr(service, "GRACE", 0.05)
    async with engine(tmp_path, lambda body: say("noted")) as world:
        async with world.running():
            await world.desk.ask("my locker code is 5512")
            await world.desk.ask("/new")
            world.model.script = calling(("current_time", {}), then="it is 5512")
            held = world.model.hold(lambda body: "'tool'" in str(body["messages"][-1]))
            await world.desk.accept(world.desk.message("what was my locker code?"))
            await held.reached.wait()
        async with world.running():
            await world.desk.until(lambda: world.desk.sent[-1].text == "it is 5512")
        _, before, after = world.model.calls[-3:]
        assert "5512" in system_text(before.body)
        assert before.raw == after.raw


@pytest.mark.asyncio
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("name", ["functions.shelve", "", "shelve it, please " * 30])
async def test_a_tool_by_a_name_that_no_provider_takes_back_ends_no_thread(tmp_path: Path, name: str, provider: Any) -> None:
    # P11, BO-116
    async with engine(tmp_path, calling((name, {}), then="I could not"), tools=[tool("shelve", shelved)], provider=provider) as world:
        for start in range(2):
            with capture_logs() as logs:
                async with world.running():
                    assert [await world.desk.ask(f"shelve {start} {n}") for n in range(2)] == ["I could not"] * 2
            assert len([line for line in logs if line["event"] == "view.repaired"]) == 2, "each call is a damage of its own"
            assert [record.status for record in world.model.calls] == [200] * (4 * start + 4)
            rows = [json.loads(blocks) for (blocks,) in query(tmp_path, "SELECT blocks FROM messages WHERE role = 'assistant'")]
            assert rows[0][0]["name"] == name, "the transcript keeps what the model wrote"


@pytest.mark.asyncio
async def test_a_tools_error_is_no_longer_than_its_answer_may_be(tmp_path: Path) -> None:  # P10
    async def fails(context: ToolContext, note: str) -> str:
        raise ToolError("x" * 50_000)

    async with engine(tmp_path, calling(("fail", {})), tools=[tool("fail", fails)]) as world, world.running():
        await world.desk.ask("go")
        ((_, text),) = results(world.replies[-1])
        assert len(text) < Limits().tool_output_chars + 200
