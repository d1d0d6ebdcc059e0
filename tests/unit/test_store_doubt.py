"""The connection breaks while the server commits: what was written stands, and whoever tries again neither loses nor repeats it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from clew.errors import StoreError
from clew.messages import Text
from clew.store import LeaseLost, NewMessage, Outcome, Settlement, Step
from clew.store.opening import open_store
from clew.store.sql import SqlStore
from tests.databases import POSTGRESQL, databases
from tests.servers import HOST
from tests.unit.store_rows import NOW, PEOPLE, accept, claim, inbound, reply, said

pytestmark = [POSTGRESQL, pytest.mark.asyncio]


class Wire:
    """The way to a server. breaks: its connections end as soon as the server has answered the next COMMIT, and nobody hears the answer."""

    def __init__(self, url: str) -> None:
        self._to = urlsplit(url)
        self.breaks = False
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._connected, HOST, 0)
        port = server.sockets[0].getsockname()[1]
        try:
            yield f"postgresql://{self._to.username}@{HOST}:{port}{self._to.path}"
        finally:
            server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._to.hostname, self._to.port)
        answer = asyncio.create_task(self._pass_on(there, writer))
        committing = False
        while not committing and (data := await reader.read(65536)):
            committing = self.breaks and b"COMMIT" in data
            if committing:
                self.breaks = False
                answer.cancel()
                await asyncio.gather(answer, return_exceptions=True)
            back.write(data)
        if committing:
            await there.read(65536)
        writer.close()
        back.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()


@asynccontextmanager
async def behind_a_wire(folder: Path) -> AsyncIterator[tuple[SqlStore, Wire]]:
    wire = Wire(databases.store(folder))
    async with wire.open() as url:
        store = await open_store(url, folder, NOW)
        store.shared = False  # there is one alone, which needs no lease
        try:
            await store.sync(PEOPLE, None, await store.jobs(), NOW)
            yield store, wire
        finally:
            await store.close()


async def test_a_step_is_recorded_once(tmp_path: Path) -> None:  # P42
    async with behind_a_wire(tmp_path) as (store, wire):
        await accept(store, inbound("1"))
        claimed = await claim(store)
        for words in ("one", "two"):
            step = Step(messages=(NewMessage("assistant", (Text(words),), NOW),))
            wire.breaks = words == "one"
            if wire.breaks:
                with pytest.raises(StoreError):
                    await store.record(claimed, step)
            assert [each.text for each in await store.record(claimed, step)] == [words]
        assert [each.text for each in await said(store, claimed.session)] == ["hello", "one", "two"]


async def test_a_turn_that_was_claimed_is_run(tmp_path: Path) -> None:  # P42, P43
    async with behind_a_wire(tmp_path) as (store, wire):
        await accept(store, inbound("1"))
        wire.breaks = True
        with pytest.raises(StoreError):
            await claim(store)
        claimed = await claim(store)
        assert ([item.client_id for item in claimed.items], claimed.epoch, claimed.resumed) == (["1"], 1, True)
        await store.finish(claimed, Outcome("done"), [reply()], NOW)
        assert await store.claim_turn("me", NOW, 60.0, frozenset()) is None


async def test_what_was_taken_into_a_running_turn_is_seen_by_it(tmp_path: Path) -> None:  # P42
    async with behind_a_wire(tmp_path) as (store, wire):
        await accept(store, inbound("1"))
        claimed = await claim(store)
        await accept(store, inbound("2", "and this"))
        wire.breaks = True
        with pytest.raises(StoreError):
            await store.steer(claimed, NOW)
        items, messages = await store.steer(claimed, NOW)
        assert ([item.client_id for item in items], [each.text for each in messages]) == (["2"], ["and this"])
        assert await store.steer(claimed, NOW) == ((), ())


async def test_a_turn_that_ended_says_so_and_its_reply_is_sent_once(tmp_path: Path) -> None:  # P42, P43
    async with behind_a_wire(tmp_path) as (store, wire):
        await accept(store, inbound("1"))
        claimed = await claim(store)
        wire.breaks = True
        with pytest.raises(StoreError):
            await store.finish(claimed, Outcome("done"), [reply()], NOW)
        with pytest.raises(LeaseLost):
            await store.finish(claimed, Outcome("done"), [reply()], NOW)
        wire.breaks = True
        with pytest.raises(StoreError):
            await store.claim_delivery("me", "desk", NOW)
        delivery, _ = await store.claim_delivery("me", "desk", NOW)
        assert delivery is not None
        assert (delivery.text, delivery.attempt, delivery.repeat) == ("yes", 1, False)
        for _ in range(2):
            await store.settle(delivery, Settlement("sent", "ref"), NOW)
        assert await store.claim_delivery("me", "desk", NOW) == (None, None)
        assert [row["state"] for row in await store.outbox(("pending", "sending", "sent", "unknown", "dead"))] == ["sent"]


async def test_what_arrived_is_stored_once(tmp_path: Path) -> None:  # P42
    async with behind_a_wire(tmp_path) as (store, wire):
        wire.breaks = True
        with pytest.raises(StoreError):
            await accept(store, inbound("1"))
        assert [receipt.status for receipt in await accept(store, inbound("1"))] == ["duplicate"]
        assert [item.client_id for item in (await claim(store)).items] == ["1"]
