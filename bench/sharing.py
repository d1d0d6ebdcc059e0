"""One PostgreSQL database, and one, two or three daemons that share the work on it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from bench.figures import Against, Figure
from bench.subject import Run, Sizes, Subject
from bench.talking import Talk, broker, clew, names, quantile, stopped, talking, write_config
from bench.throughput import AT_ONCE, FEW, PROVIDER_S, closed
from tests.databases import postgres

DAEMONS = (1, 2, 3)
METHOD = f"""
The server, durable as Debian installs it, the broker, the client and all daemons are on the same two cores, so that more daemons are not
more computers: what is seen is what sharing costs, and what it gives where daemons wait. One daemon has the connection to the broker,
turns are run by all. `answered` is what is answered in a second to {FEW} people of whom each writes again as soon as the reply is there,
{AT_ONCE} turns at once in each daemon; beside it one daemon with its SQLite file.
"""


async def measure(run: Run) -> list[Figure]:
    bench = _Bench(run.made("sharing"), run.sizes.seconds)
    figures = []
    for reply_s in (0.0, PROVIDER_S):
        alone, took = await bench.answered(0, reply_s)
        figures += [_rate("SQLite, one daemon", reply_s, alone, None), _half("SQLite, one daemon", reply_s, took, None)]
        for daemons in DAEMONS:
            rate, late = await bench.answered(daemons, reply_s)
            name = f"PostgreSQL, {daemons} daemon{'s' if daemons > 1 else ''}"
            figures += [_rate(name, reply_s, rate, alone), _half(name, reply_s, late, took)]
    return figures


def _model(reply_s: float) -> str:
    return f"model of {reply_s:g} s" if reply_s else "model that answers at once"


def _rate(name: str, reply_s: float, rate: float, alone: float | None) -> Figure:
    against = None if alone is None else Against("SQLite", alone)
    return Figure(f"{name}, {_model(reply_s)}: answered", rate, "messages/s", against, more=True)


def _half(name: str, reply_s: float, took: float, alone: float | None) -> Figure:
    against = None if alone is None else Against("SQLite", alone)
    return Figure(f"{name}, {_model(reply_s)}: half of the replies within", took, "ms", against)


class _Bench:
    """One set of daemons after the other, each with a broker of its own."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder = folder
        self._seconds = seconds
        self._runs = 0

    async def answered(self, daemons: int, reply_s: float) -> tuple[float, float]:
        """(messages answered in a second, milliseconds of a reply at the median) of so many daemons on PostgreSQL, 0: of one on SQLite."""
        self._runs += 1
        folder = self._folder / str(self._runs)
        folder.mkdir()
        with ExitStack() as stack:
            store = stack.enter_context(postgres(durable=True)).create() if daemons else "sqlite"
            async with self._talk(stack, folder, store, max(daemons, 1), reply_s) as talk:
                load = await closed(talk, names(FEW), max(self._seconds, 3 * reply_s))
        return load.rate, quantile(load.took, 0.5)

    @asynccontextmanager
    async def _talk(self, stack: ExitStack, folder: Path, store: str, daemons: int, reply_s: float) -> AsyncIterator[Talk]:
        port = stack.enter_context(broker(folder)).port
        for number in range(daemons):
            own = folder / f"daemon-{number}"
            own.mkdir()
            config = write_config(own, port, names(FEW), store=store, limits={"turns_at_once": AT_ONCE})
            stack.enter_context(stopped(clew(config, reply_s=reply_s)))
        async with talking(port, daemon=True) as talk:
            await asyncio.gather(*map(talk.turn, names(FEW)))  # each has been answered once
            yield talk


def _sizes(sizes: Sizes) -> str:
    return f"{FEW} people for {sizes.seconds:g} s"


subject = Subject("sharing", "Several daemons on PostgreSQL", METHOD, measure, _sizes)
