"""Budgets that bind, and what the prompt cache did: in a running service, with a model behind a socket."""

import itertools
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from clew.config import Budget, Person, Price, ProviderSection
from clew.context.tokens import estimate
from clew.providers import anthropic
from clew.store.records.spending import Sums
from clew.tools import ToolContext
from tests.databases import BOTH
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import say
from tests.emulators.server import Fault
from tests.integration.engine import PEOPLE, START, Clock, World, calling, engine, exchanges, plugged, spoken, tool, words_of
from tests.integration.test_engine_jobs import fire, history
from tests.integration.test_engine_schedule import DAY, EIGHT, HOUR, daily, job, schedule

pytestmark = [pytest.mark.asyncio, BOTH]

PRICE = Price(input=1000, output=5000)
"""Dollars per million tokens: a cent for ten of them."""


def budgets(world: World, prices: Mapping[str, Price] | None = None, **given: Budget) -> None:
    world.config = world.config.model_copy(update={"budgets": given, "prices": prices or {}})


def owner(world: World) -> None:
    """Zoe runs this clew."""
    people = {**PEOPLE, "ada": Person(role="member", timezone="Europe/Berlin", identities=("desk:ada",))}
    world.config = world.config.model_copy(update={"people": {**people, "zoe": Person(role="owner", identities=("desk:zoe",))}})


async def today(world: World, kind: str = "person", subject: str = "ada", day: str = "2027-01-15") -> Sums:
    key = (kind, subject, day)
    return (await world.store.spending.sums([key]))[key]


async def cost_of_a_turn(folder: Path, words: str = "hello 0") -> int:
    """Tokens that a first turn takes."""
    async with engine(folder / "measured", lambda body: say("yes"), clock=Clock(), tok=estimate) as world, world.running():
        await world.desk.ask(words)
        await world.idle()
        return (await today(world)).tokens


# Refusals ---------------------------------------------------------------------------------------------------------


async def test_a_budget_that_is_used_up_ends_in_a_polite_refusal_and_the_next_day_has_its_own(tmp_path: Path) -> None:  # P22
    clock = Clock()
    size = await cost_of_a_turn(tmp_path)
    async with engine(tmp_path, lambda body: say("yes"), clock=clock, tok=estimate) as world:
        owner(world)
        budgets(world, each=Budget(every="day", tokens=3 * size + 1000))
        with capture_logs() as logs:
            async with world.running():
                await world.desk.ask("it is me", "zoe")
                answers = [await world.desk.ask(f"hello {n}") for n in range(4)]
                refused = answers[-1]
                assert answers[0] == "yes"
                assert "Your budget for today is nearly used up" in refused
                assert "It resets Sat 16 Jan 2027 at 00:00 (Europe/Berlin)" in refused
                assert "Your message is kept" in refused
                calls = len(world.model.calls)
                assert "nearly used up" in await world.desk.ask("hello again")
                assert len(world.model.calls) == calls, "nothing is spent on a refusal"
                assert await world.desk.ask("and I", "zoe") == "yes", "others have their own"
                clock.at += 86_400
                assert await world.desk.ask("go on") == "yes"
                said = [words_of(message) for message in spoken(world.replies[-1])]
                assert any("hello again" in words for words in said), "what was not answered is not lost"
        reached = [line for line in logs if line["event"] == "budget.reached"]
        assert [(line["log_level"], line["budget"], line["subject"], line["period"]) for line in reached] == [
            ("warning", "each", "ada", "2027-01-15")
        ]
        assert reached[0]["spent"] <= reached[0]["most"]


