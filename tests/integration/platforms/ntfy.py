"""ntfy's emulator, with people who each have two topics."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

from tests.emulators import listening, ntfy
from tests.emulators.ntfy import NtfyEmulator
from tests.emulators.server import JsonObject
from tests.integration.platforms import NUMBERS, Platform
from tests.integration.web_harness import Clew
from tests.integration.webhook_harness import until
from tests.servers import Mosquitto


class Ntfy(Platform):
    name = "ntfy"
    groups = False
    short = True

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        async with NtfyEmulator() as emulator:
            yield cls(emulator)

    def __init__(self, emulator: NtfyEmulator) -> None:
        self.emulator = emulator

    def section(self) -> JsonObject:
        return {"base_url": self.emulator.url, "topics": {who: f"to-{who}" for who in NUMBERS}}

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        return await self.emulator.say(who, text)

    async def again(self, clew: Clew, said: Any) -> None:
        await self.emulator.give(said)

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return self.emulator.texts(f"to-{who}")

    async def down(self) -> None:
        await self.emulator.down()

    async def up(self, clew: Clew) -> None:
        await until(lambda: not clew.service.transports[self.name].up)
        await self.emulator.up()

    def too_many(self) -> None:
        self.emulator.next.append(ntfy.too_many(1))

    def has_refused(self) -> bool:
        return not self.emulator.next

    def no_answer(self) -> None:
        self.emulator.next.append(listening.does_and_drops)
