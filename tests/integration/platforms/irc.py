"""ngircd, with people in a channel."""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests import ircd
from tests.emulators.server import JsonObject
from tests.integration.platforms import NUMBERS, Platform
from tests.integration.web_harness import Clew
from tests.ircd import Ircd, Person
from tests.servers import Mosquitto


class Irc(Platform):
    name = "irc"
    says_who_is_meant = short = marks_bots = True
    refuses = loses_answers = False

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        if why := ircd.missing("ngircd"):
            pytest.skip(why)
        async with contextlib.AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            server = stack.enter_context(Ircd("ngircd", Path(folder)))
            people = {who: await stack.enter_async_context(Person.here(server.port, who, "#club")) for who in NUMBERS}
            yield cls(server, people)

    def __init__(self, server: Ircd, people: dict[str, Person]) -> None:
        self.ircd, self.people = server, people

    def section(self) -> JsonObject:
        return {"host": "127.0.0.1", "port": self.ircd.port, "tls": False, "channels": ["#club"], "trust_nicks": True, "line_every": "0s"}

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        self.people[who].say("#club" if group else "clew", f"clew: {text}" if group and called else text)

    async def again(self, clew: Clew, said: Any) -> None:
        """IRC delivers nothing again."""

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return [words for sender, to, words in self.people[who].heard if sender == "clew" and to == ("#club" if group else who)]

    async def bot(self, clew: Clew, text: str) -> None:
        self.people["bob"].write(f"NOTICE clew :{text}")
