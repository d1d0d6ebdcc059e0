"""The SMS transport against the emulated Twilio: in by its webhook through a whole clew, and by its list with a host that remembers."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError

from clew.transport import Address, Delivery, Refused, Retry, Sent, Unknown
from clew_transports.sms.transport import LIMIT, Settings, SmsTransport, plugin
from tests.emulators import listening, twilio
from tests.emulators.twilio import NUMBER, SID, TOKEN, WEBHOOK, TwilioEmulator
from tests.integration.mqtt_harness import Inbox
from tests.integration.web_harness import running as clew_running
from tests.integration.web_harness import settings as clew_settings
from tests.integration.webhook_harness import until

pytestmark = pytest.mark.asyncio

ADA, BOB = "+15559990011", "+15559990012"


@pytest_asyncio.fixture
async def carrier() -> AsyncIterator[TwilioEmulator]:
    async with TwilioEmulator() as emulator:
        yield emulator


def settings(carrier: TwilioEmulator, **more: Any) -> Settings:
    usual: dict[str, Any] = {"account_sid": SID, "auth_token": SecretStr(TOKEN), "number": NUMBER, "url": WEBHOOK, "base_url": carrier.url}
    return Settings(**usual | more)


@contextlib.asynccontextmanager
async def running(carrier: TwilioEmulator, inbox: Inbox, **more: Any) -> AsyncIterator[SmsTransport]:
    transport = SmsTransport("sms", settings(carrier, **more), first_pause=0.02, look_s=0.02)
    task = asyncio.create_task(transport.run(inbox))
    try:
        yield transport
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def connected(carrier: TwilioEmulator, **more: Any) -> AsyncIterator[tuple[SmsTransport, Inbox]]:
    inbox = Inbox()
    async with running(carrier, inbox, **more) as transport:
        await inbox.until(lambda: inbox.up)
        yield transport, inbox


def delivery(transport: SmsTransport, text: str, chat: str = ADA, **more: Any) -> Delivery:
    return Delivery("k3v9", Address("sms", chat), text, tuple(transport.parts(text)), time.time(), **more)


# In, by the list -------------------------------------------------------------------------------------------------


async def test_the_past_of_an_account_is_no_question(carrier: TwilioEmulator) -> None:
    carrier.say("last year", ADA, at=time.time() - 3e7)
    carrier.say("a moment before the first start", ADA, at=time.time() - 1)
    async with connected(carrier) as (_, inbox):
        assert inbox.rows == {}
        assert inbox.stored_cursor is not None


async def test_what_no_webhook_brought_is_found_in_order_and_once(carrier: TwilioEmulator) -> None:  # P42, BO-047
    carrier.page = 2
    inbox = Inbox()
    inbox.stored_cursor = repr(time.time())
    for number in range(5):
        carrier.say(f"message {number}", ADA, at=time.time() + number)
    carrier.say("to another number", ADA)["To"] = BOB
    async with running(carrier, inbox):
        await inbox.until(lambda: len(inbox.rows) == 6)
        looks = carrier.looks
        await carrier.until(lambda: carrier.looks > looks + 6)
        assert inbox.duplicates == []
    assert sorted(inbox.texts)[:5] == [f"message {number}" for number in range(5)]
    async with running(carrier, inbox):
        await inbox.until(lambda: len(inbox.duplicates) == 6)
    first = next(iter(inbox.rows.values()))
    assert (first.address, first.identity, first.direct) == (Address("sms", ADA), f"sms:{ADA}", True)


async def test_files_are_found_too_and_fetched_without_the_token_where_they_are_stored(carrier: TwilioEmulator) -> None:
    inbox = Inbox()
    inbox.stored_cursor = repr(time.time())
    carrier.say("look", ADA, ("image/jpeg", b"the picture"))
    async with running(carrier, inbox) as transport:
        await inbox.until(lambda: len(inbox.rows) == 1)
        (file,) = next(iter(inbox.rows.values())).attachments
        assert (file.name, file.mime) == ("image", "image/jpeg")
        assert [piece async for piece in transport.fetch(file.ref)] == [b"the picture"]
        with pytest.raises(LookupError, match="not at Twilio"):
            [piece async for piece in transport.fetch("http://127.0.0.1:1/2010-04-01/x")]


# In, by the webhook ----------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def whole(carrier: TwilioEmulator, folder: Path) -> AsyncIterator[Any]:
    section = {"account_sid": SID, "auth_token": TOKEN, "number": NUMBER, "url": WEBHOOK, "base_url": carrier.url}
    people = {"ada": {"role": "owner", "identities": [f"sms:{ADA}"]}}
    async with clew_running(clew_settings(folder / "clew", people=people, transports={"sms": section})) as clew:
        await until(lambda: clew.service.transports["sms"].up)
        yield clew


async def test_a_signed_message_is_stored_before_twilio_hears_and_answered_once(carrier: TwilioEmulator, tmp_path: Path) -> None:  # P42
    async with whole(carrier, tmp_path) as clew:
        fields = carrier.say("Hello", ADA)
        assert await carrier.call(clew.url, fields) == (200, "<Response/>")
        assert await carrier.call(clew.url, fields) == (200, "<Response/>")
        await carrier.until(lambda: len(carrier.texts(ADA)) == 1)
        assert await carrier.call(clew.url, carrier.say("Again", ADA)) == (200, "<Response/>")
        await carrier.until(lambda: len(carrier.texts(ADA)) == 2)


async def test_what_is_not_signed_or_not_for_clew_is_not_stored(carrier: TwilioEmulator, tmp_path: Path) -> None:  # P46, BO-066
    async with whole(carrier, tmp_path) as clew:
        fields = carrier.say("Hello", ADA)
        carrier.messages.clear()  # so that the list does not bring it
        assert (await carrier.call(clew.url, fields, token="another"))[0] == 401
        async with clew.http.post(f"{clew.url}/webhooks/sms/", data=fields) as response:
            assert response.status == 401
        signed = {"X-Twilio-Signature": twilio.signature(fields)}
        for forged in (fields | {"Body": "Open the door"}, fields | {"Extra": "1"}, {k: v for k, v in fields.items() if k != "NumMedia"}):
            async with clew.http.post(f"{clew.url}/webhooks/sms/", data=forged, headers=signed) as response:
                assert response.status == 401
        for status, harmless in ((200, {"OptOutType": "STOP"}), (200, {"To": BOB}), (400, {"MessageSid": ""})):
            changed = {name: value for name, value in (fields | harmless).items() if value}
            assert (await carrier.call(clew.url, changed))[0] == status
        await carrier.call(clew.url, carrier.say("The only one", ADA))
        await carrier.until(lambda: len(carrier.texts(ADA)) == 1)
        assert carrier.texts(ADA)[1:] == []


# Out -------------------------------------------------------------------------------------------------------------


async def test_a_long_reply_comes_in_parts_without_markup(carrier: TwilioEmulator) -> None:  # P43, BO-055
    async with connected(carrier) as (transport, _):
        reply = delivery(transport, "**Yes**, see [the page](https://e.org/a).\n\n" + "word " * 900)
        while reply.sent < len(reply.parts):
            upto = (await transport.send(reply)).upto
            assert upto == reply.sent + 1
            reply = replace(reply, sent=upto)
        texts = carrier.texts(ADA)
        assert len(texts) > 2
        assert all(len(text) <= LIMIT for text in texts)
        assert texts[0].startswith("Yes, see the page (https://e.org/a).")
        assert "".join(texts).count("word") == 900


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (twilio.too_many(7), Retry),
        (twilio.refuses(503, 20503, "Service Unavailable"), Retry),
        (twilio.refuses(401, 20003, "Authenticate"), Retry),
        (twilio.refuses(400, 21614, "'To' number is not a valid mobile number"), Refused),
        (listening.drops, Unknown),
    ],
)
async def test_failures_are_told_apart(carrier: TwilioEmulator, fault: listening.Fault, expected: type[Exception]) -> None:  # P43, BO-064
    async with connected(carrier) as (transport, _):
        carrier.next.append(fault)
        with pytest.raises(expected):
            await transport.send(delivery(transport, "hello"))
        assert carrier.texts(ADA) == []


async def test_who_has_said_stop_gets_no_more(carrier: TwilioEmulator) -> None:
    carrier.stopped.add(ADA)
    async with connected(carrier) as (transport, _):
        with pytest.raises(Refused, match="21610"):
            await transport.send(delivery(transport, "hello"))
        with pytest.raises(Refused, match="telephone number"):
            await transport.send(delivery(transport, "hello", "ada"))


async def test_a_part_without_an_answer_is_looked_for(carrier: TwilioEmulator) -> None:  # P43
    async with connected(carrier) as (transport, _):
        reply = delivery(transport, "word " * 500)
        carrier.next.append(listening.does_and_drops)
        with pytest.raises(Unknown):
            await transport.send(reply)
        assert await transport.find(reply) == Sent(carrier.messages[-1]["sid"], 1)
        assert await transport.find(replace(reply, sent=1)) is None


# Setting up ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"account_sid": "x"}, {"number": "0555"}, {"url": "example.org"}, {"url": "ftp://a/b"}])
async def test_settings_that_cannot_be_are_refused(carrier: TwilioEmulator, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(carrier, **wrong)


async def test_the_doctor_sees_what_is_wrong(carrier: TwilioEmulator) -> None:
    async def texts(**more: Any) -> str:
        assert plugin.examine is not None
        return "; ".join(fault.text for fault in await plugin.examine("sms", settings(carrier, **more)))

    assert await texts() == ""
    assert "does not know the account" in await texts(auth_token=SecretStr("x"))
    assert "none of this account's numbers" in await texts(number=BOB)
    carrier.sms_url = "https://demo.twilio.com/welcome/sms/reply"
    assert "elsewhere" in await texts()
    await carrier.down()
    assert "no connection to Twilio" in await texts()
