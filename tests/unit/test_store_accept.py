import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from clew.bus import Bus
from clew.clock import Time
from clew.errors import NotFound, StoreError
from clew.inbox import Door
from clew.metrics import Metrics
from clew.store import Outcome, Sender, Verdict
from clew.store import accept as arrivals
from clew.store.sqlite.connection import SqliteConnection
from clew.transport import Inbound
from tests.databases import BOTH, SQLITE, databases
from tests.unit.store_rows import CODE, DECIDE, NOW, accept, allow, claim, found, inbound, opened, said

pytestmark = BOTH


@pytest.mark.asyncio
async def test_a_redelivered_arrival_is_stored_once(tmp_path: Path) -> None:  # P42, BO-047
    async with opened(tmp_path) as store:
        assert [r.status for r in await accept(store, inbound("1"))] == ["stored"]
        assert [r.status for r in await accept(store, inbound("1"), inbound("2"), inbound("1"))] == ["duplicate", "stored", "duplicate"]
    async with opened(tmp_path) as store:
        assert [r.status for r in await accept(store, inbound("2"))] == ["duplicate"]
        assert (await store.counts(NOW))["inbox_new"] == 2


@pytest.mark.asyncio
async def test_copies_that_arrive_at_once_are_stored_once(tmp_path: Path) -> None:  # P42, BO-050
    async with opened(tmp_path) as store:
        receipts = await asyncio.gather(*(accept(store, inbound("1")) for _ in range(20)))
        statuses = [receipt.status for (receipt,) in receipts]
        assert sorted(statuses) == ["duplicate"] * 19 + ["stored"]
        assert (await store.counts(NOW))["inbox_new"] == 1


@pytest.mark.asyncio
async def test_rows_and_cursor_are_one_commit(tmp_path: Path) -> None:  # P42
    async with opened(tmp_path) as store:
        before = store.commits
        await accept(store, inbound("1"), inbound("2"), cursor="offset 2")
        assert store.commits == before + 1

        def breaks(item: Inbound, sender: Sender) -> Verdict:
            if item.client_id == "4":
                raise RuntimeError("in the middle of the batch")
            return Verdict()

        with pytest.raises(RuntimeError):
            await store.accept("desk", [inbound("3"), inbound("4")], "offset 4", NOW, breaks)
        assert await store.cursor("desk") == "offset 2"
        assert (await store.counts(NOW))["inbox_new"] == 2
        assert [r.status for r in await accept(store, inbound("3"), cursor="offset 3")] == ["stored"]
        assert await store.cursor("desk") == "offset 3"


@pytest.mark.asyncio
async def test_cursors_belong_to_their_transport(tmp_path: Path) -> None:  # P42
    async with opened(tmp_path) as store:
        assert await store.cursor("desk") is None
        await accept(store, inbound("1"), cursor="7")
        await store.accept("mqtt", [], "8", NOW, allow())
        assert (await store.cursor("desk"), await store.cursor("mqtt")) == ("7", "8")


@pytest.mark.asyncio
async def test_a_stranger_gets_one_code_and_leaves_no_words(tmp_path: Path) -> None:  # P46, BO-101
    async with opened(tmp_path) as store:
        receipts = await accept(store, *(inbound(str(n), f"unheard {n}", "mallory") for n in range(3)))
        assert {(r.status, r.reason) for r in receipts} == {("refused", "unknown sender")}
        (request,) = await store.access_requests()
        assert (request.identity, request.code, request.state, request.messages) == ("desk:mallory", CODE, "open", 3)
        (sent,) = await store.outbox(("pending",))
        assert sent["address"] == "desk:mallory"
        assert CODE in (await store.history("desk:mallory", 0, 10))[0].text
        assert await store.claim_turn("me", NOW, 60, frozenset()) is None
    assert "unheard" not in databases.dump(tmp_path)


