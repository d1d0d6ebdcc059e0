"""Buttons below a question of clew's, on the platforms that have them: pressed by whoever was asked, by somebody else, too late, again."""

import contextlib
import json
from abc import abstractmethod
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest
from aiohttp import web
from pydantic import SecretStr

from clew.config import Person, TransportSection
from clew.plugins import registry
from clew.transport import Address, Delivery, Part
from clew_transports.buttons import CLOSED
from clew_transports.slack.transport import SlackTransport
from clew_transports.whatsapp.transport import Settings as WhatsappSettings
from clew_transports.whatsapp.transport import WhatsappTransport
from tests.emulators import discord, slack, slack_wire, whatsapp
from tests.emulators.discord import DiscordEmulator
from tests.emulators.server import JsonObject
from tests.emulators.slack import SlackEmulator
from tests.emulators.whatsapp import WhatsappEmulator, notification
from tests.integration.discord_harness import connected as discord_connected
from tests.integration.discord_harness import delivery as discord_delivery
from tests.integration.discord_harness import greeted
from tests.integration.engine import World, calling, engine
from tests.integration.mqtt_harness import Inbox
from tests.integration.slack_harness import connected as slack_connected
from tests.integration.slack_harness import delivery as slack_delivery
from tests.integration.slack_harness import workspace
from tests.integration.test_engine_approvals import Ledger
from tests.integration.webhook_harness import until

pytestmark = pytest.mark.asyncio


class Chat:
    """A platform with Ada, who is asked, and Bob."""

    kind: str
    people = ("ada", "bob")
    section: JsonObject
    platform: Any

    async def ready(self, world: World) -> None:
        await until(lambda: world.service.transports[self.kind].up)

    @abstractmethod
    async def say(self, text: str, world: World) -> None: ...

    @abstractmethod
    def asked(self) -> list[JsonObject]:
        """The messages that have buttons now, or had."""

    @abstractmethod
    def buttons(self, message: JsonObject) -> list[str]: ...

    @abstractmethod
    async def press(self, message: JsonObject, answer: str, who: int, world: World) -> None: ...

    @abstractmethod
    def told(self) -> list[str]:
        """What those were told who pressed for nothing."""

    @abstractmethod
    def texts(self) -> list[str]: ...


class Discord(Chat):
    kind, people = "discord", ("11", "12")

    def __init__(self, platform: DiscordEmulator) -> None:
        self.platform, self.section = platform, {"token": discord.TOKEN, "base_url": platform.base, "groups": "all"}

    async def ready(self, world: World) -> None:
        await greeted(self.platform)

    async def say(self, text: str, world: World) -> None:
        self.platform.say(text, discord.person(11), discord.CHANNEL)

    def asked(self) -> list[JsonObject]:
        return [each for each in self.platform.sent if "May I call" in each["content"]]

    def buttons(self, message: JsonObject) -> list[str]:
        return [button["custom_id"] for row in message["components"] for button in row["components"]]

    async def press(self, message: JsonObject, answer: str, who: int, world: World) -> None:
        self.platform.press(message, answer, discord.person(int(self.people[who])))

    def told(self) -> list[str]:
        return [each for each in self.platform.pressed if each]

    def texts(self) -> list[str]:
        return list(self.platform.texts())


class Slack(Chat):
    kind, people = "slack", ("U0ADA", "U0BOB")

    def __init__(self, platform: SlackEmulator) -> None:
        tokens = {"bot_token": slack.BOT_TOKEN, "app_token": slack.APP_TOKEN}
        self.platform, self.section = platform, {**tokens, "base_url": platform.url}

    async def say(self, text: str, world: World) -> None:
        self.platform.say(text)

    def asked(self) -> list[JsonObject]:
        return [each for each in self.platform.messages if "May I call" in each["text"]]

    def buttons(self, message: JsonObject) -> list[str]:
        return [button["value"] for each in message["attachments"] for row in each["blocks"] for button in row["elements"]]

    async def press(self, message: JsonObject, answer: str, who: int, world: World) -> None:
        shown = {**message, "attachments": message["attachments"] or BEFORE["slack"]}
        self.platform.press(shown, answer, self.people[who])

    def told(self) -> list[str]:
        return [text for _, text in self.platform.whispered]

    def texts(self) -> list[str]:
        return [each["text"] for each in self.platform.messages]