async def test_people_and_the_owner_are_warned_once_in_a_period_over_restarts_too(tmp_path: Path) -> None:
    clock = Clock()
    size = await cost_of_a_turn(tmp_path)
    async with engine(tmp_path, lambda body: say("yes"), clock=clock, tok=estimate) as world:
        owner(world)
        budgets(world, each=Budget(every="day", tokens=20 * size))
        times = itertools.count()
        for start in range(2):
            async with world.running():
                if start == 0:
                    await world.desk.ask("it is me", "zoe")
                while (await today(world)).tokens < (16.5 + start) * size:
                    assert await world.desk.ask(f"hello {next(times)}") == "yes"
                await world.idle()
        warned = {
            chat: [d.text for d in world.desk.sent if str(d.address) == f"desk:{chat}" and "yes" not in d.text] for chat in ("ada", "zoe")
        }
        assert [len(texts) for texts in warned.values()] == [1, 1]
        assert "A budget is nearly used up. Budget each (ada, today):" in warned["ada"][0]
        assert "(Europe/Berlin)" in warned["ada"][0]
        assert "(UTC)" in warned["zoe"][0]


async def test_a_budget_exhausted_in_mid_thread_ends_the_turn_with_what_it_has(tmp_path: Path) -> None:
    async def look(context: ToolContext, note: str) -> str:
        return "lighthouse " * 2000

    clock = Clock()
    script = calling(("look", {"note": "x"}), then="It is a lighthouse.", text="I look it up.")
    size = await cost_of_a_turn(tmp_path)
    async with engine(tmp_path, script, tools=[tool("look", look)], clock=clock, tok=estimate) as world:
        budgets(world, each=Budget(every="day", tokens=round(3.5 * size)))
        async with world.running():
            answer = await world.desk.ask("what stands there?")
            assert answer.startswith("I look it up.\n\nYour budget for today is nearly used up")
            assert "I stopped in the middle. What I have so far is kept" in answer
            assert len(world.model.calls) == 1
            rows = await world.transcript()
            assert [row.role for row in rows] == ["user", "assistant", "tool"], "nothing is lost"
            assert await world.store.verify_session(await world.session()) == []
            clock.at += 86_400
            await world.desk.ask("go on")
            assert len(world.model.calls) > 1
            assert "lighthouse lighthouse" in str(spoken(world.replies[-1]))
            assert all(record.status == 200 for record in world.model.calls)


async def test_two_turns_at_once_cannot_spend_the_same_tokens(tmp_path: Path) -> None:
    size = await cost_of_a_turn(tmp_path)
    async with engine(tmp_path, lambda body: say("yes"), clock=Clock(), tok=estimate) as world:
        budgets(world, all=Budget(per="all", every="month", tokens=round(1.9 * (size + 1000))))
        async with world.running():
            held = world.model.hold()
            first = world.desk.message("hello 0", "ada")
            await world.desk.accept(first)
            await held.reached.wait()
            refused = await world.desk.ask("hello 0", "bob")
            assert "The budget of everybody here for this month is nearly used up" in refused
            held.release()
            await world.desk.until(lambda: bool(world.desk.answers(first)))
            assert await world.desk.ask("hello again", "bob") == "yes", "the first took less than was reserved for it"


async def test_in_a_group_a_refusal_and_a_warning_tell_no_amounts_of_a_person(tmp_path: Path) -> None:
    size = await cost_of_a_turn(tmp_path)
    async with engine(tmp_path, lambda body: say("yes"), clock=Clock(), tok=estimate) as world:
        budgets(world, {}, each=Budget(every="day", tokens=round(1.2 * (size + 1000))))
        async with world.running():
            await world.desk.ask("hello all", "group", sender="ada", direct=False)
            refused = await world.desk.ask("and now", "group", sender="ada", direct=False)
            assert "Your budget for today is nearly used up, and this would take more." in refused
            (warned,) = [d.text for d in world.desk.sent if d.text.startswith("A budget is nearly used up.")]
            assert "tokens" not in warned
            assert "% used; it resets" in warned


