"""The emulator of signal-cli, with people on Signal."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

from tests.emulators import signal_cli
from tests.emulators.server import JsonObject
from tests.emulators.signal_cli import ACCOUNT, UUID, SignalCliEmulator
from tests.integration.platforms import NUMBERS, Platform
from tests.integration.web_harness import Clew
from tests.integration.webhook_harness import until
from tests.servers import Mosquitto

GROUP = "Xk9+abcDEF/ghiJKLmnoPQRstuVWXyz0123456789AB="


class Signal(Platform):
    name = "signal"
    says_who_is_meant = short = repeats = True

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        async with SignalCliEmulator() as emulator:
            yield cls(emulator)

    def __init__(self, emulator: SignalCliEmulator) -> None:
        self.emulator = emulator
        emulator.names = {uuid(who): who for who in NUMBERS}

    def section(self) -> JsonObject:
        return {"host": "127.0.0.1", "port": self.emulator.port, "account": ACCOUNT}

    def identity(self, who: str) -> str:
        return f"signal:{uuid(who)}"

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        if not group:
            return self.emulator.say(text, uuid(who))
        data = {"mentions": [{"uuid": UUID, "name": "clew", "start": 0, "length": 1}]} if called else {}
        return self.emulator.say(f"\ufffc {text}" if called else text, uuid(who), GROUP, **data)

    async def again(self, clew: Clew, said: Any) -> None:
        self.emulator.give(said)

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return self.emulator.texts(GROUP if group else uuid(who))

    async def down(self) -> None:
        await self.emulator.down()

    async def up(self, clew: Clew) -> None:
        await until(lambda: not clew.service.transports[self.name].up)
        await self.emulator.up()

    def too_many(self) -> None:
        self.emulator.next.append(signal_cli.refuses(-5, "Rate limit", 1))

    def has_refused(self) -> bool:
        return not self.emulator.next

    def no_answer(self) -> None:
        self.emulator.next.append(signal_cli.does_and_drops)


def uuid(who: str) -> str:
    return f"00000000-0000-4000-8000-0000000000{NUMBERS[who]:02}"