class Whatsapp(Chat):
    kind, people = "whatsapp", ("4915559990011", "4915559990012")

    def __init__(self, platform: WhatsappEmulator) -> None:
        secrets = {"token": whatsapp.TOKEN, "app_secret": whatsapp.SECRET, "verify_token": whatsapp.VERIFY}
        self.platform, self.section = platform, {**secrets, "phone_number_id": whatsapp.NUMBER_ID, "base_url": platform.url}

    async def say(self, text: str, world: World) -> None:
        await self._post(self.platform.message(text, self.people[0]), world)

    def asked(self) -> list[JsonObject]:
        return [each for each in self.platform.messages if each["type"] == "interactive"]

    def buttons(self, message: JsonObject) -> list[str]:
        return [each["reply"]["id"] for each in message["interactive"]["action"]["buttons"]]

    async def press(self, message: JsonObject, answer: str, who: int, world: World) -> None:
        chosen = {"type": "button_reply", "button_reply": {"id": answer, "title": answer.title()}}
        about = {"type": "interactive", "interactive": chosen, "context": {"from": "1555", "id": message["id"]}}
        await self._post(self.platform.message("", self.people[who], **about), world)

    def told(self) -> list[str]:
        return [text for who in self.people for text in self.platform.texts(who) if text == CLOSED]

    def texts(self) -> list[str]:
        return list(self.platform.texts(self.people[0]))

    async def _post(self, message: JsonObject, world: World) -> None:
        """To the routes of the transport, which a server of their own serves."""
        app = web.Application()
        for route in world.service.transports["whatsapp"].transport.routes():
            app.router.add_route(route.method, f"/webhooks/whatsapp{route.path}", route.handler)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        assert await self.platform.post(f"http://127.0.0.1:{runner.addresses[0][1]}", notification(message)) == 200
        await runner.cleanup()


BEFORE: dict[str, list[JsonObject]] = {}
"""Buttons that stood below a message, for those who press what they still see."""


@contextlib.asynccontextmanager
async def chat(kind: str) -> AsyncIterator[Chat]:
    async with contextlib.AsyncExitStack() as stack:
        match kind:
            case "discord":
                yield Discord(await stack.enter_async_context(DiscordEmulator()))
            case "slack":
                yield Slack(await stack.enter_async_context(workspace()))
            case _:
                yield Whatsapp(await stack.enter_async_context(WhatsappEmulator()))


@contextlib.asynccontextmanager
async def asking(kind: str, folder: Path) -> AsyncIterator[tuple[Chat, World, Ledger]]:
    """A clew on that platform whose model wants to pay."""
    ledger = Ledger()
    async with chat(kind) as here, engine(folder, calling(("pay", {"note": "rent"})), tools=[ledger.tool]) as world:
        settings = registry("clew.transports")[kind].Config.model_validate_json(json.dumps(here.section))
        sections = {**world.config.transports, kind: TransportSection(kind=kind, name=kind, settings=settings)}
        people = {name: Person(identities=(f"{kind}:{who}",)) for name, who in zip(("ada", "bob"), here.people, strict=True)}
        world.config = world.config.model_copy(update={"transports": sections, "people": people})
        async with world.running():
            await here.ready(world)
            yield here, world, ledger


@pytest.mark.parametrize("kind", ["discord", "slack", "whatsapp"])
async def test_a_button_answers_the_question_of_whoever_was_asked(kind: str, tmp_path: Path) -> None:  # P46
    async with asking(kind, tmp_path) as (here, world, ledger):
        await here.say("pay the rent", world)
        await here.platform.until(lambda: bool(here.asked()))
        (question,) = here.asked()
        assert here.buttons(question) == ["yes", "no", "always"]
        BEFORE[kind] = question.get("attachments", [])
        await here.press(question, "yes", 1, world)
        await here.platform.until(lambda: here.told() == [CLOSED])
        assert ledger.done == []
        await here.press(question, "yes", 0, world)
        await here.platform.until(lambda: "done" in here.texts())
        assert ledger.done == ["rent"]
        if kind != "whatsapp":
            await here.platform.until(lambda: here.buttons(question) == [])
        await here.press(question, "no", 0, world)
        await here.platform.until(lambda: here.told() == [CLOSED] * 2)
        assert ledger.done == ["rent"]


@pytest.mark.parametrize("kind", ["discord", "slack", "whatsapp"])
async def test_words_answer_as_well(kind: str, tmp_path: Path) -> None:
    async with asking(kind, tmp_path) as (here, world, ledger):
        await here.say("pay the rent", world)
        await here.platform.until(lambda: bool(here.asked()))
        await here.say("yes", world)
        await here.platform.until(lambda: "done" in here.texts())
        assert ledger.done == ["rent"]
        await here.press(here.asked()[0], "no", 0, world)
        await here.platform.until(lambda: here.told() == [CLOSED])


