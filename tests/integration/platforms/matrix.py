"""synapse, and people who have rooms with clew there; a gateway in front of it does what a homeserver does on bad days."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

from tests.emulators.matrix import Gateway, does_and_drops, too_many
from tests.emulators.server import JsonObject
from tests.integration.matrix_harness import Someone, people
from tests.integration.platforms import NUMBERS, Platform
from tests.integration.web_harness import Clew
from tests.integration.webhook_harness import until
from tests.servers import Mosquitto


class Matrix(Platform):
    name = "matrix"
    needs = "homeserver"
    says_who_is_meant = marks_bots = True

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        async with people(cls.server, "clew", *NUMBERS) as (clew, *others), Gateway(cls.server.url) as gateway:
            matrix = cls(gateway, clew, dict(zip(NUMBERS, others, strict=True)))
            await matrix.meet()
            yield matrix

    def __init__(self, gateway: Gateway, clew: Someone, people: dict[str, Someone]) -> None:
        self.gateway = gateway
        self.clew = clew
        self.people = people
        self.rooms: dict[str, str] = {}

    async def meet(self) -> None:
        """A room for each of them with clew, and one for three and clew."""
        for who, person in self.people.items():
            await person.call("PUT", "profile", person.id, "displayname", body={"displayname": who})
            self.rooms[who] = await person.room(self.clew)
            await self.clew.join(self.rooms[who])
        ada, *others = (self.people[who] for who in ("ada", "bob", "eve"))
        self.rooms["group"] = await ada.room(self.clew, *others)
        for each in (self.clew, *others):
            await each.join(self.rooms["group"])

    def section(self) -> JsonObject:
        return {"base_url": self.gateway.url, "token": self.clew.token}

    def identity(self, who: str) -> str:
        return f"matrix:{self.people[who].id}"

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        room = self.rooms["group" if group else who]
        mentions = {"m.mentions": {"user_ids": [self.clew.id] if group and called else []}}
        return await self.people[who].say(room, text, **mentions)

    async def again(self, clew: Clew, said: Any) -> None:
        self.gateway.rewind()

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        room = self.rooms["group" if group else who]
        return [each["body"] for each in self.people[who].seen(room, self.clew.id)]

    async def down(self) -> None:
        await self.gateway.down()

    async def up(self, clew: Clew) -> None:
        await until(lambda: not clew.service.transports[self.name].up)
        await self.gateway.up()

    def too_many(self) -> None:
        self.gateway.next["send"].append(too_many(1))

    def has_refused(self) -> bool:
        return not self.gateway.next["send"]

    def no_answer(self) -> None:
        self.gateway.next["send"].append(does_and_drops)

    async def bot(self, clew: Clew, text: str) -> None:
        await self.people["bob"].send(self.rooms["bob"], {"msgtype": "m.notice", "body": text})
