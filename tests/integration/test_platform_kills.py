"""Adapters killed at any moment. Where the platform keeps messages, what was said is stored once and in order; where it does not, no
more is lost than its page in docs/transports says."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.emulators.server import JsonObject
from tests.emulators.telegram import TOKEN, TelegramEmulator
from tests.emulators.whatsapp import notification
from tests.integration.killed import process, stored
from tests.integration.mqtt_harness import Disk, line
from tests.integration.platforms import Platform
from tests.integration.platforms.email import OWN, Email, address, mail
from tests.integration.platforms.irc import Irc
from tests.integration.platforms.ntfy import Ntfy
from tests.integration.platforms.signal import Signal, uuid
from tests.integration.platforms.sms import Sms, number_of
from tests.integration.platforms.whatsapp import Whatsapp
from tests.integration.platforms.xmpp import Xmpp
from tests.servers import Mosquitto, free_port

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

        async with process(kind, platform.section(), file) as clew:  # the first start of all remembers where it begins
            if kind == "ntfy":
                await go_on(1)
            assert await line(clew)
        for _ in range(ROUNDS):
            before = len(said)
            await go_on(EACH)
            async with process(kind, platform.section(), file) as clew:
                await stored(clew, host, before + chance.randrange(1, EACH + 1))
                clew.kill()
                await clew.wait()
        async with process(kind, platform.section(), file) as clew:
            await stored(clew, host, len(said))
        assert host.texts_stored() == said
        host.close()


async def _told(to: str, platform: Any, told: list[JsonObject]) -> None:
    """Meta delivers each notification until it gets 200, one after the other."""
    for each in told:
        status = 0
        while status != 200:
            try:
                status = await platform.emulator.post(to, each)
            except aiohttp.ClientError:
                await asyncio.sleep(0.02)


@pytest.mark.asyncio
@pytest.mark.mosquitto
async def test_whatsapp_a_notification_counts_as_taken_once_it_is_stored(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P42 P48
    chance, file, port = random.Random(5), tmp_path / "inbox.db", free_port()
    texts = [f"message-{number}" for number in range(ROUNDS * EACH)]
    async with Whatsapp.standing(mosquitto) as platform:
        host = Disk(file)
        told = [notification(platform.emulator.message(text, "4915559990011")) for text in texts]
        telling = asyncio.create_task(_told(f"http://127.0.0.1:{port}", platform, told))
        while not telling.done():
            async with process("whatsapp", platform.section(), file, port) as clew:
                for _ in range(chance.randrange(4, EACH + 4)):
                    if len(host.texts_stored()) < len(texts):
                        assert await line(clew)
                # Between the commit, of which the line tells, and the 200, or behind it.
                if len(host.texts_stored()) < len(texts):
                    clew.kill()
                    await clew.wait()
                else:
                    await telling
        assert host.texts_stored() == texts
        host.close()


@pytest.mark.asyncio
async def test_telegram_calls_again_for_what_was_not_stored(tmp_path: Path) -> None:  # P42 P48
    chance, file, port = random.Random(7), tmp_path / "inbox.db", free_port()
    texts = [f"message-{number}" for number in range(ROUNDS * EACH)]
    async with TelegramEmulator() as platform:
        host, platform.reaches = Disk(file), f"http://127.0.0.1:{port}"
        section = {"token": TOKEN, "base_url": platform.url, "mode": "webhook"}
        platform.local = True
        for text in texts:
            platform.say(text)
        while len(host.texts_stored()) < len(texts):
            async with process("telegram", section, file, port) as clew:
                for _ in range(chance.randrange(5, EACH + 5)):
                    if len(host.texts_stored()) < len(texts):
                        assert await line(clew)
                clew.kill()
                await clew.wait()
        async with process("telegram", section, file, port):
            await platform.until(lambda: platform.confirmed == len(texts))
        assert host.texts_stored() == texts
        host.close()


@pytest.mark.asyncio
@pytest.mark.mosquitto
async def test_signal_loses_at_most_what_lay_in_the_connection(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P48
    chance, file = random.Random(3), tmp_path / "inbox.db"
    async with Signal.standing(mosquitto) as platform:
        host, said, kept = Disk(file), 0, set[str]()
        for _ in range(3):
            waiting = [f"message-{said + number}" for number in range(EACH)]
            said += EACH
            async with process("signal", platform.section(), file) as clew:
                platform.emulator.say(waiting[0], uuid("ada"))
                await stored(clew, host, len(host.texts_stored()) + 1)
                for text in waiting[1:]:
                    platform.emulator.say(text, uuid("ada"))
                for _ in range(chance.randrange(0, EACH - 1)):
                    assert await line(clew)
                clew.kill()
                await clew.wait()
            kept |= set(host.texts_stored())
            await platform.emulator.until(lambda: not platform.emulator.subscribed)
            # What comes while nobody is connected waits at signal-cli.
            for _ in range(2):
                platform.emulator.say(f"message-{said}", uuid("ada"))
                kept.add(f"message-{said}")
                said += 1
            async with process("signal", platform.section(), file) as clew:
                await stored(clew, host, len(kept))
        found = host.texts_stored()
        host.close()
        assert set(found) == kept
        assert found == sorted(set(found), key=lambda text: int(text.partition("-")[2]))


@pytest.mark.asyncio
@pytest.mark.mosquitto
async def test_irc_comes_back_and_has_what_was_said_while_it_was_there(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P48
    file = tmp_path / "inbox.db"
    async with Irc.standing(mosquitto) as platform:
        host, ada = Disk(file), platform.people["ada"]
        for round_ in range(3):
            joined = sum(" JOIN " in each and each.startswith(":clew!") for each in ada.raw)
            async with process("irc", platform.section(), file) as clew:
                await ada.until(lambda joined=joined: sum(" JOIN " in each and each.startswith(":clew!") for each in ada.raw) > joined)
                for number in range(3):
                    ada.say("#club", f"clew: here {round_}.{number}")
                await stored(clew, host, 3 * (round_ + 1))
                clew.kill()
                await clew.wait()
            await ada.until(lambda round_=round_: sum(each.startswith(":clew!") and " QUIT " in each for each in ada.raw) > round_)
            ada.say("#club", f"clew: nobody hears {round_}")
        assert host.texts_stored() == [f"here {round_}.{number}" for round_ in range(3) for number in range(3)]
        host.close()
