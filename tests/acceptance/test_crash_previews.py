"""A reply that a group sees being written, killed at each point from its first words to the note that it is there.

After a restart the reply stands in the place of what was shown. There is one exception: on Telegram a kill between the posting of the
first words and the note of them leaves them beside the reply, since it can be asked for nothing that it was sent. Discord knows the first
words by their nonce, Slack by their metadata.
"""

import asyncio
import contextlib
import json
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from aiohttp import web

from tests.acceptance import stamp
from tests.acceptance.harness import DEADLINE_S
from tests.acceptance.kills import Daemons, at_each, read
from tests.databases import databases
from tests.emulators import discord, slack, telegram
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.discord import DiscordEmulator
from tests.emulators.listening import Fault, hangs
from tests.emulators.scripts import say
from tests.emulators.server import JsonObject, Reply, Stall
from tests.emulators.slack import SlackEmulator
from tests.emulators.telegram import TelegramEmulator
from tests.integration.discord_harness import greeted
from tests.integration.web_harness import running
from tests.servers import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio, pytest.mark.timeout(300)]

GROUP = -77
REPLY = " ".join(f"word{number}" for number in range(60))
END = "committed settle"
AT_LEAST = 33
"""Points at which a daemon is killed."""
POSTED = ("after preview 1", "written previewed 1")
"""Points of the first words at which the platform has them and nothing says so yet."""


def talks(body: JsonObject) -> Reply:
    return say(REPLY)


class Chat:
    """A group with one person and the bot."""

    name: str
    posts: str
    """The platform's call that posts a message."""
    person = "11"
    """Who asks, as the platform knows them."""
    knows_again: bool
    """Whether the platform can be asked for first words of which nothing was noted."""

    @abstractmethod
    def section(self) -> JsonObject:
        """Its section in the config."""

    @abstractmethod
    async def ask(self) -> None:
        """Have the person ask, once somebody listens where the platform keeps nothing for those who do not."""

    @abstractmethod
    def texts(self) -> list[str]:
        """What the group sees of the bot."""

    @abstractmethod
    async def until(self, condition: Callable[[], bool]) -> None: ...

    @abstractmethod
    def fail(self, fault: Fault) -> None:
        """What becomes of the next message that is posted."""

    @abstractmethod
    def forget(self) -> None:
        """A new beginning."""


class TelegramChat(Chat):
    name, posts, knows_again = "telegram", "sendMessage", False

    def __init__(self, emulator: TelegramEmulator) -> None:
        self._emulator = emulator

    def section(self) -> JsonObject:
        return {"token": telegram.TOKEN, "base_url": self._emulator.url}

    async def ask(self) -> None:
        self._emulator.say("@ClewTestBot talk", telegram.person(11), GROUP)

    def texts(self) -> list[str]:
        return self._emulator.texts(GROUP)

    async def until(self, condition: Callable[[], bool]) -> None:
        await self._emulator.until(condition, DEADLINE_S)

    def fail(self, fault: Fault) -> None:
        self._emulator.next[self.posts].append(fault)

    def forget(self) -> None:
        self._emulator.forget()


class DiscordChat(Chat):
    name, posts, knows_again = "discord", "POST messages", True

    def __init__(self, emulator: DiscordEmulator) -> None:
        self._emulator = emulator

    def section(self) -> JsonObject:
        return {"token": discord.TOKEN, "base_url": self._emulator.base}

    async def ask(self) -> None:
        await greeted(self._emulator)
        self._emulator.say(f"<@{discord.BOT['id']}> talk", discord.person(11), discord.CHANNEL)

    def texts(self) -> list[str]:
        return self._emulator.texts(discord.CHANNEL)

    async def until(self, condition: Callable[[], bool]) -> None:
        await self._emulator.until(condition, DEADLINE_S)

    def fail(self, fault: Fault) -> None:
        self._emulator.next[self.posts].append(fault)

    def forget(self) -> None:
        self._emulator.forget()


class SlackChat(Chat):
    name, posts, knows_again, person = "slack", "chat.postMessage", True, "U0ADA"

    def __init__(self, emulator: SlackEmulator) -> None:
        self._emulator = emulator

    def section(self) -> JsonObject:
        return {"bot_token": slack.BOT_TOKEN, "app_token": slack.APP_TOKEN, "base_url": self._emulator.url}

    async def ask(self) -> None:
        self._emulator.say(f"{slack.MENTION} talk", self.person, "C0CLUB")

    def texts(self) -> list[str]:
        return self._emulator.texts("C0CLUB")

    async def until(self, condition: Callable[[], bool]) -> None:
        await self._emulator.until(condition, DEADLINE_S)

    def fail(self, fault: Fault) -> None:
        self._emulator.next[self.posts].append(fault)

    def forget(self) -> None:
        self._emulator.forget()


