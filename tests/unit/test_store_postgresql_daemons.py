"""What PostgreSQL adds where several daemons work on one database: wakes from one to the other, and leases that wait for nobody."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clew.errors import StoreError
from clew.membership import LEASE
from clew.store.connection import Connection
from clew.store.doors.opened import Opened
from clew.store.indexing import Indexer
from clew.store.postgresql import connection
from clew.store.postgresql.connection import SILENT_MS, PostgresConnection
from clew.store.postgresql.database import PostgresDatabase
from clew.transport import Address
from tests.databases import POSTGRESQL, databases

pytestmark = POSTGRESQL
DEADLINE_S = 20.0


@asynccontextmanager
async def two(folder: Path) -> AsyncIterator[list[Opened]]:
    url = databases.store(folder)
    found = [await PostgresDatabase.open(url, Indexer()) for _ in range(2)]
    try:
        yield [Opened(folder / "clew.db", each, Indexer(())) for each in found]
    finally:
        for each in found:
            await each.close()


async def listening(folder: Path, count: int) -> None:
    """Wait until so many connections listen."""
    name = databases.store(folder).rpartition("/")[2]
    sql = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND query LIKE 'LISTEN%'"
    async with asyncio.timeout(DEADLINE_S):
        while int(await asyncio.to_thread(databases.server.sql, sql)) < count:
            pass


@pytest.mark.asyncio
async def test_what_one_tells_the_other_hears_and_not_oneself(tmp_path: Path) -> None:  # P44
    async with two(tmp_path) as (a, b):
        heard: dict[Opened, list[Address]] = {a: [], b: []}
        tasks = [asyncio.create_task(each.listen(places.append)) for each, places in heard.items()]
        await listening(tmp_path, 2)
        seen, own, long = b.arrivals.version, a.jobs_changed.version, Address("web", "x" * 9000)  # longer than can be told
        async with asyncio.timeout(DEADLINE_S):
            while b.arrivals.version == seen or not heard[b]:  # whoever listens only now hears what is told from now on
                a._tell_others(a.arrivals, said=[Address("web", "me", "ü" * 10), long])
                await b.changed(b.version, 0.1)
            while a.jobs_changed.version == own:
                b._tell_others(b.jobs_changed)
                await a.changed(a.version, 0.1)
        assert (heard[a], set(heard[b])) == ([], {Address("web", "me", "ü" * 10)})
        for task in tasks:
            task.cancel()


@pytest.mark.asyncio
async def test_a_lost_connection_is_no_silence(tmp_path: Path) -> None:  # P48
    async with two(tmp_path) as (a, _):
        task = asyncio.create_task(a.listen(lambda where: None))
        await listening(tmp_path, 1)
        name = databases.store(tmp_path).rpartition("/")[2]
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        databases.server.sql(f"{cut} WHERE datname = '{name}' AND query LIKE 'LISTEN%'")
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(StoreError):
                await task


@pytest.mark.asyncio
async def test_a_lease_is_renewed_beside_a_long_write(tmp_path: Path) -> None:  # P48
    async with two(tmp_path) as (a, b):
        loop, begun, over = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        await a.leases.join("a", 60.0, frozenset(), 0.0)

        def long(db: Connection) -> None:
            db.execute("SELECT 1")
            loop.call_soon_threadsafe(begun.set)
            asyncio.run_coroutine_threadsafe(over.wait(), loop).result()

        writing = b._db.write(long)
        await begun.wait()
        async with asyncio.timeout(DEADLINE_S):
            assert await a.leases.renew("a", 60.0) == {"daemon:a"}
            assert await a.leases.acquire("a", "upkeep")
            assert not await b.leases.acquire("b", "upkeep")
            assert await b.leases.free(["upkeep", "transport:desk"]) == ["transport:desk"]
        over.set()
        await writing


@pytest.mark.asyncio
async def test_of_two_who_come_at_once_one_holds_a_name(tmp_path: Path) -> None:  # P44
    async with two(tmp_path) as (a, b):
        await a.leases.join("a", 60.0, frozenset(), 0.0)
        await b.leases.join("b", 60.0, frozenset(), 0.0)
        for number in range(20):
            got = await asyncio.gather(a.leases.acquire("a", f"name{number}"), b.leases.acquire("b", f"name{number}"))
            assert sorted(got) == [False, True]


@pytest.mark.asyncio
async def test_who_is_frozen_in_a_write_holds_up_the_others_for_a_while_only(tmp_path: Path) -> None:  # P48
    assert SILENT_MS < LEASE * 1000
    async with two(tmp_path) as (a, b):
        frozen, begun = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def freeze(db: Connection) -> None:
            db.execute(f"SELECT set_config('idle_in_transaction_session_timeout', '{SILENT_MS // 100}', true)")
            loop.call_soon_threadsafe(begun.set)
            assert frozen.wait(DEADLINE_S)
            db.execute("SELECT 1")

        late = a._db.write(freeze)
        await begun.wait()
        async with asyncio.timeout(DEADLINE_S):
            assert await b._db.write(lambda db: db.execute("SELECT 1").fetchone()[0]) == 1
        frozen.set()
        with pytest.raises(StoreError):
            await late
        assert await a._db.write(lambda db: db.execute("SELECT 1").fetchone()[0]) == 1


@pytest.mark.asyncio
async def test_who_is_frozen_with_a_statement_in_hand_is_ended_by_whoever_renews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # P48
    monkeypatch.setattr(connection, "FROZEN", connection.FROZEN.replace(f"{SILENT_MS} milliseconds", "100 milliseconds"))
    async with two(tmp_path) as (a, b):
        frozen, begun = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        await b.leases.join("b", 60.0, frozenset(), 0.0)

        def freeze(db: Connection) -> None:
            assert isinstance(db, PostgresConnection)
            db._run(db._statement("SELECT 2"))
            loop.call_soon_threadsafe(begun.set)
            assert frozen.wait(DEADLINE_S)
            db.execute("SELECT 2")

        late = a._db.write(freeze)
        await begun.wait()
        waits = b._db.write(lambda db: db.execute("SELECT 1").fetchone()[0])
        async with asyncio.timeout(DEADLINE_S):
            while not waits.done():
                assert await b.leases.renew("b", 60.0)
        assert await waits == 1
        frozen.set()
        with pytest.raises(StoreError):
            await late
        assert await a._db.write(lambda db: db.execute("SELECT 1").fetchone()[0]) == 1


def lose(db: Connection) -> None:
    """Lose the connection between two statements, and notice it before the next one."""
    assert isinstance(db, PostgresConnection)
    (backend,) = db.execute("SELECT pg_backend_pid()").fetchone()
    databases.server.sql(f"SELECT pg_terminate_backend({backend})")
    while not db._raw.is_closed():
        db._run(asyncio.sleep(0.01))


@pytest.mark.asyncio
@pytest.mark.parametrize("goes_on", [True, False])
async def test_the_rest_of_a_write_does_not_stand_without_its_beginning(tmp_path: Path, goes_on: bool) -> None:  # P43 P48
    def write(db: Connection, name: str) -> None:
        db.execute("INSERT INTO meta (key, value) VALUES (?, 'first')", (f"{name}/1",))
        lose(db)
        if goes_on:
            db.execute("INSERT INTO meta (key, value) VALUES (?, 'rest')", (f"{name}/2",))

    async with two(tmp_path) as (a, b):
        for name, run in (("grouped", a._db.write), ("aside", a._db.write_aside)):
            with pytest.raises(StoreError):
                await run(write, name)
        stored = "SELECT key FROM meta WHERE key LIKE 'grouped/%' OR key LIKE 'aside/%'"
        assert await b._db.read(lambda db: db.execute(stored).fetchall()) == []
        assert await a._db.write(lambda db: db.execute("SELECT 1").fetchone()[0]) == 1
