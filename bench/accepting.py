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
LIMITS = Limits()
ROUNDS = 8
"""Rounds of plain commits and of messages in turn: what a disk does changes from second to second."""
METHOD = f"""
From the moment that a transport hands over a message until it may be acknowledged: who it is from is looked up, what may be done is
decided, and it is committed with `synchronous=FULL`. Each sender hands over the next one when the last is stored; those of several share
commits. Nobody answers meanwhile, so that it is messages of as many people as it takes for no chat to have more waiting than it may. The
rival is SQLite alone: one row of the same text, committed with `synchronous=FULL`, one after the other, on the same disk. The texts are
made before. Medians of {ROUNDS} rounds of each in turn.
"""


async def measure(run: Run) -> list[Figure]:
    folder, count = run.made("accepting"), run.sizes.arrivals // ROUNDS
    plain = sqlite3.connect(folder / "plain.db", isolation_level=None)
    plain.execute("PRAGMA journal_mode = WAL")
    plain.execute("PRAGMA synchronous = FULL")
    plain.execute("CREATE TABLE inbox (id TEXT PRIMARY KEY, text TEXT)")
    texts = [sentence(number) for number in range(count)]
    doors = {senders: await _Door.opened(folder / f"{senders}.db", senders, texts) for senders in SENDERS}
    commits: list[float] = []
    stored: dict[int, list[float]] = {senders: [] for senders in SENDERS}
    try:
        for number in range(ROUNDS):
            commits.append(_committed(plain, number, texts))
            for senders, door in doors.items():
                stored[senders].append(await door.accepted(number))
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

    def __init__(self, store: SqliteStore, senders: int, texts: Sequence[str]) -> None:
        self._store = store
        self._senders = senders
        self._texts = texts
        self._waiting = 0
        self._people = names(ROUNDS * len(texts) // LIMITS.queued_per_chat + senders + 1)
        self._decide = decider("pair", LIMITS, lambda: "")

    @classmethod
    async def opened(cls, file: Path, senders: int, texts: Sequence[str]) -> "_Door":
        door = cls(await SqliteStore.open(file, 1.0), senders, texts)
        people = {name: Person(name, "member", None, (f"mqtt:{name}",)) for name in door._people}
        await door._store.sync(people, None, (), 1.0)
        return door

    async def accepted(self, number: int) -> float:
        """Messages a second."""
        items = [self._item(f"{number}-{each}", text) for each, text in enumerate(self._texts)]
        began = time.perf_counter()
        await asyncio.gather(*(self._send(items[sender :: self._senders]) for sender in range(self._senders)))
        return len(items) / (time.perf_counter() - began)

    def _item(self, identifier: str, text: str) -> Inbound:
        """A message of whoever has the fewest that wait."""
        name = self._people[self._waiting % len(self._people)]
        self._waiting += 1
        return Inbound(identifier, Address("mqtt", name), name, text)

    async def _send(self, items: Sequence[Inbound]) -> None:
        for item in items:
            (receipt,), _ = await self._store.accept("mqtt", [item], None, 1.0, self._decide)
            if receipt.status != "stored":
                raise RuntimeError(f"not stored: {receipt}")

    async def close(self) -> None:
        await self._store.close()


def _committed(database: sqlite3.Connection, number: int, texts: Sequence[str]) -> float:
    """Commits a second."""
    rows = [(f"{number}-{each}", text) for each, text in enumerate(texts)]
    began = time.perf_counter()
    for row in rows:
        database.execute("INSERT INTO inbox VALUES (?, ?)", row)
    return len(rows) / (time.perf_counter() - began)


subject = Subject(
    "accepting", "Storing what arrives", METHOD, measure, lambda sizes: f"{ROUNDS} rounds of {sizes.arrivals // ROUNDS:,} messages each"
)
