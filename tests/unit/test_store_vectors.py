"""Vectors beside the messages that they are of."""

from pathlib import Path

import pytest

from clew.context.nearness import Nearness
from clew.store.sql import SqlStore
from clew.store.sqlite.connection import SqliteConnection
from clew.store.vectors import Unembedded, prepare
from tests.databases import BOTH, SQLITE, databases
from tests.unit.store_rows import opened, turn

pytestmark = BOTH
NORTH, EAST, UP = bytes([127, 0]), bytes([0, 127]), bytes([127, 0, 0])


async def waiting(store: SqlStore, version: str = "one") -> list[Unembedded]:
    return list(await store.vectors.waiting(version, 100))


def retract(folder: Path, message: str) -> None:
    put = "INSERT INTO retractions (message, reason, at) VALUES (?, 'deleted', 0)"
    databases.beside(folder, lambda db: db.execute(put, (message,)))


async def embed_all(store: SqlStore, vector: bytes = NORTH, version: str = "one") -> list[Unembedded]:
    found = await waiting(store, version)
    assert await store.vectors.add(version, [(each, vector) for each in found])
    return found


@pytest.mark.asyncio
async def test_every_message_waits_until_it_has_a_vector(tmp_path: Path) -> None:  # P31
    async with opened(tmp_path) as store:
        assert await waiting(store) == []
        await turn(store, "1", "the boat lies in Laboe", "noted")
        found = await embed_all(store)
        assert [each.text for each in found] == ["the boat lies in Laboe", "noted"]
        assert await waiting(store) == []
        await turn(store, "2", "and the car in Kiel", "noted too")
        assert [each.text for each in await waiting(store)] == ["and the car in Kiel", "noted too"]
        assert await store.check() == []


@pytest.mark.asyncio
async def test_the_names_of_those_around_are_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await turn(store, "1", "hello", "hi", "team", sender="ada", direct=False, sender_name="Ada Byron")
        await turn(store, "2", "hello", "hi", "team", sender="bob", direct=False, sender_name="Bob")
        assert {each.names for each in await waiting(store)} == {frozenset({"Ada Byron", "Bob"})}


@pytest.mark.asyncio
async def test_only_those_that_are_asked_about_are_compared(tmp_path: Path) -> None:  # P33
    async with opened(tmp_path) as store:
        await turn(store, "1", "the boat lies in Laboe", "noted")
        first, second = await waiting(store)
        await store.vectors.add("one", [(first, NORTH), (second, bytes([127, 127]))])
        near = await store.vectors.near("one", NORTH, [first.id, second.id])
        assert near.asked == {first.id: pytest.approx(1.0), second.id: pytest.approx(0.7071, abs=1e-3)}
        assert set((await store.vectors.near("one", NORTH, [second.id, "nobody"])).asked) == {second.id}
        pairs = [(second.id, first.id), (second.id, "nobody")]
        assert await store.vectors.near("one", UP, [], pairs) == Nearness()
        among = await store.vectors.near("one", NORTH, [second.id], pairs)
        assert among.asked == {second.id: near.asked[second.id]}
        assert among.between == {pairs[0]: pytest.approx(0.7071, abs=1e-3)}
        assert await store.vectors.near("another", NORTH, [first.id]) == Nearness()
        assert await store.vectors.near("one", UP, [first.id]) == Nearness()


@pytest.mark.asyncio
async def test_a_message_without_words_has_an_empty_vector_and_is_near_to_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await turn(store, "1", "…", "ok")
        first, second = await waiting(store)
        await store.vectors.add("one", [(first, b""), (second, NORTH)])
        assert set((await store.vectors.near("one", EAST, [first.id, second.id])).asked) == {second.id}
        assert await waiting(store) == []
        assert await store.check() == []


