"""Searching and recalling in large stores, beside the plain query for the same words that SQLite ranks by itself."""

import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC
from pathlib import Path

from bench.figures import Against, Figure, Point, Target, at_most, at_most_times
from bench.seeding import APART, FIRST
from bench.subject import Plot, Run, Subject
from bench.talking import quantile
from bench.words import sentence
from clew import recall
from clew.config import Recall
from clew.metrics import Metrics
from clew.store import PromptState
from clew.store.sqlite import SqliteStore
from clew.transport import Address, Inbound

WORDS = 6
LIMIT = 60
"""Rows that the plain query ranks, as many as recall does."""
REBUILT = 20_000
"""Messages whose index is built anew."""
WARM_UP = 10
RANKED = 40
"""Questions that the plain query is asked: it takes half a second in a large store."""
TARGETS: dict[str, dict[int, tuple[float, float | None]]] = {
    "recall": {100_000: (8.0, 20.0), 1_000_000: (25.0, 60.0)},
    "search": {100_000: (20.0, None)},
}
"""Milliseconds of CPU in a store of so many messages: at the median, and in 95 of 100 questions."""
FIRST_CHAT = 1 << 32
"""The numbers of the sentences of a store's first chat begin with it."""
ASKED_AT = Address("mqtt", "ada", "new")
INDEXES = ("messages_fts%", "document_frequency", "counting", "places", "lanes", "sqlite_autoindex_places_1")
METHOD = f"""
Six words of a message are asked of a store whose messages are all in one person's scope; {len(sentence(1).split())} words a message from
a vocabulary of 20,400 (the n-th is said as often as 1/n). CPU of the process, all threads. `search` is what the tool and the command do,
`recall` what stands in front of every turn, from the words to the block. The rival is SQLite's own full-text search: the same words, the
{LIMIT} best by bm25, in the same index, without any text read. Index bytes are those of all tables that are there to find, against the
messages' texts. For the rebuild the rival is a plain full-text table that is filled with the same texts in one transaction; both on one
core.
"""

Ask = Callable[[str], Awaitable[object]]


async def measure(run: Run) -> list[Figure]:
    figures = []
    for messages in run.sizes.found:
        file = await run.stores.copy(run.made(f"finding-{messages}"), messages)
        figures += await _found(file, messages, run.sizes.questions)
        figures.append(_size(file, messages))
        file.unlink()
    rebuilt = min(REBUILT, *run.sizes.found)
    return [*figures, await _rebuild(await run.stores.copy(run.made("rebuilding"), rebuilt), rebuilt)]


async def _found(file: Path, messages: int, questions: int) -> list[Figure]:
    step = max(messages // questions, 1)
    asked = [" ".join(sentence(FIRST_CHAT | number * step).split()[:WORDS]) for number in range(questions)]
    store = await SqliteStore.open(file, 1.0)
    try:
        scope = await store.scope_for(person="ada")
        engine = recall.IndexRecall(store, Recall(), Metrics())
        session = await store.open_chat(Inbound("", ASKED_AT, "ada", ""), "ada", 1.0)

        def view(text: str) -> recall.SessionView:
            return recall.SessionView(session, str(ASKED_AT), 0, text, (), (), UTC, PromptState(), keep=False, at=FIRST + messages * APART)

        searched = await _timed(asked, lambda text: recall.search(store, scope, text, limit=LIMIT))
        recalled = await _timed(asked, lambda text: engine.system_appendix(view(text)))
    finally:
        await store.close()
    plain = _plain(file, asked[:: max(questions // RANKED, 1)])
    return [*_figures("search", messages, searched, plain), *_figures("recall", messages, recalled, plain)]


async def _timed(asked: Sequence[str], ask: Ask) -> list[float]:
    """Milliseconds of CPU of each question, once the first few have been asked."""
    for text in asked[:WARM_UP]:
        await ask(text)
    took = []
    for text in asked:
        started = time.process_time()
        await ask(text)
        took.append((time.process_time() - started) * 1e3)
    return took


def _figures(what: str, messages: int, took: Sequence[float], plain: Sequence[float]) -> list[Figure]:
    p50, p95 = TARGETS[what].get(messages, (None, None))
    half = Against("bm25 of SQLite", quantile(plain, 0.5))
    most = Against("bm25 of SQLite", quantile(plain, 0.95))
    name = f"{what} among {messages:,} messages"
    return [
        Figure(f"{name}: CPU at the median", quantile(took, 0.5), "ms", half, _bounds(p50), point=Point("finding", what, messages)),
        Figure(f"{name}: CPU of 95 of 100 questions", quantile(took, 0.95), "ms", most, _bounds(p95)),
    ]


def _bounds(bound: float | None) -> tuple[Target, ...]:
    return () if bound is None else (at_most(bound),)


def _plain(file: Path, asked: Sequence[str]) -> list[float]:
    database = sqlite3.connect(file)
    took = []
    warm_up = asked[:WARM_UP]
    for text in (*warm_up, *asked):
        started = time.process_time()
        expression = " OR ".join(f'"{word}"' for word in text.split())
        database.execute(
            "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? ORDER BY bm25(messages_fts) LIMIT ?", (expression, LIMIT)
        ).fetchall()
        took.append((time.process_time() - started) * 1e3)
    database.close()
    return took[len(warm_up) :]


def _size(file: Path, messages: int) -> Figure:
    """MB of the indexes."""
    database = sqlite3.connect(file)
    names = " OR ".join("name LIKE ?" for _ in INDEXES)
    size = database.execute(f"SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE AND ({names})", INDEXES).fetchone()[0]
    text = database.execute("SELECT sum(length(CAST(blocks ->> '$[0].text' AS BLOB))) FROM messages").fetchone()[0]
    database.close()
    bound = (at_most_times(1.4),) if messages in TARGETS["recall"] else ()
    return Figure(f"indexes of {messages:,} messages", size / 1e6, "MB", Against("their texts", text / 1e6), bound)


async def _rebuild(file: Path, messages: int) -> Figure:
    """Messages per second of CPU."""
    store = await SqliteStore.open(file, 1.0)
    try:
        started = time.process_time()
        await store.rebuild_index()
        while await store.rebuild_some():
            pass
        took = time.process_time() - started
    finally:
        await store.close()
    against = Against("a plain full-text table", messages / _filled([sentence(FIRST_CHAT | number) for number in range(messages)]))
    return Figure(f"rebuilding the index of {messages:,} messages", messages / took, "messages/s of CPU", against, more=True)


def _filled(texts: Sequence[str]) -> float:
    """Seconds of CPU in which a plain full-text table takes the texts."""
    with tempfile.TemporaryDirectory() as folder:
        database = sqlite3.connect(Path(folder) / "plain.db", isolation_level=None)
        database.execute("CREATE VIRTUAL TABLE plain USING fts5(text, tokenize='porter unicode61 remove_diacritics 2')")
        started = time.process_time()
        database.execute("BEGIN")
        database.executemany("INSERT INTO plain (text) VALUES (?)", ((text,) for text in texts))
        database.execute("COMMIT")
        took = time.process_time() - started
        database.close()
    return took


subject = Subject(
    "finding",
    "Finding what was said",
    METHOD,
    measure,
    lambda sizes: f"{sizes.questions} questions each",
    (Plot("finding", "CPU of a question in a store of so many messages, at the median", "messages in the store", "ms"),),
)
