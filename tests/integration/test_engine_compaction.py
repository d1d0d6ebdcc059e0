import asyncio
import json
import sqlite3
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from clew import service
from clew.messages import Block
from clew.prompts import load
from clew.store import Compaction
from clew.tools import ToolContext
from tests.databases import BOTH, SQLITE, databases
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import echo, say
from tests.emulators.server import Answer, Fault, JsonObject, Reply
from tests.integration.engine import (
    SUMMARY,
    World,
    assistant,
    called,
    calling,
    chat_script,
    engine,
    exchanges,
    is_summary,
    openai_section,
    result,
    spoken,
    system_text,
    tool,
    user,
    words_of,
)

pytestmark = BOTH

REFUSED = Fault(400, "invalid_request_error", "function arguments are malformed")
LONG = " ".join(["lorem ipsum dolor sit amet"] * 12)


async def compactions(world: World) -> list[Compaction]:
    return await world.store.compactions(await world.session())


def material(body: JsonObject) -> str:
    """What the summariser was given."""
    return words_of(spoken(body)[-1])


def new_messages(body: JsonObject) -> str:
    return material(body).partition("<new_messages>")[2].partition("</new_messages>")[0]


def current_summary(body: JsonObject) -> str:
    return material(body).partition("<current_summary>\n")[2].partition("\n</current_summary>")[0]


@pytest.mark.asyncio
@pytest.mark.parametrize("extra", range(8))
async def test_no_cut_parts_a_call_from_its_results(tmp_path: Path, extra: int) -> None:  # P11, BO-001, BO-003
    async with engine(tmp_path) as world:
        world.compression(trigger_messages=12, keep_recent=6)
        async with world.running():
            await world.seed(
                *exchanges(5),
                user("what time is it?"),
                called("c1", "c2"),
                result("c1"),
                result("c2"),
                assistant("noon"),
                *[user(f"plain {n}") if n % 2 else assistant(f"plain {n}") for n in range(1, 3 + extra)],
            )
            assert "hello" in await world.desk.ask("hello")
            assert len(world.summaries) == 1
            sent = json.dumps(spoken(world.replies[0]))
            demoted = material(world.summaries[0])
            assert {"c1" in sent, "c2" in sent} == {"(called current_time" not in demoted} == {"answered: noon" not in demoted}
            for n in range(3):
                assert "answer" in await world.desk.ask(f"more {n}")
            assert await world.store.verify_session(await world.session()) == []


@pytest.mark.asyncio
async def test_results_beyond_number_keep_their_ids(tmp_path: Path) -> None:  # P11, BO-002
    rounds: list[tuple[str, tuple[Block, ...]]] = []
    for n in range(12):
        rounds += [user(f"step {n}"), called(f"c{n}"), result(f"c{n}", LONG * 10), assistant("next")]
    async with engine(tmp_path) as world, world.running():
        await world.seed(*rounds[:44])
        await world.desk.ask("continue")
        sent = spoken(world.replies[0])
        asked = [call["id"] for message in sent for call in message.get("tool_calls") or ()]
        answered = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
        assert asked == answered
        assert len(asked) == len(set(asked)) == 11


@pytest.mark.asyncio
async def test_a_damaged_session_is_repaired_on_the_way_and_said_once(tmp_path: Path) -> None:  # P11, BO-004
    damaged = [result("lost"), user("one"), assistant("1"), called("dangling"), user("two"), assistant("2"), *exchanges(2)]
    async with engine(tmp_path) as world:
        for start in range(2):
            with capture_logs() as logs:
                async with world.running():
                    if start == 0:
                        await world.seed(*damaged)
                    assert await world.desk.ask(f"hi {start}") == world.desk.sent[-1].text
                    assert world.desk.sent[-1].text.endswith(f"hi {start}")
            repaired = [line for line in logs if line["event"] == "view.repaired"]
            assert [line["session"] for line in repaired] == ["seeded234567"][start:]


@pytest.mark.asyncio
@pytest.mark.parametrize("damage", ["ledger = '{'", "report = '{}'"])
async def test_a_damaged_summary_ends_no_thread(tmp_path: Path, damage: str) -> None:  # P6, BO-004
    async with engine(tmp_path) as world:
        world.compression(trigger_messages=10, keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(10))
            await world.desk.ask("first")
            (first,) = await compactions(world)
        databases.altered(tmp_path, f"UPDATE compactions SET {damage}")
        with capture_logs() as logs:
            async with world.running():
                for n in range(3):
                    assert (await world.desk.ask(f"again {n}")).endswith(f"again {n}")
                assert "question 1" in material(world.summaries[1]), "what it covered is compacted anew"
                assert await world.store.verify_session(await world.session()) == [f"compaction {first.id} cannot be read"]
        (line,) = [line for line in logs if line["event"] == "view.repaired"]
        assert line["repairs"] == (f"compaction {first.id}: it cannot be read",)


