import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from clew.messages import Usage
from clew.store import CacheEntry, Compaction, ModelCall, Outcome, PromptState, Step
from clew.store.prefix_cache import LIMIT, PrefixCache
from clew.store.sql import SqlStore
from tests.databases import BOTH, databases
from tests.unit.store_rows import NOW, accept, claim, inbound, opened, turn

pytestmark = BOTH
REPORT = '{"total": 2, "first_at": 1.0, "last_at": 2.0}'


def revision(session: str, identifier: str = "one", parent: str | None = None, *, first: int = 1, last: int = 2) -> Compaction:
    return Compaction(identifier, session, parent, first, last, "[]", f"text {identifier}", "count", "v1", REPORT, 3, 2, NOW)


@pytest.mark.asyncio
@pytest.mark.parametrize("damage", ["ledger = '[{'", "held = ''", "report = 'null'", "report = '{\"total\": 2}'"])
async def test_a_damaged_compaction_is_passed_over_and_nothing_it_covered_is_lost(tmp_path: Path, damage: str) -> None:  # P6, BO-004
    async with opened(tmp_path) as store:
        session = (await turn(store, "1", "a", "b")).session
        await turn(store, "2", "c", "d")
        await store.compact(None, revision(session), ())
        await store.compact("one", revision(session, "two", "one", first=3, last=4), ())
        databases.altered(tmp_path, f"UPDATE compactions SET {damage} WHERE id = 'two'")
        rows = await store.view(session)
        assert (rows.compaction and rows.compaction.id, [row.text for row in rows.messages]) == ("one", ["c", "d"])
        assert rows.damaged == ("compaction two: it cannot be read",)
        assert await store.verify_session(session) == ["compaction two cannot be read"]
        assert len(await store.compactions(session)) == 2
        assert await store.compact("one", revision(session, "three", "one", first=3, last=4), ())
        assert (await store.view(session)).messages == ()


@pytest.mark.asyncio
async def test_a_compaction_is_committed_only_on_its_own_parent(tmp_path: Path) -> None:  # P6, P15
    async with opened(tmp_path) as store:
        session = (await turn(store, "1", "a", "b")).session
        await turn(store, "2", "c", "d")
        assert not await store.compact("nobody", revision(session), ())
        both = [store.compact(None, revision(session, identifier), ()) for identifier in ("one", "other")]
        assert sorted(await asyncio.gather(*both)) == [False, True]
        (first,) = await store.compactions(session)
        assert not await store.compact(None, revision(session, "late", first=3, last=4), ())
        assert await store.compact(first.id, revision(session, "two", first.id, first=3, last=4), ())
        rows = await store.view(session)
        assert rows.compaction is not None
        assert (rows.compaction.id, rows.messages) == ("two", ())
        assert await store.verify_session(session) == []


@pytest.mark.asyncio
async def test_the_view_is_the_newest_compaction_and_what_came_after(tmp_path: Path) -> None:  # P2, P6
    async with opened(tmp_path) as store:
        session = (await turn(store, "0", "q0", "a0")).session
        for n in (1, 2):
            await turn(store, str(n), f"q{n}", f"a{n}")
        assert [m.text for m in (await store.view(session)).messages] == ["q0", "a0", "q1", "a1", "q2", "a2"]
        await store.compact(None, revision(session, last=4), ())
        rows = await store.view(session)
        assert [m.text for m in rows.messages] == ["q2", "a2"]
    async with opened(tmp_path) as store:
        assert await store.view(session) == rows


@pytest.mark.asyncio
async def test_the_newest_is_the_one_committed_last_whatever_the_clock_said(tmp_path: Path) -> None:  # P2, P6
    async with opened(tmp_path) as store:
        session = (await turn(store, "1", "a", "b")).session
        await turn(store, "2", "c", "d")
        await store.compact(None, revision(session), ())
        short = replace(revision(session, "two", "one", first=3, last=2), kind="shorten", shortened=("m3",), created=NOW - 99)
        assert await store.compact("one", short, ())
        rows = await store.view(session)
        assert rows.compaction == short
        assert (rows.to_seq, set(rows.shortened), len(rows.messages)) == (2, {"m3"}, 2)
        assert [each.id for each in await store.compactions(session)] == ["one", "two"]
        exported = await store.export_session(session)
        await store.delete_session(session)
        await store.import_session(exported, NOW)
        assert (await store.view(session)).compaction == short


