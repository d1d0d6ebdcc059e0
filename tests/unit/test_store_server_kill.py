"""The database's server is killed again and again while turns run: nothing is lost, nothing is answered or sent twice."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from clew.errors import StoreError
from clew.messages import Text
from clew.store import LeaseLost, NewMessage, Outcome, Settlement, Step
from clew.store.opening import open_store
from clew.store.sql import SqlStore
from tests.databases import Postgres
from tests.unit.store_rows import LEASE, NOW, PEOPLE, accept, inbound, reply, said

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio]

T = TypeVar("T")

MESSAGES, KILLS = 16, 3
DEADLINE_S = 240.0


async def test_a_server_that_is_killed_loses_and_repeats_nothing() -> None:  # P1, P42, P43
    with tempfile.TemporaryDirectory(prefix="clew-kill-", dir="/tmp", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        with Postgres(folder, durable=True) as server:
            store = await open_store(server.create(), folder, NOW)
            store.shared = False  # there is one alone, which needs no lease
            try:
                await store.sync(PEOPLE, None, await store.jobs(), NOW)
                await _talk(store, server)
            finally:
                await store.close()


async def _talk(store: SqlStore, server: Postgres) -> None:
    sent: list[str] = []
    killed = 0

    async def patiently(write: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await write()
            except StoreError:
                await store.changed(store.version, 0.05)

    async def sender() -> None:
        for number in range(MESSAGES):
            item = inbound(str(number), f"question {number}")
            await patiently(lambda: accept(store, item))  # noqa: B023 - it is awaited here

    async def turns() -> None:
        while len(sent) < MESSAGES:
            claimed = await patiently(lambda: store.claim_turn("me", NOW, LEASE, frozenset()))
            if claimed is None:
                await store.changed(store.version, 0.05)
                continue
            text = f"re: {claimed.items[0].text}"
            step = Step(messages=(NewMessage("assistant", (Text(text),), NOW),))
            await patiently(lambda: store.record(claimed, step))  # noqa: B023 - it is awaited here
            try:
                await patiently(lambda: store.finish(claimed, Outcome("done"), [reply(text)], NOW))  # noqa: B023 - it is awaited here
            except LeaseLost:
                continue  # it has ended

    async def deliveries() -> None:
        while len(sent) < MESSAGES:
            delivery, _ = await patiently(lambda: store.claim_delivery("me", "desk", NOW))
            if delivery is None:
                await store.changed(store.version, 0.05)
                continue
            sent.append(delivery.text)
            await patiently(lambda: store.settle(delivery, Settlement("sent", "ref"), NOW))  # noqa: B023 - it is awaited here

    async def killer() -> None:
        nonlocal killed
        while killed < KILLS:
            if len(sent) >= (killed + 1) * MESSAGES // (KILLS + 2):
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start_again)
                killed += 1
            await store.changed(store.version, 0.01)

    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as tasks:
        for each in (sender, turns, deliveries, killer):
            tasks.create_task(each())

    assert sent == [f"re: question {number}" for number in range(MESSAGES)]
    (session,) = await patiently(store.sessions)
    words = [message.text for message in await patiently(lambda: said(store, session.id))]
    assert words == [line for number in range(MESSAGES) for line in (f"question {number}", f"re: question {number}")]
    assert killed == KILLS
