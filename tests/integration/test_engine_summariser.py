"""A summariser that fails costs warnings, never a reply and never a row."""

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from clew.compactor import GIVE_UP
from clew.model_call import SUMMARY_TRIES
from clew.providers import openai
from tests.emulators.scripts import say
from tests.emulators.server import Answer, Fault, JsonObject, Stall
from tests.integration.engine import World, engine, exchanges, openai_section, spoken
from tests.servers import free_port

NOW = {"retry-after": "0"}
BROKEN = Fault(500, "api_error", "Internal server error", NOW)


async def compacted(world: World) -> int:
    return len(await world.store.compactions(await world.session()))


@pytest.mark.asyncio
@pytest.mark.parametrize(("failing", "tries"), [(BROKEN, SUMMARY_TRIES), (Stall(), 1)])
async def test_one_that_fails_for_ever_costs_no_reply_and_no_row(tmp_path: Path, failing: Any, tries: int) -> None:
    # P6, P25, BO-017, BO-018: what it is asked is bounded by session, over the retries too
    async with engine(tmp_path, lambda body: say("yes"), summary=lambda body: failing) as world:
        world.compression(trigger_messages=16, keep_recent=4)
        timeouts = openai.Settings.model_fields["timeouts"].default.model_copy(update={"first_byte": 0.2, "between": 0.2})
        local = world.config.providers["local"]
        settings = local.settings.model_copy(update={"timeouts": timeouts})
        world.config = world.config.model_copy(update={"providers": {"local": local.model_copy(update={"settings": settings})}})
        async with world.running():
            for chat in ("ada", "bob", "eve"):
                await world.seed(*exchanges(7), chat=chat, session=f"{chat}seed23456")
            with capture_logs() as logs:
                for number in range(6):
                    for chat in ("ada", "bob", "eve"):
                        assert await world.desk.ask(f"message {number}", chat) == "yes"
            assert len(world.summaries) == 3 * GIVE_UP * tries
            assert len([line for line in logs if line["event"] == "agent.compress_failed"]) == 3 * GIVE_UP
            assert await compacted(world) == 0
            assert len(await world.transcript()) == 14 + 12
            assert "question 1" in str(spoken(world.replies[-1]))


@pytest.mark.asyncio
async def test_one_that_is_not_there_ends_nothing(tmp_path: Path) -> None:  # P25, BO-019
    async with engine(tmp_path, lambda body: say("yes")) as world:
        gone = openai_section(world.model, "gone")  # type: ignore[arg-type]
        settings = gone.settings.model_copy(update={"base_url": f"http://127.0.0.1:{free_port()}/v1"})
        providers = {**world.config.providers, "gone": gone.model_copy(update={"settings": settings})}
        world.config = world.config.model_copy(update={"providers": providers})
        world.compression(trigger_messages=12, keep_recent=4, provider="gone")
        async with world.running():
            await world.seed(*exchanges(6))
            assert await world.desk.ask("hello") == "yes"
            answer = await world.desk.ask("/compact")
            assert answer.startswith("Compacting did not work: network: ")
            assert answer.endswith("The conversation is as it was.")
            assert await world.desk.ask("still here?") == "yes"
            assert await compacted(world) == 0


@pytest.mark.asyncio
async def test_one_that_fails_once_is_asked_again(tmp_path: Path) -> None:  # P25, BO-020
    failures: list[Answer] = [Fault(504, "timeout_error", "Gateway timeout", NOW)]

    def summary(body: JsonObject) -> Answer:
        return failures.pop() if failures else say("They talked.")

    async with engine(tmp_path, lambda body: say("yes"), summary=summary) as world:
        world.compression(trigger_messages=12, keep_recent=4)
        async with world.running():
            await world.seed(*exchanges(6))
            assert await world.desk.ask("hello") == "yes"
            assert await compacted(world) == 1
