"""The emulator of WhatsApp's Cloud API, with people on it."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

from tests.emulators import listening, whatsapp
from tests.emulators.server import JsonObject
from tests.emulators.whatsapp import NUMBER_ID, SECRET, TOKEN, VERIFY, WhatsappEmulator, notification
from tests.integration.platforms import NUMBERS, Platform
from tests.integration.web_harness import Clew
from tests.integration.webhook_harness import until
from tests.servers import Mosquitto


class Whatsapp(Platform):
    name = "whatsapp"
    groups = False
    short = repeats = True

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        async with WhatsappEmulator() as emulator:
            yield cls(emulator)

    def __init__(self, emulator: WhatsappEmulator) -> None:
        self.emulator = emulator

    def section(self) -> JsonObject:
        secrets = {"token": TOKEN, "app_secret": SECRET, "verify_token": VERIFY}
        return {**secrets, "phone_number_id": NUMBER_ID, "base_url": self.emulator.url}

    def identity(self, who: str) -> str:
        return f"whatsapp:{_number(who)}"

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        told = notification(self.emulator.message(text, _number(who)), names={_number(who): who})
        await self.again(clew, told)
        return told

    async def again(self, clew: Clew, said: Any) -> None:
        assert await self.emulator.post(clew.url, said) == 200

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return self.emulator.texts(_number(who))

    async def down(self) -> None:
        self.emulator.next.extend([whatsapp.refuses(503, 131016, "Service unavailable", **{"Retry-After": "0"})] * 3)

    async def up(self, clew: Clew) -> None:
        await until(self.has_refused)

    def too_many(self) -> None:
        self.emulator.next.append(whatsapp.refuses(429, 130429, "Rate limit hit", **{"Retry-After": "1"}))

    def has_refused(self) -> bool:
        return not self.emulator.next

    def no_answer(self) -> None:
        self.emulator.next.append(listening.does_and_drops)


def _number(who: str) -> str:
    return f"4915559990{NUMBERS[who]:03}"