@pytest.mark.asyncio
async def test_vectors_go_with_their_messages_and_a_number_that_is_free_again_waits(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await turn(store, "1", "kept", "yes")
        claim = await turn(store, "2", "gone", "yes", "bob")
        gone = await embed_all(store)
        await store.delete_session(claim.session)
        assert await store.check() == []
        await turn(store, "3", "another", "no", "eve")
        assert [each.text for each in await waiting(store)] == ["another", "no"]
        again = {each.number for each in await waiting(store)} & {each.number for each in gone}
        assert again or databases.kind == "postgresql"  # there no number is given twice
        assert await store.vectors.near("one", NORTH, [each.id for each in await waiting(store)]) == Nearness()


@pytest.mark.asyncio
async def test_a_message_that_went_while_it_was_embedded_leaves_no_vector_to_its_successor(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        claim = await turn(store, "1", "gone", "yes", "bob")
        found = await waiting(store)
        await store.delete_session(claim.session)
        await turn(store, "2", "another", "no", "eve")
        assert await store.vectors.add("one", [(each, NORTH) for each in found])
        successors = [row.id for session in await store.sessions() for row in await store.transcript(session.id)]
        assert await store.vectors.near("one", NORTH, successors) == Nearness()


@pytest.mark.asyncio
async def test_another_model_begins_anew(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await turn(store, "1", "the boat", "noted")
        before = await embed_all(store)
        assert [each.id for each in await waiting(store, "two")] == [each.id for each in before]
        await embed_all(store, UP, "two")
        assert await store.vectors.near("one", NORTH, [before[0].id]) == Nearness()
        assert (await store.vectors.near("two", UP, [before[0].id])).asked == {before[0].id: pytest.approx(1.0)}
        assert await store.check() == []


@pytest.mark.asyncio
async def test_vectors_of_another_length_begin_anew_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await turn(store, "1", "the boat", "noted")
        await embed_all(store)
        await turn(store, "2", "the car", "noted")
        assert not await store.vectors.add("one", [(each, UP) for each in await waiting(store)])
        assert len(await embed_all(store, UP)) == 4
        assert await store.check() == []
        await turn(store, "3", "the bike", "noted")
        mixed = zip(await waiting(store), (UP, NORTH), strict=True)
        assert not await store.vectors.add("one", list(mixed))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("DELETE FROM vectors WHERE message = 1", "1 messages lack their vectors"),
        ("UPDATE vectors SET vector = x'0102030405' WHERE message = 1", "1 vectors have another length than the others"),
        ("INSERT INTO vectors VALUES (99, x'0102')", "1 vectors have no message"),
    ],
)
@pytest.mark.asyncio
async def test_a_check_finds_what_is_wrong_with_them(tmp_path: Path, damage: str, told: str) -> None:
    async with opened(tmp_path) as store:
        await turn(store, "1", "the boat", "noted")
        await embed_all(store)
    databases.damaged(tmp_path, damage if databases.kind == "sqlite" else damage.replace("x'", "'\\x"))
    async with opened(tmp_path) as store:
        assert await store.check() == [told]


@SQLITE
@pytest.mark.asyncio
async def test_the_extension_and_python_say_the_same(tmp_path: Path) -> None:
    with SqliteConnection(":memory:") as db:
        there = prepare(db)
    db.close()
    if not there:
        pytest.skip("this Python's sqlite3 loads no extensions")
    async with opened(tmp_path) as store:
        await turn(store, "1", "the boat", "noted")
        first, second = await waiting(store)
        await store.vectors.add("one", [(first, bytes([127, 200, 3])), (second, bytes([1, 127, 129]))])
        asked = bytes([5, 127, 250]), [first.id, second.id], [(second.id, first.id), (first.id, "nobody")]
        by_python = await store.vectors.near("one", *asked)
        assert await store.vectors.prepare()
        by_extension = await store.vectors.near("one", *asked)
        assert by_extension.asked == pytest.approx(by_python.asked, abs=1e-5)
        assert by_extension.between == pytest.approx(by_python.between, abs=1e-5)


@pytest.mark.asyncio
async def test_what_was_taken_back_has_no_vector_and_goes_to_no_model(tmp_path: Path) -> None:  # P31
    async with opened(tmp_path) as store:
        await turn(store, "1", "the boat", "noted")
        await turn(store, "2", "the car", "noted")
        found = await waiting(store)
        retract(tmp_path, found[0].id)
        assert [each.text for each in await waiting(store)] == ["", "noted", "the car", "noted"]
        assert await store.vectors.add("one", [(each, NORTH) for each in found])  # embedded meanwhile
        assert found[0].id not in (await store.vectors.near("one", NORTH, [each.id for each in found])).asked
        retract(tmp_path, found[2].id)
        assert set((await store.vectors.near("one", NORTH, [each.id for each in found])).asked) == {found[1].id, found[3].id}
        assert await store.check() == []
