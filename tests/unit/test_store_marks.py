import json
from dataclasses import replace
from pathlib import Path

import pytest

from clew.errors import NotFound, UsageError
from clew.messages import Message, Text
from clew.store import Boundary, Compaction, Effect, NewMessage, Outcome, Settlement, Step
from clew.store.sql import SqlStore
from clew.threads import last_exchange
from tests.databases import BOTH
from tests.unit.store_rows import NOW, accept, claim, found, inbound, opened, reply, said, turn

pytestmark = BOTH


def revision(session: str, identifier: str, parent: str | None = None, *, first: int = 1, last: int = 2) -> Compaction:
    report = json.dumps({"total": last, "first_at": NOW, "last_at": NOW})
    return Compaction(identifier, session, parent, first, last, "[]", f"text {identifier}", "count", "v1", report, 3, 2, NOW)


async def taken_back(store: SqlStore, session: str) -> tuple[Message, ...]:
    """The exchange that is taken back."""
    taken = last_exchange((await store.view(session)).messages)
    for _ in range(2):  # the second time it changes nothing
        await store.take_effect(session, Effect("take_back", tuple(row.id for row in taken)), NOW)
    return taken


@pytest.mark.asyncio
async def test_pins_are_kept_in_order_and_let_go(tmp_path: Path) -> None:  # P13
    async with opened(tmp_path) as store:
        session = (await turn(store, "1", "first", "yes")).session
        await turn(store, "2", "second", "no")
        rows = await said(store, session)
        await store.take_effect(session, Effect("pin", (rows[2].id,), "ada"), NOW)
        await store.take_effect(session, Effect("pin", (rows[0].id,), "ada"), NOW + 1)
        await store.take_effect(session, Effect("pin", (rows[0].id,), "bob"), NOW + 2)
    async with opened(tmp_path) as store:
        assert [(each.message.text, each.by) for each in await store.pins(session)] == [("second", "ada"), ("first", "ada")]
        assert (await store.view(session)).pins == {rows[0].id, rows[2].id}
        for _ in range(2):
            await store.take_effect(session, Effect("unpin", (rows[0].id,)), NOW)
        assert [each.message.text for each in await store.pins(session)] == ["second"]


@pytest.mark.asyncio
async def test_a_message_is_found_by_its_id_the_beginning_of_it_or_its_place(tmp_path: Path) -> None:  # P3
    async with opened(tmp_path) as store:
        session = (await turn(store, "1", "first", "yes")).session
        other = (await turn(store, "2", "elsewhere", "no", "bob")).session
        rows = await said(store, session)
        assert [await store.find_message(session, key) for key in (rows[1].id, rows[1].id[:8], "#2")] == [rows[1]] * 3
        for key in ("#3", "zzz9", "", "#", "%", (await said(store, other))[0].id):
            with pytest.raises(NotFound):
                await store.find_message(session, key)
        exported = await store.export_session(session)
        await store.delete_session(session)
        exported["messages"][0]["id"], exported["messages"][1]["id"] = "abcd", "abcdef"
        await store.import_session(exported, NOW)
        assert (await store.find_message(session, "abcd")).seq == 1
        with pytest.raises(UsageError, match="several"):
            await store.find_message(session, "abc")


@pytest.mark.asyncio
async def test_what_somebody_replied_to_is_found_by_their_own_id_and_by_the_platforms(tmp_path: Path) -> None:  # P13
    async with opened(tmp_path) as store:
        session = (await turn(store, "mine", "a question", "an answer")).session
        asked, answered = await said(store, session)
        delivery, _ = await store.claim_delivery("me", "desk", NOW)
        assert delivery is not None
        await store.settle(delivery, Settlement("sent", ref=f"ref-{delivery.id}", sent_parts=1), NOW)
        assert await store.answered_to(session, "mine") == asked
        assert await store.answered_to(session, delivery.id) == answered
        assert await store.answered_to(session, f"ref-{delivery.id}") == answered
        assert await store.answered_to(session, "nobody's") is None
        await accept(store, inbound("r", "/pin", reply_to="mine"))
        assert (await claim(store)).items[0].reply_to == "mine"


@pytest.mark.asyncio
async def test_the_last_exchange_is_taken_back_whole_and_its_rows_stay(tmp_path: Path) -> None:  # P6
    async with opened(tmp_path) as store:
        session = (await turn(store, "1", "first words", "yes")).session
        await accept(store, inbound("2", "second words"), inbound("3", "third words"))
        claimed = await claim(store, merging=frozenset({"desk"}))
        await store.finish(claimed, Outcome("done", Step(messages=(NewMessage("assistant", (Text("both"),), NOW),))), [reply("both")], NOW)
        taken = await taken_back(store, session)
        assert [row.text for row in taken] == ["second words", "third words", "both"]
        assert [row.text for row in (await store.view(session)).messages] == ["first words", "yes"]
        assert not await found(store, "second third")
        assert await store.verify_session(session) == []
        exported = await store.export_session(session)
        assert len(exported["messages"]) == 5
        await store.delete_session(session)
        await store.import_session(exported, NOW)
        assert await store.export_session(session) == exported
        assert len((await store.view(session)).messages) == 2
        assert [row.text for row in await taken_back(store, session)] == ["first words", "yes"]
        assert await taken_back(store, session) == ()
        with pytest.raises(NotFound):
            await store.find_message(session, "#1")
        assert await store.newest_words(session) is None