@dataclass
class Group:
    """A chat, and daemons that are killed while they talk there."""

    folder: Path
    chat: Chat
    model: AnthropicEmulator
    daemons: Daemons
    numbers: Iterator[int] = field(default_factory=count)

    def config(self, folder: Path) -> Path:
        folder.mkdir()
        model = {"kind": "anthropic", "model": "claude-sonnet-5-5", "api_key": "sk-ant-emulated", "base_url": self.model.url}
        values = {
            "data_dir": str(folder / "data"),
            "store": databases.store(folder / "data"),
            "http": {"port": free_port()},
            "providers": {"claude": model},
            "agent": {"provider": "claude", "timezone": "UTC"},
            "people": {"ada": {"role": "owner", "identities": [f"{self.chat.name}:{self.chat.person}"]}},
            "transports": {self.chat.name: {"enabled": True, **self.chat.section()}},
        }
        path = folder / "clew.yaml"
        path.write_text(json.dumps(values))
        return path

    async def killed_at(self, at: str = "", *, answered: bool = True) -> list[str]:
        """Ask, let half of the answer be seen, then let it end; killed at a point (empty: none), then restarted. Returns the points.

        answered: whether the platform says what the first words came to.
        """
        folder = self.folder / f"group{next(self.numbers)}"
        path = self.config(folder)
        self.chat.forget()
        stall = Stall(after=20)
        self.model.faults.clear()
        self.model.faults.append(stall)
        if not answered:
            self.chat.fail(unanswered(stall.until))
        asking, seen = asyncio.create_task(self.chat.ask()), asyncio.create_task(self._seen(stall))
        passed = await self.daemons.run(folder, path, at, END)
        seen.cancel()
        stall.until.set()
        self.model.faults.clear()
        await self._restarted(path)
        await asking
        self._check(folder, at if at in passed else "", passed)
        return passed

    async def _seen(self, stall: Stall) -> None:
        await self.chat.until(lambda: bool(self.chat.texts()))
        stall.until.set()

    async def _restarted(self, path: Path) -> None:
        async with running(read(path)) as clew:
            store = clew.service.store
            async with asyncio.timeout(DEADLINE_S):
                await self.chat.until(lambda: REPLY in self.chat.texts())
                seen = store.version
                while (await store.counts(0.0))["outbox_pending"]:
                    seen = await store.changed(seen, DEADLINE_S)

    def _check(self, folder: Path, at: str, passed: Sequence[str]) -> None:
        where = f"killed at {at or 'nothing'}"
        texts = self.chat.texts()
        unnoted = "before preview 1" in passed[:-1] and "committed previewed 1" not in passed
        assert texts[-1] == REPLY, where
        assert len(texts) in ((1,) if self.chat.knows_again or not unnoted else (2,) if at in POSTED else (1, 2)), (where, texts)
        assert all(REPLY.startswith(text) for text in texts), where
        ((state, text, repeated),) = databases.rows(folder / "data", "SELECT state, text, repeated FROM outbox")
        assert (state, text) == ("sent", REPLY), where
        assert repeated == 0 or unnoted, where  # one that takes a known message's place is no repeat
        assert databases.rows(folder / "data", "SELECT state FROM inbox") == [("answered",)], where


def unanswered(done: asyncio.Event) -> Fault:
    async def behave(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
        carry_out()
        done.set()
        return await hangs(request, carry_out)

    return behave


@contextlib.asynccontextmanager
async def grouped(folder: Path, kind: str) -> AsyncIterator[Group]:
    environment = stamp.installed(folder)
    async with (
        TelegramEmulator() as on_telegram,
        DiscordEmulator() as on_discord,
        SlackEmulator() as on_slack,
        AnthropicEmulator(script=talks) as model,
        Daemons.ready(environment) as daemons,
    ):
        chats = (TelegramChat(on_telegram), DiscordChat(on_discord), SlackChat(on_slack))
        yield Group(folder, next(chat for chat in chats if chat.name == kind), model, daemons)


@pytest.mark.parametrize("kind", ["telegram", "discord", "slack"])
async def test_killed_at_any_point_the_reply_takes_the_place_of_what_was_shown(kind: str, tmp_path: Path) -> None:  # P43 P48
    async with grouped(tmp_path, kind) as group:
        points = await group.killed_at()
        print("\n".join(points))
        assert {"committed draft 1", "after preview 1", "committed previewed 1", "after send 1"} <= set(points)
        await at_each(points, group.killed_at, AT_LEAST)


@pytest.mark.parametrize("kind", ["telegram", "discord", "slack"])
async def test_killed_when_the_reply_is_stored_before_the_first_words_are_answered(kind: str, tmp_path: Path) -> None:  # P43 P48
    async with grouped(tmp_path, kind) as group:
        passed = await group.killed_at("committed finish 1", answered=False)
        assert passed[-1] == "committed finish 1"
        assert "after preview 1" not in passed
        assert len(group.chat.texts()) == (1 if group.chat.knows_again else 2)
