"""Adapters of platforms that keep messages, killed at any moment: what was said is stored once and in order.

As a program, `python -m tests.integration.test_platform_kills KIND SETTINGS FILE`, it is a clew to be killed: it stores what comes in FILE,
an SQLite database, and prints a line for each commit. SETTINGS is the section of the config, in JSON.
"""

import asyncio
import contextlib
import json
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from clew.plugins import registry
from tests.integration.mqtt_harness import ROOT, Disk, line
from tests.integration.platforms import Platform
from tests.integration.platforms.email import OWN, Email, address, mail
from tests.integration.platforms.ntfy import Ntfy
from tests.integration.platforms.sms import Sms, number_of
from tests.integration.platforms.xmpp import Xmpp
from tests.servers import Mosquitto

ROUNDS, EACH = 5, 6


async def _ntfy(platform: Ntfy, text: str) -> None:
    await platform.emulator.say("ada", text)


async def _sms(platform: Sms, text: str) -> None:
    platform.emulator.say(text, number_of("ada"))  # its webhook does not reach clew


async def _email(platform: Email, text: str) -> None:
    platform.mailboxes.deliver(OWN, mail(text, address("ada"), f"<{text}@example.net>", References="<first@example.net>").as_bytes())


async def _xmpp(platform: Xmpp, text: str) -> None:
    platform.people["ada"].say("clew@localhost", text)


KINDS: dict[str, tuple[type[Platform], Callable[[Any, str], Awaitable[None]]]] = {
    "ntfy": (Ntfy, _ntfy),
    "sms": (Sms, _sms),
    "email": (Email, _email),
    "xmpp": (Xmpp, _xmpp),
}


@contextlib.asynccontextmanager
async def process(platform: Platform, file: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.test_platform_kills", platform.name, json.dumps(platform.section()), str(file)),
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
@pytest.mark.mosquitto
@pytest.mark.parametrize("kind", KINDS)
async def test_kill_9_at_any_moment_loses_nothing_and_doubles_nothing(tmp_path: Path, kind: str, mosquitto: Mosquitto) -> None:  # P42 P48
    chance, file, platform_of_kind, say = random.Random(9), tmp_path / "inbox.db", *KINDS[kind]
    said: list[str] = []
    async with platform_of_kind.standing(mosquitto) as platform:
        host = Disk(file)

        async def go_on(count: int) -> None:
            for _ in range(count):
                said.append(f"message-{len(said)}")
                await say(platform, said[-1])

        async def stored(clew: asyncio.subprocess.Process, count: int) -> None:
            while len(host.texts_stored()) < count:
                assert await line(clew), host.texts_stored()

        async with process(platform, file) as clew:  # the first start of all remembers where it begins
            if kind == "ntfy":
                await go_on(1)
            assert await line(clew)
        for _ in range(ROUNDS):
            before = len(said)
            await go_on(EACH)
            async with process(platform, file) as clew:
                await stored(clew, before + chance.randrange(1, EACH + 1))
                clew.kill()
                await clew.wait()
        async with process(platform, file) as clew:
            await stored(clew, len(said))
        assert host.texts_stored() == said
        host.close()


async def _serve(kind: str, settings: str, file: str) -> None:
    plugin = registry("clew.transports")[kind]
    transport = plugin.build(kind, plugin.Config.model_validate_json(settings))
    await transport.run(Disk(Path(file)))


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:4]))
