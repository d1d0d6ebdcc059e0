from pathlib import Path

import pytest

from clew.store import Claim, Outcome, Settlement
from clew.store.sql import SqlStore
from clew.transport import Delivery
from tests.databases import BOTH, databases
from tests.unit.store_rows import NOW, accept, claim, inbound, opened, reply, turn

pytestmark = BOTH


async def next_delivery(store: SqlStore, now: float = NOW) -> Delivery:
    delivery, _ = await store.claim_delivery("me", "desk", now)
    assert delivery is not None
    return delivery


async def states(store: SqlStore) -> dict[str, str]:
    rows = await store.outbox(("draft", "pending", "sending", "sent", "unknown", "dead"))
    return {row["id"]: row["state"] for row in rows}


@pytest.mark.asyncio
async def test_a_chat_is_one_lane_in_order(tmp_path: Path) -> None:  # P43, BO-055
    async with opened(tmp_path) as store:
        for n in range(3):
            await turn(store, str(n), "hello", f"answer {n}")
        for n in range(3):
            delivery = await next_delivery(store)
            assert delivery.text == f"answer {n}"
            assert await store.claim_delivery("me", "desk", NOW) == (None, None)
            await store.settle(delivery, Settlement("sent", "ref", sent_parts=1), NOW)
        assert set((await states(store)).values()) == {"sent"}


@pytest.mark.asyncio
async def test_a_chat_whose_delivery_fails_holds_up_no_other(tmp_path: Path) -> None:  # P43, BO-054
    async with opened(tmp_path) as store:
        for n in range(2):
            for chat in ("ada", "bob"):
                await turn(store, f"{chat}{n}", "hello", f"{chat} {n}", chat)
        failing = await next_delivery(store)
        assert failing.text == "ada 0"
        await store.settle(failing, Settlement("pending", reason="429", next_at=NOW + 300), NOW)
        for n in range(2):
            delivery = await next_delivery(store)
            assert delivery.text == f"bob {n}"
            await store.settle(delivery, Settlement("sent"), NOW)
        assert await store.claim_delivery("me", "desk", NOW + 299) == (None, NOW + 300)
        again = await next_delivery(store, NOW + 300)
        assert (again.text, again.attempt) == ("ada 0", 2)


@pytest.mark.asyncio
@pytest.mark.parametrize("state", ["sent", "unknown", "dead"])
async def test_whatever_settles_a_delivery_frees_its_lane(tmp_path: Path, state: str) -> None:  # P43
    async with opened(tmp_path) as store:
        for n in range(2):
            await turn(store, str(n), "hello", f"answer {n}")
        first = await next_delivery(store)
        await store.settle(first, Settlement(state, reason="why"), NOW)  # type: ignore[arg-type]
        assert (await states(store))[first.id] == state
        assert (await next_delivery(store)).text == "answer 1"


@pytest.mark.asyncio
@pytest.mark.parametrize("safe", [frozenset({"desk"}), frozenset[str]()])
async def test_after_a_crash_a_send_is_repeated_once_and_for_ever_only_where_the_receiver_drops_repeats(
    tmp_path: Path, safe: frozenset[str]
) -> None:  # P43, P48, BO-052
    async with opened(tmp_path) as store:
        await turn(store, "1", "hello", "answer")
        delivery = await next_delivery(store)
        assert await store.recover(safe, NOW) == (0, 0)
        again = await next_delivery(store)
        assert (again.id, again.repeat) == (delivery.id, not safe)
        assert await store.recover(safe, NOW) == (0, int(not safe))
        assert await states(store) == {delivery.id: "pending" if safe else "unknown"}


@pytest.mark.asyncio
async def test_parts_already_sent_are_remembered(tmp_path: Path) -> None:  # P43
    async with opened(tmp_path) as store:
        await turn(store, "1", "hello", "answer")
        delivery = await next_delivery(store)
        await store.settle(delivery, Settlement("pending", sent_parts=2, next_at=NOW), NOW)
        assert (await next_delivery(store)).sent == 2


@pytest.mark.asyncio
async def test_a_crash_between_two_parts_repeats_only_what_was_not_confirmed(tmp_path: Path) -> None:  # P43, BO-052
    async with opened(tmp_path) as store:
        await turn(store, "1", "hello", "answer")
        delivery = await next_delivery(store)
        assert await store.recover(frozenset(), NOW) == (0, 0)
        second = await next_delivery(store)
        assert second.repeat
        await store.advance(delivery, 2)  # by whoever sent it before the crash: it has no say any more
        await store.advance(second, 1)
        assert await store.recover(frozenset(), NOW) == (0, 0)
        again = await next_delivery(store)
        assert (again.sent, again.repeat) == (1, True)


async def drafted(store: SqlStore, claimed: Claim, ref: str | None) -> Delivery:
    """The reply of a turn, shown in a message `ref` while it is written."""
    draft = await store.draft(claimed.turn, NOW)
    assert draft is not None
    await store.previewed(draft.id, ref)
    return draft


