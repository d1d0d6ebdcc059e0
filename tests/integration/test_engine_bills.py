"""Vectors and recordings are paid for like calls of a model, and bound by budgets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from clew.config import Budget, Price, Transcriber
from clew.store.records.spending import Sums
from tests.emulators.embeddings import EmbeddingsEmulator
from tests.emulators.scripts import numbered
from tests.emulators.server import JsonObject
from tests.emulators.transcriptions import TranscriptionsEmulator
from tests.integration.engine import Clock, World, engine
from tests.integration.test_engine_meaning import embedded, world_with
from tests.integration.test_engine_spending import budgets
from tests.integration.test_engine_voice import KEY, SAID, note
from tests.pictures import OGG

pytestmark = pytest.mark.asyncio

DAY = "2027-01-15"
CHEAP = {"small": Price(input=10, output=0)}
"""A cent for a thousand tokens."""


async def spent(world: World, kind: str, subject: str) -> Sums:
    key = (kind, subject, DAY)
    return (await world.store.spending.sums([key]))[key]


# Vectors ----------------------------------------------------------------------------------------------------------


async def test_vectors_are_on_the_account_of_whose_chat_they_are_of(tmp_path: Path) -> None:
    async with EmbeddingsEmulator() as server, world_with(server, tmp_path) as world:
        world.clock = Clock()
        budgets(world, CHEAP)
        async with world.running():
            await world.desk.ask("one two three four five six", "ada")
            await world.desk.ask("one", "bob")
            await embedded(world.service)
            house, by_model = await spent(world, "purpose", "embedding"), await spent(world, "model", "vectors small")
            assert house == by_model
            assert house.tokens == sum(server.tok(text) for text in server.texts)
            assert house.micros == pytest.approx(10 * house.tokens, abs=5)
            assert house.unpriced == 0
            ada, bob = [await spent(world, "person", who) for who in ("ada", "bob")]
            replies = await spent(world, "purpose", "reply")
            assert 0 < bob.micros < ada.micros <= house.micros
            assert ada.tokens + bob.tokens <= house.tokens + replies.tokens, "questions are nobody's in particular"
            sample = world.service.metrics.registry.get_sample_value("clew_model_tokens_total", {"provider": "vectors", "kind": "input"})
            assert sample == house.tokens


async def test_a_budget_of_everybody_that_is_used_up_holds_vectors_back_until_it_resets(tmp_path: Path) -> None:
    clock = Clock()
    async with EmbeddingsEmulator() as server, world_with(server, tmp_path) as world:
        world.clock = clock
        budgets(world, CHEAP, house=Budget(per="all", every="day", money=0))
        with capture_logs() as logs:
            async with world.running():
                assert await world.desk.ask("the boat lies at berth 14") == "ok", "the reply costs no money"
                await embedded(world.service)
                assert server.texts == []
                clock.at += 86_400
        reached = [(line["budget"], line["period"]) for line in logs if line["event"] == "budget.reached"]
        assert len(reached) == len(set(reached)), "once in its period"
        assert reached[0] == ("house", DAY)
        budgets(world, CHEAP, house=Budget(per="all", every="day", money=1))
        async with world.running():
            await embedded(world.service)
            assert "the boat lies at berth 14" in server.texts


async def test_servers_that_tell_no_tokens_are_paid_nothing(tmp_path: Path) -> None:
    def silent(answer: JsonObject) -> JsonObject:
        return {key: value for key, value in answer.items() if key != "usage"}

    async with EmbeddingsEmulator() as server, world_with(server, tmp_path) as world:
        server.render = silent
        world.clock = Clock()
        async with world.running():
            await world.desk.ask("hello")
            await embedded(world.service)
            assert server.texts
            assert (await spent(world, "purpose", "embedding")).calls == 0


# Recordings -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def hearing(folder: Path, usage: JsonObject) -> AsyncIterator[tuple[World, TranscriptionsEmulator]]:
    emulator = TranscriptionsEmulator(say=lambda body: SAID, api_key=KEY, usage=usage)
    async with emulator as server, engine(folder, numbered("answer"), clock=Clock()) as world:
        world.desk.files = {"v": OGG}
        chosen = Transcriber(kind="openai", base_url=server.base_url, api_key=SecretStr(KEY))
        world.config = world.config.model_copy(update={"transcriber": chosen})
        yield world, server


@pytest.mark.parametrize(
    ("usage", "price", "cents", "tokens"),
    [
        ({"type": "duration", "seconds": 90}, Price(input=0, output=0, minute=0.02), 3, 0),
        ({"type": "tokens", "input_tokens": 1000, "output_tokens": 500}, Price(input=10, output=40), 3, 1500),
        ({"seconds": -5, "input_tokens": "many"}, Price(input=10, output=40), 0, 0),
    ],
)
async def test_a_recording_is_paid_by_the_minute_or_by_tokens(
    tmp_path: Path, usage: JsonObject, price: Price, cents: int, tokens: int
) -> None:
    async with hearing(tmp_path, usage) as (world, _):
        budgets(world, {"whisper-1": price})
        async with world.running():
            await world.desk.ask("hello")
            await world.desk.ask("", attachments=(note(),))
            await world.idle()
            heard = await spent(world, "purpose", "transcription")
            assert (heard.micros, heard.tokens) == (cents * 10_000, tokens)
            assert (await spent(world, "person", "ada")).micros == heard.micros


async def test_a_recording_is_not_heard_when_a_budget_is_used_up(tmp_path: Path) -> None:
    async with hearing(tmp_path, {"seconds": 60}) as (world, server):
        budgets(world, {"whisper-1": Price(input=0, output=0, minute=0.05)}, each=Budget(every="day", money=0.05))
        async with world.running():
            await world.desk.ask("hello")
            assert await world.desk.ask("", attachments=(note(),)) == "answer 2"
            told = await world.desk.ask("", attachments=(note(),))
            assert told.startswith(
                "I could not use voice.ogg: I do not listen to it now. Your budget for today is used up: $0.05 of $0.05."
            )
            assert "It resets Sat 16 Jan 2027 at 00:00 (UTC)" in told
            assert len(server.heard) == 1
