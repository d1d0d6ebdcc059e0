"""Slack's Events API: signed requests at a whole clew, the model emulated too."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from clew_transports.slack.settings import Settings
from clew_transports.slack.transport import SlackTransport
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import JsonObject, Reply
from tests.emulators.slack import BOT_TOKEN, MENTION, SlackEmulator
from tests.emulators.slack_wire import SECRET, post, proof
from tests.integration.mqtt_harness import Inbox
from tests.integration.web_harness import Clew, running, settings
from tests.integration.webhook_harness import until

pytestmark = pytest.mark.asyncio


def script(body: JsonObject) -> Reply:
    return say(f"echo: {last_user_text(body).rpartition('] ')[2]}")


class World:
    def __init__(self, folder: Path, slack: SlackEmulator, model: OpenAIEmulator, **section: Any) -> None:
        self.folder, self.slack, self.model = folder, slack, model
        self.section = {"bot_token": BOT_TOKEN, "signing_secret": SECRET, "base_url": slack.url} | section

    @contextlib.asynccontextmanager
    async def clew(self) -> AsyncIterator[Clew]:
        config = settings(
            self.folder,
            base_url=f"{self.model.url}/v1",
            agent={"provider": "model", "while_busy": "one_by_one", "timezone": "UTC"},
            people={"ada": {"role": "owner", "identities": ["slack:U0ADA"]}},
            transports={"slack": self.section},
        )
        async with running(config) as clew:
            yield clew

    def event(self, text: str, channel: str = "D0ADA", **more: Any) -> JsonObject:
        """Somebody writes; the event as Slack would offer it."""
        ts = self.slack.say(text, channel=channel, told=False, **more)
        return {**self.slack._message(channel, ts), "channel": channel, "event_ts": ts}


@contextlib.asynccontextmanager
async def world(tmp_path: Path, **section: Any) -> AsyncIterator[World]:
    async with SlackEmulator() as slack, OpenAIEmulator(script=script) as model:
        slack.members.add("D0ADA")
        yield World(tmp_path / "clew", slack, model, **section)


async def up(clew: Clew) -> str:
    await until(lambda: clew.service.transports["slack"].up)
    return f"{clew.url}/webhooks/slack"


async def test_slack_is_told_that_this_is_the_address(tmp_path: Path) -> None:
    async with world(tmp_path) as here, here.clew() as clew:
        url = await up(clew)
        asked = {"token": "gone", "type": "url_verification", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}
        status, answer = await post(clew.http, url, asked)
        assert (status, json.loads(answer)) == (200, {"challenge": asked["challenge"]})
        async with clew.http.post(url, json=asked) as unsigned:
            assert unsigned.status == 401


async def test_an_event_is_stored_answered_and_replied_to(tmp_path: Path) -> None:  # P42
    async with world(tmp_path) as here, here.clew() as clew:
        status, answer = await post(clew.http, await up(clew), here.slack.payload(here.event("hello")))
        assert (status, answer) == (200, "")
        await until(lambda: here.slack.texts("D0ADA") == ["echo: hello"])


async def test_what_slack_offers_again_is_answered_once(tmp_path: Path) -> None:  # BO-048, BO-068, P42
    async with world(tmp_path) as here:
        event = here.event("hello")
        async with here.clew() as clew:
            url = await up(clew)
            held = here.model.hold()
            assert (await post(clew.http, url, here.slack.payload(event, "Ev1")))[0] == 200
            await held.reached.wait()  # the model takes its time, and Slack has its answer
            for number, event_id in ((1, "Ev1"), (2, "Ev1"), (3, "Ev2")):
                again = await post(
                    clew.http,
                    url,
                    here.slack.payload(event, event_id),
                    X_Slack_Retry_Num=str(number),
                    X_Slack_Retry_Reason="http_timeout",
                )
                assert again[0] == 200
            held.release()
            await until(lambda: here.slack.texts("D0ADA") == ["echo: hello"])
        async with here.clew() as clew:
            assert (await post(clew.http, await up(clew), here.slack.payload(event, "Ev1")))[0] == 200
            await post(clew.http, await up(clew), here.slack.payload(here.event("end")))
            await until(lambda: "echo: end" in here.slack.texts("D0ADA"))
        assert here.slack.texts("D0ADA") == ["echo: hello", "echo: end"]


async def test_only_what_slack_signed_just_now_is_taken(tmp_path: Path) -> None:  # BO-066
    async with world(tmp_path) as here, here.clew() as clew:
        url = await up(clew)
        body = json.dumps(here.slack.payload(here.event("forged"))).encode()
        right = proof(body)
        stamp, signature = right["X-Slack-Request-Timestamp"], right["X-Slack-Signature"]
        for headers in (
            {},
            {"X-Slack-Request-Timestamp": stamp},
            {"X-Slack-Signature": signature},
            {**right, "X-Slack-Signature": ""},
            {**right, "X-Slack-Signature": "v0=" + "0" * 64},
            {**right, "X-Slack-Signature": signature.replace("v0", "v1")},
            {**right, "X-Slack-Request-Timestamp": str(int(stamp) + 1)},
            proof(body, secret="another"),
            proof(body, secret=""),
            proof(body, age=600),
            proof(body, age=-600),
        ):
            async with clew.http.post(url, data=BytesIO(body), headers=headers) as response:
                assert response.status == 401
        for other in (body[:-1], body + b" ", b"", body.replace(b"forged", b"Forged")):
            async with clew.http.post(url, data=BytesIO(other), headers=right) as response:
                assert response.status == 401
        assert here.model.calls == []
        async with clew.http.post(url, data=BytesIO(body), headers=right) as response:
            assert response.status == 200
        await until(lambda: here.slack.texts("D0ADA") == ["echo: forged"])


async def test_without_a_secret_nobody_gets_in(tmp_path: Path) -> None:  # BO-066
    async with world(tmp_path, signing_secret=None, app_token=None) as here, here.clew() as clew:
        await until(lambda: "signing_secret" in clew.service.transports["slack"].detail)
        body = json.dumps(here.slack.payload(here.event("hello"))).encode()
        for headers in (proof(body, secret=""), proof(body, secret="None"), {}):
            async with clew.http.post(f"{clew.url}/webhooks/slack", data=BytesIO(body), headers=headers) as response:
                assert response.status == 401


async def test_events_of_another_workspace_and_bodies_of_another_shape_are_passed_over(tmp_path: Path) -> None:  # BO-076
    async with world(tmp_path) as here, here.clew() as clew:
        url = await up(clew)
        theirs = here.slack.payload(here.event("in another workspace")) | {"team_id": "T0OTHER", "authorizations": []}
        for payload in (theirs, {"type": "event_callback"}, {"type": 7}, {"type": "event_callback", "team_id": "T0WORK", "event": []}):
            assert (await post(clew.http, url, payload))[0] == 200
        for body in (b"[]", b"7", b"\xff", b"{", b"[" * 100_000):
            async with clew.http.post(url, data=BytesIO(body), headers=proof(body)) as response:
                assert response.status == 400
        body = b" " * (1024 * 1024 + 1)
        async with clew.http.post(url, data=BytesIO(body), headers=proof(body)) as response:
            assert response.status == 413
        await post(clew.http, url, here.slack.payload(here.event("behind them")))
        await until(lambda: here.slack.texts("D0ADA") == ["echo: behind them"])


async def test_events_that_slack_left_out_are_read_from_the_history(tmp_path: Path) -> None:  # P42
    async with world(tmp_path) as here, here.clew() as clew:
        url = await up(clew)
        await post(clew.http, url, here.slack.payload(here.event("one")))
        await until(lambda: here.slack.texts("D0ADA") == ["echo: one"])
        here.event("never told")
        limited = {"type": "app_rate_limited", "team_id": "T0WORK", "minute_rate_limited": 1518467820, "api_app_id": "A0APP"}
        assert (await post(clew.http, url, limited))[0] == 200
        await until(lambda: here.slack.texts("D0ADA") == ["echo: one", "echo: never told"])


async def test_a_thread_of_a_channel_is_answered_below_its_mention(tmp_path: Path) -> None:  # BO-090
    async with world(tmp_path) as here, here.clew() as clew:
        url = await up(clew)
        event = here.event(f"{MENTION} hello", channel="C0CLUB")
        for kind in ("app_mention", "message"):
            assert (await post(clew.http, url, here.slack.payload({**event, "type": kind})))[0] == 200
        await until(lambda: bool(here.slack.texts("C0CLUB")))
        assert here.slack.texts("C0CLUB", event["ts"]) == ["echo: ada: hello"]


async def test_what_is_not_stored_in_time_is_asked_for_again() -> None:  # P42, BO-068
    async with SlackEmulator() as emulator:
        inbox = Inbox()
        bot, secret = SecretStr(BOT_TOKEN), SecretStr(SECRET)
        transport = SlackTransport("slack", Settings(bot_token=bot, signing_secret=secret, base_url=emulator.url))
        app = web.Application()
        (route,) = transport.routes()
        app.router.add_route(route.method, "/webhooks/slack", route.handler)
        receiving = asyncio.create_task(transport.run(inbox))
        async with TestServer(app) as server, aiohttp.ClientSession() as http:
            url = str(server.make_url("/webhooks/slack"))
            await inbox.until(lambda: inbox.up)
            ts = emulator.say("hello", told=False)
            event = emulator.payload({**emulator._message("D0ADA", ts), "channel": "D0ADA"})
            inbox.stuck = True
            assert (await post(http, url, event))[0] == 503
            inbox.stuck = False
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)
            assert (await post(http, url, event))[0] == 503  # nobody is there to take it
            receiving = asyncio.create_task(transport.run(inbox))
            await inbox.until(lambda: inbox.texts == ["hello"])  # it was in the history as well
            assert (await post(http, url, event))[0] == 200
            assert inbox.texts == ["hello"]
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
