"""A backup is whole, closed to others, and never in place of something else."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from clew.errors import StoreError
from clew.store import backups
from clew.store.sqlite import SqliteStore
from clew.store.sqlite.backup import backup
from tests.databases import SQLITE
from tests.unit.store_rows import opened, turn

pytestmark = SQLITE


@pytest.mark.asyncio
async def test_a_backup_made_beside_a_writer_holds_what_was_committed(tmp_path: Path) -> None:  # P1
    copy = tmp_path / "copy" / "clew.db"
    copy.parent.mkdir()
    async with opened(tmp_path) as store:
        await turn(store, "1", "the aubergine ledger", "noted")
        size = backup(tmp_path / "clew.db", copy)
        await turn(store, "2", "written afterwards", "noted")
    assert [path.name for path in copy.parent.iterdir()] == ["clew.db"]
    assert (copy.stat().st_size, copy.stat().st_mode & 0o777) == (size, 0o600)
    async with opened(copy.parent) as restored:
        assert await restored.check() == []
        (session,) = await restored.sessions()
        assert [each.text for each in await restored.transcript(session.id)] == ["the aubergine ledger", "noted"]
        await turn(restored, "3", "and on it goes", "yes")


@pytest.mark.asyncio
async def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("somebody's letter")
    async with opened(tmp_path) as store:
        for path, said in (
            (taken, "is there already"),
            (tmp_path / "clew.db", "is there already"),
            (tmp_path / "none" / "x", "No such file"),
        ):
            with pytest.raises(StoreError, match=said):
                backup(tmp_path / "clew.db", path)
        assert await store.check() == []
    assert taken.read_text() == "somebody's letter"


@pytest.mark.asyncio
async def test_a_damaged_source_leaves_no_backup(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        for number in range(50):
            await turn(store, str(number), f"message {number} " * 100, "noted")
    path = tmp_path / "clew.db"
    raw = bytearray(path.read_bytes())
    with sqlite3.connect(path) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'").fetchone()
    database.close()
    raw[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(raw)
    with pytest.raises(StoreError):
        backup(path, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.asyncio
async def test_what_is_written_meanwhile_neither_begins_the_copy_anew_nor_gets_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.store.sqlite.backup.PAGES", 1)
    store = await SqliteStore.open(tmp_path / "clew.db", 1.0)
    await store.close()
    source, seen = sqlite3.connect(tmp_path / "clew.db"), list[tuple[int, int]]()

    def tell(done: int, of: int) -> None:
        seen.append((done, of))
        source.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('meanwhile', ?)", (str(done),))
        source.commit()

    backup(tmp_path / "clew.db", tmp_path / "copy.db", tell)
    source.close()
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1] == (len(seen), len(seen))
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT count(*) FROM meta WHERE key = 'meanwhile'").fetchone() == (0,)


@pytest.mark.parametrize(
    ("made", "there", "kept"),
    [
        ("20270115", ["20260101", "20260102"], ["20260102", "20270115"]),
        ("20270115", ["20260101", "20990101", "20990102"], ["20260101", "20270115"]),
        ("19700101", ["20260101", "20260102"], ["19700101", "20260102"]),
    ],
    ids=["as ever", "the clock was ahead", "the clock is behind"],
)
def test_a_backup_is_never_taken_away_as_soon_as_it_is_made(tmp_path: Path, made: str, there: list[str], kept: list[str]) -> None:
    def name(day: str) -> str:
        return f"clew-{day}T000000Z.db"

    for day in (*there, made):
        (tmp_path / name(day)).touch()
    (tmp_path / name("20250101")).mkdir()
    (tmp_path / name("20980101")).symlink_to("/dev/null")
    gone = backups.rotate(tmp_path, 2, tmp_path / name(made))
    assert {path.name for path in gone} == {name(day) for day in {*there, made} - {*kept}}
    assert {path.name for path in tmp_path.iterdir()} == {name(day) for day in (*kept, "20250101", "20980101")}
