import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from clew.messages import Text
from clew.store import SAFE_ATTEMPTS, Claim, LeaseLost, NewMessage, Outcome, Settlement, Step
from clew.store.documents import NewDocument
from clew.store.documents import verbs as documents
from clew.store.documents.door import TAKING_IN
from clew.store.records.leases import TakenOver
from clew.store.sql import SqlStore
from clew.transport import Address, Delivery
from tests.databases import BOTH
from tests.unit.store_rows import LEASE, NOW, Clock, accept, claim, inbound, reply, said, side_by_side

pytestmark = BOTH

LIVES = 15.0
"""Seconds of a daemon's lease."""


async def join(*stores: SqlStore) -> None:
    """The first is daemon `a`, the next `b`, and so on."""
    for name, store in zip("abc", stores, strict=False):
        await store.leases.join(name, LIVES, frozenset(), NOW)


def spoke(text: str) -> Step:
    return Step(messages=(NewMessage("assistant", (Text(text),), NOW),))


async def taken_over(store: SqlStore) -> TakenOver:
    return await store.leases.take_over(frozenset(), NOW)


async def delivery_of(store: SqlStore, owner: str) -> Delivery:
    delivery, _ = await store.claim_delivery(owner, "desk", NOW)
    assert delivery is not None
    return delivery


async def states(store: SqlStore) -> list[str]:
    return [row["state"] for row in await store.outbox(("pending", "sending", "sent", "unknown", "dead"))]


@pytest.mark.asyncio
async def test_a_daemon_that_renews_keeps_its_turns_and_one_that_does_not_loses_them(tmp_path: Path) -> None:  # P44, P48
    clock = Clock()
    async with side_by_side(tmp_path, clock) as (a, b):
        await join(a, b)
        await accept(a, inbound("1"), inbound("2", chat="bob"))
        lost, kept = await claim(a, owner="a"), await claim(b, owner="b")
        clock.at += LIVES - 1
        assert await b.leases.renew("b", LIVES)
        assert await taken_over(b) == TakenOver((), 0, 0)
        clock.at += 1
        assert await taken_over(b) == TakenOver(("a",), 1, 0)
        with pytest.raises(LeaseLost):  # from that commit on, before anybody goes on with it
            await a.record(lost, spoke("ghost"))
        again = await claim(b, owner="b")
        assert (again.turn, again.resumed, again.attempts) == (lost.turn, True, 2)
        await b.finish(again, Outcome("done", spoke("real")), [], NOW)
        await b.finish(kept, Outcome("done", spoke("kept")), [], NOW)
        assert [m.text for m in await said(a, again.session)] == ["hello", "real"]


@pytest.mark.asyncio
async def test_whose_lease_is_over_begins_and_sends_nothing(tmp_path: Path) -> None:  # P43, P44
    clock = Clock()
    async with side_by_side(tmp_path, clock) as (a, b):
        await join(a, b)
        await accept(a, inbound("1"))
        await b.finish(await claim(b, owner="b"), Outcome("done"), [reply("one", "bob"), reply("two", "eve")], NOW)
        sending = await delivery_of(a, "a")
        assert await a.may_send(sending)
        await accept(a, inbound("2"))
        clock.at += LIVES
        assert not await a.may_send(sending)  # although nobody has taken it back yet
        with pytest.raises(LeaseLost):
            await a.claim_turn("a", NOW, LEASE, frozenset())
        with pytest.raises(LeaseLost):
            await a.claim_delivery("a", "desk", NOW)
        assert not await a.leases.renew("a", LIVES)
        assert not await a.leases.acquire("a", "transport:desk")


@pytest.mark.asyncio
async def test_a_delivery_that_was_taken_over_is_settled_by_its_new_sender_alone(tmp_path: Path) -> None:  # P43, BO-052
    clock = Clock()
    async with side_by_side(tmp_path, clock) as (a, b):
        await join(a, b)
        await accept(a, inbound("1"))
        await a.finish(await claim(a, owner="a"), Outcome("done"), [reply("one\ntwo")], NOW)
        paused = await delivery_of(a, "a")
        clock.at += LIVES - 1
        await b.leases.renew("b", LIVES)
        clock.at += 1
        await taken_over(b)
        assert not await a.may_send(paused)
        await a.settle(paused, Settlement("sent"), NOW)
        assert await states(b) == ["pending"]
        again = await delivery_of(b, "b")
        assert again.repeat  # nobody knows what became of the first
        await a.advance(paused, 1)
        await a.settle(paused, Settlement("dead"), NOW)
        assert await states(b) == ["sending"]
        await b.settle(again, Settlement("sent"), NOW)
        assert await states(b) == ["sent"]


