"""A daemon that is killed in the middle of an erasure goes on with it, until no byte is left."""

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from clew.store.sqlite import SqliteStore
from tests.integration.test_cli_daemon import Command, first_line, started, written
from tests.integration.test_engine_forget import bytes_of
from tests.integration.test_reindex import asked
from tests.unit.test_store_rebuilding import export

SESSIONS, EACH = 8, 400


async def filled(folder: Path) -> None:
    """Threads of ada, whom no config names any more."""
    folder.mkdir(mode=0o700, exist_ok=True)
    store = await SqliteStore.open(folder / "clew.db", time.time())
    for number in range(SESSIONS):
        await store.import_session(export(f"s{number}", EACH, "marmalade"), time.time())
    await store.close()


@pytest.mark.e2e
def test_a_daemon_that_is_killed_in_the_middle_goes_on_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # P2, P48
    config = written(tmp_path)
    clew = Command(config, capsys, monkeypatch)
    data = tmp_path / "data"
    asyncio.run(filled(data))
    process = started(config)
    first_line(process)
    begun = asyncio.run(asked(data, "POST", "/api/v1/people/ada/erase"))
    path = f"/api/v1/erasures/{begun['id']}"
    while not 0 < sum((now := asyncio.run(asked(data, "GET", path)))["counts"].values()) < SESSIONS * EACH:  # type: ignore[attr-defined]
        assert now["done"] is None
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert b"marmalad" in bytes_of(data)
    assert clew.ok("db", "check").endswith(": ok\n")
    assert clew("session", "verify")[0] == 0
    process = started(config)
    try:
        first_line(process)
        while (now := asyncio.run(asked(data, "GET", path)))["done"] is None:
            pass
        assert now["counts"]["messages"] == SESSIONS * EACH  # type: ignore[index]
        assert clew.ok("db", "check").endswith(": ok\n")
    finally:
        process.terminate()
        with contextlib.suppress(ProcessLookupError):
            process.communicate(timeout=60)
    assert os.waitstatus_to_exitcode(0) == process.returncode
    assert b"marmalad" not in bytes_of(data)