@pytest.mark.asyncio
@pytest.mark.parametrize("key", [CODE, CODE.lower(), "desk:mallory"])
async def test_an_approved_stranger_is_let_in(tmp_path: Path, key: str) -> None:  # P46
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", "hello", "mallory"))
        assert await store.answer_access(key, True, "guest", NOW) is not None
        assert [r.status for r in await accept(store, inbound("2", "hello again", "mallory"))] == ["stored"]
        claimed = await claim(store)
        assert claimed.person is not None
        assert (claimed.person.id, claimed.person.role) == ("desk:mallory", "guest")
        with pytest.raises(NotFound):
            await store.answer_access("NOSUCHCD", True, "guest", NOW)


@pytest.mark.asyncio
async def test_a_denied_stranger_gets_no_second_code(tmp_path: Path) -> None:  # P46
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", "hello", "mallory"))
        await store.answer_access(CODE, False, "guest", NOW)
        assert [r.reason for r in await accept(store, inbound("2", "hello?", "mallory"))] == ["unknown sender"]
        assert len(await store.outbox(("pending",))) == 1


@pytest.mark.asyncio
async def test_a_refused_arrival_is_kept_and_answered_without_a_turn(tmp_path: Path) -> None:  # P42
    async with opened(tmp_path) as store:
        (receipt,) = await accept(store, inbound("1", "x", refused="it has 5 MB"))
        assert (receipt.status, receipt.reason) == ("refused", "it has 5 MB")
        assert await store.claim_turn("me", NOW, 60, frozenset()) is None
        assert "it has 5 MB" in (await store.history("desk:ada", 0, 10))[-1].text
        assert [r.status for r in await accept(store, inbound("1", "x", refused="it has 5 MB"))] == ["duplicate"]
        assert len(await store.outbox(("pending",))) == 1
        assert [r.status for r in await accept(store, inbound("1", "shorter"))] == ["stored"], "mended, it is taken under its id"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "text", ["a\x00b", "lone \ud800 half", "not a character \ufffe", "x" * 1_000_000, "\x1b[31mred", "e\u0301" * 50_000]
)
async def test_odd_characters_are_stored_and_indexed(tmp_path: Path, text: str) -> None:  # P49, BO-042
    async with opened(tmp_path) as store:
        door = Door("desk", store, allow(), Time(), Metrics(), lambda turn: None, lambda up, detail: None, Bus(), False, tmp_path)
        await door.accept([inbound("1", f"needle {text}"), inbound("2", "afterwards")])
        claimed = await claim(store, 2e9)
        (message,) = await said(store, claimed.session)
        assert not set(message.text) & {"\x00", "\ud800", "\ufffe", "\x1b"}
        assert message.text.startswith("needle")
        assert await found(store, "needle") == {message.id}
        assert await store.check() == []


@pytest.mark.asyncio
async def test_an_error_in_a_transaction_takes_nothing_with_it(tmp_path: Path) -> None:  # P42, BO-044
    def breaks(item: Inbound, sender: Sender) -> Verdict:
        raise ValueError(item.client_id)

    async def broken(identifier: str) -> None:
        with pytest.raises(ValueError, match=identifier):
            await store.accept("desk", [inbound(identifier)], None, NOW, breaks)

    async with opened(tmp_path) as store:
        good = [accept(store, inbound(f"good {n}")) for n in range(10)]
        await asyncio.gather(*good, *(broken(f"bad {n}") for n in range(10)))
        assert (await store.counts(NOW))["inbox_new"] == 10
        databases.altered(tmp_path, "INSERT INTO meta (key, value) VALUES ('second', 'process')")


@pytest.mark.asyncio
async def test_writes_that_arrive_together_share_a_commit(tmp_path: Path) -> None:  # P42
    async with opened(tmp_path) as store:
        before = store.commits
        await asyncio.gather(*(accept(store, inbound(str(n))) for n in range(50)))
        assert (await store.counts(NOW))["inbox_new"] == 50
        assert store.commits - before <= 5


