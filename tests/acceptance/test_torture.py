"""Killed at random, over a failing model, by brokers and receivers that go away: nothing is lost, nothing is done twice.

The long forms run by `make soak`. `CLEW_TORTURE_SEED` repeats the choices of a run; each run prints its own.
"""

import asyncio
import contextlib
import json
import os
import random
import sqlite3
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.acceptance import stamp
from tests.acceptance.clients import PEOPLE, Client, MqttClient, WebClient, WebhookClient, online, write_config
from tests.acceptance.harness import DEADLINE_S, PROGRAM, Daemon, Watched, running
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import last_is_tool_result, say
from tests.emulators.server import AnyFault, DropAfter, Empty, Fault, JsonObject, Malformed, Reply, Stall, StreamError
from tests.integration.engine import SUMMARY, is_summary
from tests.integration.webhook_harness import SECRET, Behaviour, answers, drops, receiving
from tests.servers import Mosquitto

pytestmark = [pytest.mark.mosquitto, pytest.mark.asyncio]

SEED = "CLEW_TORTURE_SEED"
FAULTY = 0.06
"""Part of the model calls that fail."""
CALLING = 0.2
"""Part of the messages for which the model calls the tool."""
AHEAD = 12
"""Messages of one person that may wait for their answer."""
LOOK_S = 0.05
"""Seconds between two looks at the outbox."""

FAULTS: dict[str, Callable[[], AnyFault]] = {
    "429": lambda: Fault(429, "rate_limit_error", "Slow down"),
    "429 with a wait": lambda: Fault(429, "rate_limit_error", "Slow down", {"retry-after": "1"}),
    "529": lambda: Fault(529, "overloaded_error", "Overloaded"),
    "500": lambda: Fault(500, "api_error", "Internal server error"),
    "error in the stream": StreamError,
    "cut before the first byte": DropAfter,
    "cut in the stream": lambda: DropAfter(4),
    "silent from the start": Stall,
    "silent in the stream": lambda: Stall(3),
    "malformed": Malformed,
    "empty": Empty,
}


@dataclass(frozen=True, slots=True)
class Load:
    """messages: of all people together. kills: of the daemon; restarts: of the broker."""

    messages: int
    kills: int
    restarts: int = 0


class Model:
    """Answers after a short while, mostly; now and then it calls the tool, or fails in one of many ways."""

    def __init__(self, choices: random.Random) -> None:
        self._random = choices
        self._calls = 0
        self.failed: Counter[str] = Counter()

    async def __call__(self, body: JsonObject) -> Any:
        await asyncio.sleep(self._random.random() * 0.05)
        if self._random.random() < FAULTY:
            kind = self._random.choice(tuple(FAULTS))
            self.failed[kind] += 1
            return FAULTS[kind]()
        if is_summary(body):
            return say(SUMMARY)
        if not last_is_tool_result(body) and self._random.random() < CALLING:
            return Reply([self._call() for _ in range(self._random.randint(1, 2))], "tool_use")
        return say(f"answer to: {newest(body)}")

    def _call(self) -> JsonObject:
        self._calls += 1
        identifier = f"toolu_{self._calls:06d}"
        return {"type": "tool_use", "id": identifier, "name": "stamp", "input": {"call": identifier}}


def newest(body: JsonObject) -> str:
    """The words said last: messages that wait, or whose turn failed, stand in one with the next."""
    said = (message["content"] for message in reversed(body["messages"]) if message["role"] == "user")
    texts = next(found for content in said if (found := [part["text"] for part in content if part["type"] == "text"]))
    return str(texts[-1]).rpartition("] ")[2]


class Crowd(Watched):
    """Everybody who talks to clew."""

    def __init__(self) -> None:
        super().__init__()
        self.clients: list[Client] = []

    def __str__(self) -> str:
        return "\n".join(map(str, self.clients))

    def changed(self) -> None:
        self._tell()

    @property
    def said(self) -> int:
        return sum(len(client.texts) for client in self.clients)

    @property
    def waiting(self) -> int:
        return sum(client.waiting for client in self.clients)


def seeded() -> random.Random:
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(2**32))
    print(f"{SEED}={seed}")
    return random.Random(seed)


async def talk(client: Client, count: int, choices: random.Random) -> None:
    """Say so many things, in bursts, never too far ahead of the answers."""
    for number in range(1, count + 1):
        await client.until(lambda: client.waiting < AHEAD, "answers")
        thread = choices.choice(client.threads)
        await client.say(f"number {number} of {client.name}{thread[:1]} about {choices.choice(('tea', 'boats', 'maps'))}", thread)
        if choices.random() < 0.3:
            await asyncio.sleep(choices.random() * 0.3)


