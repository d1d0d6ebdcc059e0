"""What is being said in Discord: a message that is edited, and becomes the reply."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from clew.transport import Address, Delivery, Gone, Preview, Refused, Retry, Unknown
from clew_transports.discord.events import SERVER
from clew_transports.discord.transport import DiscordTransport
from tests.emulators import discord_faults as faults
from tests.emulators import listening
from tests.emulators.discord import CHANNEL, DiscordEmulator
from tests.emulators.listening import Fault
from tests.integration.discord_harness import BOB, ME, connected, delivery, sent

pytestmark = pytest.mark.asyncio

TO = Address("discord", CHANNEL)


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[DiscordEmulator]:
    async with DiscordEmulator() as emulator:
        yield emulator


def preview(text: str, ref: str | None = None, asked: str = "5") -> Preview:
    return Preview("turn1", text, text, asked, ref, "k3v9", {SERVER: "1"})


async def posted(transport: DiscordTransport, text: str = "**half** a") -> str:
    ref = await transport.hint(TO, preview(text))
    assert ref is not None
    return ref


def reply(transport: DiscordTransport, text: str, ref: str | None) -> Delivery:
    return delivery(transport, text, CHANNEL, preview_ref=ref)


async def test_the_words_are_posted_edited_and_replaced_by_the_reply(platform: DiscordEmulator) -> None:  # P43
    async with connected(platform) as (transport, inbox):
        asked = platform.say(f"{ME} why?", BOB, CHANNEL)
        await inbox.until(lambda: bool(inbox.rows))
        ref = await transport.hint(TO, preview("**half** a @everyone", asked=asked["id"]))
        assert ref == platform.sent[0]["id"]
        assert platform.sent[0]["message_reference"]["message_id"] == asked["id"]
        assert await transport.hint(TO, preview("half a sentence, @everyone", ref)) == ref
        whole = await sent(transport, reply(transport, "A *sentence*, @everyone.", ref))
        assert platform.texts() == ["A *sentence*, @everyone."]
        assert (await transport.send(replace(whole, sent=0))).ref == ref, "the same words once more are no fault"
        assert (platform.pinged, len(inbox.rows)) == ([], 1)


async def test_a_long_reply_replaces_it_by_its_first_part(platform: DiscordEmulator) -> None:  # P43, BO-060
    text = "\n\n".join(f"paragraph {number} " + "word " * 100 for number in range(12))
    async with connected(platform) as (transport, _):
        whole = await sent(transport, reply(transport, text, await posted(transport)))
        assert len(whole.parts) > 2
        assert [text.split() for text in platform.texts()] == [part.text.split() for part in whole.parts]


async def test_a_message_that_was_deleted_meanwhile_is_gone_and_the_reply_is_sent_anew(platform: DiscordEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        ref = await posted(transport)
        platform.delete(platform.sent.pop())
        with pytest.raises(Refused):
            await transport.hint(TO, preview("half a sentence", ref))
        with pytest.raises(Gone, match="Unknown Message"):
            await transport.send(reply(transport, "the reply", ref))
        await sent(transport, reply(transport, "the reply", None))
        assert platform.texts() == ["the reply"]


async def test_what_nobody_noted_becomes_the_reply_by_its_nonce(platform: DiscordEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        platform.next["POST messages"].append(listening.does_and_drops)
        with pytest.raises(Unknown):
            await transport.hint(TO, preview("half"))
        await sent(transport, reply(transport, "the reply", None))
        assert platform.texts() == ["the reply"]


async def test_what_comes_to_nothing_is_deleted(platform: DiscordEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        nothing = replace(reply(transport, "x", await posted(transport)), parts=())
        await transport.send(nothing)
        assert platform.texts() == []
        await transport.send(nothing)  # it is gone already


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (faults.too_many(7), Retry),
        (listening.drops, Unknown),
        (faults.refuses(403, 50013, "Missing Permissions"), Refused),
    ],
)
async def test_what_goes_wrong_with_a_preview_is_said(platform: DiscordEmulator, fault: Fault, expected: type[Exception]) -> None:
    async with connected(platform) as (transport, _):
        platform.next["POST messages"].append(fault)
        with pytest.raises(expected) as raised:
            await transport.hint(TO, preview("half"))
        assert getattr(raised.value, "after", None) == (7.0 if expected is Retry else None)


async def test_words_that_show_nothing_are_not_posted(platform: DiscordEmulator) -> None:
    async with connected(platform) as (transport, _):
        assert await transport.hint(TO, preview("[]()")) is None
        assert platform.sent == []