@pytest.mark.asyncio
async def test_the_newest_messages_stay_word_for_word(tmp_path: Path) -> None:  # P8, P13, BO-016
    async with engine(tmp_path) as world:
        world.compression(trigger_messages=20, keep_recent=6)
        async with world.running():
            await world.seed(*[assistant(f"number {n}.") if n % 2 else user(f"number {n}.") for n in range(1, 20)])
            await world.desk.ask("number 20.")
            kept = [words_of(message).rpartition("number ")[2] for message in spoken(world.replies[0]) if "number" in words_of(message)]
            assert kept == [f"{n}." for n in range(15, 21)]
            assert [f"number {n}." in new_messages(world.summaries[0]) for n in range(1, 21)] == [True] * 14 + [False] * 6


@pytest.mark.asyncio
async def test_it_fires_at_61_and_then_at_60_and_leaves_9(tmp_path: Path) -> None:  # P8, P26
    async with engine(tmp_path, lambda body: say("yes")) as world, world.running():
        await world.seed(*exchanges(29))
        with capture_logs() as logs:
            await world.desk.ask("the 59th")
            assert not world.summaries
            await world.desk.ask("the 61st")
            assert len(world.summaries) == 1
            for number in range(25):
                await world.desk.ask(f"more {number}")
            assert len(world.summaries) == 1
            await world.desk.ask("the 60th behind the summary")
        assert len(world.summaries) == 2
        compressed = [(line["log_level"], line["messages"], line["covered"]) for line in logs if line["event"] == "agent.compressed"]
        assert compressed == [("info", 9, 53), ("info", 9, 52)]


@pytest.mark.asyncio
async def test_disabled_compression_does_nothing_by_itself(tmp_path: Path) -> None:  # P8
    async with engine(tmp_path) as world:
        world.compression(enabled=False, trigger_messages=10, keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(20))
            await world.desk.ask("still all of it")
            assert not world.summaries
            assert len(spoken(world.replies[0])) == 41
            assert "Compacted: 38 messages" in await world.desk.ask("/compact")


@pytest.mark.asyncio
async def test_what_is_demoted_stays_as_it_was_stored(tmp_path: Path) -> None:  # P6, P20
    async with engine(tmp_path) as world:
        world.compression(trigger_messages=10, keep_recent=4)
        async with world.running():
            session = await world.seed(*exchanges(3), user("the locker code is 5512"), assistant("noted"), *exchanges(2, first=4))
            before = await world.store.transcript(session)
            await world.desk.ask("go on")
            assert (await world.store.transcript(session))[: len(before)] == before
            assert await world.store.verify_session(session) == []
            assert "5512" not in json.dumps(spoken(world.replies[0]))
            (found,) = [message for message in before if "5512" in message.text]
            world.model.script = chat_script(
                calling(("session_search", {"query": "locker code"}), ("session_open", {"id": found.id, "around": 0}))
            )
            assert await world.desk.ask("what is the code?") == "done"
            searched, opened = [m["content"] for m in spoken(world.replies[-1]) if m["role"] == "tool"]
            assert found.id in searched
            assert "the locker code is 5512" in opened


@pytest.mark.asyncio
async def test_the_request_is_the_same_to_the_byte_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # P2, P29, P48, BO-009, BO-095
    monkeypatch.setattr(service, "GRACE", 0.05)
    async with engine(tmp_path) as world:
        world.compression(trigger_messages=12, keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(6))
            await world.desk.ask("compacts")
            assert len(world.summaries) == 1
            earlier = spoken(world.replies[-1])
            held = world.model.hold()
            await world.desk.accept(world.desk.message("the last before the restart"))
            await held.reached.wait()
        async with world.running():
            await world.desk.until(lambda: len(world.desk.sent) == 2)
        first, second = [record.raw for record in world.model.calls if not record.body or "the last before" in str(record.body)]
        assert first == second
        assert len(world.summaries) == 1
        now = spoken(world.replies[-1])
        assert now[: len(earlier)] == earlier
        assert len(now) == len(earlier) + 2
        assert system_text(world.replies[-1]).count(SUMMARY) == 1
        assert "question 1" not in json.dumps(now)


