"""A store in a file: what SQLite, its log, its locks and its migrations do."""

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from clew.errors import StoreError
from clew.store.sqlite import SqliteStore
from clew.store.sqlite.backup import backup
from clew.store.sqlite.connection import SqliteConnection
from clew.store.sqlite.database import migrations
from tests.databases import SQLITE
from tests.unit.store_rows import NOW, accept, claim, inbound, opened, turn

pytestmark = SQLITE


def test_migrations_are_numbered_without_gap_or_repetition() -> None:  # P2
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


@pytest.mark.asyncio
async def test_a_file_of_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:  # P2
    path = tmp_path / "clew.db"
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {migrations()[-1][0] + 1}")
    database.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer clew") as caught:
        await SqliteStore.open(path, NOW)
    assert "another data_dir" in caught.value.hint
    assert path.read_bytes() == before


@pytest.mark.asyncio
async def test_a_file_of_an_older_schema_is_not_read_before_it_is_brought_up_to_date(tmp_path: Path) -> None:  # P2
    path, copy = tmp_path / "clew.db", tmp_path / "copy.db"
    async with opened(tmp_path) as store:
        await turn(store, "1", "hello", "answer")
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 1")
    database.commit()
    database.close()
    with pytest.raises(StoreError, match="older clew") as caught:
        await SqliteStore.open(path, NOW, read_only=True)
    assert "clew run" in caught.value.hint
    assert backup(path, copy) == copy.stat().st_size, "the way back is copied in front of it"


@pytest.mark.asyncio
async def test_a_store_that_cannot_be_prepared_leaves_no_thread_behind(tmp_path: Path) -> None:  # P49
    async with opened(tmp_path):
        pass
    database = sqlite3.connect(tmp_path / "clew.db")
    database.execute("DROP TABLE documents")
    database.close()
    before = set(threading.enumerate())
    with pytest.raises(sqlite3.OperationalError, match="documents"):
        await SqliteStore.open(tmp_path / "clew.db", NOW, read_only=True)
    for left in set(threading.enumerate()) - before:
        left.join(10)  # a connection's thread ends a moment after it was closed
        assert not left.is_alive()


@pytest.mark.asyncio
async def test_what_is_no_database_is_refused_in_plain_words(tmp_path: Path) -> None:  # P49
    path = tmp_path / "clew.db"
    path.write_bytes(b"this is not a database, but it is long enough to look like one" * 100)
    with pytest.raises(StoreError, match=r"clew\.db: the store cannot be opened"):
        await SqliteStore.open(path, NOW)
    assert b"not a database" in path.read_bytes()


@pytest.mark.asyncio
async def test_a_sqlite_without_fts5_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # P49, BO-041
    class WithoutFts5(SqliteConnection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if "USING fts5" in sql:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(sql, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **more | {"factory": WithoutFts5}))
    with pytest.raises(StoreError, match="has no FTS5") as caught:
        await SqliteStore.open(tmp_path / "clew.db", NOW)
    assert "FTS5" in caught.value.hint


def ended(before: set[threading.Thread]) -> bool:
    """Whether every thread that began since `before` ends."""
    begun = [thread for thread in threading.enumerate() if thread not in before]
    for thread in begun:
        thread.join(10)
    return not any(thread.is_alive() for thread in begun)


@pytest.mark.asyncio
async def test_a_failed_open_leaves_no_thread_behind(tmp_path: Path) -> None:  # BO-096
    before = set(threading.enumerate())
    (tmp_path / "clew.db").mkdir()
    with pytest.raises(StoreError):
        await SqliteStore.open(tmp_path / "clew.db", NOW)
    assert ended(before)


@pytest.mark.asyncio
async def test_a_write_waits_for_a_locked_file(tmp_path: Path) -> None:  # P42, BO-043
    async with opened(tmp_path) as store:
        locking = sqlite3.connect(tmp_path / "clew.db", isolation_level=None)
        locking.execute("BEGIN EXCLUSIVE")
        waiting = asyncio.create_task(accept(store, inbound("1")))
        await asyncio.sleep(2.0)  # what is tested is a lock that lasts
        assert not waiting.done()
        locking.execute("ROLLBACK")
        locking.close()
        assert [receipt.status for receipt in await waiting] == ["stored"]
        assert [receipt.status for receipt in await accept(store, inbound("2"))] == ["stored"]


@pytest.mark.asyncio
async def test_what_was_committed_survives_without_a_close(tmp_path: Path) -> None:  # P2, P48
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"), cursor="1")
        copy = tmp_path / "copy"
        copy.mkdir()
        for file in tmp_path.glob("clew.db*"):  # what a killed process leaves on the disk
            (copy / file.name).write_bytes(file.read_bytes())
    async with opened(copy) as store:
        assert await store.cursor("desk") == "1"
        assert (await claim(store)).items[0].client_id == "1"
        assert await store.check() == []


@pytest.mark.asyncio
async def test_a_reader_leaves_no_snapshot_behind(tmp_path: Path) -> None:  # BO-045
    async with opened(tmp_path) as store:
        await turn(store, "0", "hello", "answer")
        reading = [asyncio.create_task(store.history("desk:ada", 0, 100)) for _ in range(20)]
        await asyncio.sleep(0)
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        for n in range(40):
            await asyncio.gather(*(accept(store, inbound(f"{n}/{m}", "x" * 2000, "bob")) for m in range(20)))
        checkpoint = sqlite3.connect(tmp_path / "clew.db", isolation_level=None)
        busy, pages, moved = checkpoint.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        checkpoint.close()
        assert (busy, pages) == (0, moved)


@pytest.mark.asyncio
async def test_damage_is_found_and_said(tmp_path: Path) -> None:  # P49, BO-042
    async with opened(tmp_path) as store:
        await turn(store, "1", "hello world", "answer")
        assert await store.check() == []
        database = sqlite3.connect(tmp_path / "clew.db", isolation_level=None)
        database.execute("DELETE FROM messages_fts_idx")
        database.execute("DELETE FROM messages_fts_data WHERE id > 10")
        database.close()
    async with opened(tmp_path) as store:
        assert any("search index is malformed" in problem for problem in await store.check())


@pytest.mark.asyncio
async def test_the_log_is_written_back_while_others_read(tmp_path: Path) -> None:  # BO-045
    async with opened(tmp_path) as store:
        for number in range(20):
            await turn(store, str(number), "hello world " * 200, "answer " * 200)
        log = tmp_path / "clew.db-wal"
        assert log.stat().st_size > 0
        readings = [asyncio.create_task(store.history("desk:ada", 0, 100)) for _ in range(20)]
        await store._db.checkpoint()
        assert log.stat().st_size == 0
        assert {len(each) for each in await asyncio.gather(*readings)} == {40}
