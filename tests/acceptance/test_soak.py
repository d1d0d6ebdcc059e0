"""Weeks of talk in one process: memory, tasks, file descriptors, connections and the WAL stay where they are.

A short form runs with `make e2e`, the long one by `make soak`; CLEW_SOAK_TURNS sets the turns of the latter.
"""

import asyncio
import gc
import itertools
import logging
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
import structlog

from clew.config import Access, Agent, Config, TransportSection
from clew.messages import Text, Usage
from clew.providers import Began, Delta, Done, Event, Limits, Request, Ttl
from clew.service import Service
from clew.transport import Address, Capabilities, Delivery, Host, Inbound, Part, Preview, Route, Sent, Typing
from tests.integration.engine import NoSettings, plugged

pytestmark = pytest.mark.asyncio

SHORT = 1500
LONG = int(os.environ.get("CLEW_SOAK_TURNS", "100000"))
forms = pytest.mark.parametrize(
    "turns",
    [
        pytest.param(SHORT, marks=[pytest.mark.e2e], id="short"),
        pytest.param(LONG, marks=[pytest.mark.soak, pytest.mark.timeout(max(300, LONG // 5))], id="long"),
    ],
)

CHATS = 50
AT_ONCE = 8
SAMPLES = 20
WARM_UP = 0.3
"""The share of the turns in which caches may still fill."""
SLOPE_MB = 1.0
"""MB of memory per 10,000 turns behind the warm-up; measured over TELLING turns at least."""
TELLING = 50_000
GROWN_MB = 30.0
"""MB that caches may still take behind the warm-up of a shorter form."""
WAL_MB = 64
RATIO = 1.3
"""Memory after many chats against that after a tenth of them."""
_SOUNDS = (("ket", "gar", "tram", "boil", "lan"), ("do", "mi", "ra", "su"), ("na", "k", "lin", "t"))
WORDS = tuple("".join(sounds) for sounds in itertools.product(*_SOUNDS))


class Instant:
    """A model that answers at once and costs nothing."""

    name, kind, model, configured = "instant", "instant", "instant", True
    cache_ttl: Ttl | None = "1h"
    max_tokens: int | Literal["auto"] = "auto"

    async def prepare(self) -> None:
        return

    async def answers(self) -> bool:
        return True

    async def limits(self) -> Limits:
        return Limits(200_000, 4096, 512)

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        text = "It stands in the garden house." if request.purpose == "reply" else "Goal\n- to keep the kettle in the garden house"
        usage = Usage(input=100, output=20, cache_read=1000, cache_write=200)
        yield Began(usage)
        yield Delta(text)
        yield Done((Text(text),), "end", usage, "instant")

    async def close(self) -> None:
        return


class Line:
    """A platform that keeps nothing: whoever asked is woken by the reply."""

    capabilities = Capabilities()

    def __init__(self) -> None:
        self._host: asyncio.Future[Host] = asyncio.get_running_loop().create_future()
        self._waiting: dict[str, asyncio.Event] = {}
        self._numbers = itertools.count(1)

    async def run(self, host: Host) -> None:
        host.report(True)
        self._host.set_result(host)
        await asyncio.Event().wait()

    def parts(self, text: str) -> list[Part]:
        return [Part(text)]

    async def send(self, delivery: Delivery) -> Sent:
        for identifier in delivery.answers:
            if waiting := self._waiting.get(identifier):
                waiting.set()
        return Sent("")

    async def find(self, delivery: Delivery) -> Sent | None:
        return None

    async def hint(self, to: Address, event: Typing | Preview) -> str | None:
        return None

    def routes(self) -> Sequence[Route]:
        return ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        raise LookupError(ref)
        yield b""

    async def ask(self, chat: str, text: str) -> None:
        """Say something and wait until the answer has been sent."""
        identifier = f"m{next(self._numbers)}"
        answered = self._waiting[identifier] = asyncio.Event()
        await (await asyncio.shield(self._host)).accept([Inbound(f"line/{identifier}", Address("line", chat), chat, text, identifier)])
        async with asyncio.timeout(60):
            await answered.wait()
        del self._waiting[identifier]


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process holds after some turns. Memory and WAL in MB."""

    turns: int
    memory: float
    wal: float
    files: int
    tasks: int
    threads: int


def sample(turns: int, folder: Path) -> Sample:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    wal = folder / "clew.db-wal"
    return Sample(
        turns,
        pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        wal.stat().st_size / 2**20 if wal.exists() else 0.0,
        len(list(Path("/proc/self/fd").iterdir())),
        len(asyncio.all_tasks()),
        threading.active_count(),
    )


def slope(samples: Sequence[Sample]) -> float:
    """MB per 10,000 turns, by least squares."""
    mean_x = sum(each.turns for each in samples) / len(samples)
    mean_y = sum(each.memory for each in samples) / len(samples)
    above = sum((each.turns - mean_x) * (each.memory - mean_y) for each in samples)
    return 10_000 * above / sum((each.turns - mean_x) ** 2 for each in samples)


@asynccontextmanager
async def service(folder: Path) -> AsyncIterator[tuple[Service, Line]]:
    line = Line()
    agent = Agent(timezone="UTC")
    config = Config(
        data_dir=folder,
        agent=agent.model_copy(update={"compression": agent.compression.model_copy(update={"trigger_messages": 20, "keep_recent": 4})}),
        access=Access(unknown="allow"),
        transports={"line": TransportSection(kind="line", name="line", enabled=True, settings=NoSettings())},
    )
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    try:
        with plugged("clew.transports", "line", line):
            async with Service.open(config, provider=Instant()) as running:
                yield running, line
    finally:
        structlog.reset_defaults()


def words(number: int) -> str:
    picked = (WORDS[(number * step + step) % len(WORDS)] for step in (1, 3, 7, 11, 13))
    return f"Do you remember the {' '.join(picked)} of number {number % 500}?"


async def talk(line: Line, first: int, count: int) -> None:
    """`count` turns, those of one chat one after the other, some chats side by side."""
    numbers = iter(range(first, first + count))

    async def speak() -> None:
        for number in numbers:
            await line.ask(f"chat{number % CHATS}", words(number))

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(speak())


@forms
async def test_weeks_of_talk_leave_nothing_behind(tmp_path: Path, turns: int) -> None:  # P49, BO-045
    step = turns // SAMPLES
    async with service(tmp_path) as (running, line):
        samples = []
        for part in range(SAMPLES):
            await talk(line, part * step, step)
            reader = asyncio.create_task(running.store.history("line:chat0", 0, 10_000))
            await asyncio.sleep(0)
            reader.cancel()  # a client that vanishes while it is told the history
            samples.append(sample((part + 1) * step, tmp_path))
            print(samples[-1], flush=True)
        warm = samples[int(SAMPLES * WARM_UP) :]
        print(f"slope behind the warm-up: {slope(warm):.2f} MB per 10,000 turns")
        session = await running.store.current_session("line:chat0")
        assert session is not None
        assert await running.store.compactions(session)
        assert max(each.wal for each in samples) < WAL_MB
        for what in ("files", "tasks", "threads"):
            first, last = getattr(warm[0], what), getattr(warm[-1], what)
            assert last <= first + AT_ONCE, f"{what} grew from {first} to {last}"
        if turns >= TELLING:
            assert slope(warm) < SLOPE_MB
        assert warm[-1].memory - warm[0].memory < GROWN_MB
        assert await running.store.check() == []


@forms
async def test_many_chats_and_resets_leave_nothing_behind(tmp_path: Path, turns: int) -> None:  # P49, BO-119
    chats = min(turns // 10, 5000)
    resets = chats // 10
    async with service(tmp_path) as (_, line):
        early = None
        for number in range(chats):
            for _ in range(3):
                await line.ask(f"chat{number}", words(number))
            if number % (chats // resets) == 0:
                await line.ask(f"chat{number}", "/new")
            if number == chats // 10:
                early = sample(number, tmp_path)
        late = sample(chats, tmp_path)
        assert early is not None
        print(early, late)
        assert late.memory < RATIO * early.memory
        for what in ("files", "tasks", "threads"):
            assert getattr(late, what) <= getattr(early, what) + AT_ONCE, what
