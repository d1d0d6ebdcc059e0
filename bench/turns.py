"""CPU per turn: MQTT in → reply published."""

import asyncio
import json
import random
import statistics
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import aiomqtt

from bench.processes import Measured
from clew.messages import Role, Text
from clew.store import NewMessage, Person, transcript
from clew.store.connection import Connection
from clew.store.indexing import Indexer
from clew.store.sqlite import SqliteStore
from clew.store.sqlite.database import SqliteDatabase
from clew.transport import Address, Inbound

WARM_UP = 30
VOCABULARY = [
    f"{a}{b}{c}"
    for a in ("ka", "lo", "mi", "tu", "re", "sa", "no", "vi", "do", "pe")
    for b in "bdfglmnprstz"
    for c in ("an", "el", "is", "or", "um")
]
"""600 made-up words; the n-th is used as often as 1/n, as in any language."""
WORDS_PER_MESSAGE = 20


@asynccontextmanager
async def talking(port: int, *, daemon: bool) -> AsyncIterator["Talk"]:
    """A talk over the broker at `port`. daemon: wait until clew says that it listens; the floor is ready when it says so itself."""
    async with aiomqtt.Client("127.0.0.1", port, protocol=aiomqtt.ProtocolVersion.V5, identifier="talker") as client:
        if daemon:
            await client.subscribe("chat/v1/clew/status", qos=1)
            async for message in client.messages:
                if message.payload == b"online":
                    break
        await client.subscribe("chat/v1/clew/out/#", qos=1)
        yield Talk(client)


class Talk:
    """One person who writes, waits for the reply, and writes again."""

    def __init__(self, client: aiomqtt.Client) -> None:
        self._client = client
        self._number = 0
        self._name = uuid4().hex[:8]

    async def turn(self) -> None:
        self._number += 1
        text = line(self._number)
        await self._client.publish("chat/v1/clew/in/ada", json.dumps({"id": f"{self._name}-{self._number}", "text": text}), qos=1)
        async with asyncio.timeout(30):
            async for message in self._client.messages:
                if (
                    message.topic.matches("chat/v1/clew/out/#")
                    and json.loads(bytes(message.payload)).get("in_reply_to") == f"{self._name}-{self._number}"
                ):
                    return


async def cpu_per_turn(measured: Measured, port: int, turns: int, *, daemon: bool = True) -> float:
    """Milliseconds of CPU of the measured process from one reply to the next, at the median."""
    async with talking(port, daemon=daemon) as talk:
        for _ in range(WARM_UP):
            await talk.turn()
        marks = [measured.cpu_ns]
        for _ in range(turns):
            await talk.turn()
            marks.append(measured.cpu_ns)
    return statistics.median(b - a for a, b in pairwise(marks)) / 1e6


def write_config(folder: Path, port: int, *, recall: bool, providers: str = "none: {kind: offline}", compress: bool = True) -> Path:
    path = folder / "clew.yaml"
    path.write_text(
        f"data_dir: {folder}/data\nhttp: {{port: 0}}\nlog: {{level: warning, format: json}}\nproviders: {{{providers}}}\n"
        f"agent: {{recall: {{enabled: {str(recall).lower()}}}, compression: {{enabled: {str(compress).lower()}}}}}\n"
        "people: {ada: {role: member, identities: ['mqtt:ada']}}\n"
        f"transports: {{mqtt: {{enabled: true, port: {port}}}}}\n"
    )
    return path


async def seed(folder: Path, messages: int, people: Sequence[str] = ("ada",)) -> None:
    """A store with this many messages, evenly in the sessions of these people at MQTT, all but the last few behind a summary."""
    (folder / "data").mkdir(parents=True)
    store = await SqliteStore.open(folder / "data" / "clew.db", 1.0)
    try:
        await store.sync({name: Person(name, "member", None, (f"mqtt:{name}",)) for name in people}, None, (), 1.0)
        sessions = [await store.open_chat(Inbound("", Address("mqtt", name), name, ""), name, 1.0) for name in people]
    finally:
        await store.close()
    database = await SqliteDatabase.open(folder / "data" / "clew.db", 1.0, Indexer())
    try:
        for chat, session in enumerate(sessions, 1):
            await _fill(database, session, chat, messages // len(sessions))
    finally:
        await database.close()


async def _fill(database: SqliteDatabase, session: str, chat: int, messages: int) -> None:
    for start in range(0, messages, 2000):
        new = [NewMessage(_role(n), (Text(line(n)),), float(n)) for n in range(start, min(start + 2000, messages))]
        await database.write(transcript.append, session, chat, "seed", new)
    await database.write(_cover, session, messages - 8)


def _cover(db: Connection, session: str, to_seq: int) -> None:
    report = json.dumps({"total": to_seq, "first_at": 1.0, "last_at": 2.0})
    db.execute(
        "INSERT INTO compactions (id, session, kind, from_seq, to_seq, ledger, text, trigger, prompt_version, report, messages,"
        " covered, created) VALUES (?, ?, 'summary', 1, ?, '[]', 'A long talk about kettles.', 'count', 'seed', ?, 9, 1, 1.0)",
        (f"seed-{session}", session, to_seq, report),
    )


def _role(number: int) -> Role:
    return "user" if number % 2 == 0 else "assistant"


def line(number: int) -> str:
    """A message of made-up words, the same for the same number."""
    words = random.Random(number).choices(VOCABULARY, [1 / rank for rank in range(1, len(VOCABULARY) + 1)], k=WORDS_PER_MESSAGE)
    return " ".join(words)
