"""CPU per turn: MQTT in → reply published."""

import asyncio
import json
import sqlite3
import statistics
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import aiomqtt

from bench.processes import Measured
from clew.messages import Role, Text
from clew.store import NewMessage, Person, transcript
from clew.store.database import Database
from clew.store.indexing import Indexer
from clew.store.sqlite import SqliteStore
from clew.transport import Address, Inbound

WARM_UP = 30
WORDS = [
    "the",
    "kettle",
    "in",
    "the",
    "garden",
    "house",
    "was",
    "left",
    "on",
    "again",
    "so",
    "please",
    "remind",
    "everybody",
    "to",
    "look",
    "before",
    "they",
    "leave",
]


@asynccontextmanager
async def talking(port: int) -> AsyncIterator["Talk"]:
    async with aiomqtt.Client("127.0.0.1", port, protocol=aiomqtt.ProtocolVersion.V5, identifier="talker") as client:
        await client.subscribe("chat/v1/clew/out/#", qos=1)
        yield Talk(client)


class Talk:
    """One person who writes, waits for the reply, and writes again."""

    def __init__(self, client: aiomqtt.Client) -> None:
        self._client = client
        self._number = 0

    async def turn(self) -> None:
        self._number += 1
        start = self._number % len(WORDS)
        text = " ".join([*WORDS[start:], *WORDS[:start]])
        await self._client.publish("chat/v1/clew/in/ada", json.dumps({"id": f"b{self._number}", "text": text}), qos=1)
        async with asyncio.timeout(30):
            async for message in self._client.messages:
                if json.loads(bytes(message.payload)).get("in_reply_to") == f"b{self._number}":
                    return


async def cpu_per_turn(measured: Measured, port: int, turns: int) -> float:
    """Milliseconds of CPU of the measured process from one reply to the next, at the median."""
    async with talking(port) as talk:
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


async def seed(folder: Path, messages: int) -> None:
    """A store whose session at mqtt:ada has this many messages, all but the last few behind a summary."""
    (folder / "data").mkdir(parents=True)
    store = await SqliteStore.open(folder / "data" / "clew.db", 1.0)
    try:
        await store.sync_people({"ada": Person("ada", "member", None, ("mqtt:ada",))}, None, 1.0)
        session = await store.open_chat(Inbound("", Address("mqtt", "ada"), "ada", ""), "ada", 1.0)
    finally:
        await store.close()
    database = await Database.open(folder / "data" / "clew.db", 1.0, Indexer())
    try:
        for start in range(0, messages, 2000):
            new = [NewMessage(_role(n), (Text(_line(n)),), float(n)) for n in range(start, min(start + 2000, messages))]
            await database.write(transcript.append, session, 1, "seed", new)
        await database.write(_cover, session, messages - 8)
    finally:
        await database.close()


def _cover(db: sqlite3.Connection, session: str, to_seq: int) -> None:
    report = json.dumps({"total": to_seq, "first_at": 1.0, "last_at": 2.0})
    db.execute(
        "INSERT INTO compactions (id, session, kind, from_seq, to_seq, ledger, text, trigger, prompt_version, report, messages,"
        " covered, created) VALUES ('seeded', ?, 'summary', 1, ?, '[]', 'A long talk about kettles.', 'count', 'seed', ?, 9, 1, 1.0)",
        (session, to_seq, report),
    )


def _role(number: int) -> Role:
    return "user" if number % 2 == 0 else "assistant"


def _line(number: int) -> str:
    start = number % len(WORDS)
    return f"{' '.join(WORDS[start:] + WORDS[:start])} number {number}"
