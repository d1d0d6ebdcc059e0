"""How long a reply takes while a compaction runs in the background, and while none does, in turns of one run."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import aiohttp

from bench import compaction
from bench.talking import clew, stopped, write_config
from bench.words import line
from clew.store import NewMessage, Person, transcript
from clew.store.indexing import Indexer
from clew.store.sqlite import SqliteStore
from clew.store.sqlite.database import SqliteDatabase
from clew.transport import Address, Inbound

WARM_UP = 30
ROUNDS = 8
REPLIES = 20
"""Replies of a round without a compaction; beside one there are as many as it leaves time for."""
SUMMARY_S = 0.5
"""Seconds until the model has written a summary; models take longer, and all of that is waiting."""
WINDOW = 68
"""Messages in front of a compaction, of which 60 are demoted."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from a message to its reply, medians. noise: how far the middle half of the rounds' medians without one lies apart."""

    alone: float
    beside: float
    noise: float
    replies: tuple[int, int]

    @property
    def difference(self) -> float:
        return abs(self.beside - self.alone)


async def latency(folder: Path) -> Latency:
    """Measured over the chat page's WebSocket while another person's thread is compacted again and again."""
    session = await _seed(folder)
    config = write_config(folder, None, agent={"compression": {"enabled": False}})
    with stopped(clew(config, summary_s=SUMMARY_S)):
        async with _connected(folder) as api, api.ws_connect("/chat/ws?chat=bench") as talk:
            return await _rounds(api, talk, session)


async def _rounds(api: aiohttp.ClientSession, talk: aiohttp.ClientWebSocketResponse, session: str) -> Latency:
    numbers = count(1)
    for _ in range(WARM_UP):
        await _reply(talk, next(numbers))
    alone: list[list[float]] = []
    beside: list[float] = []
    for _ in range(ROUNDS):
        alone.append([await _reply(talk, next(numbers)) for _ in range(REPLIES)])
        running = asyncio.create_task(_asked(api, f"sessions/{session}/compact"))
        while not running.done():
            taken = await _reply(talk, next(numbers))
            if not running.done():
                beside.append(taken)
        await running
        await _asked(api, f"sessions/{session}/undo-compaction")
    lower, _, upper = statistics.quantiles(map(statistics.median, alone))
    every = [taken for each in alone for taken in each]
    return Latency(statistics.median(every), statistics.median(beside), upper - lower, (len(every), len(beside)))


async def _reply(talk: aiohttp.ClientWebSocketResponse, number: int) -> float:
    """Milliseconds until the reply to a message is there."""
    began = time.perf_counter()
    await talk.send_json({"type": "message", "id": f"n{number}", "text": line(number)})
    async with asyncio.timeout(30):
        while (said := await talk.receive_json()).get("in_reply_to") != f"n{number}" or said["type"] != "message":
            pass
    return (time.perf_counter() - began) * 1e3


@asynccontextmanager
async def _connected(folder: Path) -> AsyncIterator[aiohttp.ClientSession]:
    socket = aiohttp.UnixConnector(str(folder / "data" / "clew.sock"))
    async with aiohttp.ClientSession("http://clew/", connector=socket) as session:
        yield session


async def _asked(api: aiohttp.ClientSession, what: str) -> None:
    async with api.post(f"/api/v1/{what}", json={}) as response:
        if response.status != 200:
            raise RuntimeError(f"{what}: {await response.text()}")


async def _seed(folder: Path) -> str:
    """Another person's session, with messages that were really written. Its id."""
    (folder / "data").mkdir(parents=True)
    store = await SqliteStore.open(folder / "data" / "clew.db", 1.0)
    try:
        await store.sync({"bob": Person("bob", "member", None, ("bench:bob",))}, None, (), 1.0)
        session = await store.open_chat(Inbound("", Address("mqtt", "bob"), "bob", ""), "bob", 1.0)
    finally:
        await store.close()
    database = await SqliteDatabase.open(folder / "data" / "clew.db", 1.0, Indexer())
    try:
        rows = compaction.thread(WINDOW)
        await database.write(transcript.append, session, 1, "seed", [NewMessage(row.role, row.blocks, row.at) for row in rows])
    finally:
        await database.close()
    return session