@pytest.mark.asyncio
async def test_a_caller_that_is_cancelled_neither_loses_nor_undoes_a_write(tmp_path: Path) -> None:  # P42, P48
    async with opened(tmp_path) as store:
        tasks = [asyncio.create_task(accept(store, inbound(str(n)))) for n in range(10)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        outcomes: Sequence[object] = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        receipts = await accept(store, *(inbound(str(n)) for n in range(10)))
        assert {receipt.status for receipt in receipts} == {"duplicate"}
        assert [item.client_id for item in (await claim(store, merging=frozenset({"desk"}))).items] == [str(n) for n in range(10)]


@pytest.mark.asyncio
async def test_reading_writes_nothing(tmp_path: Path) -> None:  # P22
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", "a word"))
        session = (await claim(store)).session
        before = store.commits
        await store.view(session)
        await store.transcript(session)
        await store.history("desk:ada", 0, 10)
        await found(store, "word")
        await store.sessions()
        await store.find_session(session)
        await store.verify_session(session)
        await store.export_session(session)
        await store.counts(NOW)
        assert await store.claim_turn("me", NOW, 60, frozenset()) is None
        assert await store.claim_delivery("me", "desk", NOW) == (None, None)
        assert store.commits == before


@pytest.mark.asyncio
async def test_a_closed_store_says_so(tmp_path: Path) -> None:  # P42
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
    with pytest.raises(StoreError, match="closed"):
        await accept(store, inbound("2"))


def test_the_policy_of_these_tests_is_the_real_one() -> None:  # P46
    assert DECIDE(inbound("1", "hello", "mallory"), Sender(None, None, None, 0, 0, None)).pair == CODE


@pytest.mark.asyncio
async def test_what_is_deleted_before_anybody_answered_is_not_answered(tmp_path: Path) -> None:
    def deletion(of: str) -> Inbound:
        return inbound(f"{of}/gone", "", kind="delete", edits=f"desk/{of}", sender="moderator")

    async with opened(tmp_path) as store:
        await accept(store, inbound("1", "unsaid"), inbound("2", "said"), deletion("1"), deletion("1"), deletion("none"))
        claimed = await claim(store)
        assert [each.text for each in claimed.items] == ["said"]
        await accept(store, deletion("2"))
        assert await store.outbox(("pending",)) == []
        assert [row.text for row in await store.history("desk:ada", 0, 10)] == ["said"]


@pytest.mark.asyncio
async def test_an_edit_takes_the_place_of_what_nobody_has_answered_and_starts_no_turn(tmp_path: Path) -> None:  # BO-075
    def edit(identifier: str, text: str, of: str, **more: Any) -> Inbound:
        return inbound(identifier, text, kind="edit", edits=f"desk/{of}", **more)

    async with opened(tmp_path) as store:
        await accept(store, inbound("1", "helo"), edit("1/e1", "hello", "1"), edit("1/e2", "hello!", "1"))
        await accept(store, edit("1/e3", "not mine", "1", sender="bob"))
        claimed = await claim(store)
        assert [item.text for item in claimed.items] == ["hello!"]
        await accept(store, edit("1/e4", "too late", "1"), edit("7/e5", "of nothing", "7"))
        await store.finish(claimed, Outcome("done"), (), NOW)
        assert await store.claim_turn("me", NOW, 60.0, frozenset()) is None
        assert [r.status for r in await accept(store, edit("1/e4", "too late", "1"))] == ["duplicate"]


@SQLITE
@pytest.mark.asyncio
async def test_an_arrival_costs_few_statements_and_reads_no_whole_table(tmp_path: Path) -> None:
    """A database may be far away, and full."""
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
    database = sqlite3.connect(tmp_path / "clew.db", isolation_level=None, factory=SqliteConnection)
    asked: list[str] = []
    database.set_trace_callback(asked.append)
    arrivals.accept(database, "desk", [inbound("2", "and then?")], None, NOW, allow(), False)
    database.set_trace_callback(None)
    read, written = [sql for sql in asked if sql.startswith("SELECT")], [sql for sql in asked if sql.startswith("INSERT")]
    assert (len(read), len(written), len(asked)) == (2, 2, 4)
    plans = [row[3] for sql in read for row in database.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert {plan for plan in plans if plan.startswith("SCAN")} <= {"SCAN CONSTANT ROW", "SCAN one"}
    database.close()