@pytest.mark.asyncio
async def test_reported_sizes_teach_the_ratio_of_their_model_and_failed_calls_teach_nothing(tmp_path: Path) -> None:  # P9
    call = ModelCall("c1", "reply", "ada", "local", "any", Usage(1000, 5, 400, 100), NOW, NOW, NOW, estimated=1000)
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        claimed = await claim(store)
        failed = replace(call, id="c2", usage=Usage(), error="server: 500")
        others = (replace(call, id="c3", model="other", usage=Usage(1000)), replace(call, id="c4", estimated=0, usage=Usage(4000)))
        await store.record(claimed, Step(calls=(call, failed, *others)))
    async with opened(tmp_path) as store:
        rows = await store.view(claimed.session)
        assert dict(rows.ratios) == {("local", "any"): 1.5, ("local", "other"): 1.0}
        assert (rows.ratio("local", "any"), rows.ratio("elsewhere", "any")) == (1.5, 1.0)


@pytest.mark.asyncio
async def test_failures_are_counted_over_restarts_and_forgotten_by_a_success(tmp_path: Path) -> None:  # P25
    async with opened(tmp_path) as store:
        session = (await turn(store, "1", "a", "b")).session
        call = ModelCall("call1", "summary", "ada", "local", "any", Usage(5), NOW, None, NOW, error="server: 500")
        assert await store.compaction_failed(session, "500", (call,)) == 1
        assert (await store.session_usage(session)).calls == 1
    async with opened(tmp_path) as store:
        assert await store.compaction_failed(session, "empty", ()) == 2
        assert (await store.view(session)).failures == 2
        await store.compact(None, revision(session), (replace(call, id="call2", error=""),))
        assert (await store.view(session)).failures == 0
        calls = {each["id"]: each["compaction"] for each in (await store.export_session(session))["model_calls"]}
        assert calls == {"call1": None, "call2": "one"}


@pytest.mark.asyncio
async def test_cache_entries_end_when_they_expire_and_are_only_prolonged(tmp_path: Path) -> None:  # P28
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        claimed = await claim(store)
        entries = [CacheEntry("local", "any", "h1", 10, 300, NOW + 300), CacheEntry("local", "other", "h1", 10, 300, NOW + 300)]
        await store.record(claimed, Step(cache=tuple(entries)))
        assert await store.cached("local", "any", ["h1", "h2"], NOW) == {"h1": entries[0]}
        assert await store.cached("local", "any", ["h1"], NOW + 300) == {}
        await store.record(claimed, Step(cache=(replace(entries[0], expires=NOW + 100),)))
        assert (await store.cached("local", "any", ["h1"], NOW))["h1"].expires == NOW + 300
        await store.expire_cache(NOW + 300)
        assert await store.cached("local", "any", ["h1"], NOW) == {}


def many(first: int, count: int, expires: float) -> tuple[CacheEntry, ...]:
    return tuple(CacheEntry("local", "any", f"h{n}", 10, 300, expires) for n in range(first, first + count))


@pytest.mark.asyncio
async def test_of_more_prefixes_than_are_kept_in_memory_none_is_lost(tmp_path: Path) -> None:  # P28
    async def known(store: SqlStore, *hashes: str) -> set[str]:
        return set(await store.cached("local", "any", hashes, NOW))

    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        claimed = await claim(store)
        await store.record(claimed, Step(cache=many(0, LIMIT, NOW + 300)))
        assert await known(store, "h0", f"h{LIMIT}") == {"h0"}
        await store.record(claimed, Step(cache=many(LIMIT, 1, NOW + 600)))
        assert await known(store, "h0", f"h{LIMIT}") == {"h0", f"h{LIMIT}"}
    async with opened(tmp_path) as store:
        assert await known(store, "h0", f"h{LIMIT}") == {"h0", f"h{LIMIT}"}
        await store.expire_cache(NOW + 300)
        assert await known(store, "h0", f"h{LIMIT}") == {f"h{LIMIT}"}
        await store.recover(frozenset(), NOW)
        await store.record(await claim(store), Step(cache=many(0, 1, NOW + 900)))
        assert await known(store, "h0", f"h{LIMIT}") == {"h0", f"h{LIMIT}"}


def test_the_memory_of_prefixes_is_bounded() -> None:  # BO-119
    cache = PrefixCache()
    cache.load(many(0, LIMIT, NOW + 300))
    assert cache.whole
    cache.add(many(0, LIMIT, NOW + 600))
    assert cache.whole
    cache.add(many(LIMIT, 1, NOW + 600))
    cache.add(many(0, 1, NOW + 600))
    assert not cache.whole
    assert not cache.held("local", "any", [f"h{n}" for n in range(LIMIT + 1)], NOW)
    cache.load(())
    assert not cache.whole  # what came while the table was read may be missing


@pytest.mark.asyncio
async def test_the_prompts_state_is_kept_byte_for_byte(tmp_path: Path) -> None:  # P2, P29
    state = PromptState("notes\n", "block\u2028 🙂", '[{"a": 1}]', "turn", "one", NOW)
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        claimed = await claim(store)
        await store.finish(claimed, Outcome("done", Step(prompt=state)), (), NOW)
    async with opened(tmp_path) as store:
        assert (await store.view(claimed.session)).prompt == state
