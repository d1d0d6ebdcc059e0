"""Discord's adapter killed at any moment: what was said is stored once and in order, whether the session is kept or not."""

import random
from pathlib import Path

import pytest

from tests.emulators.discord import CHANNEL, THREAD, TOKEN, DiscordEmulator, person
from tests.integration.discord_harness import ME, greeted
from tests.integration.killed import process, stored
from tests.integration.mqtt_harness import Disk

ROUNDS, EACH = 8, 9
WHERE = (None, CHANNEL, THREAD)


class Talk:
    """People who count aloud, in turn in private, in a channel and in its thread."""

    def __init__(self, platform: DiscordEmulator) -> None:
        self.said = 0
        self._platform = platform

    def go_on(self, count: int) -> None:
        for _ in range(count):
            where = WHERE[self.said % len(WHERE)]
            self._platform.say(f"{ME} {self.said}" if where else str(self.said), person(11), where)
            self.said += 1


@pytest.mark.asyncio
@pytest.mark.parametrize("kept", ["always", "never", "at times"])
async def test_kill_9_at_any_moment_loses_nothing_and_doubles_nothing(tmp_path: Path, kept: str) -> None:  # P42 P48
    chance, file = random.Random(6), tmp_path / "inbox.db"
    async with DiscordEmulator() as platform:
        section = {"token": TOKEN, "base_url": platform.base}
        host = Disk(file)
        talk = Talk(platform)
        async with process("discord", section, file) as clew:
            await greeted(platform)
            talk.go_on(3)
            await stored(clew, host, 3)
        for _ in range(ROUNDS):
            before, early = talk.said, chance.randrange(EACH + 1)
            if kept == "never" or (kept == "at times" and chance.random() < 0.5):
                platform.gateway.forget()
            talk.go_on(early)
            async with process("discord", section, file) as clew:
                await platform.until(lambda: bool(platform.gateway.connections))
                talk.go_on(EACH - early)
                await stored(clew, host, before + chance.randrange(1, EACH))
                clew.kill()
                await clew.wait()
            await platform.until(lambda: not platform.gateway.connections)
        async with process("discord", section, file) as clew:
            await stored(clew, host, talk.said)
        numbers = [int(text) for text in host.texts_stored()]
        host.close()
        for place in range(len(WHERE)):
            assert [number for number in numbers if number % len(WHERE) == place] == list(range(place, talk.said, len(WHERE)))
        assert len(platform.gateway.identified) > ROUNDS if kept == "never" else len(platform.gateway.resumed) > 3
