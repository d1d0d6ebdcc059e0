"""A reply that a group of Telegram sees being written, killed at each point from its first words to the note that it is there.

After a restart the reply stands in the place of what was shown. There is one exception: a kill between the posting of the first words and
the note of them leaves them beside the reply, since Telegram can be asked for nothing that it was sent.
"""

import asyncio
import contextlib
import json
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from tests.acceptance import stamp
from tests.acceptance.harness import DEADLINE_S
from tests.acceptance.test_crash_points import Daemons, read, read_points
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import say
from tests.emulators.server import JsonObject, Reply, Stall
from tests.emulators.telegram import TOKEN, TelegramEmulator, person
from tests.integration.web_harness import running
from tests.servers import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio, pytest.mark.timeout(300)]

GROUP = -77
REPLY = " ".join(f"word{number}" for number in range(60))
END = "committed settle"
UNNOTED = ("after preview 1", "written previewed 1")
"""The first words are in the group, and nothing says so yet."""


def talks(body: JsonObject) -> Reply:
    return say(REPLY)


@dataclass
class Group:
    """A group with one person and the bot."""

    folder: Path
    telegram: TelegramEmulator
    model: AnthropicEmulator
    daemons: Daemons
    numbers: Iterator[int] = field(default_factory=count)

    def config(self, folder: Path) -> Path:
        folder.mkdir()
        model = {"kind": "anthropic", "model": "claude-sonnet-5-5", "api_key": "sk-ant-emulated", "base_url": self.model.url}
        values = {
            "data_dir": str(folder / "data"),
            "http": {"port": free_port()},
            "providers": {"claude": model},
            "agent": {"provider": "claude", "timezone": "UTC"},
            "people": {"ada": {"role": "owner", "identities": ["telegram:11"]}},
            "transports": {"telegram": {"enabled": True, "token": TOKEN, "base_url": self.telegram.url}},
        }
        path = folder / "clew.yaml"
        path.write_text(json.dumps(values))
        return path

    async def killed_at(self, at: str = "") -> list[str]:
        """Ask, let half of the answer be seen, then let it end; killed at a point (empty: none), then restarted. Returns the points."""
        folder = self.folder / f"group{next(self.numbers)}"
        path = self.config(folder)
        self.telegram.forget()
        stall = Stall(after=20)
        self.model.faults.clear()
        self.model.faults.append(stall)
        self.telegram.say("@ClewTestBot talk", person(11), GROUP)
        seen = asyncio.create_task(self._seen(stall))
        status = await self.daemons.run(folder, path, at, END)
        seen.cancel()
        stall.until.set()
        assert status == (-signal.SIGKILL if at else 0), (folder / "log").read_text()
        self.model.faults.clear()
        await self._restarted(path)
        self._check(folder, at)
        return read_points(folder)

    async def _seen(self, stall: Stall) -> None:
        await self.telegram.until(lambda: bool(self.telegram.messages), DEADLINE_S)
        stall.until.set()

    async def _restarted(self, path: Path) -> None:
        async with running(read(path)) as clew:
            store = clew.service.store
            async with asyncio.timeout(DEADLINE_S):
                await self.telegram.until(lambda: REPLY in self.telegram.texts(GROUP), DEADLINE_S)
                seen = store.version
                while (await store.counts(0.0))["outbox_pending"]:
                    seen = await store.changed(seen, DEADLINE_S)

    def _check(self, folder: Path, at: str) -> None:
        where = f"killed at {at or 'nothing'}"
        texts = self.telegram.texts(GROUP)
        assert texts[-1] == REPLY, where
        assert len(texts) == (2 if at in UNNOTED else 1), (where, texts)
        assert all(REPLY.startswith(text) for text in texts), where
        with contextlib.closing(sqlite3.connect(folder / "data" / "clew.db")) as db:
            assert db.execute("SELECT state, text, repeated FROM outbox").fetchall() == [("sent", REPLY, 0)], where
            assert db.execute("SELECT state FROM inbox").fetchall() == [("answered",)], where


@contextlib.asynccontextmanager
async def grouped(folder: Path) -> AsyncIterator[Group]:
    environment = stamp.installed(folder)
    async with TelegramEmulator() as telegram, AnthropicEmulator(script=talks) as model, Daemons.ready(environment) as daemons:
        yield Group(folder, telegram, model, daemons)


async def test_killed_at_any_point_the_reply_takes_the_place_of_what_was_shown(tmp_path: Path) -> None:  # P43 P48
    async with grouped(tmp_path) as group:
        points = await group.killed_at()
        print("\n".join(points))
        assert {"committed draft 1", "after preview 1", "committed previewed 1", "after send 1"} <= set(points)
        for at in points:
            await group.killed_at(at)
