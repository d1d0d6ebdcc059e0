"""A store copied into PostgreSQL and back: every row of it, whatever comes in between."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.errors import StoreError
from clew.store import copying
from clew.store.connection import Connection
from clew.store.indexing import Indexer
from clew.store.opening import copied, open_store
from clew.store.sqlite.connection import SqliteConnection
from clew.store.sqlite.side import SqliteSide
from tests.databases import POSTGRESQL, databases
from tests.unit.store_rows import NOW, PEOPLE

pytestmark = [POSTGRESQL, pytest.mark.asyncio]

RELEASED = Path(__file__).parents[1] / "corpus" / "released" / "schema-22.db.gz"


def silent(what: str, done: int, total: int) -> None:
    """Nobody looks."""


def released(folder: Path) -> Path:
    """A store that has rows in most tables."""
    path = folder / "clew.db"
    path.write_bytes(gzip.decompress(RELEASED.read_bytes()))
    return path


async def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything in a file but its search indexes."""
    side = await SqliteSide.open(path, NOW, Indexer())
    try:
        return {table.name: [row for rows in table.batches(side.db) for row in rows] for table in copying.tables(side.db)}
    finally:
        side.close()


async def test_a_store_goes_into_postgresql_and_comes_back_the_same(tmp_path: Path) -> None:  # P2, P42
    path, url = released(tmp_path), databases.untouched()
    there = await copied(path, url, NOW, (), silent)
    back = tmp_path / "back" / "clew.db"
    back.parent.mkdir()
    assert await copied(url, back, NOW, (), silent) == there > 100
    assert await rows_of(back) == await rows_of(path)
    for where, folder in (("sqlite", back.parent), (url, tmp_path)):
        store = await open_store(where, folder, NOW)
        try:
            assert await store.check() == []
        finally:
            await store.close()


def said(db: Connection) -> int:
    return db.insert("INSERT INTO timeline (address) VALUES (?)", ("desk:ada",), "seq")


async def test_new_rows_have_numbers_behind_all_that_were_given_before_the_copy(tmp_path: Path) -> None:  # P42
    path, url = released(tmp_path), databases.store(tmp_path)
    store = await open_store("sqlite", tmp_path, NOW)
    newest = await store._db.write(said)
    await store._db.write(lambda db: db.execute("DELETE FROM timeline WHERE seq = ?", (newest,)).rowcount)
    await store.close()
    await copied(path, url, NOW, (), silent)
    store = await open_store(url, tmp_path, NOW)
    try:
        assert await store._db.write(said) == newest + 1
    finally:
        await store.close()


class Cut(Exception):
    """The copy ends here."""


def cut_at(moment: int) -> Callable[[str, int, int], None]:
    looks = 0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal looks
        looks += 1
        if looks == moment:
            raise Cut

    return tell


@pytest.mark.parametrize("back", [False, True])
async def test_a_copy_that_was_interrupted_anywhere_goes_on_and_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:  # P2
    monkeypatch.setattr(copying, "ROWS", 7)
    path, url = released(tmp_path), databases.store(tmp_path)
    source: Path | str = path
    target: Path | str = url
    if back:
        await copied(path, url, NOW, (), silent)
        source, target = url, tmp_path / "back.db"
    moment, cuts = 3, 0
    while True:
        try:
            await copied(source, target, NOW, (), cut_at(moment))
            break
        except Cut:
            moment, cuts = moment + moment // 2, cuts + 1
    assert cuts > 3
    if not back:
        await copied(url, tmp_path / "back.db", NOW, (), silent)
    assert await rows_of(tmp_path / "back.db") == await rows_of(path)


async def test_a_store_that_is_not_whole_is_not_opened(tmp_path: Path) -> None:  # P2, P49
    path, url = released(tmp_path), databases.store(tmp_path)
    with pytest.raises(Cut):
        await copied(path, url, NOW, (), cut_at(20))
    with pytest.raises(StoreError, match="copy") as refused:
        await open_store(url, tmp_path, NOW)
    assert "clew db copy" in refused.value.hint


async def test_what_a_store_holds_is_overwritten_only_when_that_is_said(tmp_path: Path) -> None:  # P2
    path, url = released(tmp_path), databases.store(tmp_path)
    store = await open_store(url, tmp_path, NOW)
    await store.sync(PEOPLE, None, await store.jobs(), NOW)
    await store.close()
    with pytest.raises(StoreError, match="holds something already") as refused:
        await copied(path, url, NOW, (), silent)
    assert "--again" in refused.value.hint
    await copied(path, url, NOW, (), silent, again=True)
    await copied(url, tmp_path / "back.db", NOW, (), silent)
    assert await rows_of(tmp_path / "back.db") == await rows_of(path)


async def test_a_row_that_changed_meanwhile_is_found(tmp_path: Path) -> None:  # P42
    path, url = released(tmp_path), databases.store(tmp_path)

    def change(what: str, done: int, total: int) -> None:
        if what == "search index" and done == total:
            with SqliteConnection(path) as db:
                db.execute("UPDATE sessions SET title = title || '!'")

    with pytest.raises(StoreError, match="differs from its source: sessions"):
        await copied(path, url, NOW, (), change)


async def test_a_store_that_a_daemon_works_on_is_not_copied(tmp_path: Path) -> None:  # P2, P49
    path, url = released(tmp_path), databases.store(tmp_path)
    store = await open_store(url, tmp_path, NOW)
    try:
        await store.leases.join("other", 60.0, frozenset(), NOW)
        for source, target in ((path, url), (url, tmp_path / "back.db")):
            with pytest.raises(StoreError, match="works on one") as refused:
                await copied(source, target, NOW, (), silent)
            assert "Stop every clew" in refused.value.hint
        await store.leases.leave("other", frozenset(), NOW)
        await copied(path, url, NOW, (), silent)
    finally:
        await store.close()
