"""How much is answered at once, and how late when half of what is possible is asked for."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from bench.figures import Against, Figure, Point, at_most
from bench.replying import SHORT
from bench.subject import Plot, Run, Subject
from bench.talking import FLOOR, Talk, broker, clew, floor, names, quantile, stopped, talking, write_config

AT_ONCE = 16
"""`limits.turns_at_once` as it is without a word about it."""
FEW = 50
PLACES = (16, 64, 256)
"""Values of it with which half is asked for, beside one for each chat."""
PROVIDER_S = 2.0
ALLOWED_MS = 250.0
"""By which a reply may be later than the provider's."""
JOBS, JOB_S, BESIDE = 64, 0.5, 8
"""Jobs that are all due every second, seconds that the model takes then, and chats in which people write meanwhile."""
METHOD = f"""
All over MQTT, with recall, in chats of {SHORT} messages each; client and broker are on the same cores. `answered` is what is answered in
a second to people of whom each writes again as soon as the reply is there; its floor is the loop that does the least ({FLOOR}), and with
a model that takes time what its places allow. At half of that, messages come at even distances, one after the other from each of the
people, whether earlier ones are answered or not; the time is from message to reply, the provider's {PROVIDER_S:g} s included. Beside
jobs: {JOBS} jobs are due every second, many more than their places can take, and {BESIDE} people write.
"""


@dataclass(frozen=True, slots=True)
class Load:
    """Milliseconds of each reply, and replies a second."""

    took: tuple[float, ...]
    rate: float


async def measure(run: Run) -> list[Figure]:
    folder, most = run.made("throughput"), max(run.sizes.chats)
    bench = _Bench(run, folder)
    figures = [await bench.instant(FEW, AT_ONCE), await bench.instant(most, most), await bench.full(most)]
    for at_once in sorted({*(places for places in PLACES if places <= most), most}):
        figures += await bench.half(at_once, min(2 * at_once, most))
    return figures + await bench.beside_jobs()


class _Bench:
    """One clew after the other, each with a broker of its own."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._folder = folder
        self._seconds = run.sizes.seconds

    async def instant(self, people: int, at_once: int) -> Figure:
        """A model that answers at once."""
        where = self._folder / f"floor-{people}"
        where.mkdir()
        with broker(where) as server, stopped(floor(server.port, where)):
            async with talking(server.port, daemon=False) as talk:
                least = await closed(talk, names(people), self._seconds)
        async with self._clew(people, at_once, 0.0) as talk:
            found = await closed(talk, names(people), self._seconds)
        name = f"answered to {people:,} people, {at_once:,} turns at once"
        return Figure(name, found.rate, "messages/s", Against("floor", least.rate), more=True)

    async def full(self, people: int) -> Figure:
        """A model that takes its time, asked by as many as have places."""
        async with self._clew(people, people, PROVIDER_S) as talk:
            found = await closed(talk, names(people), max(self._seconds, 3 * PROVIDER_S))
        name = f"answered to {people:,} people, {people:,} turns at once, model of {PROVIDER_S:g} s"
        return Figure(name, found.rate, "messages/s", Against("what the places allow", people / PROVIDER_S), more=True)

    async def half(self, at_once: int, people: int) -> list[Figure]:
        """Half of what the places allow."""
        rate = at_once / PROVIDER_S / 2
        async with self._clew(people, at_once, PROVIDER_S) as talk:
            took = await arriving(talk, names(people), rate, self._seconds)
        provider = Against("the model alone", PROVIDER_S * 1e3)
        name = f"{rate:g} messages/s, {at_once:,} turns at once: "
        return [
            Figure(
                f"{name}half of the replies within", quantile(took, 0.5), "ms", provider, point=Point("half", "half of the replies", rate)
            ),
            Figure(
                f"{name}the latest reply",
                max(took),
                "ms",
                provider,
                (at_most(PROVIDER_S * 1e3 + ALLOWED_MS),),
                steady=False,
                point=Point("half", "the latest reply", rate),
            ),
        ]

    async def beside_jobs(self) -> list[Figure]:
        """People's replies while more jobs are due than can run."""
        job = {"every": "1s", "prompt": "Say something.", "deliver_to": "mqtt:jobs", "session": "isolated", "overlap": "queue"}
        schedule = [{"name": f"job{number}", **job} for number in range(JOBS)]
        async with self._clew(BESIDE, AT_ONCE, JOB_S) as talk:
            alone = await closed(talk, names(BESIDE), self._seconds)
        async with self._clew(BESIDE, AT_ONCE, JOB_S, schedule=schedule) as talk:
            before = talk.unasked
            beside = await closed(talk, names(BESIDE), self._seconds)
            runs = (talk.unasked - before) / self._seconds
        at_most_late = at_most(JOB_S * 1e3 + ALLOWED_MS)
        return [
            Figure("job runs while people write", runs, "runs/s", Against("what the places allow", AT_ONCE // 4 / JOB_S), more=True),
            Figure(
                "half of the replies beside jobs within",
                quantile(beside.took, 0.5),
                "ms",
                Against("without jobs", quantile(alone.took, 0.5)),
            ),
            Figure(
                "99 of 100 replies beside jobs within",
                quantile(beside.took, 0.99),
                "ms",
                Against("without jobs", quantile(alone.took, 0.99)),
                (at_most_late,),
                steady=False,
            ),
        ]

    @asynccontextmanager
    async def _clew(self, people: int, at_once: int, reply_s: float, **settings: Any) -> AsyncIterator[Talk]:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        file = await self._run.stores.copy(folder, SHORT, names(people))
        with broker(folder) as server:
            config = write_config(folder, server.port, (*names(people), "jobs"), limits={"turns_at_once": at_once}, **settings)
            with stopped(clew(config, reply_s=reply_s)):
                async with talking(server.port, daemon=True) as talk:
                    await asyncio.gather(*map(talk.turn, names(people)))  # each has been answered once
                    yield talk
        file.unlink()


async def closed(talk: Talk, people: Sequence[str], seconds: float) -> Load:
    """Everybody writes again as soon as the reply is there, for so long."""
    took: list[float] = []
    began = time.perf_counter()

    async def write(name: str) -> None:
        while time.perf_counter() - began < seconds:
            took.append(await talk.turn(name) * 1e3)

    await asyncio.gather(*map(write, people))
    return Load(tuple(took), len(took) / (time.perf_counter() - began))


async def arriving(talk: Talk, people: Sequence[str], rate: float, seconds: float) -> list[float]:
    """Messages that come at even distances, whether the ones before are answered or not. Milliseconds of each reply."""
    began, turns = time.perf_counter(), []
    for number, name in zip(range(round(rate * seconds)), cycle(people), strict=False):
        await asyncio.sleep(began + number / rate - time.perf_counter())
        turns.append(asyncio.create_task(talk.turn(name)))
    return [took * 1e3 for took in await asyncio.gather(*turns)]


subject = Subject(
    "throughput",
    "Many at once",
    METHOD,
    measure,
    lambda sizes: f"{sizes.seconds:g} s of each load",
    (Plot("half", f"From message to reply at half of what a model of {PROVIDER_S:g} s allows", "messages/s", "ms"),),
)
