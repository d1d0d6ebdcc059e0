"""Twilio's emulator, with people who have telephones."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

from tests.emulators import listening, twilio
from tests.emulators.server import JsonObject
from tests.emulators.twilio import NUMBER, SID, TOKEN, WEBHOOK, TwilioEmulator
from tests.integration.platforms import NUMBERS, Platform
from tests.integration.web_harness import Clew
from tests.integration.webhook_harness import until
from tests.servers import Mosquitto


class Sms(Platform):
    name = "sms"
    groups = False
    short = True

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        async with TwilioEmulator() as emulator:
            yield cls(emulator)

    def __init__(self, emulator: TwilioEmulator) -> None:
        self.emulator = emulator

    def section(self) -> JsonObject:
        return {"account_sid": SID, "auth_token": TOKEN, "number": NUMBER, "url": WEBHOOK, "base_url": self.emulator.url}

    def identity(self, who: str) -> str:
        return f"sms:{number_of(who)}"

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        fields = self.emulator.say(text, number_of(who))
        await self.again(clew, fields)
        return fields

    async def again(self, clew: Clew, said: Any) -> None:
        assert await self.emulator.call(clew.url, said) == (200, "<Response/>")

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return self.emulator.texts(number_of(who))

    async def down(self) -> None:
        self.emulator.next.extend([twilio.refuses(503, 20503, "Service Unavailable", **{"Retry-After": "0"})] * 3)

    async def up(self, clew: Clew) -> None:
        await until(self.has_refused)

    def too_many(self) -> None:
        self.emulator.next.append(twilio.too_many(1))

    def has_refused(self) -> bool:
        return not self.emulator.next

    def no_answer(self) -> None:
        self.emulator.next.append(listening.does_and_drops)


def number_of(who: str) -> str:
    return f"+15559990{NUMBERS[who]:03}"
