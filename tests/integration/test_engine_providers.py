import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from clew.config import ProviderSection
from clew.messages import Text
from clew.providers import anthropic
from clew.providers.breaker import FAILURES
from clew.transport import Preview
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import say
from tests.emulators.server import AnyFault, DropAfter, Empty, Fault, JsonObject, Reply, StreamError
from tests.integration.engine import START, Clock, World, assistant, engine, openai_section, spoken, tool, user, words_of

NOW = {"retry-after": "0"}
OVERLOADED = Fault(529, "overloaded_error", "Overloaded, with inner details", NOW)
UNREACHED = "My model could not be reached just now. Your message is stored; please ask again in a while."


def with_fallback(world: World, other: OpenAIEmulator) -> None:
    world.config = world.config.model_copy(update={"providers": {**world.config.providers, "other": openai_section(other, "other")}})
    world.agent(fallback=("other",))


@pytest.mark.asyncio
async def test_an_overloaded_model_is_asked_again(tmp_path: Path) -> None:  # BO-112
    async with engine(tmp_path, lambda body: say("here I am")) as world, world.running():
        world.model.faults.extend([OVERLOADED] * 3)
        with capture_logs() as logs:
            assert await world.desk.ask("hello?") == "here I am"
        assert len(world.model.calls) == 4
        assert [line["kind"] for line in logs if line["event"] == "provider.retry"] == ["overloaded"] * 3


@pytest.mark.asyncio
async def test_the_fallback_answers_where_the_first_does_not(tmp_path: Path) -> None:  # BO-112
    async with engine(tmp_path) as world, OpenAIEmulator(script=lambda body: say("the other one here")) as other:
        with_fallback(world, other)
        async with world.running():
            world.model.faults.extend([OVERLOADED] * 4)
            with capture_logs() as logs:
                assert await world.desk.ask("hello?") == "the other one here"
            assert len(other.calls) == 1
            assert [line["provider"] for line in logs if line["event"] == "provider.fallback"] == ["local"]
            calls = (await world.store.export_session(await world.session()))["model_calls"]
            assert [call["provider"] for call in calls] == ["local"] * 4 + ["other"]
            assert "answer" in await world.desk.ask("and now?")


@pytest.mark.asyncio
async def test_a_provider_that_is_left_alone_and_its_fallback_are_seen_in_status_and_metrics(tmp_path: Path) -> None:  # BO-112
    async with engine(tmp_path) as world, OpenAIEmulator(script=lambda body: say("the other one here")) as other:
        with_fallback(world, other)
        async with world.running():
            figure = world.service.metrics.registry.get_sample_value
            assert "left alone" not in await world.desk.ask("/status")
            world.model.faults.extend([OVERLOADED] * FAILURES)
            for _ in range(3):
                assert await world.desk.ask("hello?") == "the other one here"
            assert len(world.model.calls) == FAILURES, "it is not asked any more"
            status = await world.desk.ask("/status")
            for line in ("Where it fails: any (other)", "The last reply came from other", "local kept failing and is left alone"):
                assert line in status
            told = await world.service.status()
            assert (told["breakers"], told["fallback"]) == ({"local": "open", "other": "closed"}, ["other"])
            assert figure("clew_provider_breaker_open", {"provider": "local"}) == 1
            assert figure("clew_model_fallbacks_total", {"provider": "local"}) == 3
            assert figure("clew_model_errors_total", {"provider": "local", "kind": "overloaded"}) == FAILURES


