import asyncio
from pathlib import Path

import pytest

from clew.messages import Text, ToolCall, ToolResult, Usage
from clew.store import LeaseLost, ModelCall, NewMessage, Outcome, Step, ToolState
from clew.store.connection import Unfit
from tests.databases import BOTH, databases
from tests.unit.store_rows import LEASE, NOW, accept, claim, inbound, opened, reply, said

pytestmark = BOTH
MERGING = frozenset({"desk"})


def spoke(text: str) -> Step:
    return Step(messages=(NewMessage("assistant", (Text(text),), NOW),))


@pytest.mark.asyncio
async def test_a_session_has_one_turn_at_a_time_and_keeps_its_order(tmp_path: Path) -> None:  # P44
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", chat="ada"), inbound("2", chat="ada"), inbound("3", chat="bob"))
        first, other = await claim(store), await claim(store)
        assert ([i.client_id for i in first.items], [i.client_id for i in other.items]) == (["1"], ["3"])
        assert await store.claim_turn("me", NOW, LEASE, frozenset()) is None
        await store.finish(first, Outcome("done"), (), NOW)
        second = await claim(store)
        assert ([i.client_id for i in second.items], second.session) == (["2"], first.session)


@pytest.mark.asyncio
async def test_parallel_claims_never_give_one_turn_twice(tmp_path: Path) -> None:  # P44
    async with opened(tmp_path) as store:
        await accept(store, *(inbound(f"{name}{n}", chat=name) for n in range(3) for name in ("ada", "bob", "eve")))
        claims = await asyncio.gather(*(store.claim_turn(f"owner {n}", NOW, LEASE, frozenset()) for n in range(12)))
        taken = [claimed for claimed in claims if claimed]
        assert sorted(claimed.items[0].client_id for claimed in taken) == ["ada0", "bob0", "eve0"]


@pytest.mark.asyncio
async def test_only_messages_merge(tmp_path: Path) -> None:  # P44
    async with opened(tmp_path) as store:
        await accept(store, *(inbound(str(n), text) for n, text in enumerate(["a", "b", "/status", "c", "d"])))
        seen = []
        while claimed := await store.claim_turn("me", NOW, LEASE, MERGING):
            seen.append((claimed.kind, [item.text for item in claimed.items]))
            await store.finish(claimed, Outcome("done"), (), NOW)
        assert seen == [("message", ["a", "b"]), ("command", ["/status"]), ("message", ["c", "d"])]


@pytest.mark.asyncio
async def test_a_claim_appends_what_was_said(tmp_path: Path) -> None:  # P1, P42
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", "one", sender_name="Ada"), inbound("2", "two"), now=NOW - 5)
        claimed = await claim(store, merging=MERGING)
        one, two = await said(store, claimed.session)
        assert (one.text, one.sender, one.sender_name, one.at, one.turn) == ("one", "ada", "Ada", NOW - 5, claimed.turn)
        assert (claimed.first_seq, two.text) == (one.seq, "two")


@pytest.mark.asyncio
async def test_a_step_is_stored_whole(tmp_path: Path) -> None:  # P1
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        claimed = await claim(store)
        call = ToolCall("c1", "look", '{"b":1,"a":2}')
        usage = Usage(1, 2, 3, 4)
        step = Step(
            messages=(NewMessage("assistant", (Text("looking"), call), NOW), NewMessage("tool", (ToolResult("c1", "look", "seen"),), NOW)),
            calls=(ModelCall("call23456789", "reply", "ada", "local", "any", usage, NOW, NOW, NOW + 1),),
            tools=(ToolState("c1", "look", call.arguments, "done", NOW),),
        )
        asked, seen = await store.record(claimed, step)
        assert (asked.calls, seen.results) == ((call,), (ToolResult("c1", "look", "seen"),))
        assert [m.seq for m in await said(store, claimed.session)] == [1, 2, 3]
        assert await store.tool_states(claimed.turn) == {"c1": "done"}
        assert (await store.session_usage(claimed.session)).usage == usage
        exported = await store.export_session(claimed.session)
        assert exported["messages"][1]["blocks"][1]["arguments"] == '{"b":1,"a":2}'


@pytest.mark.asyncio
async def test_who_lost_the_lease_writes_nothing(tmp_path: Path) -> None:  # P44, P48
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        old = await claim(store, owner="old")
        new = await claim(store, NOW + LEASE + 1, owner="new")
        assert (new.turn, new.epoch, new.resumed) == (old.turn, old.epoch + 1, True)
        with pytest.raises(LeaseLost):
            await store.record(old, spoke("ghost"))
        with pytest.raises(LeaseLost):
            await store.finish(old, Outcome("done", spoke("ghost")), [reply("ghost")], NOW)
        await store.finish(new, Outcome("done", spoke("real")), [reply("real")], NOW)
        with pytest.raises(LeaseLost):
            await store.finish(new, Outcome("done"), [reply("twice")], NOW)
        assert [m.text for m in await said(store, new.session)] == ["hello", "real"]
        assert [d["address"] for d in await store.outbox(("pending",))] == ["desk:ada"]


