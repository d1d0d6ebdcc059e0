"""What people do to a thread by hand: pins, undoing a compaction, taking an exchange back, writing a summary anew."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from clew.cli import clew
from clew.prompts import load
from clew.store import Compaction
from tests.databases import BOTH, databases
from tests.emulators.anthropic_cache import Accounting
from tests.emulators.scripts import say
from tests.emulators.server import Fault, JsonObject
from tests.integration.engine import World, assistant, called, engine, exchanges, result, spoken, system_text, user, words_of

pytestmark = BOTH

REFUSED = Fault(400, "invalid_request_error", "function arguments are malformed")
RULE = "The soup was lovely, as ever."
"""Nothing that has to survive of itself."""


async def compactions(world: World) -> list[Compaction]:
    return await world.store.compactions(await world.session())


# Pins ------------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_pinned_message_stays_word_for_word_through_every_compaction(tmp_path: Path) -> None:  # P13
    async with engine(tmp_path) as world:
        world.compression(keep_recent=4)
        async with world.running():
            session = await world.seed(user("hello"), assistant("hello"), user(RULE), assistant("Never."), *exchanges(6))
            (rule,) = [row for row in await world.transcript() if row.text == RULE]
            answer = await world.desk.ask(f"/pin {rule.id[:10]}{rule.id[10:]}")
            assert answer == f"Pinned: “{RULE}” ({rule.id}). It stays word for word, whatever is compacted."
            for _ in range(3):
                await world.desk.ask("/compact")
                await world.desk.ask("go on")
                assert system_text(world.replies[-1]).count(RULE) == 1
                await world.desk.ask("and on")
            assert [each.held for each in await compactions(world)] == [(rule.id,)] * 3
            assert await world.store.verify_session(session) == []
            answer = await world.desk.ask(f"/unpin #{rule.seq}")
            assert answer == f"No longer pinned: “{RULE}” ({rule.id}). It leaves the summary at the next compaction."
            await world.desk.ask("go on")
            assert RULE in system_text(world.replies[-1])
            await world.desk.ask("/compact")
            await world.desk.ask("go on")
            assert RULE not in system_text(world.replies[-1])


@pytest.mark.asyncio
async def test_a_pin_behind_the_cut_takes_effect_at_the_next_compaction_redacted(tmp_path: Path) -> None:  # P13, P19
    key = "sk-ant-api03-" + "Zx9Qw7Er5Ty3Ui1Op8As6Df4Gh2Jk0Lz" * 2
    async with engine(tmp_path) as world:
        world.compression(keep_recent=2)
        async with world.running():
            await world.seed(user(f"{RULE} The key is {key}."), assistant("Never."), *exchanges(4))
            await world.desk.ask("/compact")
            assert "It stands in the summary from the next compaction on" in await world.desk.ask("/pin #1")
            await world.desk.ask("go on")
            assert RULE not in system_text(world.replies[-1])
            await world.desk.ask("/compact")
            await world.desk.ask("go on")
            assert RULE in system_text(world.replies[-1])
            assert key not in json.dumps(world.replies[-1])


@pytest.mark.asyncio
async def test_without_a_key_the_message_replied_to_or_the_newest_is_meant(tmp_path: Path) -> None:  # P13
    async with engine(tmp_path) as world, world.running():
        assert await world.desk.ask("/pin") == "There is no message with words to pin."
        assert await world.desk.ask("/unpin") == "Nothing is pinned here."
        await world.desk.ask("the first", client_id="first")
        await world.desk.ask("the second")
        assert "“the first”" in await world.desk.ask("/pin", reply_to="first")
        await world.idle()
        reply = world.desk.sent[2]
        assert "answer to" in await world.desk.ask("/pin", reply_to=f"ref-{reply.id}")
        assert "the second" in await world.desk.ask("/pin")
        assert "already" in await world.desk.ask("/pin")
        pins = [each.message.text for each in await world.store.pins(await world.session())]
        assert [("first" in text, "second" in text) for text in pins] == [(True, False), (True, False), (False, True)]
        assert "the second" in await world.desk.ask("/unpin")
        assert "“the first”" in await world.desk.ask("/unpin", reply_to="first")
        assert "was not pinned" in await world.desk.ask("/unpin", reply_to="first")
        assert "not in this conversation" in await world.desk.ask("/pin", reply_to="elsewhere")
        assert "There is no message 'nonsense'" in await world.desk.ask("/pin nonsense")


@pytest.mark.asyncio
async def test_pinned_messages_share_an_eighth_of_the_window(tmp_path: Path) -> None:  # P9, P13
    async with engine(tmp_path, lambda body: say("ok"), window=8192) as world, world.running():
        await world.desk.ask("word " * 2000)
        answer = await world.desk.ask("/pin #1")
        assert answer.startswith("There is no room to pin it: it has about ")
        await world.desk.ask("word " * 100)
        assert "Pinned" in await world.desk.ask("/pin #3")
        assert await world.store.pins(await world.session())


# Undoing ---------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_an_undone_compaction_gives_back_the_window_and_its_cached_bytes(tmp_path: Path) -> None:  # P21, P28
    async with engine(tmp_path, lambda body: say("short"), provider="anthropic", min_tokens=1) as world:
        world.compression(keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(10))
            await world.desk.ask("before")
            before = world.replies[-1]
            await world.desk.ask("/compact")
            await world.desk.ask("between")
            assert "question 2" not in str(world.replies[-1])
            answer = await world.desk.ask("/undo compaction")
            assert answer.startswith("Undone: 18 messages are in my view again")
            await world.desk.ask("after")
            after = world.replies[-1]
            assert without_marks(after["system"]) == without_marks(before["system"])
            assert without_marks(after["messages"][: len(before["messages"])]) == without_marks(before["messages"])
            read = [record.accounting for record in world.model.calls if isinstance(record.accounting, Accounting)][-1]
            assert read.read == read.longest_unexpired_prefix > 0
            # What was said before the compaction is read from the cache to the last token.
            assert read.read >= accounted(world)[0].total
            (compaction,) = await compactions(world)
            assert compaction.undone_at is not None
            assert await world.store.verify_session(await world.session()) == []


def accounted(world: World) -> list[Accounting]:
    return [record.accounting for record in world.model.calls if isinstance(record.accounting, Accounting)]


def without_marks(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_marks(each) for key, each in value.items() if key != "cache_control"}
    return [without_marks(each) for each in value] if isinstance(value, list) else value


@pytest.mark.asyncio
async def test_after_an_undo_the_count_trigger_waits_for_as_many_messages_as_it_demotes(tmp_path: Path) -> None:  # P21
    async with engine(tmp_path, lambda body: say("yes")) as world:
        world.compression(trigger_messages=20, keep_recent=8)
        async with world.running():
            await world.seed(*exchanges(9))
            await world.desk.ask("the 19th")
            await world.desk.ask("the 21st")
            assert len(world.summaries) == 1
            await world.desk.ask("/undo compaction")
        async with world.running():
            for _ in range(6):
                await world.desk.ask("go on")
            assert len(world.summaries) == 1, "the last call was made with 11 of 12 further messages"
            await world.desk.ask("the 13th")
            assert len(world.summaries) == 2
            done = await compactions(world)
            assert [(each.trigger, each.undone_at is None, each.from_seq) for each in done] == [("count", False, 1), ("count", True, 1)]


@pytest.mark.asyncio
async def test_undo_goes_back_one_compaction_after_another(tmp_path: Path) -> None:  # P21
    summaries = iter(["They asked and answered.", "They answered and asked."])
    async with engine(tmp_path, summary=lambda body: say(next(summaries))) as world:
        world.compression(keep_recent=2)
        async with world.running():
            assert await world.desk.ask("/undo compaction") == "There is no compaction to undo."
            await world.seed(*exchanges(4))
            await world.desk.ask("/compact")
            await world.desk.ask("one")
            await world.desk.ask("/compact")
            await world.desk.ask("two")
            assert "They answered and asked." in system_text(world.replies[-1])
            await world.desk.ask("/undo compaction")
            await world.desk.ask("three")
            assert "They asked and answered." in system_text(world.replies[-1])
            assert "They answered and asked." not in system_text(world.replies[-1])
            await world.desk.ask("/undo compaction")
            await world.desk.ask("four")
            assert "summary" not in system_text(world.replies[-1]).replace("reaches you as a summary", "")
            assert "question 1" in json.dumps(spoken(world.replies[-1]))
            assert await world.store.verify_session(await world.session()) == []


@pytest.mark.asyncio
async def test_a_compaction_that_runs_while_its_parent_is_undone_is_thrown_away(tmp_path: Path) -> None:  # P6, P21
    async with engine(tmp_path) as world:
        world.compression(keep_recent=2)
        async with world.running():
            session = await world.seed(*exchanges(4))
            await world.service.compactor.compact(session, "command")
            await world.desk.ask("more")
            held = world.model.hold(lambda body: "<new_messages>" in str(body))
            running = asyncio.create_task(world.service.compactor.compact(session, "command"))
            await held.reached.wait()
            undone = await world.service.threads.undo_compaction(session)
            await world.service.threads.carry_out(session, undone.effect)
            held.release()
            assert (await running).state == "lost"
            assert (await world.store.view(session)).compaction is None
            assert await world.store.verify_session(session) == []


@pytest.mark.asyncio
async def test_a_shortening_is_undone_like_any_other(tmp_path: Path) -> None:  # P21, P23
    async with engine(tmp_path, lambda body: say("short")) as world, world.running():
        long = "seen " * 400
        session = await world.seed(user("look"), called("c1", name="look"), result("c1", long, "look"), assistant("yes"), *exchanges(2))
        row = (await world.transcript())[2]
        await world.service.compactor.shorten(session, "cold", [row.id])
        await world.desk.ask("go on")
        assert long not in json.dumps(spoken(world.replies[-1]))
        dropped = await world.desk.ask("/dropped")
        assert f"- look, {len(long):,} characters ({row.id})" in dropped
        assert (await world.desk.ask("/undo compaction")).startswith("Undone: 1 result is in my view again")
        await world.desk.ask("go on")
        assert long in json.dumps(spoken(world.replies[-1]))


@pytest.mark.asyncio
async def test_undo_takes_the_last_exchange_out_of_the_window(tmp_path: Path) -> None:  # P6
    async with engine(tmp_path) as world, world.running():
        assert "nothing in the window" in await world.desk.ask("/undo")
        await world.desk.ask("a good question")
        await world.desk.ask("a silly question")
        assert "“a silly question”" in await world.desk.ask("/undo")
        await world.desk.ask("a better one")
        sent = json.dumps(spoken(world.replies[-1]))
        assert ("good question" in sent, "silly" in sent) == (True, False)
        assert len(await world.transcript()) == 4
        session = await world.session()
        assert len((await world.store.export_session(session))["messages"]) == 6
        assert await world.store.verify_session(session) == []
        assert "takes the last exchange back" in await world.desk.ask("/undo everything")


# Writing anew, and what was dropped --------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_summary_is_written_anew_with_other_words_and_the_old_one_stands_until_then(tmp_path: Path) -> None:  # P21
    answers: list[JsonObject | str | Fault] = ["They asked and answered.", REFUSED, "Booking code QX-4471."]

    def summary(body: JsonObject) -> object:
        answer = answers.pop(0)
        return say(answer) if isinstance(answer, str) else answer

    async with engine(tmp_path, summary=summary) as world:  # type: ignore[arg-type]
        world.compression(keep_recent=2)
        async with world.running():
            session = await world.seed(user("my booking code is QX-4471"), assistant("noted"), *exchanges(3))
            assert (await world.service.compactor.redo(session)).state == "nothing"
            await world.desk.ask("/compact")
            await world.desk.ask("go on")
            failed = await world.service.compactor.redo(session, "the booking code")
            assert failed.state == "failed"
            assert "They asked and answered." in (await newest(world)).text
            done = await world.service.compactor.redo(session, "the booking code")
            assert (done.state, done.covered) == ("done", 6)
            assert "the booking code" in words_of(spoken(world.summaries[-1])[-1])
            assert "my booking code is QX-4471" in words_of(spoken(world.summaries[-1])[-1])
            assert "They asked and answered." not in words_of(spoken(world.summaries[-1])[-1])
            await world.desk.ask("what is it?")
            assert "QX-4471" in system_text(world.replies[-1])
            assert [each.undone_at is None for each in await compactions(world)] == [False, True]
            assert await world.store.verify_session(session) == []


@pytest.mark.asyncio
async def test_a_summary_is_written_anew_by_other_instructions_this_once(tmp_path: Path) -> None:  # P14, P19, P21
    async with engine(tmp_path) as world:
        world.compression(keep_recent=2)
        async with world.running():
            session = await world.seed(*exchanges(4), user("Never call me before nine."), assistant("I shall not."))
            await world.desk.ask("/compact")
            told = "Write only of prices. The password is Swordfish7."
            assert (await world.service.compactor.redo(session, instructions=f" {told}\n")).state == "done"
            body = world.summaries[-1]
            assert system_text(body) == "Write only of prices. The password is [redacted: password]"
            assert "<format>" in words_of(spoken(body)[-1])
            made = await newest(world)
            assert json.loads(made.report)["instructions"] == system_text(body)
            assert made.prompt_version == "custom summary_format-2"
            await world.desk.ask("and more")
            await world.desk.ask("/compact")
            assert "You keep the running summary" in system_text(world.summaries[-1])
            assert "instructions" not in json.loads((await newest(world)).report)
            assert "Never call me before nine." in (await newest(world)).text


async def newest(world: World) -> Compaction:
    found = (await world.store.view(await world.session())).compaction
    assert found is not None
    return found


@pytest.mark.asyncio
async def test_what_the_summariser_wanted_in_vain_is_told(tmp_path: Path) -> None:  # P21
    wanted = "+ constraint | ada | said | #1 | Never pay more than 999 EUR.\n+ fact | ada | said | #1 | question 1"
    async with engine(tmp_path, summary=wanted) as world:
        world.compression(keep_recent=2)
        async with world.running():
            session = await world.seed(*exchanges(4))
            await world.desk.ask("/compact")
            assert "Wanted by the summariser and not made, since no message bears it out: 1." in await world.desk.ask("/dropped")
    config = tmp_path / "clew.yaml"
    config.write_text(f"data_dir: {tmp_path}\nstore: {databases.store(tmp_path)}\n")
    shown = await asyncio.to_thread(CliRunner().invoke, clew, ["session", "compactions", session, "1", "--config", str(config)])
    refused = shown.output.partition("refused: 1\n")[2].splitlines()[0]
    assert refused.startswith("    constraint: Never pay more than 999 EUR. (because ")


@pytest.mark.asyncio
async def test_each_compaction_tells_how_it_was_made_and_what_it_changed(tmp_path: Path) -> None:  # P21
    async with engine(tmp_path) as world:
        world.compression(keep_recent=2)
        async with world.running():
            session = await world.seed(*exchanges(4))
            assert await world.desk.ask("/dropped") == "Nothing was compacted here yet."
            await world.desk.ask("/compact")
            answer = await world.desk.ask("/dropped")
            assert answer.startswith("The newest compaction put 6 messages into the summary:")
            assert f"`clew session compactions {session} 1` shows it all." in answer
            (compaction,) = await compactions(world)
            report = json.loads(compaction.report)
            assert (compaction.trigger, compaction.from_seq, compaction.to_seq, report["model"]) == ("command", 1, 6, "any")
            assert compaction.prompt_version == " ".join(load(name).version for name in ("summary", "summary_format"))
            assert report["tokens_before"] > report["tokens_after"] > 0
            assert report["seconds"] >= 0
            assert all(set(each) >= {"kind", "text", "sources"} for each in (*report["added"], *report["kept"], *report["dropped"]))
            assert report["added"]
