import asyncio
import itertools
import sqlite3
import threading
from math import inf
from pathlib import Path
from typing import Any

import pytest

from clew.context.query import query
from clew.context.view import window
from clew.errors import StoreError
from clew.messages import Text
from clew.store import Claim, Scope, Sender, Verdict
from clew.store.connection import Connection
from clew.store.indexing import Indexer
from clew.store.sqlite import SqliteStore
from clew.store.sqlite.backup import backup
from clew.store.sqlite.connection import SqliteConnection
from clew.store.sqlite.database import SqliteDatabase, migrations
from clew.transport import Inbound
from tests.unit.store_rows import NOW, accept, allow, claim, find, holding, inbound, opened, said, turn


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


@pytest.mark.asyncio
async def test_however_much_is_asked_for_the_statements_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # BO-119
    """Each connection keeps its newest statements ready; ones made to measure would fill its memory."""
    texts: set[str] = set()

    class Recording(SqliteConnection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            texts.add(sql)
            return super().execute(sql, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **more | {"factory": Recording}))
    async with opened(tmp_path) as store:
        for n in range(8):
            await turn(store, str(n), "the needle", "there", f"ada/{n}")
        ids = [each.candidate.id for each in (await find(store, await store.scope_for(operator=True), "needle")).scored if each.why]

        async def ask(size: int) -> None:
            scope = Scope(tuple((chat, -inf, inf) for chat in range(1, size + 1)), "", 0)
            found = await store.search(scope, lambda frequency, total: query("needle"), 100, ids[:size])
            assert len(holding(found)) == len(found.visible) == size
            assert len(await store.messages(ids[:size])) == size
            await store.cached("a provider", "a model", ids[:size], NOW)
            for states in (
                ("pending", "unknown", "dead"),
                ("sent", "pending", "dead"),
            ):  # a statement of its own without those that are sent
                await store.outbox(states[:size])

        await ask(1)
        before = set(texts)
        for size in range(2, len(ids) + 1):
            await ask(size)
        assert texts == before


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
async def test_a_store_opened_for_reading_writes_nothing(tmp_path: Path) -> None:  # P4
    async with opened(tmp_path) as store:
        claimed = await turn(store, "1", "hello", "answer")
        reader = await SqliteStore.open(tmp_path / "clew.db", NOW, read_only=True)
        try:
            assert [m.text for m in await said(reader, claimed.session)] == ["hello", "answer"]
            with pytest.raises(StoreError):
                await accept(reader, inbound("2"))
        finally:
            await reader.close()


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
async def test_waiting_for_a_change_ends_with_one(tmp_path: Path) -> None:  # P42
    async with opened(tmp_path) as store:
        seen = store.version
        waiting = asyncio.create_task(store.changed(seen, 60))
        await accept(store, inbound("1"))
        assert await waiting > seen
        assert await store.changed(seen, 60) == store.version
        assert await store.changed(store.version, 0.01) == store.version


@pytest.mark.asyncio
async def test_whoever_hears_of_an_arrival_claims_it_in_the_same_commit(tmp_path: Path) -> None:  # P42
    async with opened(tmp_path) as store:

        async def claimed() -> Claim | None:
            await store.arrivals.wait(store.arrivals.version, 60)
            return await store.claim_turn("me", NOW, 60.0, frozenset())

        claiming = asyncio.create_task(claimed())
        await asyncio.sleep(0)
        before = store.commits
        await accept(store, inbound("1", "hello"))
        found = await claiming
        assert found is not None
        assert [item.text for item in found.items] == ["hello"]
        assert store.commits == before + 1


