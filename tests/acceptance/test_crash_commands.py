"""A command that changes a thread, killed at each of its points in turn: it takes effect once, and its answer tells of it."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness import DEADLINE_S, Correspondent
from tests.acceptance.kills import Daemons, after, at_each, read
from tests.databases import BOTH, databases
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import JsonObject, Reply
from tests.integration.engine import SUMMARY, is_summary
from tests.integration.web_harness import running
from tests.integration.webhook_harness import until
from tests.servers import Mosquitto, free_port

pytestmark = [pytest.mark.e2e, pytest.mark.mosquitto, pytest.mark.asyncio, pytest.mark.timeout(300)]

COMMANDS = (
    "/compact",
    "/undo",
    "/undo compaction",
    "/pin",
    "/unpin",
    "/forget",
    "/memory set style short",
    "/memory clear tone",
    "/memory undo",
)
ON_POSTGRESQL = ("/compact",)
END = "committed settle"
AT_LEAST = 12
"""Points of each command at which a daemon is killed."""


def answer(body: JsonObject) -> Reply:
    return say(SUMMARY if is_summary(body) else f"About {last_user_text(body).rpartition('] ')[2]}.")


@dataclass(frozen=True, slots=True)
class State:
    """What is left behind: of each compaction whether it was undone, the messages pinned and taken back, the preferences with the number
    of changes of the notes, the command's answers."""

    compactions: tuple[bool, ...]
    pins: tuple[str, ...]
    taken_back: tuple[str, ...]
    notes: tuple[str, ...]
    answers: tuple[str, ...]


@dataclass(slots=True)
class House:
    """A thread that is there already, and what stands around the daemons that go on with it."""

    folder: Path
    broker: Mosquitto
    model: AnthropicEmulator
    daemons: Daemons
    ada: Correspondent
    runs: int = field(default=0)

    def config(self, folder: Path) -> Path:
        model = {"kind": "anthropic", "model": "claude-sonnet-5-5", "api_key": "sk-ant-emulated", "base_url": self.model.url}
        values = {
            "data_dir": str(folder / "data"),
            "store": databases.store(folder / "data"),
            "http": {"port": free_port()},
            "log": {"level": "info", "format": "json"},
            "providers": {"claude": model},
            "agent": {"provider": "claude", "timezone": "UTC", "compression": {"keep_recent": 2}},
            "people": {"ada": {"role": "owner", "identities": ["mqtt:ada"]}},
            "transports": {"mqtt": {"enabled": True, "host": "127.0.0.1", "port": self.broker.port}},
        }
        path = folder / "clew.yaml"
        path.write_text(json.dumps(values))
        return path

    async def begin(self) -> None:
        """The thread: a compaction, two messages pinned, a preference, and what was said since."""
        folder = self.folder / "begun"
        folder.mkdir()
        async with running(read(self.config(folder))) as clew:
            await until(lambda: clew.service.transports["mqtt"].up)
            for number, text in enumerate(("one", "/pin", "two", "/pin", "three", "/compact", "four", "/memory set tone calm", "five")):
                await self.ada.ask(f"begun{number}", text)

    async def killed_at(self, command: str, at: str = "") -> tuple[State, Sequence[str]]:
        """Give the command, killed at a point (empty: not at all), then restart. Returns what is left behind, and the points passed."""
        self.runs += 1
        folder, identifier = self.folder / f"run{self.runs}", f"command{self.runs}"
        folder.mkdir()
        shutil.copytree(self.folder / "begun" / "data", folder / "data")
        databases.copied(self.folder / "begun" / "data", folder / "data")
        path = self.config(folder)
        await self.ada.send(identifier, command)
        passed = await self.daemons.run(folder, path, at, END)
        async with running(read(path)) as clew:
            await self.ada.reply_to(identifier)
            store = clew.service.store
            async with asyncio.timeout(DEADLINE_S):
                seen = store.version
                while (await store.counts(0.0))["outbox_pending"]:
                    seen = await store.changed(seen, DEADLINE_S)
            session = await store.current_session("mqtt:ada")
            assert session is not None
            assert await store.verify_session(session) == []
        return self.state(folder, identifier), after("written accept 1", passed)  # what is in front is any start

    def state(self, folder: Path, identifier: str) -> State:
        def each(sql: str) -> tuple[Any, ...]:
            return tuple(value for (value,) in databases.rows(folder / "data", sql))

        return State(
            compactions=tuple(undone is not None for undone in each("SELECT undone_at FROM compactions ORDER BY rowid")),
            pins=each("SELECT message FROM pins ORDER BY message"),
            taken_back=each("SELECT message FROM retractions ORDER BY message"),
            notes=each("SELECT key || value FROM preferences UNION ALL SELECT 'change' || id FROM note_changes ORDER BY 1"),
            answers=tuple({reply["id"]: reply["text"] for reply in self.ada.to(identifier)}.values()),
        )


@contextlib.asynccontextmanager
async def house(folder: Path, broker: Mosquitto) -> AsyncIterator[House]:
    async with (
        AnthropicEmulator(script=answer) as model,
        Daemons.ready({}) as daemons,
        Correspondent("ada").connected(broker.port) as ada,
    ):
        yield House(folder, broker, model, daemons, ada)


def changed(before: State, after: State) -> Sequence[bool]:
    return [getattr(before, name) != getattr(after, name) for name in ("compactions", "pins", "taken_back", "notes")]


async def equal(home: House, command: str, expected: State, at: str) -> Sequence[str]:
    """Give the command, killed at a point, and compare. Returns the points passed."""
    state, passed = await home.killed_at(command, at)
    assert state == expected, f"{command}, killed at {at}"
    return passed


@BOTH
async def test_a_command_killed_at_any_point_takes_effect_once(database: str, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P43 P48
    async with house(tmp_path, mosquitto) as home:
        await home.begin()
        begun = home.state(tmp_path / "begun", "")
        for command in COMMANDS if database == "sqlite" else ON_POSTGRESQL:
            expected, points = await home.killed_at(command)
            print(command, expected.answers, points)
            assert sum(changed(begun, expected)) == (3 if command == "/forget" else 1), command
            assert len(expected.answers) == 1
            await at_each(points, partial(equal, home, command, expected), AT_LEAST)
