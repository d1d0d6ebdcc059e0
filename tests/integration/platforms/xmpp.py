"""prosody, with people in a room."""

import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests import prosody
from tests.emulators.server import JsonObject
from tests.integration.platforms import NUMBERS, Platform
from tests.integration.web_harness import Clew
from tests.integration.xmpp_harness import ROOM, Person
from tests.prosody import PASSWORD, Prosody
from tests.servers import Mosquitto, find_program


class Xmpp(Platform):
    name = "xmpp"
    says_who_is_meant = True
    refuses = loses_answers = False

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        if find_program("prosody") is None:
            pytest.skip(prosody.MISSING)
        async with contextlib.AsyncExitStack() as stack:
            server = Prosody(Path(stack.enter_context(tempfile.TemporaryDirectory())))
            server.register("clew", *NUMBERS)
            stack.enter_context(server)
            people = {who: await stack.enter_async_context(Person.here(server, who, ROOM)) for who in NUMBERS}
            yield cls(server, people)

    def __init__(self, server: Prosody, people: dict[str, Person]) -> None:
        self.prosody, self.people = server, people

    def section(self) -> JsonObject:
        return {
            "jid": "clew@localhost",
            "password": PASSWORD,
            "host": "127.0.0.1",
            "port": self.prosody.port,
            "tls": False,
            "rooms": [ROOM],
        }

    def identity(self, who: str) -> str:
        return f"xmpp:{who}@localhost"

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        self.people[who].say(ROOM if group else "clew@localhost", f"clew: {text}" if group and called else text)

    async def again(self, clew: Clew, said: Any) -> None:
        """The archive is read behind what is stored; nothing of it comes twice."""

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return self.people[who].texts(f"{ROOM}/clew" if group else "clew@localhost")
