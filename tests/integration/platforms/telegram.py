"""Telegram's emulator, with people on it."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

from tests.emulators import listening, telegram
from tests.emulators.server import JsonObject
from tests.emulators.telegram import TOKEN, TelegramEmulator, person
from tests.integration.platforms import NUMBERS, Platform
from tests.integration.web_harness import Clew
from tests.integration.webhook_harness import until
from tests.servers import Mosquitto


class Telegram(Platform):
    name, group = "telegram", -55
    mode = "polling"
    says_who_is_meant = short = marks_bots = repeats = True

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        async with TelegramEmulator() as emulator:
            yield cls(emulator)

    def __init__(self, emulator: TelegramEmulator) -> None:
        self.emulator = emulator

    def section(self) -> JsonObject:
        return {"kind": "telegram", "token": TOKEN, "base_url": self.emulator.url, "mode": self.mode}

    def identity(self, who: str) -> str:
        return f"{self.name}:{NUMBERS[who]}"

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        self.emulator.reaches = clew.url
        words = f"@ClewTestBot {text}" if group and called else text
        return self.emulator.say(words, person(NUMBERS[who], who), self.group if group else None)

    async def again(self, clew: Clew, said: Any) -> None:
        self.emulator.reaches = clew.url
        self.emulator.give({"message": said})

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return self.emulator.texts(self.group if group else NUMBERS[who])

    def echo(self) -> None:
        self.emulator.echoes = True

    async def down(self) -> None:
        await self.emulator.down()

    async def up(self, clew: Clew) -> None:
        await until(lambda: not clew.service.transports[self.name].up)
        await self.emulator.up()

    def too_many(self) -> None:
        self.emulator.next["sendMessage"].append(telegram.too_many(1))

    def has_refused(self) -> bool:
        return not self.emulator.next["sendMessage"]

    def no_answer(self) -> None:
        self.emulator.next["sendMessage"].append(listening.does_and_drops)

    async def bot(self, clew: Clew, text: str) -> None:
        self.emulator.say(f"@ClewTestBot {text}", person(NUMBERS["bob"], "bob", is_bot=True), self.group)


class TelegramCalling(Telegram):
    """Telegram where it calls clew."""

    name, mode = "telegram-calling", "webhook"

    async def down(self) -> None:
        self.emulator.next["sendMessage"].extend([telegram.answers(503)] * 3)

    async def up(self, clew: Clew) -> None:
        await until(self.has_refused)
