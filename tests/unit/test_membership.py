"""When a daemon may go on, and when it lets go: on a real store, with clocks that are moved by hand and a database that does not answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from clew import membership
from clew.clock import Time
from clew.errors import StoreError
from clew.membership import LEASE, MARGIN, RENEW, Membership
from clew.store.sql import SqlStore
from tests.databases import BOTH
from tests.unit.store_rows import NOW, Clock, side_by_side

pytestmark = BOTH


@dataclass
class Life:
    """A membership, and what it begins and ends."""

    store: SqlStore
    wanted: list[str] = field(default_factory=lambda: ["transport:desk", "upkeep"])
    steady: Clock = field(default_factory=Clock)
    told: list[str] = field(default_factory=list)
    stuck: bool = False

    def __post_init__(self) -> None:
        time = Time(lambda: NOW, self.steady)
        self.member = Membership(self.store, time, lambda: self.wanted, frozenset, self._begin, self._end, self._lost)

    async def _begin(self, name: str) -> None:
        self.told.append(f"begin {name}")
        if self.stuck:
            raise StoreError("nothing can be begun")

    async def _end(self, name: str) -> None:
        self.told.append(f"end {name}")

    async def _lost(self) -> None:
        self.told.append("lost")

    def happened(self) -> list[str]:
        told, self.told = self.told, []
        return sorted(told)


@asynccontextmanager
async def two(folder: Path) -> AsyncIterator[tuple[Clock, Life, Life]]:
    clock = Clock()
    async with side_by_side(folder, clock) as (a, b):
        lives = Life(a), Life(b)
        for each in lives:
            await each.member.join()
            await each.member.look()
        yield (clock, *lives)


def passes(clock: Clock, seconds: float, *lives: Life) -> None:
    for each in (clock, *(life.steady for life in lives)):
        each.at += seconds


BEGUN = ["begin transport:desk", "begin upkeep"]
ENDED = ["end transport:desk", "end upkeep", "lost"]


@pytest.mark.asyncio
async def test_one_holds_what_one_may_hold_and_lets_go_before_the_other_can(tmp_path: Path) -> None:  # P44, P48
    async with two(tmp_path) as (clock, a, b):
        assert (a.happened(), b.happened()) == (BEGUN, [])
        passes(clock, LEASE - MARGIN - 1, a, b)
        assert a.member.lives()
        await b.member.look()
        passes(clock, 1, a, b)
        assert not a.member.lives()  # it does nothing any more, and the database still gives it time
        assert not a.member.holds("upkeep")
        await b.member.look()
        assert b.happened() == []
        await a.member.look()
        assert a.happened() == sorted(BEGUN + ENDED)  # it comes back, and what it had is free for whoever is first


@pytest.mark.asyncio
async def test_whoever_slept_finds_out_at_the_first_look_and_has_another_name(tmp_path: Path) -> None:  # P48
    async with two(tmp_path) as (clock, a, b):
        former = a.member.owner
        for seconds in (LEASE - 5, 5):
            passes(clock, seconds, b)
            await b.member.look()
        assert b.happened() == BEGUN
        assert a.member.lives()  # its own clock stood still
        a.happened()
        await a.member.look()
        assert (a.happened(), a.member.owner != former, a.member.lives()) == (ENDED, True, True)
        assert [each.name for each in await b.store.leases.listing() if each.owner == former] == []


@pytest.mark.asyncio
async def test_a_database_that_does_not_answer_is_given_up_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # P48
    async with two(tmp_path) as (clock, a, b):
        a.happened()
        with monkeypatch.context() as away:

            async def silent(*given: object) -> frozenset[str]:
                await asyncio.Event().wait()
                raise AssertionError

            away.setattr(a.store.leases, "renew", silent)
            passes(clock, LEASE - MARGIN - 0.05, a, b)
            with pytest.raises(TimeoutError):
                await a.member.look()
            passes(clock, 0.05, a, b)
            assert not a.member.lives()
            away.setattr(membership, "LEASE", MARGIN + 0.05)
            away.setattr(a.store.leases, "join", silent)
            with pytest.raises(StoreError, match="did not answer"):
                await a.member.look()
            assert a.happened() == ENDED
            with pytest.raises(StoreError):
                await a.member.look()
            assert a.happened() == []  # it has ended already
        await a.member.look()
        assert a.member.lives()


@pytest.mark.asyncio
async def test_what_cannot_be_begun_is_left_to_others(tmp_path: Path) -> None:  # P48
    clock = Clock()
    async with side_by_side(tmp_path, clock) as (first, second):
        a, b = Life(first, stuck=True), Life(second)
        await a.member.join()
        with pytest.raises(StoreError):
            await a.member.look()
        assert not a.member.holds("transport:desk")
        a.wanted = []
        await a.member.look()  # gives back what it got and does not use
        await b.member.join()
        await b.member.look()
        assert b.happened() == BEGUN


@pytest.mark.asyncio
async def test_what_is_wanted_no_more_and_what_is_left_is_free_at_once(tmp_path: Path) -> None:  # P48
    async with two(tmp_path) as (_, a, b):
        await a.member.keep(["upkeep"])
        await b.member.look()
        assert b.happened() == ["begin transport:desk"]
        await a.member.leave()
        assert not a.member.lives()
        await b.member.look()
        assert b.happened() == ["begin upkeep"]


@pytest.mark.asyncio
async def test_the_loop_renews_and_hears_of_whoever_leaves(tmp_path: Path) -> None:  # P48
    async with two(tmp_path) as (clock, a, b):
        listening = asyncio.create_task(b.store.listen(lambda where: None))
        running = asyncio.create_task(b.member.run())
        passes(clock, RENEW, a, b)
        await a.member.leave()
        async with asyncio.timeout(20):
            while len(b.told) < 2:
                await b.store.freed.wait(b.store.freed.version, 0.05)
        assert b.happened() == BEGUN
        for task in (running, listening):
            task.cancel()
