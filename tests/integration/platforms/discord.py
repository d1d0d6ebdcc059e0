"""Discord's emulator, with people on it."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

from tests.emulators import discord_faults as faults
from tests.emulators import listening
from tests.emulators.discord import BOT, CHANNEL, TOKEN, DiscordEmulator, person, private
from tests.emulators.server import JsonObject
from tests.integration.platforms import NUMBERS, Platform
from tests.integration.web_harness import Clew
from tests.integration.webhook_harness import until
from tests.servers import Mosquitto


class Discord(Platform):
    name = "discord"
    says_who_is_meant = short = marks_bots = True

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        async with DiscordEmulator() as emulator:
            yield cls(emulator)

    def __init__(self, emulator: DiscordEmulator) -> None:
        self.emulator = emulator

    def section(self) -> JsonObject:
        return {"token": TOKEN, "base_url": self.emulator.base}

    def identity(self, who: str) -> str:
        return f"discord:{NUMBERS[who]}"

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        words = f"<@{BOT['id']}> {text}" if group and called else text
        return self.emulator.say(words, person(NUMBERS[who], who), CHANNEL if group else None)

    async def again(self, clew: Clew, said: Any) -> None:
        self.emulator.give(said)

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return self.emulator.texts(CHANNEL if group else private(NUMBERS[who]))

    async def down(self) -> None:
        await self.emulator.down()

    async def up(self, clew: Clew) -> None:
        await until(lambda: not clew.service.transports[self.name].up)
        await self.emulator.up()

    def too_many(self) -> None:
        self.emulator.next["POST messages"].append(faults.too_many(1))

    def has_refused(self) -> bool:
        return not self.emulator.next["POST messages"]

    def no_answer(self) -> None:
        self.emulator.next["POST messages"].append(listening.does_and_drops)

    async def bot(self, clew: Clew, text: str) -> None:
        self.emulator.say(f"<@{BOT['id']}> {text}", person(NUMBERS["bob"], "bob", bot=True), CHANNEL)
