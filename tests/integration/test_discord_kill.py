"""Discord's adapter killed at any moment: what was said is stored once and in order, whether the session is kept or not.

As a program, `python -m tests.integration.test_discord_kill URL FILE`, it is a clew to be killed: it stores what comes in FILE, an SQLite
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

from clew_transports.discord.transport import DiscordTransport, Settings
from tests.emulators.discord import CHANNEL, THREAD, TOKEN, DiscordEmulator, person
from tests.integration.discord_harness import ME, greeted
from tests.integration.mqtt_harness import ROOT, Disk, line

ROUNDS, EACH = 8, 9
WHERE = (None, CHANNEL, THREAD)


@contextlib.asynccontextmanager
async def process(url: str, file: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.test_discord_kill", url, str(file)),
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


class Talk:
    """People who count aloud, in turn in private, in a channel and in its thread."""

    def __init__(self, platform: DiscordEmulator, host: Disk) -> None:
        self.said = 0
        self._platform = platform
        self._host = host

    def go_on(self, count: int) -> None:
        for _ in range(count):
            where = WHERE[self.said % len(WHERE)]
            self._platform.say(f"{ME} {self.said}" if where else str(self.said), person(11), where)
            self.said += 1

    async def stored(self, clew: asyncio.subprocess.Process, count: int) -> None:
        while len(self._host.texts_stored()) < count:
            assert await line(clew), self._host.texts_stored()


@pytest.mark.asyncio
@pytest.mark.parametrize("kept", ["always", "never", "at times"])
async def test_kill_9_at_any_moment_loses_nothing_and_doubles_nothing(tmp_path: Path, kept: str) -> None:  # P42 P48
    chance, file = random.Random(6), tmp_path / "inbox.db"
    async with DiscordEmulator() as platform:
        host = Disk(file)
        talk = Talk(platform, host)
        async with process(platform.base, file) as clew:
            await greeted(platform)
            talk.go_on(3)
            await talk.stored(clew, 3)
        for _ in range(ROUNDS):
            before, early = talk.said, chance.randrange(EACH + 1)
            if kept == "never" or (kept == "at times" and chance.random() < 0.5):
                platform.gateway.forget()
            talk.go_on(early)
            async with process(platform.base, file) as clew:
                await platform.until(lambda: bool(platform.gateway.connections))
                talk.go_on(EACH - early)
                await talk.stored(clew, before + chance.randrange(1, EACH))
                clew.kill()
                await clew.wait()
            await platform.until(lambda: not platform.gateway.connections)
        async with process(platform.base, file) as clew:
            await talk.stored(clew, talk.said)
        stored = [int(text) for text in host.texts_stored()]
        host.close()
        for place in range(len(WHERE)):
            assert [number for number in stored if number % len(WHERE) == place] == list(range(place, talk.said, len(WHERE)))
        assert len(platform.gateway.identified) > ROUNDS if kept == "never" else len(platform.gateway.resumed) > 3


async def _serve(url: str, file: str) -> None:
    settings = Settings(token=SecretStr(TOKEN), base_url=url)
    await DiscordTransport("discord", settings, first_pause=0.02).run(Disk(Path(file)))


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:3]))
