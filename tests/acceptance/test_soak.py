"""Weeks of talk in one process: memory, tasks, threads, files, connections and the WAL stay where they are.

The daemon is a process of its own, so that nothing else is measured. A short form runs with `make e2e`, the long one by `make soak`;
CLEW_SOAK_TURNS sets the turns of the latter.
"""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import aiomqtt
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bench.daemon import LOOK_UP
from bench.processes import Measured
from bench.seeding import seed
from bench.words import line
from clew.store.sqlite import SqliteStore
from clew.store.sqlite.database import READERS
from tests.acceptance.harness import DEADLINE_S, STATUS
from tests.servers import Mosquitto, free_port

pytestmark = [pytest.mark.asyncio, pytest.mark.mosquitto]

SHORT = 1200
LONG = int(os.environ.get("CLEW_SOAK_TURNS", "100000"))
forms = pytest.mark.parametrize(
    "turns",
    [
        pytest.param(SHORT, marks=[pytest.mark.e2e, pytest.mark.timeout(600)], id="short"),
        pytest.param(LONG, marks=[pytest.mark.soak, pytest.mark.timeout(max(600, LONG // 5))], id="long"),
    ],
)

PEOPLE = tuple(f"p{n}" for n in range(12))
"""Each has a chat over MQTT."""
PAGES = tuple(f"w{n}" for n in range(4))
"""Chats on the page, all of them the owner's."""
CHATS = len(PEOPLE) + len(PAGES)
AT_ONCE = 8
VISIT = 20
"""Turns after which a page is left and opened again."""
LOOKED_UP = 25
"""Every so many turns the model calls a tool."""
SAID = 8
"""Words of a message, beside one that was never said before."""
SAMPLES = 20
WARM_UP = 0.5
"""The share of the turns in which caches may still fill."""
SLOPE_MB = 1.0
"""MB of memory per 10,000 turns behind the warm-up of the long form."""
TELLING = 50_000
"""Turns from which on a slope can be told from the allocator's steps; a run of fewer is a short form."""
SEEDED = 20_000
"""Messages that the short form begins with, so that recall has its full depth from the first turn on."""
GROWN_MB = 10.0
"""MB that caches may still take behind the warm-up of a short form."""
WAL_MB = 64
RATIO = 1.3
"""Memory after many chats against that after a tenth of them."""
THREADS = 1 + (1 + READERS) + min(32, (os.cpu_count() or 1) + 4)
"""asyncio's, one for each connection to the store, and those of Python's default pool, which come one by one."""
LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Sample:
    """What a daemon at rest holds after some turns. Memory and WAL in MB."""

    turns: int
    memory: float
    wal: float
    files: int
    connections: int
    threads: int
    tasks: int


def slope(samples: Sequence[Sample]) -> float:
    """MB per 10,000 turns, by least squares."""
    mean_x = sum(each.turns for each in samples) / len(samples)
    mean_y = sum(each.memory for each in samples) / len(samples)
    above = sum((each.turns - mean_x) * (each.memory - mean_y) for each in samples)
    return 10_000 * above / sum((each.turns - mean_x) ** 2 for each in samples)


class Clew:
    """The daemon under measurement, and how one talks to it."""

    def __init__(self, folder: Path, broker_port: int) -> None:
        self.http_port = free_port()
        self.config = folder / "clew.yaml"
        self.database = folder / "data" / "clew.db"
        people = {name: {"role": "member", "identities": [f"mqtt:{name}"]} for name in PEOPLE}
        settings: dict[str, Any] = {
            "data_dir": str(folder / "data"),
            "http": {"port": self.http_port},
            "log": {"level": "info", "format": "json"},
            "agent": {"timezone": "UTC", "compression": {"trigger_messages": 20, "keep_recent": 4}, "approver": {"mode": "allow"}},
            "people": people,
            "access": {"unknown": "allow"},
            "transports": {"mqtt": {"enabled": True, "port": broker_port}},
        }
        self.config.write_text(json.dumps(settings, indent=1))
        self.process: Measured

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        self.process = Measured("-m", "bench.daemon", str(self.config), ready="clew is ready")
        try:
            yield
        finally:
            self.process.stop()

    def sample(self, turns: int) -> Sample:
        wal = self.database.with_name("clew.db-wal")
        files = self.process.open_files
        return Sample(
            turns,
            round(self.process.resident_mb, 1),
            round(wal.stat().st_size / 2**20, 1) if wal.exists() else 0.0,
            len(files),
            sum(file.startswith("socket:") for file in files),
            self.process.threads,
            int(self.process.asked(signal.SIGUSR1)),
        )

    async def at_rest(self, turns: int, before: Sample | None) -> Sample:
        """A sample once as few files, connections and tasks are left as there were before; what does not come down to that has leaked."""
        last = self.sample(turns)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DEADLINE_S):
                while before and any(getattr(last, name) > getattr(before, name) for name in ("files", "connections", "tasks")):
                    await asyncio.sleep(LOOK_S)
                    last = self.sample(turns)
        print(last, flush=True)
        return last

    async def counted(self) -> dict[str, float]:
        """The daemon's own figures: `name` or `name/label/label` to value."""
        async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{self.http_port}/metrics") as answer:
            families = text_string_to_metric_families(await answer.text())
            return {"/".join([each.name, *each.labels.values()]): each.value for family in families for each in family.samples}


@dataclass
class Post:
    """Everybody's client of the broker: whoever asks is woken by the reply."""

    client: aiomqtt.Client
    waiting: dict[str, asyncio.Event] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    async def read(self) -> None:
        async for message in self.client.messages:
            assert isinstance(message.payload, bytes)
            for identifier in json.loads(message.payload)["answers"]:
                self.waiting[identifier].set()

    async def ask(self, chat: str, text: str) -> None:
        """Say something and wait until the answer has come."""
        identifier = f"m{next(self.numbers)}"
        answered = self.waiting[identifier] = asyncio.Event()
        await self.client.publish(f"chat/v1/clew/in/{chat}", json.dumps({"id": identifier, "text": text}), qos=1)
        async with asyncio.timeout(DEADLINE_S):
            await answered.wait()
        del self.waiting[identifier]


@contextlib.asynccontextmanager
async def post(port: int) -> AsyncIterator[Post]:
    async with aiomqtt.Client("127.0.0.1", port, protocol=aiomqtt.ProtocolVersion.V5, identifier="everybody") as client:
        await client.subscribe(STATUS, qos=1)
        async for message in client.messages:
            if message.payload == b"online":
                break
        await client.unsubscribe(STATUS)
        await client.subscribe("chat/v1/clew/out/#", qos=1)
        everybody = Post(client)
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(everybody.read())
            yield everybody
            reading.cancel()


async def visit(http: aiohttp.ClientSession, port: int, chat: str, said: Sequence[tuple[str, str]]) -> None:
    """Open the page, read what it shows of earlier talk, say this, each after the answer to the one before, and go."""
    async with http.ws_connect(f"http://127.0.0.1:{port}/chat/ws?chat={chat}") as page:
        for identifier, text in said:
            await page.send_json({"type": "message", "id": identifier, "text": text})
            async with asyncio.timeout(DEADLINE_S):
                while identifier not in (await page.receive_json()).get("answers", ()):
                    pass


async def vanish(port: int, chat: str) -> None:
    """Ask for a chat's whole history and hang up while it comes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    asked = (
        f"GET /chat/ws?chat={chat}&after=1 HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    )
    writer.write("".join(f"{each}\r\n" for each in (*asked, "")).encode())
    async with asyncio.timeout(DEADLINE_S):
        await reader.readexactly(1024)
    writer.transport.abort()


def words(number: int) -> str:
    """What is said in a turn: words that come often and words that come seldom, and a new one."""
    said = " ".join(line(number).split()[:SAID])
    return f"{said} k{number:07d}{f' {LOOK_UP}' if number % LOOKED_UP == 0 else ''}"


async def write(everybody: Post, chats: Sequence[str], numbers: range) -> None:
    for number in numbers:
        for place, chat in enumerate(chats):
            await everybody.ask(chat, words(number * CHATS + place))


async def look_in(http: aiohttp.ClientSession, port: int, chats: Sequence[str], numbers: range) -> None:
    for start in range(0, len(numbers), VISIT):
        for place, chat in enumerate(chats):
            said = [(f"{chat}-{number}", words(number * CHATS + place)) for number in numbers[start : start + VISIT]]
            await visit(http, port, chat, said)
            await vanish(port, chat)


async def talk(clew: Clew, everybody: Post, numbers: range) -> None:
    """A turn in each chat for each number, those of one chat one after the other, two chats to a task."""
    async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as group:
        for pair in zip(PEOPLE[::2], PEOPLE[1::2], strict=True):
            group.create_task(write(everybody, pair, numbers))
        for pair in zip(PAGES[::2], PAGES[1::2], strict=True):
            group.create_task(look_in(http, clew.http_port, pair, numbers))


@forms
async def test_weeks_of_talk_leave_nothing_behind(tmp_path: Path, mosquitto: Mosquitto, turns: int) -> None:  # P49, BO-045, BO-119
    clew = Clew(tmp_path, mosquitto.port)
    if turns < TELLING:
        await seed(tmp_path, SEEDED, PEOPLE, line)
    step = -(-turns // SAMPLES // CHATS)
    samples: list[Sample] = []
    with clew.running():
        async with post(mosquitto.port) as everybody:
            for part in range(SAMPLES):
                await talk(clew, everybody, range(part * step, (part + 1) * step))
                samples.append(await clew.at_rest((part + 1) * step * CHATS, samples[0] if samples else None))
        figures = await clew.counted()
    warm = samples[int(SAMPLES * WARM_UP) :]
    compactions = {name: value for name, value in figures.items() if name.startswith("clew_compactions_total")}
    grown = warm[-1].memory - warm[0].memory
    print(f"behind the warm-up: {grown:+.1f} MB, {slope(warm):.2f} MB per 10,000 turns; {compactions}", flush=True)

    assert figures["clew_turns_total/done"] == figures["clew_recall_seconds_count"] == samples[-1].turns
    assert all(name.startswith("clew_compactions_total/done/") for name in compactions)
    assert sum(compactions.values()) > samples[-1].turns / 20
    for what in ("files", "connections", "tasks"):
        assert getattr(samples[-1], what) <= getattr(samples[0], what), what
    assert max(each.threads for each in samples) <= THREADS
    assert max(each.wal for each in samples) < WAL_MB
    assert slope(warm) < SLOPE_MB if turns >= TELLING else grown < GROWN_MB

    with contextlib.closing(sqlite3.connect(clew.database)) as database:
        (recalled,) = database.execute("SELECT count(DISTINCT turn) FROM recalled WHERE shown").fetchone()
    assert recalled > samples[-1].turns / 2
    store = await SqliteStore.open(clew.database, 1.0, read_only=True)
    try:
        assert await store.check() == []
    finally:
        await store.close()


@forms
async def test_many_chats_and_resets_leave_nothing_behind(tmp_path: Path, mosquitto: Mosquitto, turns: int) -> None:  # P49, BO-119
    clew = Clew(tmp_path, mosquitto.port)
    chats = min(turns // 10, 5000)

    async def come_by(everybody: Post, numbers: Sequence[int]) -> None:
        for number in numbers:
            for _ in range(3):
                await everybody.ask(f"chat{number}", words(number))
            if number % 10 == 0:
                await everybody.ask(f"chat{number}", "/new")

    with clew.running():
        async with post(mosquitto.port) as everybody:
            samples: list[Sample] = []
            for numbers in (range(chats // 10), range(chats // 10, chats)):
                async with asyncio.TaskGroup() as group:
                    for place in range(AT_ONCE):
                        group.create_task(come_by(everybody, numbers[place::AT_ONCE]))
                samples.append(await clew.at_rest(numbers.stop, samples[0] if samples else None))
    early, late = samples
    assert late.memory < RATIO * early.memory
    for what in ("files", "connections", "tasks"):
        assert getattr(late, what) <= getattr(early, what), what