@pytest.mark.asyncio
async def test_a_lost_lease_spoils_no_write_of_the_same_commit(tmp_path: Path) -> None:  # P42, P44
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", chat="ada"), inbound("2", chat="bob"))
        old, other = await claim(store, owner="old"), await claim(store, NOW + 1)
        await store.recover(frozenset(), NOW + 2)
        assert (await claim(store, NOW + 2, owner="new")).turn == old.turn
        again = await claim(store, NOW + 2)
        lost, *kept = await asyncio.gather(
            store.record(old, spoke("ghost")), store.record(again, spoke("kept")), accept(store, inbound("3")), return_exceptions=True
        )
        assert isinstance(lost, LeaseLost)
        assert not any(isinstance(each, BaseException) for each in kept)
        assert [m.text for m in await said(store, other.session)] == ["hello", "kept"]


@pytest.mark.asyncio
async def test_a_restart_voids_all_leases(tmp_path: Path) -> None:  # P2, P48
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"), inbound("2"))
        before = await claim(store, owner="dead")
        await store.record(before, spoke("half"))
    async with opened(tmp_path) as store:
        assert await store.recover(frozenset(), NOW) == (1, 0)
        again = await claim(store)
        assert (again.turn, again.items, again.first_seq, again.started) == (before.turn, before.items, before.first_seq, before.started)
        assert again.resumed
        assert [m.text for m in await said(store, again.session)] == ["hello", "half"]
        assert again.attempts == 2
        assert await store.claim_turn("me", NOW, LEASE, frozenset()) is None


@pytest.mark.asyncio
async def test_a_turn_and_its_replies_end_in_one_commit(tmp_path: Path) -> None:  # P43
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        claimed = await claim(store)
        before = store.commits
        (identifier,) = await store.finish(claimed, Outcome("done", spoke("yes")), [reply("yes")], NOW)
        assert store.commits == before + 1
        (waiting,) = await store.outbox(("pending",))
        assert (waiting["id"], waiting["session"]) == (identifier, claimed.session)


@pytest.mark.asyncio
async def test_an_expired_arrival_is_not_answered(tmp_path: Path) -> None:  # P42
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", "too late", expires_at=NOW + 1), inbound("2", "in time"))
        assert [item.text for item in (await claim(store, NOW + 2)).items] == ["in time"]


@pytest.mark.asyncio
async def test_a_new_session_begins_with_the_next_message(tmp_path: Path) -> None:  # P5
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"), inbound("2"))
        first = await claim(store)
        await store.finish(first, Outcome("done", new_session=True), (), NOW)
        second = await claim(store)
        assert second.session != first.session
        assert len(await store.sessions("desk:ada")) == 2


@pytest.mark.asyncio
async def test_no_message_can_be_changed(tmp_path: Path) -> None:  # P6
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", "as it was"))
        claimed = await claim(store)
        for column in ("blocks", "at", "sender", "session", "seq", "chat"):
            with pytest.raises(Unfit, match="append-only"):
                databases.altered(tmp_path, f"UPDATE messages SET {column} = {column}")
        assert [m.text for m in await said(store, claimed.session)] == ["as it was"]


@pytest.mark.asyncio
async def test_what_may_have_crashed_the_process_runs_alone_and_last(tmp_path: Path) -> None:  # P44, P48
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", chat="ada"))
        first = await claim(store)
        again = first
        for attempt in (2, 3):
            await store.recover(frozenset(), NOW)
            if attempt == 3:
                await accept(store, inbound("2", chat="bob"))
                other = await claim(store)
                assert (other.turn != first.turn, other.risky) == (True, False)
                assert await store.claim_turn("me", NOW, 60.0, frozenset()) is None, "it waits until it is alone"
                await store.finish(other, Outcome("done"), (), NOW)
            again = await claim(store)
            assert (again.turn, again.attempts, again.risky) == (first.turn, attempt, attempt == 3)
        await accept(store, inbound("3", chat="bob"))
        assert await store.claim_turn("me", NOW, 60.0, frozenset()) is None, "nothing runs beside it"
        await store.release(again)
        assert (await claim(store)).items[0].client_id == "3"


@pytest.mark.asyncio
async def test_what_may_have_crashed_the_process_runs_under_a_steady_load_too(tmp_path: Path) -> None:  # P44, P48
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", chat="ada"))
        first = await claim(store)
        await store.recover(frozenset(), NOW)
        assert (await claim(store)).attempts == 2
        await store.recover(frozenset(), NOW)
        await accept(store, inbound("2", chat="bob"), inbound("3", chat="eve"))
        other = await claim(store)
        assert await store.claim_turn("me", NOW, 60.0, frozenset(), risky_first=True) is None, "what runs may end"
        await store.finish(other, Outcome("done"), (), NOW)
        again = await store.claim_turn("me", NOW, 60.0, frozenset(), risky_first=True)
        assert again is not None
        assert (again.turn, again.risky) == (first.turn, True)
        await store.finish(again, Outcome("done"), (), NOW)
        assert (await claim(store)).items[0].client_id == "3"


@pytest.mark.asyncio
async def test_a_turn_that_was_stopped_on_purpose_is_not_one_that_crashed(tmp_path: Path) -> None:  # P48
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        for _ in range(6):
            claimed = await claim(store)
            assert claimed.attempts == 1
            await store.release(claimed)
