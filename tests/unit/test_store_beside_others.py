"""Transactions of several daemons on one database at the same time: who waits for whom, and what comes of it."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from clew.messages import Text
from clew.store import Claim, NewMessage, Outcome, Reply, Settlement, Step, claiming, transcript
from clew.store.connection import Connection
from clew.store.grouping import MOST_NAMES, lane, shared
from clew.store.sql import SqlStore
from clew.transport import Address, Part
from tests.databases import POSTGRESQL
from tests.unit.store_rows import LEASE, NOW, Clock, accept, inbound, reply, said, side_by_side

pytestmark = [POSTGRESQL, pytest.mark.asyncio]

LIVES = 3600.0
DEADLINE_S = 120.0
CHATS = ("ada", "bob", "eve", "ada/1", "ada/2", "bob/1")
MESSAGES = 5
"""In each chat."""


@asynccontextmanager
async def stores(folder: Path, count: int = 2) -> AsyncIterator[list[SqlStore]]:
    """Daemons on one database, d0 and so on."""
    async with side_by_side(folder, Clock(), count) as found, asyncio.timeout(DEADLINE_S):
        for number, store in enumerate(found):
            await store.leases.join(f"d{number}", LIVES, frozenset(), NOW)
        yield found


@asynccontextmanager
async def open_beside(store: SqlStore, *names: str, first: Callable[[Connection], object] = lambda db: None) -> AsyncIterator[None]:
    """A transaction of `store` that holds these names and has done `first`, and goes on until the block ends."""
    begun, over = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @shared(lambda: names)
    def long(db: Connection) -> None:
        first(db)
        loop.call_soon_threadsafe(begun.set)
        assert over.wait(DEADLINE_S)

    writing = store._db.write(long)
    await begun.wait()
    try:
        yield
    finally:
        over.set()
    await writing


async def claim(store: SqlStore, owner: str) -> Claim | None:
    return await store.claim_turn(owner, NOW, LEASE, frozenset())


async def turn(store: SqlStore, owner: str, chat: str) -> None:
    """All that a turn and its reply write."""
    await accept(store, inbound(f"{chat}-{owner}", f"hello from {owner}", chat))
    claimed = await claim(store, owner)
    assert claimed is not None
    assert claimed.address.chat == chat
    await store.record(claimed, Step(messages=(NewMessage("assistant", (Text("hm"),), NOW),)))
    await store.finish(claimed, Outcome("done"), [reply("yes", chat)], NOW)
    delivery, _ = await store.claim_delivery(owner, "desk", NOW)
    assert delivery is not None
    assert delivery.address.chat == chat
    await store.advance(delivery, 1)
    await store.settle(delivery, Settlement("sent", "ref"), NOW)


async def test_a_turn_of_another_chat_waits_for_no_transaction_of_another_daemon(tmp_path: Path) -> None:  # P44
    def begin(db: Connection) -> None:
        assert claiming.claim(db, "d0", NOW, LEASE, frozenset()).claim is not None

    async with stores(tmp_path) as (a, b):
        await accept(a, inbound("1", chat="ada"))
        async with open_beside(a, first=begin):
            await turn(b, "d1", "bob")
        assert await claim(b, "d1") is None


async def test_what_another_has_in_hand_is_passed_over_and_looked_at_again(tmp_path: Path) -> None:  # P42 P44
    async with stores(tmp_path) as (a, b):
        await accept(a, inbound("1", chat="ada"))
        async with open_beside(a, lane(Address("desk", "ada"))):
            seen = b.arrivals.version
            assert await claim(b, "d1") is None
            await b.arrivals.wait(seen, DEADLINE_S)
        claimed = await claim(b, "d1")
        assert claimed is not None
        assert claimed.address.chat == "ada"


async def test_one_session_of_two_chats_has_one_turn(tmp_path: Path) -> None:  # P44
    async with stores(tmp_path) as (a, b):
        session = await a.open_chat(inbound("0", chat="ada"), "ada", NOW)
        await a.join_chat(inbound("0", chat="ada/1"), "ada", session, NOW)
        for chat in ("ada", "ada/1"):
            await accept(a, inbound(chat, chat=chat))

        def begin(db: Connection) -> None:
            assert claiming.claim(db, "d0", NOW, LEASE, frozenset()).claim is not None

        async with open_beside(a, first=begin):
            assert await claim(b, "d1") is None
        assert await claim(b, "d1") is None


class Late:
    """A connection on which somebody else is always a moment earlier: `first` is done before a name is held."""

    def __init__(self, db: Connection, first: Callable[[], object]) -> None:
        self._db = db
        self._first = first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def hold(self, *names: str) -> bool:
        self._first()
        return self._db.hold(*names)


async def test_what_was_free_a_moment_ago_is_looked_at_again_once_it_is_held(tmp_path: Path) -> None:  # P44
    async with stores(tmp_path) as (a, b):
        await a.open_chat(inbound("0", chat="ada"), "ada", NOW)
        for number in range(2):
            await accept(a, inbound(str(number), chat="ada"))
        loop = asyncio.get_running_loop()
        taken: list[Claim | None] = []

        def other() -> None:
            taken.append(asyncio.run_coroutine_threadsafe(claim(b, "d1"), loop).result())

        @shared(lambda: ())
        def late(db: Connection) -> Claim | None:
            return claiming.claim(cast(Connection, Late(db, other)), "d0", NOW, LEASE, frozenset()).claim

        assert await a._db.write(late) is None
        assert [each.address.chat for each in taken if each] == ["ada"]


async def test_arrivals_of_one_chat_wait_for_each_other(tmp_path: Path) -> None:  # P44
    async with stores(tmp_path) as (a, b):
        async with open_beside(a, lane(Address("desk", "ada")), first=lambda db: None):
            waits = asyncio.ensure_future(accept(b, inbound("1", chat="ada")))
            while not await a._db.read(_waits_for_a_name):
                pass
            assert not waits.done()
        await waits


def _waits_for_a_name(db: Connection) -> bool:
    sql = "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
    return bool(db.execute(sql).fetchone()[0])


async def test_what_is_for_the_only_writer_begins_anew_alone(tmp_path: Path) -> None:
    tries = []

    @shared(lambda: ())
    def rare(db: Connection) -> bool:
        tries.append(1)
        db.execute("INSERT INTO meta (key, value) VALUES ('rare', ?)", (str(len(tries)),))
        db.alone()
        return True

    async with stores(tmp_path) as (a, b):
        async with open_beside(a):
            writing = b._db.write(rare)
            while not await a._db.read(_waits_for_a_name):
                pass
        assert await writing
        assert (len(tries), await a._db.read(_value, "rare")) == (2, "2")


def _value(db: Connection, key: str) -> str:
    return str(db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0])


async def test_two_that_wait_for_each_other_are_both_done_in_the_end(tmp_path: Path) -> None:
    meeting = threading.Barrier(2)
    tries: dict[str, int] = defaultdict(int)

    def crossing(first: str, second: str) -> Callable[[Connection], None]:
        @shared(lambda: ())
        def run(db: Connection) -> None:
            tries[first] += 1
            db.execute("UPDATE meta SET value = value || 'x' WHERE key = ?", (first,))
            if tries[first] == 1:
                meeting.wait(DEADLINE_S)
            db.execute("UPDATE meta SET value = value || 'x' WHERE key = ?", (second,))

        return run

    async with stores(tmp_path) as (a, b):
        await a._db.write(lambda db: db.execute("INSERT INTO meta (key, value) VALUES ('one', ''), ('two', '')"))
        await asyncio.gather(a._db.write(crossing("one", "two")), b._db.write(crossing("two", "one")))
        assert sorted(tries.values()) == [1, 2]
        assert [await a._db.read(_value, key) for key in ("one", "two")] == ["xx", "xx"]


async def test_more_names_than_a_server_has_room_for_are_held_by_being_alone(tmp_path: Path) -> None:
    async with stores(tmp_path, 1) as (a,):
        many = [inbound(f"{number}", chat=f"ada/{number}") for number in range(MOST_NAMES + 1)]
        assert {receipt.status for receipt in await accept(a, *many)} == {"stored"}


async def test_three_daemons_hammer_the_same_chats(tmp_path: Path) -> None:  # P42, P43, P44
    async with stores(tmp_path, 3) as daemons:
        session = await daemons[0].open_chat(inbound("0", chat="ada"), "ada", NOW)
        await daemons[0].join_chat(inbound("0", chat="ada/1"), "ada", session, NOW)
        sent: dict[str, list[str]] = defaultdict(list)
        running: set[str] = set()
        all_sent = asyncio.Event()

        async def sender(chat: str, at: int) -> None:
            for number in range(MESSAGES):
                item = inbound(f"{chat}.{number}", f"{chat} says {number}", chat)
                await asyncio.gather(*(accept(each, item) for each in (*daemons, daemons[at % 3])))

        async def until_all_are_sent(store: SqlStore, step: Callable[[], Awaitable[bool]]) -> None:
            while not all_sent.is_set():
                seen = store.version
                if not await step():
                    await store.changed(seen, 0.05)

        async def one_turn(store: SqlStore, owner: str) -> bool:
            claimed = await claim(store, owner)
            if claimed is None:
                return False
            assert claimed.session not in running
            running.add(claimed.session)
            texts = [item.text for item in claimed.items]
            texts += [item.text for item in (await store.steer(claimed, NOW))[0]]
            await store.record(claimed, Step(messages=(NewMessage("assistant", (Text("hm"),), NOW),)))
            texts += [item.text for item in (await store.steer(claimed, NOW))[0]]
            running.remove(claimed.session)
            replies = [Reply(claimed.address, f"re: {text}", (Part(f"re: {text}"),)) for text in texts]
            await store.finish(claimed, Outcome("done"), replies, NOW)
            return True

        async def one_delivery(store: SqlStore, owner: str) -> bool:
            delivery, _ = await store.claim_delivery(owner, "desk", NOW)
            if delivery is None:
                return False
            sent[str(delivery.address)].append(delivery.text)
            await store.settle(delivery, Settlement("sent", "ref"), NOW)
            if sum(map(len, sent.values())) == len(CHATS) * MESSAGES:
                all_sent.set()
            return True

        async with asyncio.TaskGroup() as tasks:
            for number, chat in enumerate(CHATS):
                tasks.create_task(sender(chat, number))
            for number, store in enumerate(daemons):
                for step in (one_turn, one_turn, one_delivery):
                    tasks.create_task(until_all_are_sent(store, partial(step, store, f"d{number}")))

        assert sent == {f"desk:{chat}": [f"re: {chat} says {number}" for number in range(MESSAGES)] for chat in CHATS}
        for each in await daemons[0].sessions():
            rows = await said(daemons[0], each.id)
            assert [message.seq for message in rows] == list(range(1, len(rows) + 1))
        assert await daemons[0]._db.read(transcript.misplaced) == []
