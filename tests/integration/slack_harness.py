"""What the tests of Slack share: a workspace with people, a transport in it, a host that remembers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from pydantic import SecretStr

from clew.transport import Address, Delivery
from clew_transports.slack.settings import Settings
from clew_transports.slack.transport import SlackTransport
from tests.emulators.slack import APP_TOKEN, BOT_TOKEN, SlackEmulator
from tests.integration.mqtt_harness import Inbox

CLUB, HER = "C0CLUB", "D0ADA"


@contextlib.asynccontextmanager
async def workspace() -> AsyncIterator[SlackEmulator]:
    async with SlackEmulator() as emulator:
        emulator.members |= {CLUB, HER, "D0BOB"}
        emulator.names |= {"U0ADA": "Ada", "U0BOB": "Bob"}
        yield emulator


def settings(platform: SlackEmulator, **more: Any) -> Settings:
    tokens: dict[str, Any] = {"bot_token": SecretStr(BOT_TOKEN), "app_token": SecretStr(APP_TOKEN), "base_url": platform.url}
    return Settings(**tokens | more)


@contextlib.asynccontextmanager
async def running(
    platform: SlackEmulator, inbox: Inbox, *, answer_s: float = 20.0, first_pause: float = 0.02, **more: Any
) -> AsyncIterator[SlackTransport]:
    transport = SlackTransport("slack", settings(platform, **more), first_pause=first_pause, answer_s=answer_s)
    task = asyncio.create_task(transport.run(inbox))
    try:
        yield transport
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def connected(platform: SlackEmulator, inbox: Inbox | None = None, **more: Any) -> AsyncIterator[tuple[SlackTransport, Inbox]]:
    inbox = inbox or Inbox()
    async with running(platform, inbox, **more) as transport:
        await inbox.until(lambda: inbox.up)
        yield transport, inbox


def delivery(transport: SlackTransport, text: str, chat: str = HER, thread: str | None = None, **more: Any) -> Delivery:
    return Delivery("k3v9", Address("slack", chat, thread), text, tuple(transport.parts(text)), 1.0, **more)


async def sent(transport: SlackTransport, whole: Delivery) -> Delivery:
    """Sends part after part, as the host does."""
    while whole.sent < len(whole.parts):
        upto = (await transport.send(whole)).upto
        assert upto == whole.sent + 1
        whole = replace(whole, sent=upto)
    return whole