@pytest.mark.asyncio
async def test_what_the_summary_stands_for_is_not_taken_back(tmp_path: Path) -> None:  # P6
    async with opened(tmp_path) as store:
        session = (await turn(store, "1", "first", "yes")).session
        await store.compact(None, revision(session, "one"), ())
        assert await taken_back(store, session) == ()
        await turn(store, "2", "second", "no")
        assert [row.text for row in await taken_back(store, session)] == ["second", "no"]
        assert await store.verify_session(session) == []


@pytest.mark.asyncio
async def test_only_the_newest_compaction_is_undone_and_the_one_before_it_stands_again(tmp_path: Path) -> None:  # P21
    async with opened(tmp_path) as store:
        session = (await turn(store, "1", "a", "b")).session
        await turn(store, "2", "c", "d")
        await store.compact(None, revision(session, "one"), ())
        before = await store.view(session)
        await store.compact("one", revision(session, "two", "one", first=3, last=4), ())
        with pytest.raises(UsageError, match="Nothing was undone"):
            await store.take_effect(session, Effect("undo", ("one",)), NOW)
        await store.take_effect(session, Effect("undo", ("two",)), NOW)
        with pytest.raises(UsageError, match="Nothing was undone"):
            await store.take_effect(session, Effect("undo", ("two",)), NOW)
        assert await store.view(session) == replace(before, hold_seq=4)
        assert await store.verify_session(session) == []
        # One that was made on what is undone loses.
        assert not await store.compact("two", revision(session, "late", "two", first=5, last=5), ())
        assert await store.compact("one", revision(session, "three", "one", first=3, last=4), ())
        assert (await store.view(session)).hold_seq == 0
    async with opened(tmp_path) as store:
        await store.take_effect(session, Effect("undo", ("three",)), NOW)
        await store.take_effect(session, Effect("undo", ("one",)), NOW)
        rows = await store.view(session)
        assert (rows.compaction, rows.hold_seq, len(rows.messages)) == (None, 4, 4)


@pytest.mark.asyncio
async def test_a_summary_that_is_written_anew_takes_the_place_of_all_behind_its_parent(tmp_path: Path) -> None:  # P21
    async with opened(tmp_path) as store:
        session = (await turn(store, "1", "a", "b")).session
        await turn(store, "2", "c", "d")
        await turn(store, "3", "e", "f")
        assert await store.before_summary(session) is None
        await store.compact(None, revision(session, "one"), ())
        await store.compact("one", revision(session, "two", "one", first=3, last=4), ())
        short = replace(revision(session, "three", "two", first=5, last=4), kind="shorten", shortened=((await said(store, session))[5].id,))
        await store.compact("two", short, ())
        rows, summary, tip = await store.before_summary(session) or (None, None, None)
        assert rows is not None
        assert summary is not None
        assert tip == short
        assert (rows.to_seq, [row.text for row in rows.messages], summary.id) == (2, ["c", "d", "e", "f"], "two")
        again = revision(session, "again", "one", first=3, last=4)
        assert not await store.compact("one", again, (), tip="two")
        assert await store.compact("one", again, (), tip="three")
        states = {each.id: each.undone_at is None for each in await store.compactions(session)}
        assert states == {"one": True, "two": False, "three": False, "again": True}
        view = await store.view(session)
        assert view.compaction is not None
        assert (view.compaction.id, view.hold_seq) == ("again", 0)
        assert await store.verify_session(session) == []


@pytest.mark.asyncio
async def test_a_marked_place_is_given_out_once_when_it_is_due_and_nothing_is_said(tmp_path: Path) -> None:  # P22
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        claimed = await claim(store)
        outcome = Outcome(
            "done", Step(messages=(NewMessage("assistant", (Text("yes"),), NOW),)), boundary=Boundary("quiet", None, NOW + 60)
        )
        await store.finish(claimed, outcome, (), NOW)
        assert await store.take_boundaries(NOW + 59, 5) == []
        assert await store.next_boundary(NOW) == NOW + 60
        await accept(store, inbound("2"))
        again = await claim(store)
        assert await store.take_boundaries(NOW + 61, 5) == [], "a turn runs"
        assert await store.next_boundary(NOW + 61) is None
        await store.finish(again, Outcome("done", boundary=Boundary("topic", 2, NOW + 70)), (), NOW)
    async with opened(tmp_path) as store:
        assert await store.take_boundaries(NOW + 71, 0) == []
        assert await store.take_boundaries(NOW + 71, 5) == [Boundary("topic", 2, NOW + 70, claimed.session)]
        assert await store.take_boundaries(NOW + 71, 5) == []
        commits = store.commits
        await store.take_boundaries(NOW + 99, 5)
        assert store.commits == commits


@pytest.mark.asyncio
async def test_an_effect_and_the_answer_that_tells_of_it_are_stored_together_or_not_at_all(tmp_path: Path) -> None:  # P43, P48
    async with opened(tmp_path) as store:
        session = (await turn(store, "1", "first", "yes")).session
        await accept(store, inbound("2", "/undo"))
        claimed = await claim(store)
        rows = await said(store, session)
        taken, gone = Effect("take_back", tuple(row.id for row in rows)), Effect("undo", ("gone",))
        with pytest.raises(UsageError, match="Nothing was undone"):
            await store.finish(claimed, Outcome("done", effects=(taken, gone)), [reply("Taken back.")], NOW)
        assert len((await store.view(session)).messages) == 2
        assert [each["state"] for each in await store.outbox(("pending",))] == ["pending"]
        await store.finish(claimed, Outcome("done", effects=(taken,)), [reply("Taken back.")], NOW)
        assert (await store.view(session)).messages == ()
        assert len(await store.outbox(("pending",))) == 2