@pytest.mark.asyncio
async def test_the_next_compaction_revises_the_summary_with_the_newly_demoted_alone(tmp_path: Path) -> None:  # P15, BO-012
    summaries = iter(["+ identifier | Ada | said | #1 | my booking code is QX-4471", "+ request | Ada | asked | #13 | later 0"])
    async with engine(tmp_path, summary=lambda body: say(next(summaries))) as world:
        world.compression(trigger_messages=12, keep_recent=4)
        async with world.running():
            await world.seed(user("my booking code is QX-4471"), assistant("noted"), *exchanges(5))
            for n in range(6):
                await world.desk.ask(f"later {n}")
            first, second = world.summaries
            assert current_summary(first) == "(none yet)"
            assert current_summary(second) == "1 | identifier | ada | said | #1 | my booking code is QX-4471"
            assert "my booking code" in new_messages(first)
            assert "my booking code" not in new_messages(second)
            assert "later 0" in new_messages(second)
            one, two = await compactions(world)
            assert (one.parent, two.parent, two.from_seq) == (None, one.id, one.to_seq + 1)
            assert json.loads(two.ledger)[0] == json.loads(one.ledger)[0]
            assert system_text(world.replies[-1]).count("QX-4471") == 1
            assert "messages between" in system_text(world.replies[-1]) + words_of(spoken(world.replies[-1])[0])


@pytest.mark.asyncio
async def test_it_is_considered_between_the_tool_calls_of_one_turn(tmp_path: Path) -> None:  # P7, P11, P12
    async def looks(context: ToolContext, note: str) -> str:
        return "seen"

    rounds = 0

    def script(body: JsonObject) -> Reply:
        nonlocal rounds
        rounds += 1
        if rounds == 6:
            return say("all seen")
        return Reply([{"type": "tool_use", "id": f"c{rounds}", "name": "look", "input": {"note": str(rounds)}}], "tool_use")

    async with engine(tmp_path, script, tools=[tool("look", looks)]) as world:
        world.compression(trigger_messages=10, keep_recent=2)
        async with world.running():
            await world.seed(*exchanges(3))
            assert await world.desk.ask("look five times, exactly as I say") == "all seen"
            (summary,) = world.summaries
            assert [f"question {n}" in new_messages(summary) for n in (1, 2, 3)] == [True] * 3
            assert "exactly as I say" not in material(summary)
            for body in world.replies:
                assert sum("look five times, exactly as I say" in words_of(message) for message in spoken(body)) == 1
            assert len([m for m in spoken(world.replies[-1]) if m["role"] == "tool"]) == 5


@pytest.mark.asyncio
async def test_a_pinned_message_stands_in_the_summary_word_for_word(tmp_path: Path) -> None:  # P13
    async with engine(tmp_path) as world:
        world.compression(trigger_messages=10, keep_recent=4)
        async with world.running():
            await world.seed(user("Never call me before nine!"), assistant("Never."), *exchanges(5))
            exported = await world.store.export_session(await world.session())
            exported["pins"] = [{"message": exported["messages"][0]["id"], "by": "ada", "at": 1.0}]
            await world.store.delete_session(exported["session"]["id"])
            session = await world.store.import_session(exported, 1.0)
            await world.store.join_chat(world.desk.message(""), "ada", session, 1.0)
            await world.desk.ask("go on")
            assert "Never call me before nine!" in system_text(world.replies[0])
            (compaction,) = await compactions(world)
            assert compaction.held == (exported["messages"][0]["id"],)
            assert compaction.messages == 5


# Failure ---------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_after_three_failures_no_summariser_is_asked_until_one_succeeds_by_hand(tmp_path: Path) -> None:  # P25, BO-006
    async with engine(tmp_path, summary=lambda body: REFUSED) as world:
        world.compression(trigger_messages=10, keep_recent=4)
        with capture_logs() as logs:
            async with world.running():
                await world.seed(*exchanges(6))
                for n in range(2):
                    assert "answer" in await world.desk.ask(f"failing {n}")
            async with world.running():
                for n in range(2, 5):
                    assert "answer" in await world.desk.ask(f"failing {n}")
                assert len(world.summaries) == 3
                assert "question 1" in json.dumps(spoken(world.replies[-1]))
                assert "did not work" in await world.desk.ask("/compact")
                assert "answer" in await world.desk.ask("still off")
                assert len(world.summaries) == 4
                assert await compactions(world) == []
                world.model.script = chat_script(echo)
                assert "Compacted" in await world.desk.ask("/compact")
                assert len(await compactions(world)) == 1
        failed = [line for line in logs if line["event"] == "agent.compress_failed"]
        assert [(line["log_level"], "malformed" in line["err"]) for line in failed] == [("warning", True)] * 4


