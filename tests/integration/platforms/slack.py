"""Slack's emulator, with people on it."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

from tests.emulators import slack_wire
from tests.emulators.server import JsonObject
from tests.emulators.slack import APP_TOKEN, BOT_TOKEN, MENTION, SlackEmulator
from tests.integration.platforms import NUMBERS, Platform
from tests.integration.web_harness import Clew
from tests.integration.webhook_harness import until
from tests.servers import Mosquitto


class Slack(Platform):
    name, group = "slack", "C0CLUB"
    says_who_is_meant = short = marks_bots = True

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        async with SlackEmulator() as emulator:
            yield cls(emulator)

    def __init__(self, emulator: SlackEmulator) -> None:
        self.emulator = emulator
        self._threads: list[str] = []
        emulator.names |= {f"U0{who.upper()}": who for who in NUMBERS}

    def section(self) -> JsonObject:
        return {"bot_token": BOT_TOKEN, "app_token": APP_TOKEN, "base_url": self.emulator.url}

    def identity(self, who: str) -> str:
        return f"slack:U0{who.upper()}"

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        channel, thread = f"D0{who.upper()}", None
        if group:
            # The first mention opens a thread, in which the others go on.
            channel, thread = self.group, self._threads[0] if self._threads else None
            text = f"{MENTION} {text}" if called else text
        ts = self.emulator.say(text, f"U0{who.upper()}", channel, thread if called else None)
        if group and called:
            self._threads.append(ts)
        return channel, ts

    async def again(self, clew: Clew, said: Any) -> None:
        self.emulator.again(*said)

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return self.emulator.texts(self.group if group else f"D0{who.upper()}")

    def echo(self) -> None:
        self.emulator.echoes = True

    async def down(self) -> None:
        await self.emulator.down()

    async def up(self, clew: Clew) -> None:
        await until(lambda: not clew.service.transports[self.name].up)
        await self.emulator.up()

    def too_many(self) -> None:
        self.emulator.next["chat.postMessage"].append(slack_wire.too_many(1))

    def has_refused(self) -> bool:
        return not self.emulator.next["chat.postMessage"]

    def no_answer(self) -> None:
        self.emulator.next["chat.postMessage"].append(slack_wire.does_and_fails("internal_error"))

    async def bot(self, clew: Clew, text: str) -> None:
        self.emulator.say(f"{MENTION} {text}", "U0BOB", self.group, bot_id="B0OTHER")
