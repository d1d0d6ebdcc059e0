"""A request that no compaction makes fit ends in words, a failed run and an exit status, never in silence."""

import asyncio
import sys
from pathlib import Path

import pytest

from clew.agent import WORDS
from clew.config import Job
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.server import Fault, JsonObject
from tests.integration.engine import START, Clock, engine

FULL = Fault(400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum")


def full(body: JsonObject) -> Fault:
    return FULL


@pytest.mark.asyncio
async def test_a_person_is_told_and_a_job_has_failed(tmp_path: Path) -> None:  # P25, P45, BO-026
    clock = Clock(START - 60)
    job = Job.model_validate({"name": "brief", "cron": "0 8 * * *", "timezone": "UTC", "prompt": "The brief.", "deliver_to": "desk:ada"})
    async with engine(tmp_path, full, summary=full, clock=clock) as world:
        world.config = world.config.model_copy(update={"schedule": (job,)})
        async with world.running():
            assert await world.desk.ask("hello") == WORDS["compact_full"]
            assert len(world.desk.sent) == 1
            clock.at = START + 1
            await world.service.scheduler.fire_due()
            await world.desk.until(lambda: len(world.desk.sent) == 2)
            await world.idle()
            assert world.desk.sent[1].text.startswith(f"The scheduled job brief failed. {WORDS['compact_full']} ")
            assert [run["outcome"] for run in await world.store.job_history("brief", 10)] == ["failed"]


@pytest.mark.asyncio
async def test_a_one_shot_command_says_so_and_exits_with_one(tmp_path: Path) -> None:  # P25, BO-026
    async with OpenAIEmulator(script=full) as model:
        config = tmp_path / "clew.yaml"
        provider = f"{{kind: openai, base_url: '{model.base_url}', model: any, context_window: 200000}}"
        config.write_text(f"data_dir: {tmp_path}/data\nproviders: {{local: {provider}}}\n")
        command = [sys.executable, "-c", "from clew.cli import main; main()", "chat", "--config", str(config)]
        pipe = asyncio.subprocess.PIPE
        asked = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
        said, _ = await asyncio.wait_for(asked.communicate(b"hello\n"), 60)
    assert WORDS["compact_full"] in said.decode()
    assert asked.returncode == 1
