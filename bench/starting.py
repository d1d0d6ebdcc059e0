"""Starting, and the memory of a process that rests, has many chats, or has answered much."""

import asyncio
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench.figures import Against, Figure, at_most, at_most_times
from bench.processes import Measured
from bench.subject import Run, Subject
from bench.talking import Talk, broker, clew, names, stopped, talking, write_config

STARTS = 3
AT_ONCE = 16
LIBRARIES = "aiohttp, aiosqlite, aiomqtt, apscheduler.schedulers.asyncio, click, cronsim, jinja2, markdown_it, pydantic, structlog, yaml"
"""What clew imports to run without a model."""
PROVIDERS: Mapping[str, tuple[Mapping[str, Any], str, float, float]] = {
    "offline": ({"none": {"kind": "offline"}}, "", 1.5, 90.0),
    "anthropic": ({"claude": {"kind": "anthropic", "model": "claude-sonnet-5-5", "api_key": "not-a-key"}}, ", anthropic", 3.0, 160.0),
}
"""Sections, what they import beside it, seconds of CPU until ready and MB of memory at rest at most."""
METHOD = """
CPU until clew is ready, children included, the median of a few starts; resident memory then, before anything was said. The floor is a
Python that imports the libraries that clew runs on, with the SDK where there is one, and does nothing else. The large store is one
person's; it is compared with an empty one. Memory with many chats is read when each of them has been answered; after many turns, when 16
chats at a time have been answered so often. Recall is on, and the model answers at once.
"""


async def measure(run: Run) -> list[Figure]:
    figures = []
    for name, (providers, more, cpu, memory) in PROVIDERS.items():
        config = write_config(run.made(f"starting-{name}"), None, providers=providers)
        least_s, least_mb = _least(LIBRARIES + more)
        took, held = zip(*(_started(config) for _ in range(STARTS)), strict=True)
        figures += [
            Figure(f"start with {name}: CPU", statistics.median(took), "s", Against("its libraries alone", least_s), (at_most(cpu),)),
            Figure(
                f"memory at rest with {name}", statistics.median(held), "MB", Against("its libraries alone", least_mb), (at_most(memory),)
            ),
        ]
    return [*figures, await _large(run), *await _talked(run)]


def _started(config: Path) -> tuple[float, float]:
    """(seconds of CPU until ready, MB then)."""
    with stopped(Measured("-c", "from clew.cli import main; main()", "run", "--config", str(config), ready="clew is ready")) as process:
        return process.cpu_at_start_s, process.resident_mb


def _least(libraries: str) -> tuple[float, float]:
    """(seconds of CPU, MB) of a Python that imports these."""
    code = (
        f"import {libraries}, json, os, resource, time; pages = int(open('/proc/self/statm').read().split()[1]);"
        " print(json.dumps([time.process_time(), pages * os.sysconf('SC_PAGE_SIZE') / 2**20]))"
    )
    runs = [json.loads(subprocess.check_output([sys.executable, "-c", code], text=True)) for _ in range(STARTS)]
    return statistics.median(took for took, _ in runs), statistics.median(held for _, held in runs)


async def _large(run: Run) -> Figure:
    """A start with the largest store."""
    most, took = max(run.sizes.messages), {}
    for messages in (0, most):
        folder = run.made(f"starting-{messages}")
        file = await run.stores.copy(folder, messages)
        config = write_config(folder, None)
        took[messages] = statistics.median(_started(config)[0] for _ in range(STARTS))
        file.unlink()
    return Figure(
        f"start with a store of {most:,} messages: CPU", took[most], "s", Against("an empty store", took[0]), (at_most_times(1.2),)
    )


async def _talked(run: Run) -> list[Figure]:
    """Memory once each of many people was answered, and after many turns of theirs."""
    most, folder = max(run.sizes.chats), run.made("memory")
    turns, people = max(run.sizes.many, most), names(most)
    with broker(folder) as server, stopped(clew(write_config(folder, server.port, people))) as process:
        rest = Against("at rest", process.resident_mb)
        async with talking(server.port, daemon=True) as talk:
            await _turns(talk, islice(cycle(people), most))
            chats = process.resident_mb
            await _turns(talk, islice(cycle(people), turns - most))
        many = process.resident_mb
    return [
        Figure(f"memory once {most:,} chats were answered", chats, "MB", rest),
        Figure(f"memory after {turns:,} turns in {most:,} chats", many, "MB", rest),
    ]


async def _turns(talk: Talk, people: Iterator[str]) -> None:
    """One turn for each of these, a few at once."""

    async def some() -> None:
        for name in people:
            await talk.turn(name)

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


subject = Subject(
    "starting",
    "Starting, and memory",
    METHOD,
    measure,
    lambda sizes: f"{STARTS} starts each, {max(sizes.many, *sizes.chats):,} turns",
)