@pytest.mark.asyncio
async def test_what_a_hand_sends_again_is_not_settled_by_whoever_sent_it_long_ago(tmp_path: Path) -> None:  # P43
    clock = Clock()
    async with side_by_side(tmp_path, clock) as (a, b):
        await join(a, b)
        await accept(a, inbound("1"))
        await a.finish(await claim(a, owner="a"), Outcome("done"), [reply()], NOW)
        paused = await delivery_of(a, "a")
        clock.at += LIVES - 1
        await b.leases.renew("b", LIVES)
        clock.at += 1
        await taken_over(b)
        await b.settle(await delivery_of(b, "b"), Settlement("dead"), NOW)
        assert await b.send_again(paused.id, NOW)
        assert (await delivery_of(b, "b")).attempt == paused.attempt
        await a.settle(paused, Settlement("sent"), NOW)
        assert await states(b) == ["sending"]


@pytest.mark.asyncio
async def test_a_name_is_held_by_one_daemon_and_comes_to_another_with_its_end(tmp_path: Path) -> None:  # P48
    clock = Clock()
    async with side_by_side(tmp_path, clock) as (a, b):
        await join(a, b)
        assert await a.leases.acquire("a", "transport:desk")
        assert not await b.leases.acquire("b", "transport:desk")
        clock.at += LIVES - 1
        await a.leases.renew("a", LIVES)  # renews all that it holds
        await b.leases.renew("b", LIVES)
        clock.at += LIVES - 1
        assert not await b.leases.acquire("b", "transport:desk")
        await b.leases.renew("b", LIVES)
        clock.at += 1
        assert await b.leases.acquire("b", "transport:desk")
        assert [(each.name, each.owner) for each in await b.leases.listing() if each.left > 0] == [
            ("daemon:b", "b"),
            ("transport:desk", "b"),
        ]
        await b.leases.release("b", ["transport:desk"])
        await a.leases.join("a2", LIVES, frozenset(), NOW, former="a")
        assert await a.leases.acquire("a2", "transport:desk")


@pytest.mark.asyncio
async def test_whoever_leaves_leaves_what_is_undone_to_others(tmp_path: Path) -> None:  # P48
    async with side_by_side(tmp_path, Clock()) as (a, b):
        await join(a, b)
        await accept(a, inbound("1"), inbound("2", chat="bob"))
        await a.finish(await claim(a, owner="a"), Outcome("done"), [reply()], NOW)
        await delivery_of(a, "a")
        undone = await claim(a, owner="a")
        await a.leases.acquire("a", "upkeep")
        assert await a.leases.leave("a", frozenset({"desk"}), NOW) == TakenOver((), 1, 0)
        assert (await claim(b, owner="b")).turn == undone.turn
        assert not (await delivery_of(b, "b")).repeat  # the receiver drops repeats
        assert await b.leases.acquire("b", "upkeep")


@pytest.mark.asyncio
async def test_a_start_beside_others_takes_nothing_from_them(tmp_path: Path) -> None:  # P44
    async with side_by_side(tmp_path, Clock()) as (a, b):
        await join(a)
        await accept(a, inbound("1"))
        running = await claim(a, owner="a")
        assert await b.leases.join("b", LIVES, frozenset(), NOW) == TakenOver((), 0, 0)
        assert await b.claim_turn("b", NOW, LEASE, frozenset()) is None
        await a.finish(running, Outcome("done"), [], NOW)


@pytest.mark.asyncio
async def test_a_turn_that_may_bring_a_process_down_holds_up_no_other_process(tmp_path: Path) -> None:  # P44, P48
    clock = Clock()
    async with side_by_side(tmp_path, clock) as (a, b):
        await accept(a, inbound("1"))
        for n in range(SAFE_ATTEMPTS):  # each dies over it
            await a.leases.join(f"a{n}", LIVES, frozenset(), NOW, former=f"a{n - 1}" if n else "")
            await claim(a, owner=f"a{n}")
        await a.leases.join("a", LIVES, frozenset(), NOW, former=f"a{SAFE_ATTEMPTS - 1}")
        await b.leases.join("b", LIVES, frozenset(), NOW)
        await accept(a, inbound("2", chat="bob"), inbound("3", chat="eve"))
        beside = await claim(b, owner="b")
        assert beside.items[0].client_id == "2"
        risky = await a.claim_turn("a", NOW, LEASE, frozenset(), risky_first=True)
        assert risky is not None
        assert risky.items[0].client_id == "1"
        assert await a.claim_turn("a", NOW, LEASE, frozenset()) is None  # beside it nothing begins here
        assert (await claim(b, owner="b")).items[0].client_id == "3"