@pytest.mark.asyncio
async def test_a_success_forgets_earlier_failures(tmp_path: Path) -> None:  # P25
    answers: list[Answer] = [REFUSED, REFUSED, say(SUMMARY), REFUSED, REFUSED, say(SUMMARY)]
    async with engine(tmp_path, summary=lambda body: answers.pop(0)) as world:
        world.compression(trigger_messages=6, keep_recent=3)
        async with world.running():
            await world.seed(*exchanges(4))
            while answers:
                await world.desk.ask("go on")
            assert len(await compactions(world)) == 2


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "answer", [" \n ", "<!DOCTYPE html><title>502</title>", '{"error": {"message": "overloaded"}}', "I'm sorry, I can't."]
)
async def test_a_summary_that_is_none_is_never_committed(tmp_path: Path, answer: str) -> None:  # P17, P25
    async with engine(tmp_path, summary=answer) as world:
        world.compression(trigger_messages=10, keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(6))
            assert "answer" in await world.desk.ask("go on")
            assert len(world.summaries) == 1
            assert await compactions(world) == []
            assert len(spoken(world.replies[0])) == 13


@pytest.mark.asyncio
async def test_a_summary_without_end_is_cut_to_what_must_survive(tmp_path: Path) -> None:  # P17
    async with engine(tmp_path, summary="word " * 3000) as world:
        world.compression(trigger_messages=10, keep_recent=4)
        async with world.running():
            await world.seed(user("Never ring the bell after nine!"), assistant("Noted."), *exchanges(5))
            await world.desk.ask("go on")
            (compaction,) = await compactions(world)
            assert "Never ring the bell after nine!" in compaction.text
            assert "word" not in compaction.text
            assert [change["why"] for change in json.loads(compaction.report)["refused"]] == ["not all of it stands in the messages"]


@pytest.mark.asyncio
async def test_a_summary_of_a_revoked_key_or_refusal_is_a_failure(tmp_path: Path) -> None:  # P17, P25, BO-114
    async with engine(tmp_path, summary=lambda body: Reply([], "refusal")) as world:
        world.compression(trigger_messages=10, keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(6))
            assert "answer" in await world.desk.ask("go on")
            assert await compactions(world) == []


@SQLITE
@pytest.mark.asyncio
async def test_a_locked_file_behind_a_stored_summary_costs_no_second_one(tmp_path: Path) -> None:  # P25, P42, BO-010, BO-043
    async with engine(tmp_path) as world:
        world.compression(trigger_messages=12, keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(6))
            held = world.model.hold(lambda body: "<new_messages>" not in str(body))
            first = world.desk.message("one")
            await world.desk.accept(first)
            await held.reached.wait()
            locking = sqlite3.connect(tmp_path / "clew.db", isolation_level=None)
            locking.execute("BEGIN IMMEDIATE")
            held.release()
            waiting = asyncio.create_task(world.desk.ask("two"))
            await asyncio.sleep(2.0)  # what is tested is a lock that lasts
            assert not waiting.done()
            locking.execute("ROLLBACK")
            locking.close()
            await waiting
            await world.desk.ask("three")
            assert len(world.desk.answers(first)) == 1
            assert len(world.summaries) == 1


# A window that is full -------------------------------------------------------------------------------------------


def thread(count: int) -> list[tuple[str, tuple[Block, ...]]]:
    return [user(f"part {n}: {LONG}") if n % 2 else assistant(f"part {n}: {LONG}") for n in range(1, count)]


@pytest.mark.asyncio
async def test_a_small_window_is_compacted_before_it_overflows(tmp_path: Path) -> None:  # P9, P25
    async with engine(tmp_path, lambda body: say("short"), window=8192) as world, world.running():
        await world.seed(*thread(50))
        assert await world.desk.ask("does it fit?") == "short"
        assert world.summaries
        (compaction,) = await compactions(world)
        assert compaction.trigger == "tokens"
        assert "part 49" in json.dumps(spoken(world.replies[0]))
        assert "part 1:" not in json.dumps(spoken(world.replies[0]))