@pytest.mark.asyncio
async def test_when_nobody_answers_the_person_is_told_once_in_plain_words(tmp_path: Path) -> None:  # BO-112
    async with engine(tmp_path) as world, OpenAIEmulator(script=lambda body: OVERLOADED) as other:
        with_fallback(world, other)
        async with world.running():
            world.model.faults.extend([OVERLOADED] * 4)
            with capture_logs() as logs:
                assert await world.desk.ask("hello?") == UNREACHED
            await world.idle()
            assert len(world.desk.sent) == 1
            assert [line["error"] for line in logs if line["event"] == "turn.failed"] == ["overloaded"]
            assert "answer" in await world.desk.ask("and now?")
            assert "hello?" in str(world.replies[-1])


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(401, "authentication_error", "invalid key"), "refused the key"),
        (Fault(429, "insufficient_quota", "quota", details={"code": "insufficient_quota"}), "spending limit"),
        (Fault(400, "invalid_request_error", "bad shape"), "refused the request"),
    ],
)
async def test_what_cannot_be_mended_by_asking_again_is_said_at_once(tmp_path: Path, fault: AnyFault, words: str) -> None:  # BO-112
    async with engine(tmp_path) as world, world.running():
        world.model.faults.append(fault)
        answer = await world.desk.ask("hello?")
        assert words in answer
        assert len(world.model.calls) == 1
        assert "answer" in await world.desk.ask("and now?")


@pytest.mark.asyncio
async def test_the_owner_is_told_once_what_only_they_can_mend(tmp_path: Path) -> None:  # BO-112
    async with engine(tmp_path) as world, world.running():
        await world.service.store.person_at("desk:boss", 0.0, local=True)
        assert "answer" in await world.desk.ask("it is me", "boss")
        for number in range(3):
            world.model.faults.append(Fault(401, "authentication_error", "invalid key"))
            assert "refused the key" in await world.desk.ask(f"hello {number}")
        await world.idle()
        warnings = [delivery.text for delivery in world.desk.sent if delivery.address.chat == "boss"][1:]
        assert len(warnings) == 1
        assert "cannot be used until you mend it" in warnings[0]


@pytest.mark.asyncio
@pytest.mark.parametrize("content", [[], [{"type": "thinking", "thinking": "hm"}]])
async def test_a_refusal_is_final_and_honest(tmp_path: Path, content: list[JsonObject]) -> None:  # BO-114
    async with engine(tmp_path, lambda body: Reply(content, "refusal"), provider="anthropic") as world, world.running():
        assert await world.desk.ask("something bad") == "My model declined to answer that."
        assert len(world.model.calls) == 1
        world.model.script = lambda body: say("gladly")
        assert await world.desk.ask("something good") == "gladly"


@pytest.mark.asyncio
async def test_an_empty_reply_is_asked_for_once_more(tmp_path: Path) -> None:  # BO-113
    async with engine(tmp_path) as world, world.running():
        world.model.faults.append(Empty())
        assert "answer" in await world.desk.ask("hello?")
        assert len(world.model.calls) == 2
        world.model.faults.extend([Empty(), Empty()])
        assert await world.desk.ask("and now?") == "My model gave an empty answer. Please ask again."
        assert "answer" in await world.desk.ask("hi")
        assert all(message.blocks and message.text.strip() for message in await world.transcript())


@pytest.mark.asyncio
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_an_old_empty_row_heals_on_the_way(tmp_path: Path, provider: Any) -> None:  # BO-113
    async with engine(tmp_path, provider=provider) as world, world.running():
        await world.seed(user("one"), ("assistant", ()), user("two"), ("assistant", (Text("  \n"),)), user("three"), assistant("3"))
        assert "answer" in await world.desk.ask("hi")
        assert {record.status for record in world.model.calls} == {200}


@pytest.mark.asyncio
@pytest.mark.parametrize("fault", [DropAfter(4), StreamError(after=4), DropAfter(0)])
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_cut_reply_is_asked_for_again_and_delivered_once(tmp_path: Path, fault: AnyFault, provider: Any) -> None:  # BO-117, BO-118
    text = "The whole answer, from its beginning to its very end."
    async with engine(tmp_path, lambda body: say(text), provider=provider) as world, world.running():
        world.model.faults.append(fault)
        assert await world.desk.ask("tell me") == text
        await world.idle()
        assert [delivery.text for delivery in world.desk.sent] == [text]
        assert [m.text for m in await world.transcript()] == ["tell me", text]
        previews = [hint.text for hint in world.desk.hints if isinstance(hint, Preview)]
        assert all(text.startswith(preview) or preview in text for preview in previews)