async def test_a_reservation_survives_a_crash_and_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from clew import service

    monkeypatch.setattr(service, "GRACE", 0.0)
    clock = Clock()
    size = await cost_of_a_turn(tmp_path)
    async with engine(tmp_path, lambda body: say("yes"), clock=clock, tok=estimate) as world:
        budgets(world, all=Budget(per="all", every="day", tokens=round(1.9 * (size + 1000))))
        held = world.model.hold()
        async with world.running():
            asked = world.desk.message("hello 0", "ada")
            await world.desk.accept(asked)
            await held.reached.wait()
        held.release()
        async with world.running():  # the turn is resumed; nobody knows what its first call came to
            await world.desk.until(lambda: bool(world.desk.answers(asked)))
            assert "The budget of everybody here for today is nearly used up" in world.desk.answers(asked)[0].text
            clock.at += 901
            assert await world.desk.ask("go on") == "yes"


async def test_a_reservation_of_a_clock_that_was_put_back_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from clew import service

    monkeypatch.setattr(service, "GRACE", 0.0)
    clock = Clock(START + 3650 * 86_400)
    size = await cost_of_a_turn(tmp_path)
    async with engine(tmp_path, lambda body: say("yes"), clock=clock, tok=estimate) as world:
        budgets(world, all=Budget(per="all", every="day", tokens=round(2.6 * (size + 1000))))
        held = world.model.hold()
        async with world.running():
            await world.desk.accept(world.desk.message("hello 0", "ada"))
            await held.reached.wait()
        held.release()
        clock.at = START
        async with world.running():
            assert await world.desk.ask("hello 1", "bob") == "yes"


async def test_a_call_that_is_tried_again_is_reserved_once(tmp_path: Path) -> None:
    size = await cost_of_a_turn(tmp_path)
    async with engine(tmp_path, lambda body: say("yes"), clock=Clock(), tok=estimate) as world:
        budgets(world, each=Budget(every="day", tokens=round(1.9 * (size + 1000))))
        async with world.running():
            world.model.faults.append(Fault(529, "overloaded_error", "try again", headers={"retry-after": "0"}))
            assert await world.desk.ask("hello 0") == "yes"
            assert len(world.model.calls) == 2


async def test_a_single_call_larger_than_the_budget_says_so(tmp_path: Path) -> None:
    async with engine(tmp_path, clock=Clock(), tok=estimate) as world:
        budgets(world, each=Budget(every="day", tokens=1200))
        async with world.running():
            answer = await world.desk.ask("hello")
            assert "more than all of your budget for today, 1,200 tokens" in answer
            assert not world.model.calls


async def test_roles_and_people_have_their_own_limits(tmp_path: Path) -> None:
    async with engine(tmp_path, lambda body: say("yes"), clock=Clock(), tok=estimate) as world:
        people = {**PEOPLE, "bob": Person(role="guest", identities=("desk:bob",)), "eve": Person(role="guest", identities=("desk:eve",))}
        world.config = world.config.model_copy(update={"people": people})
        budgets(
            world,
            guests=Budget(every="day", tokens=0, roles=("guest",)),
            eve=Budget(every="day", tokens=1_000_000, people=("eve",)),
        )
        async with world.running():
            assert await world.desk.ask("hello", "ada") == "yes"
            assert "Your budget for today is used up: 0 of 0 tokens" in await world.desk.ask("hello", "bob")
            assert await world.desk.ask("hello", "eve") == "yes"


async def test_money_is_counted_by_prices_and_models_without_one_take_tokens_alone(tmp_path: Path) -> None:
    async with engine(tmp_path, lambda body: say("yes"), clock=Clock(), tok=estimate) as world:
        budgets(world, each=Budget(every="day", money=0.5))
        async with world.running():
            assert await world.desk.ask("hello") == "yes"
            told = await world.desk.ask("/cost")
            assert "no price known" in told
            spent = (await today(world)).tokens
            assert f"$0.00 of $0.50 used (0%), $0.50 left; it resets Sat 16 Jan 2027 at 00:00 (UTC). Not in it: {spent:,} tokens" in told
        budgets(world, {"any": PRICE}, each=Budget(every="day", money=0.5))
        async with world.running():
            assert "more than all of your budget for today, $0.50" in await world.desk.ask("hello again")