@pytest.mark.asyncio
async def test_one_tells_and_the_others_hear(tmp_path: Path) -> None:  # P44
    async with side_by_side(tmp_path, Clock()) as (a, b):
        heard: list[Address] = []
        listening = [asyncio.create_task(a.listen(lambda where: None)), asyncio.create_task(b.listen(heard.append))]
        async with asyncio.timeout(20):
            while not b.jobs_changed.version:  # whoever listens only now hears what is told from now on
                a._tell_others(a.jobs_changed)
                await b.changed(b.version, 0.05)
        waits = [b.arrivals, b.deliveries["desk"]]
        seen = [changes.version for changes in waits]
        await accept(a, inbound("1"))
        await a.finish(await claim_of(a), Outcome("done"), [reply(), reply(chat="bob", instant=True)], NOW)
        for changes, version in zip(waits, seen, strict=True):
            assert await changes.wait(version, 20) > version
        async with asyncio.timeout(20):
            while not heard:
                await b.changed(b.version, 20)
        assert heard == [Address("desk", "bob")]
        for task in listening:
            task.cancel()


async def claim_of(store: SqlStore) -> Claim:
    await store.leases.join("a", LIVES, frozenset(), NOW)
    return await claim(store, owner="a")


async def turn(store: SqlStore, owner: str, number: int) -> Claim:
    """A whole turn, which shows what is read anew."""
    await accept(store, inbound(str(number), f"question {number}"))
    claimed = await claim(store, owner=owner)
    assert claimed.rows == await store.view(claimed.session)
    await store.finish(claimed, Outcome("done", spoke(f"answer {number}")), [], NOW)
    return claimed


@pytest.mark.asyncio
async def test_turns_of_a_session_go_on_from_one_daemon_to_another(tmp_path: Path) -> None:  # P2, P44
    async with side_by_side(tmp_path, Clock()) as (a, b):
        await join(a, b)
        for number, (store, owner) in enumerate([(a, "a"), (b, "b"), (b, "b"), (a, "a"), (a, "a"), (b, "b")]):
            shown = (await turn(store, owner, number)).rows
            assert shown is not None
            assert [m.text for m in shown.messages if m.role == "user"] == [f"question {n}" for n in range(number + 1)]


@pytest.mark.asyncio
async def test_what_another_daemon_put_in_the_place_of_a_session_is_shown(tmp_path: Path) -> None:  # P2, P4
    async with side_by_side(tmp_path, Clock()) as (a, b):
        await join(a, b)
        session = (await turn(a, "a", 1)).session
        await turn(a, "a", 2)
        exported = await b.export_session(session)
        exported["messages"][0]["blocks"][0]["text"] = "the door is blue"
        await b.delete_session(session)
        await b.import_session(exported, NOW)
        await b.join_chat(inbound("3"), "ada", session, NOW)
        shown = (await turn(a, "a", 3)).rows
        assert shown is not None
        assert [m.text for m in shown.messages] == ["the door is blue", "answer 1", "question 2", "answer 2", "question 3"]


@pytest.mark.asyncio
async def test_a_document_on_its_way_in_is_not_swept_away_by_another_daemon(tmp_path: Path) -> None:  # P44
    clock = Clock()
    async with side_by_side(tmp_path, clock) as (a, b):
        begun = NewDocument("/notes/one.md", "one.md", "", "markdown", "hash", 3)
        number = await a._db.write(documents.begin, "user:ada", begun, 1, NOW)
        await b.documents.sweep()
        await a._db.write(documents.end, number)
        assert await b.documents.count() == 1
        left = await a._db.write(documents.begin, "user:ada", replace(begun, source="/notes/two.md"), 1, NOW)
        clock.at += TAKING_IN + 1
        await b.documents.sweep()
        assert await a._db.read(lambda db: db.execute("SELECT count(*) FROM documents WHERE number = ?", (left,)).fetchone()) == (0,)
        (there,) = await b.documents.listing(None, 9)
        await a.documents.remove([there.id])  # what is let go is gone at once
        assert await a._db.read(lambda db: db.execute("SELECT count(*) FROM documents").fetchone()) == (0,)
