"""What is different where nobody else can be on the database: a file, of one process at a time."""

from pathlib import Path

import pytest

from tests.databases import SQLITE
from tests.unit.store_rows import NOW, Clock, accept, claim, inbound, opened, side_by_side
from tests.unit.test_membership import BEGUN, Life

pytestmark = SQLITE


@pytest.mark.asyncio
async def test_alone_everything_is_ones_own_and_nothing_is_written(tmp_path: Path) -> None:  # P48
    async with opened(tmp_path) as store:
        before, life = store.commits, Life(store)
        await life.member.look()
        life.steady.at += 10**9
        await life.member.look()
        assert (life.happened(), life.member.lives(), life.member.holds("upkeep")) == (BEGUN, True, True)
        life.wanted = ["upkeep"]
        await life.member.keep(life.wanted)
        await life.member.leave()
        assert (store.commits, await store.leases.listing()) == (before, [])


@pytest.mark.asyncio
async def test_a_start_alone_finds_nobody(tmp_path: Path) -> None:  # P2, P48
    async with side_by_side(tmp_path, Clock()) as (a, _):
        await a.leases.join("a", 15.0, frozenset(), NOW)
        await accept(a, inbound("1"))
        await claim(a, owner="a")
    async with opened(tmp_path) as store:
        assert await store.recover(frozenset(), NOW) == (1, 0)
        assert await store.leases.listing() == []
        assert (await claim(store)).resumed