async def test_without_a_budget_nothing_is_reserved_and_no_commit_is_added(tmp_path: Path) -> None:  # P42
    some = {"each": Budget(every="day", tokens=10**9), "all": Budget(per="all", every="month", money=9)}
    for number, given in enumerate(({}, some)):
        async with engine(tmp_path / str(number), clock=Clock()) as world:
            budgets(world, {}, **given)
            async with world.running():
                await world.desk.ask("warm up")
                await world.idle()
                before = world.store.commits
                await world.desk.ask("plain")
                await world.idle()
                assert world.store.commits - before == 3 + number


async def test_sums_are_made_behind_the_talk_and_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from clew import upkeep

    monkeypatch.setattr(upkeep, "SUM_EVERY", 2)
    async with engine(tmp_path, lambda body: say("yes"), clock=Clock(), tok=estimate) as world, world.running():
        for number in range(5):
            await world.desk.ask(f"hello {number}")
        await world.idle()
        before = await today(world)
        assert before.calls == 5
        await world.service.upkeep.look()
        assert (await world.store.counts(0.0))["calls_unsummed"] < 2
        assert await today(world) == before


# Compactions ------------------------------------------------------------------------------------------------------


async def test_a_compaction_that_is_not_affordable_waits_and_one_by_hand_is_made_without_a_model(tmp_path: Path) -> None:
    async with engine(tmp_path, lambda body: say("yes"), clock=Clock(), tok=estimate) as world:
        world.compression(trigger_messages=10, keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(10))
        budgets(world, each=Budget(every="day", tokens=100))
        async with world.running():
            assert "more than all of your budget" in await world.desk.ask("hello")
            assert not world.model.calls
            assert await world.store.compactions(await world.session()) == []
            told = await world.desk.ask("/compact")
            assert "Compacted: 17 messages went into the summary" in told
            assert "It was done without a model. " in told
            assert "your budget for today" in told
            (made,) = await world.store.compactions(await world.session())
            assert made.prompt_version == "extract"
            assert not world.model.calls


async def test_summaries_are_on_the_account_of_whose_chat_it_is(tmp_path: Path) -> None:
    async with engine(tmp_path, lambda body: say("yes"), clock=Clock(), tok=estimate) as world:
        world.compression(trigger_messages=10, keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(8))
            await world.desk.ask("hello")
            await world.idle()
            assert len(world.summaries) == 1
            by_purpose = await world.store.spending.subjects("purpose", "2027-01-15")
            assert by_purpose.keys() == {"reply", "summary"}
            assert (await today(world)).tokens == sum(sums.tokens for sums in by_purpose.values())


# Jobs -------------------------------------------------------------------------------------------------------------


async def test_a_job_whose_payer_has_nothing_left_is_missed_and_that_is_told_once(tmp_path: Path) -> None:  # P45
    clock = Clock(EIGHT - HOUR)
    size = await cost_of_a_turn(tmp_path)
    async with engine(tmp_path, lambda body: say("Rain."), clock=clock, tok=estimate) as world:
        schedule(world, job(cron="*/30 * * * *"))
        budgets(world, each=Budget(every="day", tokens=8 * size + 500))
        async with world.running():
            while "budget" not in await world.desk.ask(f"hello {clock.at}"):
                pass
            calls = len(world.model.calls)
            for half in range(3):
                await fire(world, clock, EIGHT + half * HOUR / 2)
            assert len(world.model.calls) == calls
            runs = await history(world)
            assert {run["outcome"] for run in runs} == {"missed"}
            assert "the budget each is used up until" in runs[-1]["note"]
            told = [d.text for d in world.desk.sent if d.text.startswith("The scheduled job brief does not run until")]
            assert len(told) == 1
            await fire(world, clock, EIGHT + DAY)
            assert (await history(world))[-1]["outcome"] == "done"


