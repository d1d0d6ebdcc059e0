import asyncio
import itertools
from collections.abc import Callable
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
from clew.store.opening import open_store
from clew.store.postgresql.connection import PostgresConnection
from clew.store.sqlite.connection import SqliteConnection
from clew.transport import Inbound
from tests.databases import BOTH, databases
from tests.unit.store_rows import NOW, accept, allow, find, holding, inbound, opened, said, turn

pytestmark = BOTH


@pytest.mark.asyncio
async def test_however_much_is_asked_for_the_statements_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # BO-119
    """Each connection keeps its newest statements ready; ones made to measure would fill its memory."""
    texts: set[str] = set()

    def recorded(execute: Callable[..., Any]) -> Callable[..., Any]:
        def record(self: Connection, sql: str, *values: Any) -> Any:
            texts.add(sql)
            return execute(self, sql, *values)

        return record

    for kind in (SqliteConnection, PostgresConnection):
        monkeypatch.setattr(kind, "execute", recorded(kind.execute))
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


@pytest.mark.asyncio
async def test_a_store_opened_for_reading_writes_nothing(tmp_path: Path) -> None:  # P4
    async with opened(tmp_path) as store:
        claimed = await turn(store, "1", "hello", "answer")
        reader = await open_store(databases.store(tmp_path), tmp_path, NOW, read_only=True)
        try:
            assert [m.text for m in await said(reader, claimed.session)] == ["hello", "answer"]
            with pytest.raises(StoreError):
                await accept(reader, inbound("2"))
        finally:
            await reader.close()


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

    store = await open_store(databases.store(tmp_path), tmp_path, NOW)
    database = store._db
    try:
        before = database.commits
        database.write(there)  # is being committed while the others come
        outcomes = await asyncio.gather(*(database.write(put, number) for number in range(3)), return_exceptions=True)
        assert [isinstance(outcome, ValueError) for outcome in outcomes] == list(fail)
        assert database.commits == before + 2
        assert await database.read(there) == [f"put/{number}" for number in range(3) if not fail[number]]
    finally:
        await store.close()


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
async def test_a_damaged_row_is_left_out_and_its_thread_goes_on(tmp_path: Path) -> None:  # P6, BO-004
    async with opened(tmp_path) as store:
        claimed = await turn(store, "1", "hello", "answer")
        damage = ['[{"kind": "nonsense"}, {"kind": "text", "text": "hi"}, 7]', '[{"kind": "nonsense"}]']
        for seq, blocks in enumerate(damage, 1):
            databases.damaged(tmp_path, f"UPDATE messages SET blocks = '{blocks}' WHERE seq = {seq}")
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