async def test_discord_a_press_that_was_answered_too_late_loses_its_buttons_all_the_same() -> None:
    async with DiscordEmulator() as platform, discord_connected(platform) as (transport, inbox):
        await transport.send(discord_delivery(transport, "May I?", asks=True))
        (question,) = platform.sent
        platform.press(question, "always", late=True)
        await platform.until(lambda: question["components"] == [])
        (pressed,) = inbox.rows.values()
        assert (pressed.kind, pressed.text, pressed.reply_to, pressed.sender, pressed.direct) == (
            "reaction",
            "always",
            question["id"],
            "11",
            True,
        )


async def test_slack_a_press_comes_by_request_too_and_must_be_signed() -> None:  # P46, BO-066
    async with workspace() as platform:
        secret = SecretStr(slack_wire.SECRET)
        async with slack_connected(platform, app_token=None, signing_secret=secret) as (transport, inbox):
            whole = slack_delivery(transport, "May I?\n\n" + "word " * 1000, asks=True)
            first = await transport.send(whole)
            await transport.send(replace(whole, sent=first.upto or 0))
            assert [bool(each.get("attachments")) for each in platform.messages] == [False, True]
            payload = platform.press(platform.messages[-1], "no")
            assert await _requested(transport, payload, "another secret") == 401
            assert not inbox.rows
            assert await _requested(transport, payload, slack_wire.SECRET) == 200
            (pressed,) = inbox.rows.values()
            assert (pressed.text, pressed.reply_to, pressed.sender) == ("no", platform.messages[-1]["ts"], "U0ADA")
            await platform.until(lambda: platform.messages[-1]["attachments"] == [])


async def _requested(transport: SlackTransport, payload: JsonObject, secret: str) -> int:
    """POST a press as Slack does, as a form. Returns the status."""
    app = web.Application()
    (route,) = transport.routes()
    app.router.add_post("/", route.handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    body = urlencode({"payload": json.dumps(payload)}).encode()
    headers = slack_wire.proof(body, secret=secret) | {"Content-Type": "application/x-www-form-urlencoded"}
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    async with aiohttp.ClientSession() as http, http.post(url, data=body, headers=headers) as response:
        status = response.status
    await runner.cleanup()
    return status


async def test_slack_what_is_no_button_of_clews_is_let_pass() -> None:
    async with workspace() as platform, slack_connected(platform) as (transport, inbox):
        await transport.send(slack_delivery(transport, "May I?", asks=True))
        (question,) = platform.messages
        platform.press({**question, "user": "U0OTHER"}, "yes")
        strange: list[JsonObject] = [
            {"actions": []},
            {"message": None},
            {"channel": {}},
            {"user": {}},
            {"team": {"id": "T0"}},
            {"team": None},
        ]
        for part in strange:
            platform.give({"type": "interactive", "payload": platform.press(question, "yes") | part})
        await inbox.until(lambda: len(inbox.batches) >= 6)
        assert len({row.external_id for row in inbox.rows.values()}) == len(inbox.rows) == 6


async def test_whatsapp_a_question_that_is_too_long_for_buttons_is_asked_in_words() -> None:
    async with WhatsappEmulator() as platform:
        settings = WhatsappSettings(token=SecretStr(whatsapp.TOKEN), phone_number_id=whatsapp.NUMBER_ID, base_url=platform.url)
        transport = WhatsappTransport("whatsapp", settings)
        async with transport._calls:
            for text in ("x" * 1024, "x" * 1025):
                await transport.send(Delivery("k", Address("whatsapp", "4915559990011"), text, (Part(text),), 1.0, asks=True))
        assert [each["type"] for each in platform.messages] == ["interactive", "text"]


async def test_nobodys_press_is_taken_where_nothing_is_asked() -> None:
    async with DiscordEmulator() as platform, discord_connected(platform, Inbox()) as (transport, inbox):
        await transport.send(discord_delivery(transport, "hello"))
        (message,) = platform.sent
        assert not message["components"]
        platform.press(message, "rm -rf", discord.person(12))
        platform.gateway.dispatch("INTERACTION_CREATE", {"type": 2, "id": "1"})
        platform.gateway.dispatch("INTERACTION_CREATE", {"type": 3, "data": {"custom_id": "yes"}})
        platform.say("behind them")
        await inbox.until(lambda: inbox.texts == ["behind them"])
