"""What the tests of Discord share: a transport that runs, and deliveries for it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from pydantic import SecretStr

from clew.transport import Address, Delivery
from clew_transports.discord.transport import DiscordTransport, Settings
from tests.emulators.discord import BOT, TOKEN, DiscordEmulator, person, private
from tests.integration.mqtt_harness import Inbox

ADA, BOB = person(11), person(12, "bob", global_name="Bob Bo")
HOME = private(11)
ME = f"<@{BOT['id']}>"


@contextlib.asynccontextmanager
async def running(
    platform: DiscordEmulator, inbox: Inbox, *, answer_s: float = 20.0, fatal_pause: float = 0.05, **more: Any
) -> AsyncIterator[DiscordTransport]:
    settings = Settings(token=SecretStr(more.pop("token", TOKEN)), base_url=platform.base, **more)
    transport = DiscordTransport("discord", settings, first_pause=0.02, fatal_pause=fatal_pause, answer_s=answer_s)
    task = asyncio.create_task(transport.run(inbox))
    try:
        yield transport
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def connected(platform: DiscordEmulator, inbox: Inbox | None = None, **more: Any) -> AsyncIterator[tuple[DiscordTransport, Inbox]]:
    """A transport whose greeting is stored, as its heartbeats say."""
    inbox = inbox or Inbox()
    platform.gateway.beats.clear()
    async with running(platform, inbox, **more) as transport:
        await greeted(platform)
        yield transport, inbox


async def greeted(platform: DiscordEmulator) -> None:
    """Wait until somebody listens whose heartbeats say that its greeting is stored.

    They are asked for: they come by themselves only now and then, for a busy machine could not answer them in time if they came fast.
    """
    while not platform.gateway.ready:
        await platform.until(lambda: any(each.session for each in platform.gateway.connections))
        await beaten(platform)


async def beaten(platform: DiscordEmulator) -> None:
    """Ask for a heartbeat, and wait for one."""
    beats = len(platform.gateway.beats)
    platform.gateway.ask_for_beat()
    await platform.until(lambda: len(platform.gateway.beats) > beats or not platform.gateway.connections)


def delivery(transport: DiscordTransport, text: str, chat: str = HOME, **more: Any) -> Delivery:
    return Delivery(more.pop("id", "k3v9"), Address("discord", chat), text, tuple(transport.parts(text)), 1.0, **more)


async def sent(transport: DiscordTransport, whole: Delivery) -> Delivery:
    """Sends part after part, as the host does."""
    while whole.sent < len(whole.parts):
        upto = (await transport.send(whole)).upto
        assert upto == whole.sent + 1
        whole = replace(whole, sent=upto)
    return whole
