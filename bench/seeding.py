"""Stores with many messages, written as clew would have written them, but in bulk. Each is made once in a run and copied from then on."""

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from bench.words import sentence
from clew.clock import new_id
from clew.context.regions import SEGMENT_BITS
from clew.context.text import SPOKEN_BY, tokens
from clew.messages import Text, blocks_to_json
from clew.store import Person, lanes
from clew.store.indexing import Indexer
from clew.store.lanes import Making
from clew.store.places import first_place
from clew.store.sqlite import SqliteStore
from clew.store.sqlite.connection import SqliteConnection
from clew.store.transcript import day_words
from clew.transport import Address, Inbound

FIRST = 1_451_606_400.0
"""When the first message was written: 2016."""
APART = 300.0
"""Seconds between two messages, so that a day has as many as a busy chat has."""
KEPT = 8
"""Messages that stand verbatim behind the summary."""
AT_ONCE = 10_000

Row = tuple[str, str, int, int, str, str, str, str, str, str, float]
TextOf = Callable[[int], str]


class Stores:
    """Stores that a run has made so far, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def copy(self, folder: Path, messages: int, people: Sequence[str] = ("ada",)) -> Path:
        """A data directory in `folder` with this many messages of each of these people. Returns the store's file."""
        kept = self._folder / f"{messages}-{len(people)}"
        if not kept.exists():
            await seed(kept, messages * len(people), people)
        (folder / "data").mkdir()
        return Path(shutil.copyfile(kept / "data" / "clew.db", folder / "data" / "clew.db"))


async def seed(folder: Path, messages: int, people: Sequence[str] = ("ada",), text: TextOf = sentence) -> None:
    """A data directory with this many messages, evenly in the sessions of these people at MQTT, all but the last few behind a summary."""
    (folder / "data").mkdir(parents=True)
    file = folder / "data" / "clew.db"
    store = await SqliteStore.open(file, 1.0)
    try:
        await store.sync({name: Person(name, "member", None, (f"mqtt:{name}",)) for name in people}, None, (), 1.0)
        sessions = [await store.open_chat(Inbound("", Address("mqtt", name), name, ""), name, 1.0) for name in people]
    finally:
        await store.close()
    db = sqlite3.connect(file, isolation_level=None, factory=SqliteConnection)
    try:
        db.execute("PRAGMA synchronous = OFF")
        for chat, (name, session) in enumerate(zip(people, sessions, strict=True), 1):
            _fill(db, name, session, chat, messages // len(people), text)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.close()


def _fill(db: SqliteConnection, person: str, session: str, chat: int, messages: int, text: TextOf) -> None:
    index, counts, making = Indexer(), Counter[str](), Making(first_place(chat) >> SEGMENT_BITS)
    last = db.execute("SELECT coalesce(max(number), 0) FROM messages").fetchone()[0]
    said = enumerate(_said(person, session, chat, messages, text), 1)
    while some := list(islice(said, AT_ONCE)):
        db.execute("BEGIN")
        db.executemany(
            "INSERT INTO messages (id, session, seq, chat, role, blocks, sender, sender_name, turn, metadata, at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [row for _, (row, _) in some],
        )
        for seq, (row, plain) in some:
            number, place = last + seq, first_place(chat) + seq
            if place >> SEGMENT_BITS > making.segment:
                lanes.put(db, making)
                making = Making(place >> SEGMENT_BITS)
            words, speaker = index(plain), index(row[7]) if row[7] else ""
            db.execute("INSERT INTO places (place, message) VALUES (?, ?)", (place, number))
            columns = (place, words, day_words(row[10]), speaker)
            db.execute("INSERT INTO messages_fts (rowid, text, day, speaker) VALUES (?, ?, ?, ?)", columns)
            counted = {*tokens(words), *(SPOKEN_BY + word for word in tokens(speaker))}
            counts.update(counted)
            making.add([(place, number, row[0], counted)])
        db.execute("COMMIT")
    db.executemany(
        "INSERT INTO document_frequency (term, messages) VALUES (?, ?) ON CONFLICT (term) DO UPDATE"
        " SET messages = messages + excluded.messages",
        sorted(counts.items()),
    )
    if messages > KEPT:
        _cover(db, session, messages - KEPT)


def _said(person: str, session: str, chat: int, messages: int, text: TextOf) -> Iterator[tuple[Row, str]]:
    """Rows of messages, each with its words. No two chats say the same."""
    for number in range(messages):
        plain = text(chat << 32 | number)
        role, sender = ("user", person) if number % 2 == 0 else ("assistant", "")
        blocks = blocks_to_json((Text(plain),))
        yield (new_id(), session, number + 1, chat, role, blocks, sender, sender, "seed", "{}", FIRST + number * APART), plain


def _cover(db: SqliteConnection, session: str, to_seq: int) -> None:
    report = json.dumps({"total": to_seq, "first_at": 1.0, "last_at": 2.0})
    db.execute(
        "INSERT INTO compactions (id, session, kind, from_seq, to_seq, ledger, text, trigger, prompt_version, report, messages,"
        " covered, created) VALUES (?, ?, 'summary', 1, ?, '[]', 'A long talk about kettles.', 'count', 'seed', ?, 9, 1, 1.0)",
        (f"seed-{session}", session, to_seq, report),
    )
