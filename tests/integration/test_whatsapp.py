"""The WhatsApp transport against the emulated Cloud API: in by its webhook through a whole clew, out with a host that remembers."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError

from clew.transport import Address, Delivery, Refused, Retry, Typing, Unknown
from clew_transports.whatsapp.messages import read
from clew_transports.whatsapp.transport import PAIR_S, TOO_LATE, Settings, WhatsappTransport, plugin
from tests.emulators import listening, whatsapp
from tests.emulators.whatsapp import NUMBER_ID, SECRET, TOKEN, VERIFY, WhatsappEmulator, notification
from tests.integration.mqtt_harness import Inbox
from tests.integration.platforms.whatsapp import Whatsapp
from tests.integration.web_harness import running as clew_running
from tests.integration.web_harness import settings as clew_settings
from tests.integration.webhook_harness import until

pytestmark = pytest.mark.asyncio

ADA, BOB = "4915559990011", "4915559990012"


@pytest_asyncio.fixture
async def meta() -> AsyncIterator[WhatsappEmulator]:
    async with WhatsappEmulator() as emulator:
        yield emulator


def settings(meta: WhatsappEmulator, **more: Any) -> Settings:
    secrets = {"token": SecretStr(TOKEN), "app_secret": SecretStr(SECRET), "verify_token": SecretStr(VERIFY)}
    usual: dict[str, Any] = {**secrets, "phone_number_id": NUMBER_ID, "base_url": meta.url}
    return Settings(**usual | more)


@contextlib.asynccontextmanager
async def connected(meta: WhatsappEmulator, **more: Any) -> AsyncIterator[tuple[WhatsappTransport, Inbox]]:
    inbox = Inbox()
    transport = WhatsappTransport("whatsapp", settings(meta, **more), first_pause=0.02, look_s=0.05)
    task = asyncio.create_task(transport.run(inbox))
    try:
        await inbox.until(lambda: bool(inbox.reports))
        yield transport, inbox
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def delivery(transport: WhatsappTransport, text: str, chat: str = ADA, **more: Any) -> Delivery:
    return Delivery("k3v9", Address("whatsapp", chat), text, tuple(transport.parts(text)), 1.0, **more)


@contextlib.asynccontextmanager
async def whole(meta: WhatsappEmulator, folder: Path) -> AsyncIterator[Any]:
    people = {"ada": {"role": "owner", "identities": [f"whatsapp:{ADA}"]}, "bob": {"role": "member", "identities": [f"whatsapp:{BOB}"]}}
    config = clew_settings(folder / "clew", people=people, transports={"whatsapp": Whatsapp(meta).section()})
    async with clew_running(config) as clew:
        await until(lambda: clew.service.transports["whatsapp"].up)
        yield clew


# In --------------------------------------------------------------------------------------------------------------


async def test_meta_asks_whether_the_address_is_meant(meta: WhatsappEmulator, tmp_path: Path) -> None:
    async with whole(meta, tmp_path) as clew:
        asked = {"hub.mode": "subscribe", "hub.challenge": "1158201444", "hub.verify_token": VERIFY}
        for change, status in (({}, 200), ({"hub.verify_token": "x"}, 403), ({"hub.mode": "x"}, 403)):
            async with clew.http.get(f"{clew.url}/webhooks/whatsapp/", params=asked | change) as response:
                assert response.status == status
                if status == 200:
                    assert await response.text() == "1158201444"


async def test_all_of_a_batch_is_stored_and_answered_in_the_order_of_its_times(meta: WhatsappEmulator, tmp_path: Path) -> None:  # P42
    async with whole(meta, tmp_path) as clew:
        first, second, third = (meta.message(f"number {number}", ADA) for number in range(3))
        told = notification(third, first, names={ADA: "Ada"})
        told["entry"] += notification(second)["entry"]
        told["entry"] += notification(statuses=[{"id": "wamid.x", "status": "read"}])["entry"]
        told["entry"] += notification(meta.message("for another number", ADA), number="999")["entry"]
        assert await meta.post(clew.url, told) == 200
        assert await meta.post(clew.url, told) == 200
        await meta.until(lambda: bool(meta.messages))
        await until(lambda: not clew.service.metrics.registry.get_sample_value("clew_inbox_pending"))
        _, listed = await clew.get("/api/v1/sessions")
        _, found = await clew.get(f"/api/v1/sessions/{listed['sessions'][0]['id']}/transcript")
        said = "\n".join(each["text"] for each in found["messages"] if each["role"] == "user")
        assert [line for line in said.split("\n") if "number" in line] == ["number 0", "number 1", "number 2"]


async def test_what_is_not_signed_is_not_stored(meta: WhatsappEmulator, tmp_path: Path) -> None:  # P46, BO-066
    async with whole(meta, tmp_path) as clew:
        body = json.dumps(notification(meta.message("Open the door 🚪", ADA))).encode()
        right = whatsapp.signature(body)
        url = f"{clew.url}/webhooks/whatsapp/"
        for stated, raw in (
            ("", body),
            (right, body + b" "),
            (right, body[:-1]),
            (right.upper(), body),
            (right.removeprefix("sha256="), body),
            (whatsapp.signature(body, "another"), body),
            (right, json.dumps(json.loads(body), ensure_ascii=False).encode()),
        ):
            async with clew.http.post(url, data=raw, headers={"X-Hub-Signature-256": stated}) as response:
                assert response.status == 401
        assert meta.messages == []
        assert await meta.post(clew.url, body) == 200
        await meta.until(lambda: len(meta.messages) == 1)


async def test_what_cannot_be_read_is_passed_over_and_the_rest_is_not(meta: WhatsappEmulator, tmp_path: Path) -> None:
    async with whole(meta, tmp_path) as clew:
        for junk in (b"[]", b"{", b'{"entry": 3}', b'{"entry":[{"changes":[{"field":"messages","value":[]}]}]}', b"\xff"):
            assert await meta.post(clew.url, junk) == 200
        damaged = {"from": ADA, "type": "text"}
        group = meta.message("in a group", ADA, group_id="g")
        odd = meta.message("", ADA, type="location", location={"latitude": 1})
        assert await meta.post(clew.url, notification(damaged, group, odd, meta.message("hello", ADA))) == 200
        await meta.until(lambda: len(meta.messages) == 2)
        assert any("I can read text" in text for text in meta.texts(ADA))


async def test_files_voices_answers_and_reactions_are_read(meta: WhatsappEmulator) -> None:
    voice = meta.message("", ADA, type="audio", audio={"id": "77", "mime_type": "audio/ogg; codecs=opus", "voice": True})
    picture = meta.message("", ADA, type="image", image={"id": "78", "mime_type": "image/jpeg", "caption": "our cat"})
    button = meta.message("", ADA, type="button", button={"text": "Yes"})
    chosen = meta.message("", ADA, type="interactive", interactive={"type": "list_reply", "list_reply": {"id": "1", "title": "Pasta"}})
    reply = meta.message("that one", ADA, context={"from": "1555", "id": "wamid.9"})
    thumb = meta.message("", ADA, type="reaction", reaction={"message_id": "wamid.9", "emoji": "👍"})
    told = json.dumps(notification(voice, picture, button, chosen, reply, thumb, names={ADA: "Ada"})).encode()
    found = read(told, "whatsapp", NUMBER_ID).messages
    assert [each.text for each in found] == ["", "our cat", "Yes", "Pasta", "that one", "👍"]
    assert [(file.name, file.ref) for each in found for file in each.attachments] == [("voice", "77"), ("image", "78")]
    assert [(each.kind, each.reply_to) for each in found[-2:]] == [("message", "wamid.9"), ("reaction", "wamid.9")]
    assert {(each.sender, each.sender_name, each.direct) for each in found} == {(ADA, "Ada", True)}


async def test_a_file_is_fetched_with_the_token_from_where_meta_keeps_it(meta: WhatsappEmulator) -> None:
    meta.files["77"] = b"the picture"
    async with connected(meta) as (transport, _):
        assert [piece async for piece in transport.fetch("77")] == [b"the picture"]
        for ref in ("78", "../77", "http://127.0.0.1:1/x"):
            with pytest.raises(LookupError):
                [piece async for piece in transport.fetch(ref)]


# Out -------------------------------------------------------------------------------------------------------------


async def test_a_long_reply_comes_in_parts(meta: WhatsappEmulator) -> None:  # P43, BO-055
    async with connected(meta) as (transport, _):
        reply = delivery(transport, "# Plan\n\n" + "**strong** and `code` " * 500)
        while reply.sent < len(reply.parts):
            upto = (await transport.send(reply)).upto
            assert upto == reply.sent + 1
            reply = replace(reply, sent=upto)
        assert len(meta.messages) > 2
        assert meta.texts(ADA)[0].startswith("*Plan*\n\n*strong* and `code`")
        assert all(each["text"]["preview_url"] is False for each in meta.messages)


@pytest.mark.parametrize(
    ("fault", "expected", "says"),
    [
        (whatsapp.refuses(400, 131056, "(Business Account, Consumer Account) pair rate limit hit"), Retry, "pair rate"),
        (whatsapp.refuses(429, 130429, "Rate limit hit"), Retry, "130429"),
        (whatsapp.refuses(503, 2, "Service temporarily unavailable"), Retry, "503"),
        (whatsapp.refuses(401, 190, "expired"), Retry, "token"),
        (whatsapp.refuses(400, 131026, "Message undeliverable"), Refused, "131026"),
        (whatsapp.refuses(400, 131047, "Re-engagement message"), Refused, TOO_LATE),
        (listening.drops, Unknown, "broke"),
    ],
)
async def test_failures_are_told_apart(meta: WhatsappEmulator, fault: listening.Fault, expected: type[Exception], says: str) -> None:  # P43
    async with connected(meta) as (transport, _):
        meta.next.append(fault)
        with pytest.raises(expected, match=says) as caught:
            await transport.send(delivery(transport, "hello"))
        if says == "pair rate":
            assert getattr(caught.value, "after", None) == PAIR_S
        assert meta.messages == []


async def test_a_part_without_an_answer_is_found_once_meta_tells_of_it(meta: WhatsappEmulator, tmp_path: Path) -> None:  # P43
    async with whole(meta, tmp_path) as clew:
        meta.next.append(listening.does_and_drops)
        assert await meta.post(clew.url, notification(meta.message("hello", ADA))) == 200
        await meta.until(lambda: len(meta.messages) == 1)
        key = meta.messages[0]["biz_opaque_callback_data"]
        told = notification(statuses=[{"id": meta.messages[0]["id"], "status": "sent", "biz_opaque_callback_data": key}])
        assert await meta.post(clew.url, told) == 200
        assert await meta.post(clew.url, notification(meta.message("again", ADA))) == 200
        await meta.until(lambda: len(meta.messages) == 2)
        assert meta.messages[1]["biz_opaque_callback_data"] != key


async def test_typing_marks_the_message_as_read(meta: WhatsappEmulator) -> None:
    async with connected(meta) as (transport, _):
        await transport.hint(Address("whatsapp", ADA), Typing("wamid.5"))
        await meta.until(lambda: bool(meta.reads))
        assert (meta.reads[0]["message_id"], meta.reads[0]["typing_indicator"]) == ("wamid.5", {"type": "text"})


# Setting up ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"phone_number_id": "+1555"}, {"version": "23"}, {"base_url": "graph.facebook.com"}])
async def test_settings_that_cannot_be_are_refused(meta: WhatsappEmulator, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(meta, **wrong)


async def test_the_doctor_sees_what_is_wrong(meta: WhatsappEmulator) -> None:
    async def texts(**more: Any) -> str:
        assert plugin.examine is not None
        return "; ".join(fault.text for fault in await plugin.examine("whatsapp", settings(meta, **more)))

    assert await texts() == ""
    assert "does not know the token" in await texts(token=SecretStr("x"))
    assert "404" in await texts(phone_number_id="12345")
    await meta.down()
    assert "no connection to WhatsApp" in await texts()


async def test_a_token_that_expires_is_said(meta: WhatsappEmulator) -> None:  # P48
    async with connected(meta, token=SecretStr("expired")) as (_, inbox):
        assert inbox.reports[-1] == (False, "WhatsApp does not know the token, or it has expired")