async def test_a_job_that_finds_its_budget_too_small_ends_without_a_failure_and_says_so_once(tmp_path: Path) -> None:  # P45
    clock = Clock(EIGHT - HOUR)
    async with engine(tmp_path, lambda body: say("Rain."), clock=clock, tok=estimate) as world:
        schedule(world, daily())
        budgets(world, each=Budget(every="day", tokens=500))
        async with world.running():
            await fire(world, clock, EIGHT)
            await fire(world, clock, EIGHT + DAY)
            assert [run["outcome"] for run in await history(world)] == ["stopped", "stopped"]
            assert (await world.store.job("brief")).failures == 0
            assert len([d for d in world.desk.sent if "brief does not run until" in d.text]) == 2, "once each day"
            assert not world.model.calls


# What people are told -----------------------------------------------------------------------------------------------


async def test_cost_tells_of_the_turn_the_thread_the_person_and_for_an_owner_of_all(tmp_path: Path) -> None:  # P30
    async with engine(tmp_path, lambda body: say("yes"), clock=Clock(), tok=estimate) as world:
        owner(world)
        budgets(world, {"any": PRICE}, each=Budget(every="month", tokens=10**6))
        async with world.running():
            assert "No model was called here yet." in await world.desk.ask("/cost")
            await world.desk.ask("hello")
            await world.desk.ask("hello again")
            await world.desk.ask("me too", "zoe")
            await world.idle()
            told = (await world.desk.ask("/cost")).splitlines()
            assert [line.partition(":")[0] for line in told] == [
                *("Last turn", "Prompt cache", "This conversation", "You, today", "You, this month", "Budget each (ada, this month)")
            ]
            assert told[2].removeprefix("This conversation: ") == told[3].removeprefix("You, today: ")
            assert "2 calls" in told[2]
            assert "$" in told[2]
            assert "used (" in told[-1]
            assert "Everybody, today: 3 calls" in await world.desk.ask("/cost", "zoe")
            assert "Everybody" not in await world.desk.ask("/cost", "ada")
            assert f"Cost: {told[2].rpartition(', ')[2]}" in await world.desk.ask("/status")


async def test_in_a_group_nothing_is_told_that_is_a_persons_alone(tmp_path: Path) -> None:
    async with engine(tmp_path, lambda body: say("yes"), clock=Clock(), tok=estimate) as world:
        owner(world)
        budgets(world, {}, each=Budget(every="day", tokens=10**6), chats=Budget(per="chat", every="day", tokens=10**6))
        async with world.running():
            await world.desk.ask("hello", "ada")
            await world.desk.ask("hello all", "group", sender="ada", direct=False)
            await world.desk.ask("and all", "group", sender="zoe", direct=False)
            for who in ("ada", "zoe"):
                told = (await world.desk.ask("/cost", "group", sender=who, direct=False)).splitlines()
                assert [line.partition(":")[0] for line in told[2:]] == [
                    *("This conversation", "This chat, today", "This chat, this month", "Budget chats (desk")
                ]
                assert "2 calls" in told[3]


async def test_a_reloaded_budget_counts_what_was_spent_before(tmp_path: Path) -> None:
    async with engine(tmp_path, lambda body: say("yes"), clock=Clock(), tok=estimate) as world, world.running():
        assert await world.desk.ask("hello") == "yes"
        await world.idle()
        used = (await today(world)).tokens
        budgets(world, {}, each=Budget(every="day", tokens=used))
        await world.service.reload(world.config)
        assert "Your budget for today is used up" in await world.desk.ask("and now?")
        budgets(world)
        await world.service.reload(world.config)
        assert await world.desk.ask("and now again?") == "yes"