@pytest.mark.asyncio
async def test_an_extract_stands_in_where_the_summariser_fails_and_the_window_is_full(tmp_path: Path) -> None:  # P25
    async with engine(tmp_path, lambda body: say("short"), summary=lambda body: REFUSED, window=8192) as world, world.running():
        await world.seed(user("Never deploy on Fridays, and the host is db-7.example.org."), *thread(51)[1:])
        assert await world.desk.ask("does it fit?") == "short"
        (compaction,) = await compactions(world)
        assert "db-7.example.org" in compaction.text
        assert len(world.replies) == 1


@pytest.mark.asyncio
async def test_what_cannot_fit_is_told_in_plain_words_before_any_call(tmp_path: Path) -> None:  # P12, P25
    async with engine(tmp_path, window=8192) as world, world.running():
        with capture_logs() as logs:
            answer = await world.desk.ask(LONG * 100)
        assert answer == "This conversation no longer fits my model, even shortened. Write /new for a fresh one; nothing is lost."
        assert world.model.calls == []
        assert [line["error"] for line in logs if line["event"] == "turn.failed"] == ["compact_full"]
        await world.desk.ask("/new")
        assert "answer" in await world.desk.ask("short again")


@pytest.mark.asyncio
async def test_an_overflow_that_the_provider_reports_is_mended_once(tmp_path: Path) -> None:  # P9, P25
    async with engine(tmp_path, lambda body: say("it fits now"), emulated_window=3000) as world:
        world.compression(trigger_messages=1000)
        async with world.running():
            await world.seed(*thread(120))
            assert await world.desk.ask("does it fit?") == "it fits now"
            assert [record.status for record in world.model.calls if not is_summary(record.body)] == [400, 200]
            assert len(await compactions(world)) == 1
            calls = len(world.model.calls)
            assert await world.desk.ask("and now?") == "it fits now"
            assert len(world.model.calls) == calls + 1


@pytest.mark.asyncio
async def test_another_400_compacts_nothing(tmp_path: Path) -> None:  # BO-116
    async with engine(tmp_path) as world, world.running():
        await world.seed(*exchanges(6))
        world.model.faults.append(REFUSED)
        assert await world.desk.ask("bad luck") == "My model refused the request. It is in the log of whoever runs me."
        assert not world.summaries
        assert await compactions(world) == []
        assert "answer" in await world.desk.ask("again")
        assert len(world.model.calls) == 2


@pytest.mark.asyncio
async def test_a_large_result_is_seen_by_the_model_that_asked_for_it(tmp_path: Path) -> None:  # P10, P11, P12, BO-021
    counter = 0

    async def counts(context: ToolContext, note: str) -> str:
        nonlocal counter
        counter += 1
        return f"counted {counter} {LONG * 16}"

    def script(body: JsonObject) -> Reply:
        if "counted" in json.dumps(spoken(body)[-1]):
            return say("counted")
        return Reply([{"type": "tool_use", "id": f"c{len(world.model.calls)}", "name": "count", "input": {}}], "tool_use")

    async with engine(tmp_path, script, tools=[tool("count", counts)], window=8192) as world, world.running():
        await world.seed(*thread(36))
        assert await world.desk.ask("count once") == "counted"
        assert counter == 1
        assert world.summaries
        assert all("counted" not in material(body) and "count once" not in material(body) for body in world.summaries)
        assert "count once" in json.dumps(spoken(world.replies[-1]))


# The summariser --------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_prompt_provider_and_model_of_the_summariser_can_be_set(tmp_path: Path) -> None:  # P14
    async with (
        engine(tmp_path) as world,
        OpenAIEmulator(script=lambda body: say(SUMMARY), models={"any": {}, "tiny": {}}) as other,
    ):
        world.config = world.config.model_copy(update={"providers": {**world.config.providers, "sums": openai_section(other, "sums")}})
        world.compression(trigger_messages=10, keep_recent=4, prompt="Fold it small.", provider="sums", model="tiny")
        async with world.running():
            await world.seed(*exchanges(6))
            await world.desk.ask("go on")
            assert not world.summaries
            (call,) = other.calls
            assert call.body["model"] == "tiny"
            assert system_text(call.body) == "Fold it small."
            assert current_summary(call.body) == "(none yet)"
            assert "question 1" in new_messages(call.body)
            assert "<format>" in material(call.body)
            (compaction,) = await compactions(world)
            assert compaction.prompt_version == f"custom {load('summary_format').version}"


