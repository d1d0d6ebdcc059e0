"""Slack's adapter killed at any moment: what was said is stored once, whether Slack tells it again or gives up."""

import random
from pathlib import Path

import pytest

from tests.emulators.slack import APP_TOKEN, BOT_TOKEN, MENTION, SlackEmulator
from tests.integration.killed import process, stored
from tests.integration.mqtt_harness import Disk, line

ROUNDS, EACH = 6, 8


@pytest.mark.asyncio
@pytest.mark.parametrize("gives_up", [False, True])
async def test_kill_9_at_any_moment_loses_nothing_and_doubles_nothing(tmp_path: Path, gives_up: bool) -> None:  # P42 P48
    chance = random.Random(8)
    file, texts = tmp_path / "inbox.db", [f"message {number}" for number in range(ROUNDS * EACH)]
    async with SlackEmulator() as emulator:
        section = {"bot_token": BOT_TOKEN, "app_token": APP_TOKEN, "base_url": emulator.url}
        emulator.gives_up = gives_up
        emulator.members |= {"D0ADA", "C0CLUB"}
        for start in range(0, len(texts), EACH):
            async with process("slack", section, file) as clew:
                await emulator.until(lambda: bool(emulator.sockets))
                for text in texts[start : start + EACH]:
                    emulator.say(text) if chance.random() < 0.5 else emulator.say(f"{MENTION} {text}", "U0BOB", "C0CLUB")
                for _ in range(chance.randrange(1, 4)):
                    assert await line(clew)
                clew.kill()
                await clew.wait()
            await emulator.until(lambda: not emulator.sockets)
        host = Disk(file)
        async with process("slack", section, file) as clew:
            await stored(clew, host, len(texts))
        assert sorted(host.texts_stored()) == sorted(texts)
        host.close()
