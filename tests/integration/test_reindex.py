"""`clew db reindex`, beside a daemon that goes on answering, and killed in the middle."""

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import time
from pathlib import Path

import aiohttp
import pytest

from clew.store.sqlite import SqliteStore
from tests.databases import databases
from tests.integration.engine import engine
from tests.integration.test_cli_daemon import Command, first_line, started, written
from tests.unit.test_store_rebuilding import export

SESSIONS, EACH = 12, 200


async def filled(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    store = await SqliteStore.open(folder / "clew.db", time.time())
    for number in range(SESSIONS):
        await store.import_session(export(f"s{number}", EACH), time.time())
    await store.close()


@pytest.mark.asyncio
async def test_people_are_answered_while_the_index_is_built(tmp_path: Path) -> None:  # P20
    await filled(tmp_path)
    async with engine(tmp_path) as world, world.running():
        await world.service.reindexing.begin()
        done, said, states = [0], 0, set[str]()
        while (now := await world.store.rebuilding()) is not None:
            states |= {work.state for work in world.service.progress.works}
            done.append(now.done)
            said += 1
            assert "answer to" in await world.desk.ask(f"the marmalade jar {said}")
        assert done == sorted(done)
        assert len(set(done)) > 3
        assert said > 3
        assert "running" in states
        assert await world.store.check() == []
        await world.desk.ask("/new")
        assert f"the marmalade jar {said}" in await world.desk.ask(f"/recall marmalade jar {said}")
        [work] = world.service.progress.works
        assert (work.name, work.state, work.done) == ("search index", "done", work.of)


def test_the_command_mends_an_index_without_a_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # P20, BO-040
    clew = Command(written(tmp_path), capsys, monkeypatch)
    asyncio.run(filled(tmp_path / "data"))
    databases.altered(tmp_path / "data", "DELETE FROM places WHERE message = 3")
    code, out, _ = clew("db", "check")
    assert code == 1
    assert "no place" in out
    assert clew.ok("db", "reindex") == f"the search index was built anew from {SESSIONS * EACH:,} messages\n"
    assert clew.ok("db", "check").endswith(": ok\n")
    assert json.loads(clew.ok("db", "reindex", "--json")) == {"messages": SESSIONS * EACH}


def test_a_daemon_that_is_killed_in_the_middle_goes_on_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # P20, P48
    config = written(tmp_path)
    clew = Command(config, capsys, monkeypatch)
    asyncio.run(filled(tmp_path / "data"))
    process = started(config)
    first_line(process)
    total = asyncio.run(asked(tmp_path / "data", "POST", "/api/v1/index/rebuild"))["total"]
    while not 0 < (now := asyncio.run(asked(tmp_path / "data", "GET", "/api/v1/index")))["done"] < total:
        assert now["rebuilding"]
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert half_built(tmp_path / "data")
    assert clew.ok("db", "check").endswith(": ok\n")  # searches ask the old one
    assert clew("session", "search", "needle", "--limit", "1")[0] == 0
    process = started(config)
    try:
        first_line(process)
        while asyncio.run(asked(tmp_path / "data", "GET", "/api/v1/index"))["rebuilding"]:
            pass
        assert not half_built(tmp_path / "data")
        assert clew.ok("db", "check").endswith(": ok\n")
    finally:
        process.terminate()
        with contextlib.suppress(ProcessLookupError):
            process.communicate(timeout=60)
    assert os.waitstatus_to_exitcode(0) == process.returncode


async def asked(folder: Path, method: str, path: str) -> dict[str, int]:
    connector = aiohttp.UnixConnector(path=str(folder / "clew.sock"))
    async with aiohttp.ClientSession(connector=connector) as session, session.request(method, f"http://localhost{path}", json={}) as answer:
        found: dict[str, int] = await answer.json()
        return found


def half_built(folder: Path) -> bool:
    database = sqlite3.connect(folder / "clew.db")
    tables = database.execute("SELECT count(*) FROM sqlite_schema WHERE name IN ('new_places', 'new_document_frequency')").fetchone()[0]
    state = database.execute("SELECT count(*) FROM meta WHERE key = 'rebuilding'").fetchone()[0]
    database.close()
    assert tables == 2 * state
    return bool(state)
