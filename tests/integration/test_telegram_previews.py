"""What is being said in a group of Telegram: a message that is edited, and becomes the reply."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from clew.transport import Address, Delivery, Gone, Preview, Refused, Retry, Unknown
from clew_transports.telegram.transport import TelegramTransport
from clew_transports.telegram.updates import CHAT
from tests.emulators import listening, telegram
from tests.emulators.listening import Fault
from tests.emulators.telegram import TelegramEmulator
from tests.integration.test_telegram import GROUP, connected, delivery, sent

pytestmark = pytest.mark.asyncio

TO = Address("telegram", str(GROUP))


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[TelegramEmulator]:
    async with TelegramEmulator() as emulator:
        yield emulator


def preview(text: str, ref: str | None = None) -> Preview:
    return Preview("turn1", text, text, "5", ref, "k3v9", {CHAT: str(GROUP)})


async def posted(transport: TelegramTransport, text: str = "**half** a") -> str:
    ref = await transport.hint(TO, preview(text))
    assert ref is not None
    return ref


def reply(transport: TelegramTransport, text: str, ref: str | None) -> Delivery:
    return delivery(transport, text, str(GROUP), preview_ref=ref)


async def test_the_words_are_posted_edited_and_replaced_by_the_reply(platform: TelegramEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        ref = await posted(transport)
        assert platform.messages[0]["html"] == "<b>half</b> a"
        assert platform.messages[0]["reply_to_message"] == {"message_id": 5}
        assert await transport.hint(TO, preview("half a sentence", ref)) == ref
        whole = await sent(transport, reply(transport, "A *sentence*.", ref))
        assert platform.texts() == ["A sentence."]
        assert platform.messages[0]["versions"] == ["half a", "half a sentence", "A sentence."]
        assert (await transport.send(replace(whole, sent=0))).ref == ref, "the same words once more are no fault"


async def test_a_long_reply_replaces_it_by_its_first_part(platform: TelegramEmulator) -> None:  # P43, BO-060
    text = "\n\n".join(f"paragraph {number} " + "word " * 200 for number in range(8))
    async with connected(platform) as (transport, _):
        whole = await sent(transport, reply(transport, text, await posted(transport)))
        assert len(whole.parts) > 1
        assert [text.split() for text in platform.texts()] == [part.text.split() for part in whole.parts]


async def test_a_message_that_was_deleted_meanwhile_is_gone(platform: TelegramEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        ref = await posted(transport)
        platform.messages.clear()
        with pytest.raises(Gone, match="message to edit not found"):
            await transport.send(reply(transport, "the reply", ref))
        await sent(transport, reply(transport, "the reply", None))
        assert platform.texts() == ["the reply"]


async def test_what_comes_to_nothing_is_deleted(platform: TelegramEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        nothing = replace(reply(transport, "x", await posted(transport)), parts=())
        await transport.send(nothing)
        assert platform.texts() == []
        await transport.send(nothing)  # it is gone already


async def test_markup_that_is_refused_costs_no_edit(platform: TelegramEmulator) -> None:  # P43, BO-062
    async with connected(platform) as (transport, _):
        ref = await posted(transport)
        platform.next["editMessageText"].append(telegram.refuses(400, "Bad Request: can't parse entities: oh"))
        await sent(transport, reply(transport, "**as written**", ref))
        assert platform.texts() == ["**as written**"]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [(telegram.too_many(7), Retry), (listening.drops, Unknown), (telegram.refuses(403, "Forbidden: bot was kicked"), Refused)],
)
async def test_what_goes_wrong_with_a_preview_is_said(platform: TelegramEmulator, fault: Fault, expected: type[Exception]) -> None:
    async with connected(platform) as (transport, _):
        platform.next["sendMessage"].append(fault)
        with pytest.raises(expected) as raised:
            await transport.hint(TO, preview("half"))
        assert getattr(raised.value, "after", None) == (7.0 if expected is Retry else None)


async def test_a_topic_and_a_moved_group_are_edited_where_they_are(platform: TelegramEmulator) -> None:  # P43
    async with connected(platform) as (transport, _):
        to = Address("telegram", str(GROUP), "7")
        ref = await transport.hint(to, preview("half"))
        assert platform.messages[0]["message_thread_id"] == 7
        await sent(transport, replace(reply(transport, "whole", ref), address=to))
        assert platform.texts() == ["whole"]
