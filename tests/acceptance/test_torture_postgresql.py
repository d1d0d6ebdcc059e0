"""Several daemons on one PostgreSQL: killed, frozen beyond their lease, over a server and a broker that are killed too.

The long form runs by `make soak`. `CLEW_TORTURE_SEED` repeats the choices of a run; each run prints its own.
"""

import asyncio
import contextlib
import json
import random
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest

from tests.acceptance import stamp
from tests.acceptance.clients import PEOPLE, Client, MqttClient, WebClient, WebhookClient, online, write_config
from tests.acceptance.harness import DEADLINE_S, PROGRAM, Daemon, running
from tests.acceptance.torture import (
    PATIENCE_S,
    Crowd,
    Disturb,
    Model,
    Query,
    check_answers,
    check_store,
    failing,
    figures,
    seeded,
    tortured,
)
from tests.databases import Postgres, postgres
from tests.emulators.anthropic import AnthropicEmulator
from tests.integration.webhook_harness import SECRET, Receiver, receiving
from tests.servers import Mosquitto

pytestmark = [pytest.mark.mosquitto, pytest.mark.asyncio]

DAEMONS = 3
EVERY_S = 5
"""Seconds between two runs of the job."""
JOB, ITS_CHAT = "pulse", "clock"
LOOK_S = 0.1
"""Seconds between two looks at the database."""
TRIED_S = 10.0
"""Seconds after which a client tries another daemon."""


@dataclass(frozen=True, slots=True)
class Load:
    """messages: of all people together. What follows is how often it happens: kills of a daemon, of one twice, of two at once and of the
    one with the broker's connection; freezes of a daemon beyond its lease; kills of the database; restarts of the broker."""

    messages: int
    kills: int
    twice: int
    pairs: int
    owners: int
    freezes: int
    databases: int
    restarts: int

    def __str__(self) -> str:
        killed = self.kills + 2 * self.twice + 2 * self.pairs + self.owners
        return f"{killed} kills of daemons, {self.freezes} freezes, {self.databases} kills of the database, {self.restarts} restarts"


class Cluster:
    """Daemons on one database, and what happens to them."""

    def __init__(self, server: Postgres, database: str, broker: Mosquitto, daemons: Sequence[Daemon], choices: random.Random) -> None:
        self._server = server
        self._database = database
        self._broker = broker
        self.daemons = daemons
        self._random = choices

    def query(self, sql: str) -> list[str]:
        return self._server.sql(sql, self._database).splitlines()

    async def look(self, sql: str) -> list[str]:
        return await asyncio.to_thread(self.query, sql)

    def disturbances(self, load: Load) -> list[Disturb]:
        return [
            *[self._kill] * load.kills,
            *[self._kill_twice] * load.twice,
            *[partial(self._kill, 2)] * load.pairs,
            *[self._kill_owner] * load.owners,
            *[self._freeze] * load.freezes,
            *[self._kill_database] * load.databases,
            *[self._restart_broker] * load.restarts,
        ]

    async def _kill(self, count: int = 1) -> None:
        await self._end(self._random.sample(self.daemons, count))

    async def _end(self, daemons: Sequence[Daemon]) -> None:
        for clew in daemons:
            await clew.kill()
        await asyncio.sleep(self._random.random() * 2)
        for clew in daemons:
            await clew.start()

    async def _kill_twice(self) -> None:
        """The second time while it starts, ready or not."""
        clew = self._random.choice(self.daemons)
        await clew.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._random.uniform(0.5, 2.0)):
                await clew.start()
        await self._end([clew])

    async def _kill_owner(self) -> None:
        """The one that came to the broker last."""

        def connected(clew: Daemon) -> str:
            return max((str(line["ts"]) for line in clew.events("transport.connected", transport="mqtt")), default="")

        await self._end([max(self.daemons, key=connected)])

    async def _freeze(self) -> None:
        """Until others have taken over what it held."""
        clew = self._random.choice(self.daemons)
        clew.signal(signal.SIGSTOP)
        (until,) = await self.look("SELECT max(until) FROM leases")
        await self._until(f"SELECT wall_clock() > {until} AND NOT EXISTS (SELECT 1 FROM leases WHERE until <= wall_clock())", ["t"])
        clew.signal(signal.SIGCONT)

    async def _kill_database(self) -> None:
        await asyncio.to_thread(self._server.kill)
        await asyncio.sleep(self._random.random() * 2)
        await asyncio.to_thread(self._server.start_again)
        await self._until("SELECT 1", ["1"])

    async def _restart_broker(self) -> None:
        await asyncio.to_thread(self._broker.stop)
        await asyncio.sleep(self._random.random() * 0.5)
        await asyncio.to_thread(self._broker.start)

    async def _until(self, sql: str, found: list[str]) -> None:
        rows: list[str] = []
        for _ in range(round(PATIENCE_S / LOOK_S)):
            with contextlib.suppress(subprocess.CalledProcessError):  # it starts
                rows = await self.look(sql)
                if rows == found:
                    return
            await asyncio.sleep(LOOK_S)
        raise AssertionError(f"{sql}: {rows}, not within {PATIENCE_S} s {found}\n{self.daemons[0]}")

    async def at_rest(self) -> None:
        """Wait until nothing is left to be done, nothing is due any more, and whoever was killed is known to be gone."""
        await self._run("cron", "disable", JOB)
        await self._until("SELECT count(*) FROM inbox WHERE state NOT IN ('answered', 'failed')", ["0"])
        await self._until("SELECT DISTINCT state FROM outbox", ["sent"])
        await self._until("SELECT count(*) FROM leases WHERE name LIKE 'daemon:%'", [str(DAEMONS)])

    async def _run(self, *command: str) -> None:
        process = await asyncio.create_subprocess_exec(PROGRAM, *command, "--config", self.daemons[0].config)
        async with asyncio.timeout(DEADLINE_S):
            assert await process.wait() == 0