@pytest.mark.asyncio
async def test_a_draft_is_completed_by_the_reply_of_its_turn(tmp_path: Path) -> None:  # P43
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", context={"chat": "7"}))
        claimed = await claim(store)
        draft = await drafted(store, claimed, "preview 7")
        assert (draft.in_reply_to, draft.context, draft.preview_ref, draft.repeat) == ("1", {"chat": "7"}, "", False)
        again = await store.draft(claimed.turn, NOW)
        assert again is not None
        assert (again.id, again.preview_ref, again.repeat) == (draft.id, "preview 7", True)
        assert await store.claim_delivery("me", "desk", NOW) == (None, None)
        (identifier,) = await store.finish(claimed, Outcome("done"), [reply("final")], NOW)
        delivery = await next_delivery(store)
        assert (identifier, delivery.id, delivery.text, delivery.preview_ref) == (draft.id, draft.id, "final", "preview 7")
        assert [said.text for said in await store.history("desk:ada", 0, 10)] == ["hello", "final"]
        assert await store.draft(claimed.turn, NOW) is None, "it is over"


@pytest.mark.asyncio
async def test_what_a_turn_showed_and_did_not_say_is_taken_away(tmp_path: Path) -> None:  # P43
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        claimed = await claim(store)
        draft = await drafted(store, claimed, "preview 7")
        await store.finish(claimed, Outcome("done"), [], NOW)
        delivery = await next_delivery(store)
        assert (delivery.id, delivery.parts, delivery.preview_ref) == (draft.id, (), "preview 7")
        assert [said.text for said in await store.history("desk:ada", 0, 10)] == ["hello"]


@pytest.mark.asyncio
async def test_a_draft_waits_for_its_turn_through_a_restart_and_goes_with_it(tmp_path: Path) -> None:  # P43, P48
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        draft = await drafted(store, await claim(store), "preview 7")
        await store.recover(frozenset(), NOW)
        assert await states(store) == {draft.id: "draft"}
    databases.altered(tmp_path, "UPDATE turns SET state = 'failed'")
    async with opened(tmp_path) as store:
        await store.recover(frozenset(), NOW)
        assert (await next_delivery(store)).parts == ()


@pytest.mark.asyncio
@pytest.mark.parametrize(("ref", "sent", "repeat"), [("7", 0, False), ("7", 1, True), ("", 0, True), (None, 0, True)])
async def test_an_edit_that_a_crash_interrupted_is_no_repeat(tmp_path: Path, ref: str | None, sent: int, repeat: bool) -> None:  # P43, P48
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        claimed = await claim(store)
        await drafted(store, claimed, ref)
        await store.finish(claimed, Outcome("done"), [reply("final")], NOW)
        delivery = await next_delivery(store)
        if sent:
            await store.advance(delivery, sent)
        await store.recover(frozenset(), NOW)
        assert (await next_delivery(store)).repeat == repeat


@pytest.mark.asyncio
async def test_a_wait_of_an_hour_is_kept_and_a_clock_that_went_back_makes_none(tmp_path: Path) -> None:  # P43, P48, BO-054
    async with opened(tmp_path) as store:
        await turn(store, "1", "hello", "answer")
        await store.settle(await next_delivery(store), Settlement("pending", reason="429", next_at=NOW + 3600), NOW)
        assert await store.claim_delivery("me", "desk", NOW + 3599) == (None, NOW + 3600)
        assert (await next_delivery(store, NOW - 86_400)).text == "answer"


@pytest.mark.asyncio
async def test_an_instant_reply_counts_as_sent_when_committed(tmp_path: Path) -> None:  # P43
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        await store.finish(await claim(store), Outcome("done"), [reply(instant=True)], NOW)
        assert set((await states(store)).values()) == {"sent"}
        assert await store.claim_delivery("me", "desk", NOW) == (None, None)


@pytest.mark.asyncio
async def test_deliveries_belong_to_their_transport(tmp_path: Path) -> None:  # P43
    async with opened(tmp_path) as store:
        await turn(store, "1", "hello", "answer")
        assert await store.claim_delivery("me", "mqtt", NOW) == (None, None)
        assert await store.claim_delivery("me", "desk", NOW - 1) == (None, NOW), "when it is due"


@pytest.mark.asyncio
async def test_damaged_rows_are_met_once_and_hold_up_nothing(tmp_path: Path) -> None:  # P43, P44
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"), inbound("2", chat="bob"))
        for chat in ("ada", "bob"):
            await store.say(reply(f"hello {chat}", chat), NOW)
        databases.altered(
            tmp_path,
            "UPDATE inbox SET context = '{\"a\":' WHERE client_id = '1'",
            "UPDATE outbox SET parts = 'null', answers = '', context = '[' WHERE address = 'desk:ada'",
        )
        claimed = await claim(store)
        assert (claimed.items[0].text, claimed.items[0].context) == ("hello", {})
        assert (await claim(store)).items[0].client_id == "2"
        taken = [await next_delivery(store) for _ in range(2)]
        assert [(each.text, [part.text for part in each.parts], each.answers) for each in taken] == [
            ("hello ada", ["hello ada"], ()),
            ("hello bob", ["hello bob"], ()),
        ]
        assert len(await store.history("desk:ada", 0, 10)) == 2
