import asyncio
from pathlib import Path

import pytest

from clew.errors import UsageError
from clew.store import Job, JobEffect, Outcome, Person, Room, claiming, jobs, runs, turns
from clew.store.sql import SqlStore
from clew.store.sqlite.connection import SqliteConnection
from clew.store.sqlite.database import migrations
from clew.transport import Address
from tests.databases import BOTH, SQLITE
from tests.unit.store_rows import LEASE, NOW, PEOPLE, accept, claim, inbound, opened, said

pytestmark = BOTH
TO = Address("desk", "ada")


def job(name: str = "morning", spec: str = "{}", next_at: float | None = NOW) -> Job:
    return Job(name, spec, True, next_at)


async def clock(store: SqlStore, name: str = "morning") -> float | None:
    return {each.name: each.next_at for each in await store.jobs()}[name]


@pytest.mark.asyncio
async def test_an_instant_has_one_run_whoever_fires_it(tmp_path: Path) -> None:  # P45, BO-080
    async with opened(tmp_path) as store, opened(tmp_path) as second:
        await store.sync({}, None, [job()], NOW)
        fired = await asyncio.gather(*(each.fire("morning", NOW, NOW + 60, NOW, "brief", TO) for each in (store, second) * 5))
        assert sorted(fired) == [False] * 9 + [True]
        assert await clock(store) == NOW + 60
        claimed = await claim(store)
        assert (claimed.kind, claimed.address, claimed.items[0].job) == ("job", TO, "morning")
        await store.open_run(claimed, "brief", NOW)
        assert [m.text for m in await said(store, claimed.session)] == ["brief"]


@pytest.mark.asyncio
async def test_the_clock_moves_with_the_run_so_that_no_crash_repeats_it(tmp_path: Path) -> None:  # P45, BO-081
    async with opened(tmp_path) as store:
        await store.sync({}, None, [job()], NOW)
        await store.fire("morning", NOW, NOW + 60, NOW, "brief", TO)
        await claim(store)
    for _ in range(5):
        async with opened(tmp_path) as store:
            await store.sync({}, None, [job()], NOW)
            assert await clock(store) == NOW + 60
            assert not await store.fire("morning", NOW, NOW + 60, NOW, "brief", TO)
    async with opened(tmp_path) as store:
        assert len(await store.job_history("morning", 10)) == 1


@pytest.mark.asyncio
async def test_a_run_is_written_down_with_its_outcome(tmp_path: Path) -> None:  # P45
    async with opened(tmp_path) as store:
        await store.sync({}, None, [job()], NOW)
        await store.missed("morning", [NOW - 120, NOW - 60], NOW, NOW)
        await store.fire("morning", NOW, None, NOW, "brief", TO)
        claimed = await claim(store)
        await store.finish(claimed, Outcome("failed", error="auth"), (), NOW)
        history = await store.job_history("morning", 10)
        assert [(run["instant"], run["outcome"], run["turn"]) for run in history] == [
            (NOW, "failed", claimed.turn),
            (NOW - 60, "missed", None),
            (NOW - 120, "missed", None),
        ]
        assert await clock(store) is None


@pytest.mark.asyncio
async def test_a_changed_entry_starts_its_clock_anew_and_a_removed_one_goes(tmp_path: Path) -> None:  # P45
    async with opened(tmp_path) as store:
        await store.sync({}, None, [job("a"), job("b")], NOW)
        await store.sync({}, None, [job("a", next_at=NOW + 1), job("c")], NOW)
        assert {each.name: each.next_at for each in await store.jobs()} == {"a": NOW, "c": NOW}
        await store.sync({}, None, [job("a", '{"every": 5}', NOW + 5)], NOW)
        assert {each.name: each.next_at for each in await store.jobs()} == {"a": NOW + 5}


@pytest.mark.asyncio
async def test_the_operators_jobs_are_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # P45
    monkeypatch.setattr(jobs, "MOST_OF_OPERATOR", 2)
    async with opened(tmp_path) as store:
        await store.sync({}, None, [job(f"config-{number}") for number in range(3)], NOW)
        for name in "ab":
            await store.change_job(JobEffect("add", name, None, "{}", NOW, "cli"), NOW)
        with pytest.raises(UsageError, match="2 jobs are the most that may be made by the command line"):
            await store.change_job(JobEffect("add", "c", None, "{}", NOW, "api"), NOW)


