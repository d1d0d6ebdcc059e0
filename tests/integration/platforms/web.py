"""The chat page: a socket for each of its chats, all of them the owner's."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any, Self

from tests.emulators.server import JsonObject
from tests.integration.platforms import Platform
from tests.integration.web_harness import Clew
from tests.servers import Mosquitto


class Web(Platform):
    name = "web"
    groups = refuses = loses_answers = strangers = False

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        async with contextlib.AsyncExitStack() as stack:
            yield cls(stack)

    def __init__(self, stack: contextlib.AsyncExitStack) -> None:
        self._stack = stack
        self._sockets: dict[tuple[str, str], Any] = {}
        self._shown: defaultdict[str, dict[int, str]] = defaultdict(dict)
        self._number = 0

    def section(self) -> JsonObject:
        return {}

    def identity(self, who: str) -> str:
        return "web:local" if who == "ada" else f"web:{who}"

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        self._number += 1
        said = who, {"type": "message", "id": f"m{self._number}", "text": text}
        await self.again(clew, said)
        return said

    async def again(self, clew: Clew, said: Any) -> None:
        who, frame = said
        if (clew.url, who) not in self._sockets:
            socket = await self._stack.enter_async_context(clew.http.ws_connect(f"{clew.url}/chat/ws?chat={who}&after=0", max_msg_size=0))
            self._sockets[clew.url, who] = socket
            reader = asyncio.create_task(self._read(socket, who))
            self._stack.push_async_callback(asyncio.wait, {reader})
        await self._sockets[clew.url, who].send_json(frame)

    async def _read(self, socket: Any, who: str) -> None:
        """Until the socket or the clew closes."""
        async for each in socket:
            frame = each.json()
            if frame["type"] == "message" and frame["role"] == "assistant":
                self._shown[who][frame["seq"]] = frame["text"]

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return [text for _, text in sorted(self._shown[who].items())]