async def tortured(crowd: Crowd, load: Load, clew: Daemon, broker: Mosquitto, choices: random.Random) -> None:
    """Let everybody talk, and kill what is under them at random moments of it; return when all is answered."""
    talks = choices.getrandbits(64)
    share = load.messages // len(crowd.clients)
    events = [*["kill"] * (load.kills - load.kills // 3), *["kill twice"] * (load.kills // 3), *["restart"] * load.restarts]
    choices.shuffle(events)
    moments = sorted(choices.randrange(1, share * len(crowd.clients)) for _ in events)
    async with asyncio.TaskGroup() as group:
        for number, client in enumerate(crowd.clients):
            group.create_task(talk(client, share, random.Random(talks + number)))
        for moment, event in zip(moments, events, strict=True):
            await crowd.until(lambda moment=moment: crowd.said >= moment, f"message {moment}")  # type: ignore[misc]
            await asyncio.sleep(choices.random() * 0.5)
            await DISTURBANCES[event](clew, broker, choices)
    await crowd.until(lambda: crowd.waiting <= 0, "an answer to everything")
    log = Counter(line.get("event") for line in clew.log)
    resumed, repeats = clew.count("turn.started", resumed=True), sum(client.repeats for client in crowd.clients)
    print(f"{crowd.said} messages, {load.kills} kills, {load.kills // 3} of them twice, {load.restarts} restarts: {resumed} turns resumed,")
    print(f"{log['inbox.duplicate']} messages and {repeats} replies came again, {log['provider.retry']} model calls and", end=" ")
    print(f"{log['outbox.retry'] + log['outbox.unknown']} sends were repeated, {log['agent.compressed']} compactions")


async def killed(clew: Daemon, broker: Mosquitto, choices: random.Random) -> None:
    await clew.kill()
    await clew.start()


async def killed_twice(clew: Daemon, broker: Mosquitto, choices: random.Random) -> None:
    """The second time while it starts, ready or not."""
    await clew.kill()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(choices.uniform(0.5, 2.0)):
            await clew.start()
    await killed(clew, broker, choices)


async def restarted(clew: Daemon, broker: Mosquitto, choices: random.Random) -> None:
    await asyncio.to_thread(broker.stop)
    await asyncio.sleep(choices.random() * 0.5)
    await asyncio.to_thread(broker.start)


DISTURBANCES: dict[str, Callable[[Daemon, Mosquitto, random.Random], Awaitable[None]]] = {
    "kill": killed,
    "kill twice": killed_twice,
    "restart": restarted,
}


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
    check_store(folder, path)


async def delivered(folder: Path, clew: Daemon) -> None:
    """Wait until no reply is to be sent again: one that was taken without a word of thanks is there, and goes out once more."""
    with contextlib.closing(sqlite3.connect(folder / "data" / "clew.db")) as db:
        for _ in range(round(DEADLINE_S / LOOK_S)):
            if states(db, "outbox") == {"sent"}:
                return
            await asyncio.sleep(LOOK_S)
    raise AssertionError(f"not within {DEADLINE_S} s: every reply sent\n{clew}")


def check_answers(clients: Sequence[Client]) -> None:
    """Each message was answered once, in the order of its thread, with its own words."""
    for client in clients:
        for thread, said in client.said.items():
            assert client.answered(thread) == said, f"{client.name}/{thread}"
        assert client.differing == []
        assert client.waiting == 0, "a reply to nothing"
        for reply in client.replies.values():
            assert reply["in_reply_to"] == reply["answers"][-1]
            if reply["text"].startswith("answer to: "):
                assert reply["text"] == f"answer to: {client.texts[reply['in_reply_to']]}"
    replies = [reply for client in clients for reply in client.replies.values()]
    plain = [reply["text"] for reply in replies if not reply["text"].startswith("answer to: ")]
    assert len(plain) <= len(replies) // 50, plain


def check_store(folder: Path, path: Path) -> None:
    """Everything has come to its end, every transcript and the file are sound, no call took effect twice."""
    for command in (("db", "check"), ("session", "verify")):
        ran = subprocess.run([PROGRAM, *command, "--config", path], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    with contextlib.closing(sqlite3.connect(folder / "data" / "clew.db")) as db:
        assert states(db, "inbox") <= {"answered", "failed"}
        assert states(db, "turns") <= {"done", "failed"}
        assert states(db, "outbox") == {"sent"}
        assert states(db, "tool_calls") <= {"done", "interrupted"}
        results = [json.loads(blocks)[0] for (blocks,) in db.execute("SELECT blocks FROM messages WHERE role = 'tool'")]
    effects = stamp.stamps(folder)
    assert len(effects) == len(set(effects)), "a call took effect twice"
    assert {result["call_id"] for result in results if not result["is_error"]} <= set(effects) <= {each["call_id"] for each in results}


def states(db: sqlite3.Connection, table: str) -> set[str]:
    return {state for (state,) in db.execute(f"SELECT DISTINCT state FROM {table}")}


async def torture_mqtt(folder: Path, broker: Mosquitto, load: Load) -> Model:
    choices, crowd = seeded(), Crowd()
    crowd.clients += [MqttClient(name, broker.port, crowd.changed) for name in PEOPLE]
    async with world(folder, broker, choices) as (clew, model, _), online(crowd.clients):
        await tortured(crowd, load, clew, broker, choices)
    check_answers(crowd.clients)
    return model


async def torture_web(folder: Path, broker: Mosquitto, load: Load) -> Model:
    choices, crowd = seeded(), Crowd()
    async with world(folder, broker, choices) as (clew, model, url), aiohttp.ClientSession() as http:
        crowd.clients += [WebClient(name, http, url, crowd.changed) for name in PEOPLE[:4]]
        async with online(crowd.clients):
            await tortured(crowd, load, clew, broker, choices)
    check_answers(crowd.clients)
    return model


async def torture_webhook(folder: Path, broker: Mosquitto, load: Load) -> Model:
    choices, crowd = seeded(), Crowd()
    async with receiving() as receiver, aiohttp.ClientSession() as http:
        receiver.next.extend(failing(choices) for _ in range(load.messages))
        async with world(folder, broker, choices, secret=SECRET, reply_hosts=[receiver.url]) as (clew, model, url):
            crowd.clients += [WebhookClient(name, http, url, receiver, crowd.changed) for name in PEOPLE[:4]]
            async with online(crowd.clients):
                await tortured(crowd, load, clew, broker, choices)
    check_answers(crowd.clients)
    return model


def failing(choices: random.Random) -> Behaviour:
    """What becomes of a reply: mostly taken; refused for now; or taken, and the connection lost before the receiver could say so."""
    return choices.choices([answers(200), answers(503), drops], [0.92, 0.04, 0.04])[0]


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