@pytest.mark.asyncio
@pytest.mark.parametrize("fail", list(itertools.product((False, True), repeat=3)))
async def test_of_writes_that_share_a_commit_those_that_fail_leave_nothing(tmp_path: Path, fail: tuple[bool, ...]) -> None:  # P42
    def put(db: Connection, number: int) -> int:
        db.execute("INSERT INTO meta (key, value) VALUES (?, '')", (f"put/{number}",))
        if fail[number]:
            raise ValueError(number)
        return number

    def there(db: Connection) -> list[str]:
        return [key for (key,) in db.execute("SELECT key FROM meta WHERE key LIKE 'put/%' ORDER BY key")]

    database = await SqliteDatabase.open(tmp_path / "clew.db", NOW, Indexer())
    try:
        database.write(there)  # is being committed while the others come
        outcomes = await asyncio.gather(*(database.write(put, number) for number in range(3)), return_exceptions=True)
        assert [isinstance(outcome, ValueError) for outcome in outcomes] == list(fail)
        assert database.commits == 2
        assert await database.read(there) == [f"put/{number}" for number in range(3) if not fail[number]]
    finally:
        await database.close()


@pytest.mark.asyncio
async def test_an_arrival_that_cannot_be_stored_takes_nothing_with_it(tmp_path: Path) -> None:  # P42, P44
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", "hello"))

        def fails(item: Inbound, sender: Sender) -> Verdict:
            raise ValueError("no verdict")

        storing = asyncio.create_task(store.accept("desk", [inbound("2")], None, NOW, fails))
        await asyncio.sleep(0)
        found = await store.claim_turn("me", NOW, 60.0, frozenset())
        with pytest.raises(ValueError, match="no verdict"):
            await storing
        assert found is not None
        assert [item.text for item in found.items] == ["hello"]


@pytest.mark.asyncio
async def test_what_waits_when_the_store_is_closed_is_committed_first(tmp_path: Path) -> None:  # P42, P48
    async with opened(tmp_path) as store:
        waiting = [asyncio.create_task(store.accept("desk", [inbound(str(n))], None, NOW, allow())) for n in range(200)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    async with opened(tmp_path) as store:
        assert (await store.counts(NOW))["inbox_new"] == 200


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


@pytest.mark.asyncio
async def test_a_damaged_row_is_left_out_and_its_thread_goes_on(tmp_path: Path) -> None:  # P6, BO-004
    async with opened(tmp_path) as store:
        claimed = await turn(store, "1", "hello", "answer")
        database = sqlite3.connect(tmp_path / "clew.db", isolation_level=None)
        database.execute("DROP TRIGGER messages_append_only")
        database.execute('UPDATE messages SET blocks = \'[{"kind": "nonsense"}]\' WHERE seq = 2')
        database.execute('UPDATE messages SET blocks = \'[{"kind": "nonsense"}, {"kind": "text", "text": "hi"}, 7]\' WHERE seq = 1')
        database.close()
        rows = await store.view(claimed.session)
        assert [message.blocks for message in rows.messages] == [(Text("hi"),), ()]
        assert len(window(rows.messages)) == 1
        one, two = (message.id for message in rows.messages)
        assert window(rows.messages).repairs == (f"message {one}: a part of it cannot be read", f"message {two}: it cannot be read")
        assert await store.verify_session(claimed.session) == [f"message {each} cannot be read, or not all of it" for each in (one, two)]
        exported = await store.export_session(claimed.session)
        assert [each["blocks"] for each in exported["messages"]] == [[{"kind": "text", "text": "hi"}], []]


@pytest.mark.asyncio
async def test_repairs_are_told_once_and_forgotten_with_their_session(tmp_path: Path) -> None:  # BO-004
    async with opened(tmp_path) as store:
        claimed = await turn(store, "1", "hello", "answer")
        assert await store.tell_repairs(claimed.session, ["a", "b"]) == ("a", "b")
        before = store.commits
        assert await store.tell_repairs(claimed.session, ["b", "a"]) == ()
        assert store.commits == before
        assert await store.tell_repairs(claimed.session, ["b", "c"]) == ("c",)
        assert await store.tell_repairs("other", ["c"]) == ("c",)
    async with opened(tmp_path) as store:
        assert await store.tell_repairs(claimed.session, ["a", "b", "c"]) == ()
        await store.delete_session(claimed.session)
        assert await store.tell_repairs(claimed.session, ["a"]) == ("a",)
