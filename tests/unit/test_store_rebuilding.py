"""The index built anew beside the one that answers."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.store.opening import open_store
from clew.store.rebuilding import MESSAGES, Rebuilding
from clew.store.sql import SqlStore
from tests.databases import BOTH, databases
from tests.unit.store_rows import NOW, found, opened, turn

pytestmark = BOTH

STEPS = 3
"""Transactions that a rebuild of so many sessions takes, but for the last."""
OF_ONE = 50
"""Messages of one session."""


def export(session: str, count: int = OF_ONE, word: str = "needle") -> dict[str, object]:
    names = ("id", "seq", "role", "blocks", "sender", "sender_name", "turn", "metadata", "at", "address")
    rows: list[tuple[object, ...]] = [
        (f"{session}-{n}", n, "user", [{"kind": "text", "text": f"{word} {session} {n}"}], "ada", "Ada", "", {}, NOW + n, "desk:ada")
        for n in range(1, count + 1)
    ]
    messages = [dict(zip(names, row, strict=True)) for row in rows]
    about = {"id": session, "address": "desk:ada", "direct": True, "title": "", "created": NOW}
    nothing: dict[str, object] = {"compactions": [], "pins": [], "retractions": [], "model_calls": []}
    return {"clew": 1, "session": about, "messages": messages, **nothing}


async def filled(store: SqlStore, sessions: int = 2 * STEPS) -> None:
    for number in range(sessions):
        await store.import_session(export(f"s{number}"), NOW)


async def finished(store: SqlStore) -> int:
    """Go on to the end. Returns how many transactions it took."""
    steps = 1
    while await store.rebuild_some() is not None:
        steps += 1
    return steps


@pytest.mark.asyncio
async def test_a_wrong_index_is_built_anew_in_bounded_steps(tmp_path: Path) -> None:  # P20, BO-040, BO-042
    async with opened(tmp_path) as store:
        await filled(store)
        databases.beside(tmp_path, lambda db: db.words("messages").count({"needl"}, -1))
        databases.altered(tmp_path, "DELETE FROM places WHERE message = 7")
        assert len(await store.check()) >= 2
        assert await store.rebuild_index() == Rebuilding(0, 2 * STEPS * OF_ONE)
        assert await store.rebuild_some() == Rebuilding(MESSAGES, 2 * STEPS * OF_ONE)
        assert await finished(store) == STEPS
        assert await store.rebuilding() is None
        assert await store.check() == []
        assert len(await found(store, "needle s3 7")) > 0


@pytest.mark.asyncio
async def test_the_old_index_answers_and_learns_until_the_new_one_is_whole(tmp_path: Path) -> None:  # P20
    async with opened(tmp_path) as store:
        await filled(store)
        await store.rebuild_index()
        await store.rebuild_some()
        claimed = await turn(store, "1", "a marmalade jar", "noted")
        assert await found(store, "marmalade") == {(await store.transcript(claimed.session))[-2].id}
        assert await store.check() == []
        await finished(store)
        assert await found(store, "marmalade") == {(await store.transcript(claimed.session))[-2].id}
        assert await store.check() == []


@pytest.mark.asyncio
async def test_what_is_deleted_meanwhile_leaves_both(tmp_path: Path) -> None:  # P4, P20, BO-040
    async with opened(tmp_path) as store:
        await filled(store)
        await store.rebuild_index()
        await store.rebuild_some()
        await store.delete_session("s0")  # is built already
        await store.delete_session("s5")  # is not, and its numbers are free again
        await store.import_session(export("s9", word="thimble"), NOW)
        assert await store.check() == []
        await finished(store)
        assert await store.check() == []
        assert len(await found(store, "thimble")) == OF_ONE
        assert len(await found(store, "needle", await store.scope_for(operator=True))) == 100  # of 200, the most that is asked for


@pytest.mark.asyncio
async def test_messages_are_counted_whatever_their_numbers_are(tmp_path: Path) -> None:  # P20
    async with opened(tmp_path) as store:
        await filled(store, 3)
        for session in ("s0", "s1"):
            await store.delete_session(session)
        assert await store.rebuild_index() == Rebuilding(0, OF_ONE)
        assert await store.rebuild_some() == await store.rebuilding() == Rebuilding(OF_ONE, OF_ONE)


@pytest.mark.asyncio
async def test_a_number_that_is_free_again_is_built_with_its_new_message(tmp_path: Path) -> None:  # P20
    async with opened(tmp_path) as store:
        await filled(store, 2)
        await store.rebuild_index()
        assert await store.rebuild_some() == Rebuilding(2 * OF_ONE, 2 * OF_ONE)
        await store.delete_session("s1")
        await store.import_session(export("s1", word="thimble"), NOW)
        await finished(store)
        assert await store.check() == []
        assert len(await found(store, "thimble")) == OF_ONE


@pytest.mark.asyncio
async def test_a_process_that_dies_leaves_a_whole_index_and_the_next_goes_on(tmp_path: Path) -> None:  # P20, P48
    async with opened(tmp_path) as store:
        await filled(store)
        await store.rebuild_index()
        await store.rebuild_some()
    async with opened(tmp_path) as store:
        assert await store.check() == []
        assert await store.rebuilding() == Rebuilding(MESSAGES, 2 * STEPS * OF_ONE)
        assert await store.rebuild_index() == Rebuilding(MESSAGES, 2 * STEPS * OF_ONE)  # asked for again, it goes on
        assert await finished(store) == STEPS
        assert await store.check() == []


@pytest.mark.asyncio
async def test_what_another_version_began_is_not_gone_on_with(tmp_path: Path) -> None:  # P2, P19
    async with opened(tmp_path) as store:
        await filled(store)
        await store.rebuild_index()
        await store.rebuild_some()
    databases.altered(
        tmp_path, "UPDATE meta SET value = replace(value, '\"version\": \"', '\"version\": \"another') WHERE key = 'rebuilding'"
    )
    async with opened(tmp_path) as store:
        assert await store.rebuild_some() == Rebuilding(MESSAGES, 2 * STEPS * OF_ONE)  # from the start
        await finished(store)
        assert await store.check() == []
        await store.rebuild_index()
        await store.rebuild_some()
    # An index for other secrets is made at the start.
    secret = await open_store(databases.store(tmp_path), tmp_path, NOW, known=("needle",))
    try:
        assert await secret.rebuilding() is None
        assert await secret.check() == []
        assert not await found(secret, "needle")
    finally:
        await secret.close()


@pytest.mark.asyncio
async def test_where_nothing_was_begun_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await filled(store, 1)
        assert await store.rebuild_some() is None
        assert await store.rebuilding() is None
        assert await store.check() == []


ACTS = st.lists(st.sampled_from(["import", "delete", "begin", "step", "step", "reopen"]), max_size=14)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ACTS)
def test_whatever_happens_meanwhile_the_index_is_whole(acts: list[str]) -> None:  # P20, P35
    async def play(folder: Path) -> None:
        store = await open_store(databases.store(folder), folder, NOW)
        try:
            for number, act in enumerate(["import", "import", *acts]):
                match act:
                    case "import":
                        await store.import_session(export(f"i{number}"), NOW)
                    case "delete":
                        for row in (await store.sessions())[:1]:
                            await store.delete_session(row.id)
                    case "begin":
                        await store.rebuild_index()
                    case "step":
                        await store.rebuild_some()
                    case "reopen":
                        await store.close()
                        store = await open_store(databases.store(folder), folder, NOW)
            assert await store.check() == []
            await store.rebuild_index()
            await finished(store)
            assert await store.check() == []
        finally:
            await store.close()

    with tempfile.TemporaryDirectory() as name:
        asyncio.run(play(Path(name)))
