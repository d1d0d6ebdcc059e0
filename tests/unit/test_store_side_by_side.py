"""Three daemons work on one database at once: nothing is lost, nothing is done twice, and every chat keeps its order."""

import asyncio
from collections import defaultdict
from pathlib import Path

import pytest

from clew.messages import Text
from clew.store import LeaseLost, NewMessage, Outcome, Settlement, Step
from clew.store.sql import SqlStore
from tests.databases import POSTGRESQL
from tests.unit.store_rows import LEASE, NOW, Clock, accept, inbound, reply, said, side_by_side

pytestmark = [POSTGRESQL, pytest.mark.asyncio]

CHATS = ("ada", "bob", "eve")
MESSAGES = 4
"""In each chat."""
LIVES = 3600.0
DEADLINE_S = 120.0


async def test_three_that_take_whatever_they_can_get(tmp_path: Path) -> None:  # P42, P43, P44
    async with side_by_side(tmp_path, Clock(), 3) as stores:
        sent: dict[str, list[str]] = defaultdict(list)
        all_sent = asyncio.Event()

        async def senders(store: SqlStore, chat: str) -> None:
            for number in range(MESSAGES):
                item = inbound(f"{chat}{number}", f"{chat} says {number}", chat)
                await asyncio.gather(*(accept(each, item) for each in stores))  # each platform calls all of them at once
                assert [receipt.status for receipt in await accept(store, item)] == ["duplicate"]

        async def turns(store: SqlStore, owner: str) -> None:
            while not all_sent.is_set():
                claimed = await store.claim_turn(owner, NOW, LEASE, frozenset())
                if claimed is None:
                    await store.changed(store.version, 0.05)
                    continue
                text = f"re: {claimed.items[0].text}"
                await store.record(claimed, Step(messages=(NewMessage("assistant", (Text(text),), NOW),)))
                await store.finish(claimed, Outcome("done"), [reply(text, claimed.address.chat)], NOW)
                with pytest.raises(LeaseLost):
                    await store.record(claimed, Step(messages=(NewMessage("assistant", (Text("late"),), NOW),)))

        async def deliveries(store: SqlStore, owner: str) -> None:
            while not all_sent.is_set():
                delivery, _ = await store.claim_delivery(owner, "desk", NOW)
                if delivery is None:
                    await store.changed(store.version, 0.05)
                    continue
                sent[delivery.address.chat].append(delivery.text)
                await store.settle(delivery, Settlement("sent", "ref"), NOW)
                if sum(map(len, sent.values())) == len(CHATS) * MESSAGES:
                    all_sent.set()

        for number, store in enumerate(stores):
            await store.leases.join(f"d{number}", LIVES, frozenset(), NOW)
        async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as tasks:
            for number, (store, chat) in enumerate(zip(stores, CHATS, strict=True)):
                tasks.create_task(senders(store, chat))
                tasks.create_task(turns(store, f"d{number}"))
                tasks.create_task(deliveries(store, f"d{number}"))

        expected = {chat: [f"re: {chat} says {number}" for number in range(MESSAGES)] for chat in CHATS}
        assert sent == expected
        for session in await stores[0].sessions():
            chat = session.address.partition(":")[2]
            lines = [line for number in range(MESSAGES) for line in (f"{chat} says {number}", f"re: {chat} says {number}")]
            assert [message.text for message in await said(stores[0], session.id)] == lines
            assert [message.seq for message in await said(stores[0], session.id)] == list(range(1, 2 * MESSAGES + 1))
