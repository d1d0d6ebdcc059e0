"""How many messages are stored for good in a second, and so may be acknowledged, beside plain commits of SQLite."""

import asyncio
import sqlite3
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from bench.figures import Against, Figure, at_least_times
from bench.subject import Run, Subject
from bench.talking import names
from bench.words import sentence
from clew.config import Limits
from clew.inbox import decider
from clew.store import Person
from clew.store.sqlite import SqliteStore
from clew.transport import Address, Inbound

SENDERS = {1: 0.5, 50: 2.0}
"""Senders at once, and of the plain commits a second how many times as many messages have to be stored."""
ROUNDS = 8
"""Rounds of plain commits and of messages in turn: what a disk does changes from second to second."""
METHOD = f"""
From the moment that a transport hands over a message until it may be acknowledged: who it is from is looked up, what may be done is
decided, and it is committed with `synchronous=FULL`. Each sender hands over the next one when the last is stored; those of several share
commits. The rival is SQLite alone: one row of the same text, committed with `synchronous=FULL`, one after the other, on the same disk.
Medians of {ROUNDS} rounds of each in turn.
"""


async def measure(run: Run) -> list[Figure]:
    folder, count = run.made("accepting"), run.sizes.arrivals // ROUNDS
    plain = sqlite3.connect(folder / "plain.db", isolation_level=None)
    plain.execute("PRAGMA journal_mode = WAL")
    plain.execute("PRAGMA synchronous = FULL")
    plain.execute("CREATE TABLE inbox (id TEXT PRIMARY KEY, text TEXT)")
    doors = {senders: await _Door.opened(folder / f"{senders}.db", senders) for senders in SENDERS}
    commits: list[float] = []
    stored: dict[int, list[float]] = {senders: [] for senders in SENDERS}
    try:
        for number in range(ROUNDS):
            commits.append(_committed(plain, number, count))
            for senders, door in doors.items():
                stored[senders].append(await door.accepted(number, count))
    finally:
        plain.close()
        for door in doors.values():
            await door.close()
    rival = Against("plain commits", statistics.median(commits))
    return [_figure(senders, stored[senders], rival) for senders in SENDERS]


def _figure(senders: int, rates: Sequence[float], rival: Against) -> Figure:
    name = f"stored from {senders} {'sender' if senders == 1 else 'senders at once'}"
    return Figure(name, statistics.median(rates), "messages/s", rival, (at_least_times(SENDERS[senders]),), more=True)


class _Door:
    """A store, and those who send to it."""

    def __init__(self, store: SqliteStore, people: Sequence[str]) -> None:
        self._store = store
        self._people = people
        self._decide = decider("pair", Limits(queued_per_chat=10_000), lambda: "")

    @classmethod
    async def opened(cls, file: Path, senders: int) -> "_Door":
        store, people = await SqliteStore.open(file, 1.0), names(senders)
        await store.sync({name: Person(name, "member", None, (f"mqtt:{name}",)) for name in people}, None, (), 1.0)
        return cls(store, people)

    async def accepted(self, number: int, count: int) -> float:
        """Messages a second."""
        began = time.perf_counter()
        each = count // len(self._people)
        await asyncio.gather(*(self._send(name, f"{number}", each) for name in self._people))
        return each * len(self._people) / (time.perf_counter() - began)

    async def _send(self, name: str, prefix: str, count: int) -> None:
        for number in range(count):
            item = Inbound(f"{name}-{prefix}-{number}", Address("mqtt", name), name, sentence(number))
            (receipt,), _ = await self._store.accept("mqtt", [item], None, 1.0, self._decide)
            if receipt.status != "stored":
                raise RuntimeError(f"not stored: {receipt}")

    async def close(self) -> None:
        await self._store.close()


def _committed(database: sqlite3.Connection, number: int, count: int) -> float:
    """Commits a second."""
    began = time.perf_counter()
    for each in range(count):
        database.execute("INSERT INTO inbox VALUES (?, ?)", (f"{number}-{each}", sentence(each)))
    return count / (time.perf_counter() - began)


subject = Subject(
    "accepting", "Storing what arrives", METHOD, measure, lambda sizes: f"{ROUNDS} rounds of {sizes.arrivals // ROUNDS:,} messages each"
)
