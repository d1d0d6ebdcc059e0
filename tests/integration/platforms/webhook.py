"""Programs that post to clew's webhook and take its replies."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

from tests.emulators.server import JsonObject
from tests.integration.platforms import Platform
from tests.integration.web_harness import Clew
from tests.integration.webhook_harness import SECRET, Receiver, answers, drops, message, receiving, until
from tests.integration.webhook_harness import say as post
from tests.servers import Mosquitto


class Webhook(Platform):
    name = "webhook"

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        async with receiving() as receiver:
            yield cls(receiver)

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self._number = 0
        self._refused = 0

    def section(self) -> JsonObject:
        return {"secret": SECRET, "reply_hosts": [self.receiver.url]}

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        chat = "club" if group else who
        self._number += 1
        fields = message(f"m{self._number}", text, chat=chat, sender=who, reply_url=f"{self.receiver.url}/{chat}")
        await self.again(clew, fields)
        return fields

    async def again(self, clew: Clew, said: Any) -> None:
        await post(clew, said)

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        chat = "club" if group else who
        # Those that it refused are the first; what comes again has the same id.
        taken = self.receiver.calls[self._refused :]
        return list({call.body["id"]: call.body["text"] for call in taken if call.path == f"/{chat}"}.values())

    async def down(self) -> None:
        self.receiver.next.extend([answers(503, Retry_After="0")] * 3)
        self._refused = len(self.receiver.calls) + 3

    async def up(self, clew: Clew) -> None:
        await until(self.has_refused)

    def too_many(self) -> None:
        self.receiver.next.append(answers(429, Retry_After="1"))
        self._refused = len(self.receiver.calls) + len(self.receiver.next)

    def has_refused(self) -> bool:
        return not self.receiver.next

    def no_answer(self) -> None:
        self.receiver.next.append(drops)
