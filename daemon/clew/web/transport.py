"""The chat page and the terminal as transports: their replies count as sent once committed, and are fetched by whoever looks."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence

from pydantic import BaseModel, ConfigDict

from clew.plugins import Plugin
from clew.transport import Address, Capabilities, Delivery, Host, Part, Preview, PreviewRef, Route, Sent, Typing

CHAT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""The name of a chat of the page."""
OWN = re.compile(r"~[a-z2-7]{16}")
"""The page of somebody who is not this machine's owner; its chats are its threads."""


class Settings(BaseModel):
    """Nothing to set: `http` says where the page is served."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)


def unreachable(to: Address) -> str:
    """Why no page can show the chat `to`; empty where one can. The terminal's chats are named by the system's users."""
    named = CHAT if to.thread is None else OWN
    if to.transport != "web" or (named.fullmatch(to.chat) and CHAT.fullmatch(to.thread or "local")) or OWN.fullmatch(str(to)[4:]):
        return ""
    return "a chat is named by 1 to 64 of A-Z a-z 0-9 _ . -, without a thread"


class LookIn:
    """A transport that nobody has to be called through: sockets read the timeline and listen to the bus."""

    capabilities = Capabilities(markup="markdown", stream="ephemeral", merges=True, instant=True, unreachable=unreachable, spread=True)

    async def run(self, host: Host) -> None:
        host.report(True)
        await asyncio.Event().wait()

    def parts(self, text: str) -> list[Part]:
        return [Part(text)]

    async def send(self, delivery: Delivery) -> Sent:
        """Nothing to do: the reply is where it is looked for."""
        return Sent(delivery.id)

    async def find(self, delivery: Delivery) -> Sent | None:
        return Sent(delivery.id)

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        """Nothing to do: sockets listen to the bus themselves."""
        return None

    def routes(self) -> Sequence[Route]:
        return ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        raise LookupError(ref)
        yield b""


def build(name: str, settings: Settings) -> LookIn:
    return LookIn()


plugin = Plugin("web", Settings, build)
terminal = Plugin("terminal", Settings, build)
