"""CPU of a search in a large store, beside the plain query for the same words that SQLite ranks by itself."""

import sqlite3
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from bench.turns import line
from clew import recall
from clew.store.sqlite import SqliteStore

QUESTIONS = 40
WORDS = 6
LIMIT = 60
"""Rows that the plain query ranks, as many as recall does."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of CPU at the median. plain: bm25 of FTS5 on the same index, without any text read."""

    search: float
    plain: float


async def cost(file: Path) -> Cost:
    """Ask the store in `file` for what messages that it does not hold say, once its common words have their lanes."""
    asked = [" ".join(line(-number).split()[:WORDS]) for number in range(1, QUESTIONS + 1)]
    store = await SqliteStore.open(file, 1.0)
    try:
        while await store.make_lanes():
            pass
        scope = await store.scope_for(person="ada")
        took = []
        for text in asked:
            started = time.process_time()
            await recall.search(store, scope, text, limit=LIMIT)
            took.append(time.process_time() - started)
    finally:
        await store.close()
    return Cost(statistics.median(took) * 1000, statistics.median(_plain(file, asked)) * 1000)


def _plain(file: Path, asked: list[str]) -> list[float]:
    database = sqlite3.connect(file)
    took = []
    for text in asked:
        started = time.process_time()
        expression = " OR ".join(f'"{word}"' for word in text.split())
        database.execute(
            "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? ORDER BY bm25(messages_fts) LIMIT ?", (expression, LIMIT)
        ).fetchall()
        took.append(time.process_time() - started)
    database.close()
    return took
