"""Killed at random, over a failing model, by brokers and receivers that go away: nothing is lost, nothing is done twice.

The long forms run by `make soak`. `CLEW_TORTURE_SEED` repeats the choices of a run; each run prints its own.
"""

import asyncio
import contextlib
import json
import random
import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.acceptance import stamp
from tests.acceptance.clients import PEOPLE, MqttClient, WebClient, WebhookClient, online, write_config
from tests.acceptance.harness import DEADLINE_S, Daemon, running
from tests.acceptance.torture import FAULTS, Crowd, Model, Query, check_answers, check_store, failing, figures, seeded, states, tortured
from tests.emulators.anthropic import AnthropicEmulator
from tests.integration.webhook_harness import SECRET, receiving
from tests.servers import Mosquitto

pytestmark = [pytest.mark.mosquitto, pytest.mark.asyncio]

LOOK_S = 0.05
"""Seconds between two looks at the outbox."""


@dataclass(frozen=True, slots=True)
class Load:
    """messages: of all people together. kills: of the daemon; restarts: of the broker."""

    messages: int
    kills: int
    restarts: int = 0


async def torment(crowd: Crowd, load: Load, clew: Daemon, broker: Mosquitto, choices: random.Random) -> None:
    """Let everybody talk, and kill what is under them at random moments of it; return when all is answered."""
    twice = load.kills // 3
    kills = [partial(killed, clew)] * (load.kills - twice) + [partial(killed_twice, clew, choices)] * twice
    await tortured(crowd, load.messages, [*kills, *[partial(restarted, broker, choices)] * load.restarts], choices)
    figures(crowd, [clew], f"{load.kills} kills, {twice} of them twice, {load.restarts} restarts")


async def killed(clew: Daemon) -> None:
    await clew.kill()
    await clew.start()


async def killed_twice(clew: Daemon, choices: random.Random) -> None:
    """The second time while it starts, ready or not."""
    await clew.kill()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(choices.uniform(0.5, 2.0)):
            await clew.start()
    await killed(clew)


async def restarted(broker: Mosquitto, choices: random.Random) -> None:
    await asyncio.to_thread(broker.stop)
    await asyncio.sleep(choices.random() * 0.5)
    await asyncio.to_thread(broker.start)


@contextlib.asynccontextmanager
async def world(folder: Path, broker: Mosquitto, choices: random.Random, **webhook: Any) -> AsyncIterator[tuple[Daemon, Model, str]]:
    """A daemon with the stamping tool, its model, and the address of its web server."""
    model = Model(random.Random(choices.getrandbits(64)))
    async with AnthropicEmulator(script=model) as emulator:
        path = write_config(folder, emulator.url, broker.port, **webhook)
        async with running(path, stamp.installed(folder)) as clew:
            yield clew, model, f"http://127.0.0.1:{json.loads(path.read_text())['http']['port']}"
            await delivered(folder, clew)
            assert await clew.terminate() == 0
    with stored(folder) as query:
        check_store(folder, path, query)


@contextlib.contextmanager
def stored(folder: Path) -> Iterator[Query]:
    with contextlib.closing(sqlite3.connect(folder / "data" / "clew.db")) as db:
        yield lambda sql: [value for (value,) in db.execute(sql)]


async def delivered(folder: Path, clew: Daemon) -> None:
    """Wait until no reply is to be sent again: one that was taken without a word of thanks is there, and goes out once more."""
    with stored(folder) as query:
        for _ in range(round(DEADLINE_S / LOOK_S)):
            if states(query, "outbox") == {"sent"}:
                return
            await asyncio.sleep(LOOK_S)
    raise AssertionError(f"not within {DEADLINE_S} s: every reply sent\n{clew}")


async def torture_mqtt(folder: Path, broker: Mosquitto, load: Load) -> Model:
    choices, crowd = seeded(), Crowd()
    crowd.clients += [MqttClient(name, broker.port, crowd.changed) for name in PEOPLE]
    async with world(folder, broker, choices) as (clew, model, _), online(crowd.clients):
        await torment(crowd, load, clew, broker, choices)
    check_answers(crowd.clients)
    return model


async def torture_web(folder: Path, broker: Mosquitto, load: Load) -> Model:
    choices, crowd = seeded(), Crowd()
    async with world(folder, broker, choices) as (clew, model, url), aiohttp.ClientSession() as http:
        crowd.clients += [WebClient(name, http, [url], crowd.changed) for name in PEOPLE[:4]]
        async with online(crowd.clients):
            await torment(crowd, load, clew, broker, choices)
    check_answers(crowd.clients)
    return model


async def torture_webhook(folder: Path, broker: Mosquitto, load: Load) -> Model:
    choices, crowd = seeded(), Crowd()
    async with receiving() as receiver, aiohttp.ClientSession() as http:
        receiver.next.extend(failing(choices) for _ in range(load.messages))
        async with world(folder, broker, choices, secret=SECRET, reply_hosts=[receiver.url]) as (clew, model, url):
            crowd.clients += [WebhookClient(name, http, [url], receiver, crowd.changed) for name in PEOPLE[:4]]
            async with online(crowd.clients):
                await torment(crowd, load, clew, broker, choices)
    check_answers(crowd.clients)
    return model


@pytest.mark.e2e
async def test_mqtt_loses_nothing_and_answers_nothing_twice(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P42 P43 P44 P48
    model = await torture_mqtt(tmp_path, mosquitto, Load(messages=304, kills=6, restarts=1))
    assert model.failed


@pytest.mark.e2e
async def test_the_web_socket_loses_nothing_and_answers_nothing_twice(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P42 P43 P44 P48
    await torture_web(tmp_path, mosquitto, Load(messages=120, kills=4))


@pytest.mark.e2e
async def test_the_webhook_loses_nothing_and_answers_nothing_twice(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P42 P43 P44 P48
    await torture_webhook(tmp_path, mosquitto, Load(messages=120, kills=4))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_mqtt_for_long(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P42 P43 P44 P48
    model = await torture_mqtt(tmp_path, mosquitto, Load(messages=3200, kills=30, restarts=3))
    assert set(model.failed) == set(FAULTS)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_the_web_socket_for_long(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P42 P43 P44 P48
    await torture_web(tmp_path, mosquitto, Load(messages=1000, kills=12))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_the_webhook_for_long(tmp_path: Path, mosquitto: Mosquitto) -> None:
    # P42 P43 P44 P48
    await torture_webhook(tmp_path, mosquitto, Load(messages=1000, kills=12))