@pytest.mark.asyncio
async def test_a_reply_cut_at_its_longest_says_so(tmp_path: Path) -> None:  # BO-117
    async with engine(tmp_path, lambda body: Reply([{"type": "text", "text": "and so"}], "max_tokens")) as world, world.running():
        assert await world.desk.ask("tell me") == "and so\n\n[My reply reached its longest length and was cut here.]"
        exported = await world.store.export_session(await world.session())
        assert exported["messages"][-1]["metadata"]["stop"] == "length"


@pytest.mark.asyncio
async def test_thinking_is_replayed_within_its_turn_and_not_after_it(tmp_path: Path) -> None:  # BO-115
    async def looks(context: object, note: str) -> str:
        return "seen"

    rounds = 0

    def script(body: JsonObject) -> Reply:
        nonlocal rounds
        rounds += 1
        thought = {"type": "thinking", "thinking": f"thought {rounds}"}
        if rounds % 2:
            return Reply([thought, {"type": "tool_use", "id": f"toolu_{rounds}", "name": "look", "input": {}}], "tool_use")
        return Reply([thought, {"type": "text", "text": f"answer {rounds}"}])

    async with engine(tmp_path, script, tools=[tool("look", looks)], provider="anthropic", strict_thinking=True) as world:
        async with world.running():
            assert await world.desk.ask("one") == "answer 2"
            assert "thought 1" in json.dumps(world.replies[1])
            assert await world.desk.ask("two") == "answer 4"
            assert "thought 1" not in json.dumps(world.replies[2])
        async with world.running():
            assert await world.desk.ask("three") == "answer 6"
        local = world.config.providers["local"]
        settings = local.settings.model_copy(update={"model": "claude-haiku-4-5"})
        assert isinstance(settings, anthropic.Settings)
        world.config = world.config.model_copy(update={"providers": {"local": local.model_copy(update={"settings": settings})}})
        async with world.running():
            assert await world.desk.ask("four") == "answer 8"
        assert {record.status for record in world.model.calls} == {200}


@pytest.mark.asyncio
async def test_a_smaller_fallback_shortens_its_own_request_and_not_the_thread(tmp_path: Path) -> None:  # P9, P25
    long = "lorem ipsum dolor sit amet " * 12
    async with engine(tmp_path) as world, OpenAIEmulator(script=lambda body: say("small but here"), window=8192) as other:
        with_fallback(world, other)
        small = openai_section(other, "other", window=8192)
        world.config = world.config.model_copy(update={"providers": {**world.config.providers, "other": small}})
        async with world.running():
            await world.seed(*[user(f"part {n} {long}") if n % 2 else assistant(f"part {n} {long}") for n in range(1, 57)])
            world.model.faults.extend([OVERLOADED] * 4)
            assert await world.desk.ask("hello?") == "small but here"
            assert "part 1 " not in json.dumps(other.calls[0].body)
            assert "part 56 " in json.dumps(other.calls[0].body)
            assert await world.store.compactions(await world.session()) == []
            await world.desk.ask("and now?")
            assert "part 1 " in json.dumps(world.replies[-1])


@pytest.mark.asyncio
@pytest.mark.parametrize("count", range(56, 60))
async def test_what_a_smaller_fallback_is_shown_begins_with_the_user(tmp_path: Path, count: int) -> None:  # P11, BO-003
    long = "lorem ipsum dolor sit amet " * 12
    async with engine(tmp_path) as world, AnthropicEmulator(script=lambda body: say("small but here")) as other:
        world.agent(fallback=("other",))
        settings = anthropic.Settings(api_key=SecretStr("sk-ant-another-key-0123456789"), base_url=other.url, context_window=8192)
        small = ProviderSection(kind="anthropic", name="other", settings=settings)
        world.config = world.config.model_copy(update={"providers": {**world.config.providers, "other": small}})
        async with world.running():
            turns = [user(f"part {n} {long}") if n % 2 else assistant(f"part {n} {'x' * n} {long}") for n in range(1, count)]
            await world.seed(*turns)
            world.model.faults.extend([OVERLOADED] * 4)
            with capture_logs() as logs:
                assert await world.desk.ask("hello?") == "small but here"
            assert "part 1 " not in json.dumps(other.calls[0].body)
            assert [line for line in logs if line["event"] == "view.repaired"] == []


