"""Recall by meaning, through the whole engine and a real `/embeddings` server."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from clew import recall
from clew.clock import Time
from clew.config import Embeddings
from clew.embedders import BATCH
from clew.embedders.endpoint import Endpoint
from clew.meaning import Meaning
from clew.progress import Progress
from clew.service import Service
from clew.supervise import cancelled
from tests.emulators.embeddings import EmbeddingsEmulator
from tests.emulators.scripts import say
from tests.emulators.server import Fault, JsonObject, Reply
from tests.integration.engine import DEADLINE_S, World, engine, openai_section, system_text
from tests.unit.store_rows import opened, turn
from tests.unit.test_store_rebuilding import export

MEANING = {"vessel": "boat", "moored": "lies", "patisserie": "café"}
SAID = ["the boat lies at berth 14 in the harbour", "the harbour café sells good cake", "the harbour master is called Jensen"]
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


def quiet(body: JsonObject) -> Reply:
    return say("ok")


@asynccontextmanager
async def world_with(server: EmbeddingsEmulator, folder: Path) -> AsyncIterator[World]:
    async with engine(folder, quiet) as world:
        embedding = openai_section(world.model, "vectors")  # type: ignore[arg-type]
        settings = embedding.settings.model_copy(update={"base_url": server.base_url})
        providers = {**world.config.providers, "vectors": embedding.model_copy(update={"settings": settings})}
        chosen = Embeddings(provider="vectors", model="small")
        world.config = world.config.model_copy(update={"providers": providers, "embeddings": chosen})
        yield world


async def embedded(service: Service) -> None:
    assert service.meaning is not None
    async with asyncio.timeout(DEADLINE_S):
        await service.meaning.catch_up()


@pytest.mark.asyncio
async def test_what_is_near_in_meaning_comes_first_on_every_path(tmp_path: Path) -> None:  # P31
    async with EmbeddingsEmulator(meaning=MEANING) as server, world_with(server, tmp_path) as world, world.running():
        for text in SAID:
            await world.desk.ask(text)
            await world.desk.ask("/new")
        service = world.service
        await embedded(service)
        answer = await world.desk.ask("/recall where in the harbour is the vessel moored")
        assert SAID[0] in answer.splitlines()[0]
        await world.desk.ask("which berth in the harbour has the vessel?")
        assert SAID[0] in system_text(world.replies[-1])
        assert "which berth in the harbour has the vessel?" in server.texts
        scope = await world.store.scope_for(person="ada")
        by_words = await recall.search(world.store, scope, "harbour, patisserie", limit=9)
        by_meaning = await recall.search(world.store, scope, "harbour, patisserie", limit=9, meaning=service.meaning)
        assert [each.candidate.text for each in by_meaning].index(SAID[1]) < [each.candidate.text for each in by_words].index(SAID[1])


@pytest.mark.asyncio
async def test_neither_a_message_nor_its_answer_waits_for_its_vector(tmp_path: Path) -> None:  # P1
    async with EmbeddingsEmulator() as server, world_with(server, tmp_path) as world:
        hold = server.hold()
        async with world.running():
            assert await world.desk.ask("the boat lies at berth 14") == "ok"
            async with asyncio.timeout(DEADLINE_S):
                await hold.reached.wait()
            assert await world.desk.ask("and the car is in the garage") == "ok"
            hold.release()
            await embedded(world.service)
            assert {"the boat lies at berth 14", "and the car is in the garage"} <= set(server.texts)


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.asyncio
async def test_where_the_model_is_late_or_fails_words_alone_decide_and_the_log_says_so(tmp_path: Path, late: bool) -> None:  # P31
    async with EmbeddingsEmulator() as server, opened(tmp_path) as store:
        await turn(store, "1", "the boat lies at berth 14", "noted")
        endpoint = Endpoint(server.base_url, "small", None, 20.0)
        meaning = Meaning(store, endpoint, (), Time())
        await meaning.catch_up()
        calls = len(server.calls)
        hold = server.hold() if late else None
        server.faults.extend([] if late else [Fault(500, "server_error", "The server had an error")])
        scope = await store.scope_for(person="ada")
        with capture_logs() as logs:
            for _ in range(2):
                found = await recall.search(store, scope, "which berth?", limit=3, meaning=meaning)
                assert found[0].candidate.text == "the boat lies at berth 14"
        told = [line for line in logs if line["event"] == "recall.by_words_alone"]
        assert [line["kind"] for line in told] == ["stall" if late else "server"]
        assert len(server.calls) == calls + 1  # a server that is down is left alone for a while
        if hold is not None:
            hold.release()
        await meaning.close()


@pytest.mark.asyncio
async def test_no_secret_reaches_the_model(tmp_path: Path) -> None:  # P19
    async with EmbeddingsEmulator() as server, opened(tmp_path) as store:
        await turn(store, "1", f"the key is {KEY} and the door says house-secret-77", "noted")
        endpoint = Endpoint(server.base_url, "small", None, 20.0)
        meaning = Meaning(store, endpoint, ("house-secret-77",), Time())
        await meaning.catch_up()
        await meaning.near(f"is {KEY} or house-secret-77 right?", (), ["x"])
        assert len(server.texts) == 3
        assert "the door says [redacted]" in server.texts[0]
        assert not any(KEY in text or "house-secret-77" in text for text in server.texts)
        await meaning.close()


@pytest.mark.asyncio
async def test_a_text_that_the_model_refuses_keeps_no_other_waiting(tmp_path: Path) -> None:
    async with EmbeddingsEmulator(window=20) as server, opened(tmp_path) as store:
        server.tok = lambda text: 999 if "poison" in text else 1
        for number, text in enumerate(("one boat", "poison", "another boat")):
            await turn(store, str(number), text, "ok")
        endpoint = Endpoint(server.base_url, "small", None, 20.0)
        meaning = Meaning(store, endpoint, (), Time())
        with capture_logs() as logs:
            await meaning.catch_up()
        assert [line["kind"] for line in logs if line["event"] == "embedding.refused"] == ["overflow"]
        assert await store.vectors.waiting(endpoint.version, 9) == ()
        assert await store.check() == []
        await meaning.close()


@pytest.mark.asyncio
async def test_more_than_a_moments_work_is_told(tmp_path: Path) -> None:
    async with EmbeddingsEmulator() as server, opened(tmp_path) as store:
        await store.import_session(export("s", 3 * BATCH), 1.0)
        endpoint = Endpoint(server.base_url, "small", None, 20.0)
        meaning, progress = Meaning(store, endpoint, (), Time()), Progress(Time())
        server.faults.extend([None, Fault(503, "server_error", "Out of memory", {"retry-after": "0"})])
        task = asyncio.create_task(meaning.run(progress))
        async with asyncio.timeout(DEADLINE_S):
            while not (works := progress.works) or works[0].ended is None:
                await asyncio.sleep(0)
            [failed] = works
            assert (failed.state, failed.done, failed.of, failed.unit) == ("failed", 0, 2 * BATCH, "texts")
            assert "Out of memory" in failed.why
            while (work := progress.works[0]) is failed or work.ended is None:
                await asyncio.sleep(0)
        assert (work.state, work.done, work.of) == ("done", BATCH, BATCH)
        await cancelled([task])
        await meaning.close()


@pytest.mark.asyncio
async def test_a_model_that_is_not_there_marks_no_message_as_done(tmp_path: Path) -> None:
    async with EmbeddingsEmulator(models=["large"]) as server, opened(tmp_path) as store:
        await turn(store, "1", "the boat", "ok")
        meaning = Meaning(store, Endpoint(server.base_url, "small", None, 20.0), (), Time())
        with capture_logs() as logs:
            task = asyncio.create_task(meaning.run(Progress(Time())))
            async with asyncio.timeout(DEADLINE_S):
                while not any(line["event"] == "embedding.failed" for line in logs):
                    await asyncio.sleep(0)
        task.cancel()
        [line] = [line for line in logs if line["event"] == "embedding.failed"]
        assert (line["kind"], line["wait"]) == ("invalid", 600.0)
        server.models.append("small")
        await meaning.catch_up()
        assert server.texts[-2:] == ["the boat", "ok"]
        await meaning.close()


@pytest.mark.asyncio
async def test_a_server_that_changes_its_model_under_the_same_name_is_embedded_anew(tmp_path: Path) -> None:
    async with EmbeddingsEmulator(dimensions=64) as server, opened(tmp_path) as store:
        await turn(store, "1", "the boat", "ok")
        meaning = Meaning(store, Endpoint(server.base_url, "small", None, 20.0), (), Time())
        await meaning.catch_up()
        server.dimensions = 32
        await turn(store, "2", "the car", "ok")
        with capture_logs() as logs:
            await meaning.catch_up()
        assert [line["event"] for line in logs] == ["embedding.begun_anew"]
        assert server.texts.count("the boat") == 2
        assert await store.check() == []
        await meaning.close()


CONFIGS: Mapping[str, str] = {"without": "", "with": "embeddings: {provider: wordllama}\n"}


@pytest.mark.parametrize("chosen", CONFIGS)
def test_nothing_of_it_is_imported_unless_it_is_asked_for(tmp_path: Path, chosen: str) -> None:
    (tmp_path / "clew.yaml").write_text(f"data_dir: {tmp_path / 'data'}\n{CONFIGS[chosen]}")
    code = """
import asyncio, sys
from pathlib import Path
from clew.cli.options import settings
from clew.service import Service
async def run():
    async with Service.open(settings(Path("clew.yaml")), remote=False) as service:
        print(service.meaning is not None)
asyncio.run(run())
print(*(name for name in ("wordllama", "numpy", "clew.embedders.endpoint", "clew.embedders.wordllama") if name in sys.modules))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=100)
    lines = run.stdout.splitlines()
    assert lines[0] == str(chosen == "with"), run.stderr
    assert lines[-1].split() == (["wordllama", "numpy", "clew.embedders.wordllama"] if chosen == "with" else [])