def check_schedule(query: Query, clock: Client) -> int:
    """Every instant had its place, none two runs, and what each run said came to its chat once. Returns how many ran."""
    instants = [float(each) for each in query(f"SELECT instant FROM job_runs WHERE job = '{JOB}' ORDER BY instant")]
    assert {round(later - earlier, 3) for earlier, later in pairwise(instants)} == {EVERY_S}
    ran = query(f"SELECT instant FROM job_runs WHERE job = '{JOB}' AND outcome <> 'missed' ORDER BY instant")
    assert query("SELECT instant FROM inbox WHERE kind = 'job' ORDER BY instant") == ran
    assert query("SELECT turn FROM inbox WHERE kind = 'job' GROUP BY turn HAVING count(*) > 1") == []
    said = query(f"SELECT delivery FROM job_runs WHERE job = '{JOB}' AND delivery IS NOT NULL")
    assert sorted(clock.replies) == sorted(said)
    assert clock.differing == []
    return len(ran)


async def torture(folder: Path, broker: Mosquitto, load: Load) -> None:
    choices, crowd = seeded(), Crowd()
    clock = MqttClient(ITS_CHAT, broker.port, crowd.changed)
    model = Model(random.Random(choices.getrandbits(64)))
    async with contextlib.AsyncExitStack() as stack:
        server = stack.enter_context(postgres(durable=True))
        store = server.create()
        emulator = await stack.enter_async_context(AnthropicEmulator(script=model))
        receiver = await stack.enter_async_context(receiving())
        receiver.next.extend(failing(choices) for _ in range(load.messages))
        environment = stamp.installed(folder)
        paths = [configured(folder / str(number), emulator.url, broker.port, store, receiver) for number in range(DAEMONS)]
        await stack.enter_async_context(online([clock]))
        await clock.until(lambda: clock.connected, "a subscription to what the job says")
        starting = (stack.enter_async_context(running(path, environment, "")) for path in paths)
        daemons = await asyncio.gather(*starting)
        cluster = Cluster(server, store.rpartition("/")[2], broker, daemons, choices)
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TRIED_S)))
        crowd.clients += people(http, [address(path) for path in paths], receiver, broker, crowd)
        async with online(crowd.clients):
            await tortured(crowd, load.messages, cluster.disturbances(load), choices)
            await cluster.at_rest()
        said = len(cluster.query("SELECT 1 FROM job_runs WHERE delivery IS NOT NULL"))
        await clock.until(lambda: len(clock.replies) >= said, "all that the job said")
        for clew in daemons:
            assert await clew.terminate() == 0
        check_answers(crowd.clients)
        check_store(folder, paths[0], cluster.query)
        assert cluster.query("SELECT name FROM leases") == []
        ran = check_schedule(cluster.query, clock)
    figures(crowd, daemons, str(load))
    lost, recovered = sum(clew.count("lease.lost") for clew in daemons), sum(clew.count("daemon.recovered") for clew in daemons)
    print(f"{lost} leases were lost, {recovered} times another's work was taken over; {ran} runs of the job, {clock.repeats} told again")
    assert model.failed


def configured(folder: Path, model_url: str, broker_port: int, store: str, receiver: Receiver) -> Path:
    """The config of one of the daemons."""
    folder.mkdir()
    job = {"name": JOB, "every": f"{EVERY_S}s", "prompt": "What time is it?", "deliver_to": f"mqtt:{ITS_CHAT}", "session": "isolated"}
    more = {"store": store, "schedule": [{**job, "overlap": "queue"}]}
    return write_config(folder, model_url, broker_port, more, secret=SECRET, reply_hosts=[receiver.url])


def address(path: Path) -> str:
    return f"http://127.0.0.1:{json.loads(path.read_text())['http']['port']}"


def people(http: aiohttp.ClientSession, urls: Sequence[str], receiver: Receiver, broker: Mosquitto, crowd: Crowd) -> list[Client]:
    """Half of them at the broker, the others with programs and pages at one daemon after the other."""
    at_broker: list[Client] = [MqttClient(name, broker.port, crowd.changed) for name in PEOPLE[:4]]
    programs: list[Client] = [WebhookClient(name, http, urls, receiver, crowd.changed) for name in PEOPLE[4:6]]
    return at_broker + programs + [WebClient(name, http, urls, crowd.changed) for name in PEOPLE[6:]]


@pytest.mark.e2e
@pytest.mark.timeout(600)
async def test_daemons_on_one_database_lose_nothing_and_answer_nothing_twice(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P42 P43 P44 P48
    await torture(tmp_path, mosquitto, Load(messages=200, kills=1, twice=1, pairs=0, owners=1, freezes=1, databases=1, restarts=1))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_daemons_on_one_database_for_long(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P42 P43 P44 P48
    await torture(tmp_path, mosquitto, Load(messages=2400, kills=8, twice=4, pairs=3, owners=6, freezes=6, databases=5, restarts=3))