# Time ------------------------------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_each_message_keeps_its_own_time_in_the_persons_zone(tmp_path: Path) -> None:  # P29, BO-110, BO-111
    at = 1_800_032_400.0 - 60 * 9  # 2027-01-15 16:51 UTC
    clock: list[float] = [at]
    async with engine(tmp_path, lambda body: say("ok"), clock=lambda: clock[0]) as world:
        people = {**world.config.people, "ada": world.config.people["ada"].model_copy(update={"timezone": "America/New_York"})}
        world.config = world.config.model_copy(update={"people": people})
        async with world.running():
            await world.desk.ask("what is left of the day?")
            assert words_of(spoken(world.replies[0])[0]) == "[Fri 2027-01-15 11:51 -05:00] what is left of the day?"
            assert "America/New_York" in str(world.replies[0])
            assert "UTC" not in str(world.replies[0]["messages"])
            clock[0] += 5 * 3600
            await world.desk.ask("and now?")
            heads = [words_of(message)[:30] for message in spoken(world.replies[1]) if message["role"] == "user"]
            assert heads == ["[Fri 2027-01-15 11:51 -05:00] ", "[Fri 2027-01-15 16:51 -05:00] "]
            await world.desk.ask("hello", "bob")
            assert words_of(spoken(world.replies[2])[0]).startswith("[Fri 2027-01-15 21:51 +00:00] ")


@pytest.mark.asyncio
async def test_a_custom_prompt_is_left_as_it_is_and_the_zone_stands_in_the_heads(tmp_path: Path) -> None:  # P27, BO-110
    async with engine(tmp_path, lambda body: say("ok"), clock=lambda: 1_800_000_000.0) as world:
        world.agent(system_prompt="  Be brief.\n")
        async with world.running():
            await world.desk.ask("hello")
            assert world.replies[0]["messages"][0]["content"] == "  Be brief.\n"
            assert words_of(spoken(world.replies[0])[0]) == "[Fri 2027-01-15 08:00 +00:00 UTC] hello"


@pytest.mark.asyncio
async def test_in_a_group_each_message_names_its_sender(tmp_path: Path) -> None:  # P18, P29
    async with engine(tmp_path, lambda body: say("ok"), clock=lambda: 1_800_000_000.0) as world, world.running():
        await world.desk.ask("hello", "team", sender="ada", direct=False, sender_name="Ada L.")
        await world.desk.ask("hi", "team", sender="bob", direct=False)
        texts = [words_of(message) for message in spoken(world.replies[1]) if message["role"] == "user"]
        assert [text.partition("] ")[2] for text in texts] == ["Ada L.: hello", "bob: hi"]


@pytest.mark.asyncio
async def test_a_head_that_the_model_copies_is_taken_off(tmp_path: Path) -> None:  # BO-121
    async with engine(tmp_path, lambda body: say("[Fri 2027-01-15 08:00 +00:00] Good morning.")) as world, world.running():
        assert await world.desk.ask("hello") == "Good morning."


@pytest.mark.asyncio
async def test_a_clock_that_goes_on_changes_nothing_in_front_of_the_messages(tmp_path: Path) -> None:  # P29, BO-028
    clock = Clock()
    async with engine(tmp_path, provider="anthropic", clock=clock) as world, world.running():
        for seconds in (0, 70, 600):
            clock.at = START + seconds
            await world.desk.ask("what time is it?")
        assert len({json.dumps([body["tools"], body["system"]]) for body in world.replies}) == 1
        first, second, third = (spoken(body) for body in world.replies)
        assert json.dumps(first[0]).split("cache_control")[0] == json.dumps(second[0]).split("cache_control")[0]
        assert [words_of(message) for message in third[:2]] == [words_of(message) for message in second[:2]]
