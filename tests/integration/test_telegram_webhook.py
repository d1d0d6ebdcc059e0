"""The Telegram transport where Telegram calls clew: the emulated Bot API sends updates until they are taken."""

import asyncio
import contextlib
import io
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr

from clew_transports.incoming import MAX_BODY_BYTES
from clew_transports.telegram.doctor import NOT_SET, WEBHOOK_SET, examine
from clew_transports.telegram.settings import Settings
from clew_transports.telegram.transport import TelegramTransport
from clew_transports.telegram.webhook import SECRET_HEADER, secret_of
from tests.emulators import telegram
from tests.emulators.telegram import TOKEN, TelegramEmulator
from tests.integration.mqtt_harness import Inbox
from tests.integration.web_harness import running as clew_running
from tests.integration.web_harness import settings as config_of

pytestmark = pytest.mark.asyncio

PUBLIC = "https://clew.example.org/webhooks/telegram/"


@pytest_asyncio.fixture
async def platform() -> AsyncIterator[TelegramEmulator]:
    async with TelegramEmulator() as emulator:
        yield emulator


@contextlib.asynccontextmanager
async def running(platform: TelegramEmulator, inbox: Inbox, mode: str = "webhook", public: str = PUBLIC) -> AsyncIterator[str]:
    """A transport, and where its routes are served."""
    inbox.public = public
    settings = Settings(token=SecretStr(TOKEN), base_url=platform.url, mode=mode)  # type: ignore[arg-type]
    transport = TelegramTransport("telegram", settings, first_pause=0.02, poll_s=5.0, look_s=0.05)
    app = web.Application(client_max_size=2**24)
    for route in transport.routes():
        app.router.add_route(route.method, "/webhooks/telegram/", route.handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    platform.reaches = f"http://127.0.0.1:{runner.addresses[0][1]}"
    task = asyncio.create_task(transport.run(inbox))
    try:
        yield f"{platform.reaches}/webhooks/telegram/"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await runner.cleanup()


async def posted(url: str, body: bytes, **headers: str) -> int:
    async with aiohttp.ClientSession() as http, http.post(url, data=io.BytesIO(body), headers=headers) as response:
        return response.status


async def test_what_waited_comes_and_is_confirmed_once_it_is_stored(platform: TelegramEmulator) -> None:  # P42
    for number in range(4):
        platform.say(f"message {number}")
    inbox = Inbox()
    async with running(platform, inbox):
        await inbox.until(lambda: inbox.up)
        platform.say("message 4")
        await platform.until(lambda: platform.confirmed == 5)
        assert inbox.texts == [f"message {number}" for number in range(5)]
    asked = next(arguments for method, arguments in platform.calls if method == "setWebhook")
    assert (asked["url"], asked["secret_token"], asked["max_connections"]) == (PUBLIC, secret_of(TOKEN), 10)
    assert set(asked["allowed_updates"]) == {"message", "edited_message", "message_reaction", "callback_query"}
    assert "drop_pending_updates" not in asked
    assert not platform.polls


async def test_an_update_that_is_not_stored_is_not_taken(platform: TelegramEmulator) -> None:  # P42
    inbox = Inbox()
    inbox.stuck = True
    platform.say("hello")
    async with running(platform, inbox):
        await inbox.until(lambda: bool(inbox.batches))
        assert (platform.taken, platform.confirmed) == ([], 0)
    inbox.stuck = False
    async with running(platform, inbox):
        await platform.until(lambda: platform.confirmed == 1)
    assert inbox.texts == ["hello"]


async def test_what_comes_again_is_known(platform: TelegramEmulator) -> None:  # P42, BO-047
    inbox = Inbox()
    async with running(platform, inbox):
        platform.unheard = 2
        platform.say("once")
        platform.say("and then")
        await platform.until(lambda: platform.confirmed == 2)
    assert inbox.texts == ["once", "and then"]
    assert len(inbox.duplicates) == 2


async def test_without_the_secret_nothing_is_taken(platform: TelegramEmulator) -> None:  # P46, BO-066
    inbox, right, chance = Inbox(), secret_of(TOKEN), random.Random(4)
    update = b'{"update_id": 1, "message": {"message_id": 1, "from": {"id": 11, "is_bot": false}, "chat": {"id": 11, "type": "private"}}}'
    async with running(platform, inbox) as url:
        await inbox.until(lambda: inbox.up)
        assert await posted(url, update) == 401
        for _ in range(200):
            at = chance.randrange(len(right))
            wrong = chance.choice([right[:at], right + right[at:], right.upper(), right[:at] + "Z" + right[at + 1 :], secret_of("1:other")])
            assert await posted(url, update, **{SECRET_HEADER: wrong}) == 401
        async with aiohttp.ClientSession() as http:
            twice = [(SECRET_HEADER, right), (SECRET_HEADER, "x")]
            async with http.post(url, data=update, headers=twice) as response:
                assert response.status == 401
    assert not inbox.rows


async def test_bodies_that_are_none_are_turned_away_and_what_cannot_be_read_is_not_asked_for_again(platform: TelegramEmulator) -> None:
    inbox, proof = Inbox(), {SECRET_HEADER: secret_of(TOKEN)}
    async with running(platform, inbox) as url:
        await inbox.until(lambda: inbox.up)
        assert await posted(url, b"[" * 100_000, **proof) == 400
        assert await posted(url, b"[]", **proof) == 400
        assert await posted(url, b"\xff", **proof) == 400
        assert await posted(url, b" " * (MAX_BODY_BYTES + 1), **proof) == 413
        assert await posted(url, b"{}", **proof, **{"Content-Encoding": "gzip"}) == 415
        assert await posted(url, b'{"update_id": 7, "message": {"chat": 3}}', **proof) == 200
        platform.give({"message": {"chat": "?"}})
        platform.say("after it")
        await platform.until(lambda: platform.confirmed == 2)
    assert inbox.texts == ["after it"]


async def test_a_change_of_modes_loses_nothing_and_doubles_nothing(platform: TelegramEmulator) -> None:  # P42
    inbox = Inbox()
    platform.say("one")
    async with running(platform, inbox, "polling"):
        await inbox.until(lambda: len(inbox.rows) == 1)
    platform.say("two")
    async with running(platform, inbox):
        await inbox.until(lambda: len(inbox.rows) == 2)
        await platform.until(lambda: platform.confirmed == 2)
        platform.reaches = "http://127.0.0.1:1"  # what comes now waits at Telegram, an earlier update than one that arrives
        platform.say("three")
    platform.say("four")
    async with running(platform, inbox, "polling"):
        await inbox.until(lambda: len(inbox.rows) == 4)
        platform.say("five")
        await inbox.until(lambda: len(inbox.rows) == 5)
        await platform.until(lambda: platform.confirmed == 5)
        assert not platform.webhook
    assert inbox.texts == ["one", "two", "three", "four", "five"]


async def test_an_update_that_was_overtaken_is_not_passed_by_a_later_poll(platform: TelegramEmulator) -> None:  # P42
    inbox, proof = Inbox(), {SECRET_HEADER: secret_of(TOKEN)}
    async with running(platform, inbox) as url:
        await inbox.until(lambda: inbox.up)
        platform.reaches = ""
        platform.say("overtaken")
        later = b'{"update_id": 870000099, "message": {"message_id": 300, "from": {"id": 12, "is_bot": false},'
        later += b' "chat": {"id": 12, "type": "private"}, "date": 1, "text": "later"}}'
        assert await posted(url, later, **proof) == 200
    async with running(platform, inbox, "polling"):
        await inbox.until(lambda: len(inbox.rows) == 2)
    assert inbox.texts == ["later", "overtaken"]


async def test_somebody_elses_webhook_stays(platform: TelegramEmulator) -> None:
    inbox = Inbox()
    async with running(platform, inbox):
        await inbox.until(lambda: inbox.up)
        platform.webhook = "https://other.example.org/"
        await inbox.until(lambda: any("another program" in detail for _, detail in inbox.reports))
    inbox.reports.clear()
    platform.webhook = "https://other.example.org/"
    async with running(platform, inbox, "polling"):
        await inbox.until(lambda: (False, WEBHOOK_SET) in inbox.reports)
    assert "deleteWebhook" not in [method for method, _ in platform.calls]


async def test_connected_means_that_telegram_reaches_clew(platform: TelegramEmulator) -> None:  # P48
    inbox = Inbox()
    async with running(platform, inbox):
        await inbox.until(lambda: inbox.up)
        here, platform.reaches = platform.reaches, "http://127.0.0.1:1"
        platform.say("can you hear me?")
        await inbox.until(lambda: any("does not reach" in detail for _, detail in inbox.reports))
        platform.reaches = here
        await inbox.until(lambda: bool(inbox.rows) and inbox.up)


@pytest.mark.parametrize(
    ("public", "says"),
    [
        ("", "http.public_url does not say"),
        ("http://clew.example.org/webhooks/telegram/", "An HTTPS URL"),
        ("https://a:99/", "only on ports"),
    ],
)
async def test_an_address_that_telegram_cannot_call_is_said(platform: TelegramEmulator, public: str, says: str) -> None:
    inbox = Inbox()
    async with running(platform, inbox, public=public):
        await inbox.until(lambda: any(says in detail for _, detail in inbox.reports))
        assert not inbox.up


async def test_the_doctor_tells_of_the_webhook(platform: TelegramEmulator) -> None:
    settings = Settings(token=SecretStr(TOKEN), base_url=platform.url, mode="webhook")
    inbox = Inbox()
    assert [each.text for each in await examine("telegram", settings)] == [NOT_SET]
    async with running(platform, inbox):
        await inbox.until(lambda: inbox.up)
        assert await examine("telegram", settings) == []
        platform.reaches = "http://127.0.0.1:1"
        platform.say("hello")
        await platform.until(lambda: bool(platform.taken))
        (fault,) = await examine("telegram", settings)
        assert "Connection refused" in fault.text
        assert "; 1 wait" in fault.text
        assert fault.serious


async def test_a_whole_clew_is_called_at_its_public_address(platform: TelegramEmulator, tmp_path: Path) -> None:
    section: dict[str, Any] = {"token": TOKEN, "base_url": platform.url, "mode": "webhook"}
    config = config_of(
        tmp_path,
        http={"port": 0, "public_url": "https://clew.example.org/"},
        people={"ada": {"role": "owner", "identities": ["telegram:11"]}},
        transports={"telegram": section},
    )
    async with clew_running(config) as clew:
        await platform.until(lambda: platform.webhook == PUBLIC)
        platform.next["sendMessage"].append(telegram.too_many(1))
        platform.reaches = clew.url
        platform.say("/status")
        await platform.until(lambda: bool(platform.messages))
        assert platform.messages[0]["chat"]["id"] == 11