async def test_another_model_that_answers_is_named(tmp_path: Path) -> None:  # P30
    other, here = AnthropicEmulator(script=lambda body: say("the other one")), lambda body: say("yes")
    async with other, engine(tmp_path, here, provider="anthropic", clock=Clock(), tok=estimate) as world:
        world.model.clock = other.clock = world.clock  # type: ignore[assignment]
        spare = anthropic.Settings(api_key=SecretStr("sk-ant-b"), base_url=other.url, model="claude-opus-5-5", context_window=200_000)
        section = ProviderSection(kind="anthropic", name="spare", settings=spare)
        world.config = world.config.model_copy(update={"providers": {**world.config.providers, "spare": section}})
        world.agent(fallback=("spare",))
        async with world.running():
            await world.desk.ask("hello")
            world.model.faults.append(Fault(400, "invalid_request_error", "not today"))
            assert await world.desk.ask("hello again") == "the other one"
            assert "tokens that it could: model changed" in await world.desk.ask("/cost")
            await world.desk.ask("and back")
            assert (await world.desk.ask("/cost")).splitlines()[1].endswith("tokens that it could"), "its own cache is still there"


async def test_each_part_that_changes_is_named(tmp_path: Path) -> None:  # P29, P30, BO-029, BO-030
    async def nothing(context: ToolContext, note: str) -> str:
        return ""

    async def why(world: World) -> str:
        await world.idle()
        line = (await world.desk.ask("/cost")).splitlines()[1]
        return line.partition("tokens that it could")[2].removeprefix(": ")

    clock = Clock()
    async with engine(tmp_path, lambda body: say("yes"), provider="anthropic", clock=clock, tok=estimate) as world:
        world.model.clock = clock
        async with world.running():
            await world.desk.ask("the boat lies at berth 14 in the harbour of Laboe")
            await world.desk.ask("/new")
            await world.desk.ask("good morning")
            await world.desk.ask("which berth in the harbour has the boat?")
            assert await why(world) == "recall changed"
            await world.desk.ask("thank you")
            assert await why(world) == "", "it stays as it is"
            await world.desk.ask("/memory set style short answers")
            await world.desk.ask("go on")
            assert await why(world) == "notes changed"
        with plugged("clew.tools", "another", tool("another", nothing)):
            async with world.running():
                await world.desk.ask("what can you do now?")
                assert await why(world) == "tool list changed"
                await world.desk.ask("and again?")
                assert await why(world) == ""


async def test_a_cache_read_that_fell_short_is_explained(tmp_path: Path) -> None:  # P28, P30, BO-028
    clock = Clock()

    async def line(world: World, command: str = "/cost") -> str:
        await world.idle()
        return next(each for each in (await world.desk.ask(command)).splitlines() if each.startswith("Prompt cache: read"))

    async with engine(tmp_path, lambda body: say("yes"), provider="anthropic", clock=clock, tok=estimate) as world:
        world.model.clock = clock
        world.compression(keep_recent=2)
        async with world.running():
            await world.desk.ask("hello")
            await world.desk.ask("hello again")
            whole = await line(world)
            assert whole.endswith("tokens that it could")
            read, could = (int(number.replace(",", "")) for number in (whole.split()[3], whole.split()[5]))
            assert read == could > 0
            assert await line(world, "/status") != "", "the same stands there"
            clock.at += 63 * 60
            await world.desk.ask("after lunch")
            assert (await line(world)).endswith(": idle 63 min, ttl 1h")
            await world.desk.ask("and on")
            await world.desk.ask("/undo")
            await world.desk.ask("otherwise")
            assert (await line(world)).endswith(": messages changed")
            await world.desk.ask("/compact")
            await world.desk.ask("a summary stands there")
            assert (await line(world)).endswith(": compaction")
        world.agent(system_prompt="Be brief. " * 200)
        async with world.running():
            await world.desk.ask("who are you now?")
            assert (await line(world)).endswith(": system prompt changed")
            calls = await world.store.spending.calls(await world.session(), 100)
            assert all(call.ttl == 3600.0 and call.held is not None for call in calls if call.purpose == "reply")
