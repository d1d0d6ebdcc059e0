"""Discord's adapter when much comes at once, nothing can be stored, Discord is ill, or the token is taken back."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from clew.transport import Retry
from clew_transports.discord.gateway import FATAL, LONG
from tests.emulators import discord_faults as faults
from tests.emulators import listening
from tests.emulators.discord import CHANNEL, DiscordEmulator
from tests.integration.discord_harness import BOB, HOME, ME, connected, delivery, running, sent
from tests.integration.mqtt_harness import Inbox

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[DiscordEmulator]:
    async with DiscordEmulator() as emulator:
        yield emulator


async def test_a_flood_is_stored_whole_in_order_and_in_few_commits(platform: DiscordEmulator) -> None:  # P42
    inbox = Inbox()
    async with running(platform, inbox):
        await inbox.until(lambda: inbox.up)
        texts = [f"message {number}" for number in range(4000)]
        for text in texts:
            platform.say(text)
            platform.say("just talk", BOB, CHANNEL)
        await inbox.until(lambda: len(inbox.rows) == len(texts))
        assert inbox.texts == texts
        assert len(inbox.batches) < len(texts) / 4
        assert not any(not up for up, _ in inbox.reports)


async def test_what_cannot_be_stored_for_long_waits_with_discord(platform: DiscordEmulator) -> None:  # P42
    platform.gateway.beat_s = 0.05
    async with connected(platform) as (_, inbox):
        inbox.stuck = True
        texts = [f"message {number}" for number in range(2500)]
        for text in texts:
            platform.say(text)
        await inbox.until(lambda: any(inbox.batches))
        await platform.until(lambda: not platform.gateway.connections)  # the queue is full, and heartbeats go unheard
    inbox.stuck = False
    async with connected(platform, inbox):
        await inbox.until(lambda: len(inbox.rows) == len(texts))
    assert (inbox.texts, len(platform.gateway.identified)) == (texts, 1)


async def test_a_large_server_is_read_beside_the_loop(platform: DiscordEmulator) -> None:
    async with connected(platform) as (_, inbox):
        platform.gateway.dispatch("GUILD_CREATE", {"id": "9001", "guild_id": "9001", "channels": [{"name": "x" * LONG}]})
        platform.say("behind it")
        await inbox.until(lambda: inbox.texts == ["behind it"])


async def test_while_discord_is_ill_it_is_asked_ever_less_and_nothing_is_lost(platform: DiscordEmulator) -> None:  # P42 P48
    async with connected(platform) as (transport, inbox):
        await sent(transport, delivery(transport, "before"))
        platform.gateway.forget()
        platform.next["GET bot"].extend(
            [
                faults.answers(503),
                faults.answers(500),
                listening.drops,
                listening.drops,
                faults.too_many(0.05),
            ]
        )
        platform.gateway.drop()
        await inbox.until(lambda: not inbox.up)
        for number in range(5):
            platform.say(f"missed {number}")
            platform.say(f"{ME} missed {number}", BOB, CHANNEL)
        platform.next["GET messages"].extend([faults.answers(502)] * 2)
        await inbox.until(lambda: inbox.up and len(inbox.rows) == 10)
        asked = [name for name, _ in platform.calls].count("GET bot")
        assert asked <= 8, "the pauses grow"
        assert len(platform.gateway.identified) <= 4
        await sent(transport, delivery(transport, "after", id="later"))
        assert platform.texts(HOME) == ["before", "after"]


async def test_a_token_that_is_taken_back_is_told_and_used_no_more(platform: DiscordEmulator) -> None:
    async with connected(platform, fatal_pause=3600.0) as (transport, inbox):
        platform.next["POST messages"].append(faults.refuses(401, 0, "401: Unauthorized"))
        with pytest.raises(Retry):
            await transport.send(delivery(transport, "hello"))
        platform.gateway.close(4004)
        await inbox.until(lambda: inbox.reports[-1] == (False, FATAL[4004]))
        calls = len(platform.calls)
        assert not platform.gateway.connections
    assert len(platform.calls) == calls


async def test_429s_without_end_cost_calls_only_when_a_wait_is_over(platform: DiscordEmulator) -> None:  # BO-064
    async with connected(platform) as (transport, _):
        platform.next["POST messages"].extend([faults.too_many(0.05)] * 5)
        for _ in range(5):
            with pytest.raises(Retry) as again:
                await transport.send(delivery(transport, "at last"))
            assert again.value.after == 0.05
        await sent(transport, delivery(transport, "at last"))
        calls = [name for name, _ in platform.calls].count("POST messages")
        assert (calls, platform.texts()) == (6, ["at last"])


async def test_it_can_be_stopped_at_any_moment(platform: DiscordEmulator) -> None:
    for moment in range(12):
        inbox = Inbox()
        async with running(platform, inbox):
            for _ in range(moment * moment):
                await asyncio.sleep(0)
    await platform.until(lambda: not platform.gateway.connections)
