"""Slack's adapter killed at any moment: what was said is stored once, whether Slack tells it again or gives up.

As a program, `python -m tests.integration.test_slack_kill URL FILE`, it is a clew to be killed: it stores what comes in FILE, an SQLite
database, and prints a line for each commit.
"""

import asyncio
import contextlib
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from clew_transports.slack.settings import Settings
from clew_transports.slack.transport import SlackTransport
from tests.emulators.slack import APP_TOKEN, BOT_TOKEN, MENTION, SlackEmulator
from tests.integration.mqtt_harness import ROOT, Disk, line

ROUNDS, EACH = 6, 8


@contextlib.asynccontextmanager
async def process(url: str, file: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.test_slack_kill", url, str(file)),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT}/daemon:{ROOT}/transports"},
    )
    try:
        yield started
    finally:
        with contextlib.suppress(ProcessLookupError):
            started.kill()
        await started.communicate()


@pytest.mark.asyncio
@pytest.mark.parametrize("gives_up", [False, True])
async def test_kill_9_at_any_moment_loses_nothing_and_doubles_nothing(tmp_path: Path, gives_up: bool) -> None:  # P42 P48
    chance = random.Random(8)
    file, texts = tmp_path / "inbox.db", [f"message {number}" for number in range(ROUNDS * EACH)]
    async with SlackEmulator() as emulator:
        emulator.gives_up = gives_up
        emulator.members |= {"D0ADA", "C0CLUB"}
        for start in range(0, len(texts), EACH):
            async with process(emulator.url, file) as clew:
                await emulator.until(lambda: bool(emulator.sockets))
                for text in texts[start : start + EACH]:
                    emulator.say(text) if chance.random() < 0.5 else emulator.say(f"{MENTION} {text}", "U0BOB", "C0CLUB")
                for _ in range(chance.randrange(1, 4)):
                    assert await line(clew)
                clew.kill()
                await clew.wait()
            await emulator.until(lambda: not emulator.sockets)
        host = Disk(file)
        async with process(emulator.url, file) as clew:
            while len(host.texts_stored()) < len(texts):
                assert await line(clew), host.texts_stored()
        assert sorted(host.texts_stored()) == sorted(texts)
        host.close()


async def _serve(url: str, file: str) -> None:
    settings = Settings(bot_token=SecretStr(BOT_TOKEN), app_token=SecretStr(APP_TOKEN), base_url=url)
    await SlackTransport("slack", settings, first_pause=0.02).run(Disk(Path(file)))


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:3]))