@pytest.mark.asyncio
async def test_an_old_part_beyond_the_summarisers_window_is_fed_in_parts_and_committed_once(tmp_path: Path) -> None:  # P14
    answers: list[str] = []

    def script(body: JsonObject) -> Reply:
        first = new_messages(body).partition("[#")[2].partition(" ")[0]
        answers.append(f"fact | ada | said | #{first} | part {first}: {LONG}")
        return say(f"+ {answers[-1]}")

    async with engine(tmp_path) as world, OpenAIEmulator(script=script) as other:
        world.config = world.config.model_copy(
            update={"providers": {**world.config.providers, "sums": openai_section(other, "sums", window=6000)}}
        )
        world.compression(trigger_messages=40, keep_recent=4, provider="sums", summary_tokens=400)
        async with world.running():
            await world.seed(*thread(40))
            await world.desk.ask("go on")
            assert len(other.calls) > 1
            lines = [f"{number} | {answer}" for number, answer in enumerate(answers, 1)]
            assert [current_summary(call.body) for call in other.calls] == [
                "(none yet)",
                *("\n".join(lines[:n]) for n in range(1, len(lines))),
            ]
            fed = [n for call in other.calls for n in range(1, 41) if f"part {n}:" in new_messages(call.body)]
            assert fed == list(range(1, 37))
            (compaction,) = await compactions(world)
            assert len(json.loads(compaction.ledger)) == len(json.loads(compaction.report)["added"]) == len(answers)
            assert len(world.replies) == 1


@pytest.mark.asyncio
async def test_compact_by_hand_with_a_focus_and_a_preview(tmp_path: Path) -> None:  # P21, P24
    async with engine(tmp_path) as world:
        world.compression(keep_recent=4)
        async with world.running():
            assert await world.desk.ask("/compact") == "There is nothing to compact yet."
            await world.seed(*exchanges(8))
            assert "no option --previw" in await world.desk.ask("/compact --previw")
            preview = await world.desk.ask("/compact --preview")
            assert preview.startswith("12 messages would go into the summary and 4 stay")
            assert world.model.calls == []
            answer = await world.desk.ask("/compact the booking codes")
            assert answer.startswith("Compacted: 12 messages went into the summary; with it the window has 5 now.")
            assert "the booking codes" in material(world.summaries[0])
            (compaction,) = await compactions(world)
            assert (compaction.trigger, compaction.covered) == ("command", 12)
            assert json.loads(compaction.report)["model"] == "any"


@pytest.mark.asyncio
async def test_credentials_reach_no_summary_no_index_and_no_log(tmp_path: Path) -> None:  # P19, BO-099
    key = "sk-ant-api03-" + "Zx9Qw7Er5Ty3Ui1Op8As6Df4Gh2Jk0Lz" * 2
    async with engine(tmp_path, summary=f"Facts and identifiers: the key is {key}.") as world:
        world.compression(trigger_messages=10, keep_recent=4)
        with capture_logs() as logs:
            async with world.running():
                await world.seed(user(f"my key is {key}, keep it"), assistant("noted"), *exchanges(5))
                await world.desk.ask("go on")
                (compaction,) = await compactions(world)
        assert key not in material(world.summaries[0])
        assert key not in compaction.text + compaction.ledger + compaction.report
        assert key not in system_text(world.replies[0])
        assert key not in str(logs)
    words = databases.counted(tmp_path)
    assert not any(part in term for term in words for part in ("zx9qw7er5ty3", "gh2jk0lz"))


@pytest.mark.asyncio
async def test_standing_instructions_are_the_same_bytes_after_every_compaction(tmp_path: Path) -> None:  # P13, P27, BO-015
    persona = "Answer in French.  Sign with ~K.\n"
    async with engine(tmp_path, provider="anthropic") as world:
        world.compression(keep_recent=2)
        world.agent(system_prompt=persona)
        async with world.running():
            for _ in range(3):
                for n in range(3):
                    await world.desk.ask(f"message {n}")
                await world.desk.ask("/compact")
            await world.desk.ask("and now?")
            assert len(world.summaries) == 3
            assert {body["system"][0]["text"] for body in world.replies} == {persona}
            assert not [body for body in world.summaries if "Answer in French" in str(body["messages"])]