@pytest.mark.asyncio
async def test_of_two_changes_at_once_the_second_is_told(tmp_path: Path) -> None:  # P45
    async with opened(tmp_path) as store:
        await store.change_job(JobEffect("add", "cat", None, '{"a":1}', 100.0, "cli"), 1.0)
        await store.change_job(JobEffect("update", "cat", None, '{"a":2}', was='{"a":1}'), 2.0)
        with pytest.raises(UsageError, match="changed by somebody else"):
            await store.change_job(JobEffect("update", "cat", None, '{"a":3}', 200.0, was='{"a":1}'), 3.0)
        job = await store.job("cat")
        assert (job.spec, job.next_at) == ('{"a":2}', 100.0)


@pytest.mark.asyncio
async def test_a_run_by_hand_leaves_the_clock(tmp_path: Path) -> None:  # P45
    async with opened(tmp_path) as store:
        await store.sync({}, None, [job(spec='{"prompt": "brief", "deliver_to": "desk:ada"}', next_at=NOW + 60)], NOW)
        await store.change_job(JobEffect("run", "morning", next_at=NOW), NOW)
        assert await clock(store) == NOW + 60
        assert (await claim(store)).kind == "job"


@SQLITE
def test_what_is_asked_for_every_turn_reads_no_arrival_that_is_over() -> None:  # P44, P45
    """However many messages and runs there were: by the indexes of what waits and of what runs."""
    database = SqliteConnection(":memory:", isolation_level=None)
    for _, script in migrations():
        database.executescript(script)
    asked: list[str] = []
    database.set_trace_callback(asked.append)
    turns.claimable(database, NOW)
    claiming.claim(database, "me", NOW, 60.0, frozenset())
    jobs.runs(database, "morning")
    runs.waiting(database)
    database.set_trace_callback(None)
    plans = [row[3] for sql in asked if " inbox" in sql for row in database.execute(f"EXPLAIN QUERY PLAN {sql}")]
    used = {plan.rpartition("USING ")[2] for plan in plans if " inbox" in plan or " other" in plan or " i " in plan}
    assert used <= {
        *("INDEX inbox_waiting", "INDEX inbox_waiting (chat=?)", "INDEX inbox_jobs", "INDEX inbox_turn (turn=?)"),
        *("INTEGER PRIMARY KEY (rowid=?)", "COVERING INDEX inbox_waiting", "COVERING INDEX inbox_jobs", "INDEX inbox_expiring (expires<?)"),
    }


@pytest.mark.asyncio
async def test_jobs_of_the_machines_owner_are_those_of_the_one_the_config_names(tmp_path: Path) -> None:  # P45
    async with opened(tmp_path) as store:
        await store.sync({}, Person("owner", "owner", None, ("terminal:root",)), (), NOW)
        await store.change_job(JobEffect("add", "tea", "owner", "{}", NOW), NOW)
        await store.sync({"ada": Person("ada", "owner")}, Person("ada", "owner", None, ("terminal:root",)), (), NOW)
        assert (await store.job("tea")).person == "ada"


@pytest.mark.asyncio
async def test_what_was_missed_moves_no_clock_that_somebody_set_meanwhile(tmp_path: Path) -> None:  # P45
    async with opened(tmp_path) as store:
        await store.sync({}, None, [job()], NOW)
        await store.change_job(JobEffect("update", "morning", None, next_at=NOW + 500.0, was="{}"), NOW)
        await store.missed("morning", [NOW - 60, NOW], NOW + 60, NOW, "late")
        assert await clock(store) == NOW + 500
        assert [run["instant"] for run in await store.job_history("morning", 10)] == [NOW, NOW - 60]


@pytest.mark.asyncio
async def test_a_job_that_goes_first_is_begun_before_people_who_wait(tmp_path: Path) -> None:  # P44
    async with opened(tmp_path) as store:
        await store.sync(PEOPLE, None, [job()], NOW)
        await accept(store, inbound("1"), inbound("2", chat="bob"))
        await store.fire("morning", NOW, NOW + 60, NOW, "brief", TO)
        kinds = []
        for first in (False, True, True):
            claimed = await store.claim_turn("me", NOW, LEASE, frozenset(), room=Room(jobs_first=first))
            assert claimed is not None
            kinds.append(claimed.kind)
        assert kinds == ["message", "job", "message"]
