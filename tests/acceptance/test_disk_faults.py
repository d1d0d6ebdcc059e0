"""The disk that clew writes to: full, read-only, locked by somebody else, left behind by a killed process, damaged, too new."""

import asyncio
import contextlib
import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from clew.store.sqlite import SqliteStore
from tests.acceptance.harness import DEADLINE_S, PROGRAM, Correspondent, Daemon, JsonObject, running, write_config
from tests.acceptance.test_service_manager import Manager
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.scripts import say
from tests.servers import Mosquitto

pytestmark = [pytest.mark.e2e, pytest.mark.mosquitto, pytest.mark.timeout(240)]

DISK = "20m"
LONG = "x" * 60_000
"""Characters of a message that needs room of its own on the disk."""
HELD_S = 8
"""Seconds that another process holds the file: longer than SQLite's own patience."""
HOLDER = """
import sqlite3, sys, time
held = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
held.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
held.execute("ROLLBACK")
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"only root can make a small disk to fill ({mounted.stderr.strip()})")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextlib.asynccontextmanager
async def talking(folder: Path, broker: Mosquitto) -> AsyncIterator[tuple[Daemon, Correspondent]]:
    """clew with its data in `folder`/data, and Ada."""
    async with AnthropicEmulator(script=lambda body: say("All right.")) as model:
        config = write_config(folder, broker_port=broker.port, model_url=model.url, agent={}, schedule=[])
        async with running(config) as clew, Correspondent("ada").connected(broker.port) as ada:
            yield clew, ada


def fill(folder: Path) -> Path:
    """Leave no room on the disk of `folder`. Returns the file that takes it."""
    ballast = folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        for size in (2**16, 512):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size):
                    pass
    return ballast


async def problems(folder: Path) -> list[str]:
    store = await SqliteStore.open(folder / "data" / "clew.db", 1.0)
    try:
        return await store.check()
    finally:
        await store.close()


@pytest.mark.asyncio
async def test_a_full_disk_refuses_what_comes_and_mends_itself_when_there_is_room(small_disk: Path, mosquitto: Mosquitto) -> None:
    # P42, P48, BO-046
    async with talking(small_disk, mosquitto) as (clew, ada):
        await ada.ask("before", "hello")
        ballast = fill(small_disk)
        sent = [f"m{number}" for number in range(20)]
        for identifier in sent:
            await ada.send(identifier, LONG)
        await clew.until(lambda: any("full" in str(line.get("err", "")) for line in clew.log), "words about the full disk")
        status, words = await clew.page("/readyz")
        assert (status, "store: The store cannot be used just now (database or disk is full)." in words) == (503, True)
        await ada.until(lambda: len(told(ada)) == 1, "a word to the owner, past the store")
        loud = [line for line in clew.log if line["level"] in ("warning", "error")]
        assert len(loud) < len(sent), "the log is flooded"
        assert "Traceback" not in "".join(clew.plain)
        ballast.unlink()
        for identifier in [*sent, "after"][-1:]:
            await ada.send(identifier, "is there room again?")
        for identifier in [*sent, "after"]:
            assert (await ada.reply_to(identifier))["text"] == "All right."
        assert clew.count("daemon.ready") == 1
        assert [len(ada.to(identifier)) for identifier in sent] == [1] * len(sent)
        assert len(told(ada)) == 1
        await clew.until(lambda: clew.count("store.recovered") == 1, "words about the end of it")
        assert (await clew.page("/readyz"))[0] == 200
        assert clew.count("store.unavailable") == 1
        assert await clew.terminate() == 0
    assert await problems(small_disk) == []


def told(owner: Correspondent) -> list[JsonObject]:
    return [reply for reply in owner.replies if "I cannot store anything." in reply["text"]]


@pytest.mark.asyncio
async def test_a_stop_while_the_disk_is_full_loses_nothing(small_disk: Path, mosquitto: Mosquitto) -> None:  # P48, BO-046, BO-096
    async with AnthropicEmulator(script=lambda body: say("All right.")) as model:
        config = write_config(small_disk, broker_port=mosquitto.port, model_url=model.url, agent={}, schedule=[])
        async with running(config) as clew, Correspondent("ada").connected(mosquitto.port) as ada:
            hold = model.hold()
            await ada.send("m1", "stored before, not answered yet")
            await hold.reached.wait()
            ballast = fill(small_disk)
            model.script = lambda body: say("y" * 50_000)
            await ada.send("m2", LONG)
            await clew.until(lambda: clew.count("store.unavailable") == 1, "words about the full disk")
            hold.release()
            assert await clew.terminate() == 0
            assert "Traceback" not in "".join(clew.plain)
            ballast.unlink()
            await clew.start()
            for identifier in ("m1", "m2"):
                await ada.reply_to(identifier)
                assert len(ada.to(identifier)) == 1
            assert await clew.terminate() == 0
    assert await problems(small_disk) == []


@pytest.mark.asyncio
async def test_a_start_under_systemd_waits_for_room(small_disk: Path, tmp_path: Path, mosquitto: Mosquitto) -> None:  # P48, BO-046, BO-098
    (small_disk / "data").mkdir()
    manager = Manager(tmp_path / "notify.sock")
    async with AnthropicEmulator(script=lambda body: say("All right.")) as model:
        config = write_config(small_disk, broker_port=mosquitto.port, model_url=model.url, agent={}, schedule=[])
        clew = Daemon(config, {"NOTIFY_SOCKET": str(tmp_path / "notify.sock")})
        ballast = fill(small_disk)
        starting = asyncio.create_task(clew.start())
        await manager.until("EXTEND_TIMEOUT_USEC=50000000")
        assert "full" in await manager.status()
        assert not starting.done()
        ballast.unlink()
        await starting
        await manager.until("STATUS=")
        assert clew.count("store.unavailable") == 1
        assert await clew.terminate() == 0
    manager.close()


@pytest.mark.asyncio
async def test_messages_wait_for_a_file_that_another_process_holds(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P42, BO-043
    async with talking(tmp_path, mosquitto) as (clew, ada):
        await ada.ask("before", "hello")
        holder = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", HOLDER, str(tmp_path / "data" / "clew.db"), str(HELD_S)), stdout=asyncio.subprocess.PIPE
        )
        assert holder.stdout is not None
        assert await holder.stdout.readline() == b"held\n"
        await ada.send("m1", "while it is held")
        assert ada.to("m1") == []
        assert await holder.wait() == 0
        for identifier in ("m1", "m2"):
            if identifier == "m2":
                await ada.send("m2", "when it is free")
            await ada.reply_to(identifier)
        assert clew.count("daemon.ready") == 1
        assert await clew.terminate() == 0
    assert await problems(tmp_path) == []


@pytest.mark.asyncio
async def test_what_a_killed_process_left_in_its_wal_is_there_at_the_next_start(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P2, P42
    async with talking(tmp_path, mosquitto) as (clew, ada):
        for number in range(3):
            await ada.ask(f"m{number}", f"number {number}")
        await clew.kill()
        assert (tmp_path / "data" / "clew.db-wal").stat().st_size > 0
        await clew.start()
        await ada.ask("m3", "number 3")
        assert await clew.terminate() == 0
    store = await SqliteStore.open(tmp_path / "data" / "clew.db", 1.0)
    try:
        session = await store.current_session("mqtt:ada")
        assert session is not None
        said = [message.text for message in await store.transcript(session) if message.role == "user"]
        assert said == [f"number {number}" for number in range(4)]
        assert await store.check() == []
    finally:
        await store.close()


# At the start ---------------------------------------------------------------------------------------------------------


def started(folder: Path) -> tuple[int, str]:
    """Exit code and words of a `clew run` on the data in `folder`/data, which ends by itself."""
    config = folder.parent / f"{folder.name}.yaml"
    config.write_text(f"data_dir: {folder}/data\nhttp: {{port: 0}}\nproviders: {{none: {{kind: offline}}}}\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CLEW_", "ANTHROPIC_", "NOTIFY_"))}
    ended = subprocess.run(
        [PROGRAM, "run", "--config", config], capture_output=True, text=True, timeout=DEADLINE_S, env=environment, check=False
    )
    return ended.returncode, ended.stdout + ended.stderr


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """The file of a clew that was stopped."""

    async def make() -> None:
        store = await SqliteStore.open(tmp_path / "home" / "data" / "clew.db", 1.0)
        await store.close()

    (tmp_path / "home" / "data").mkdir(parents=True)
    asyncio.run(make())
    return tmp_path / "home" / "data" / "clew.db"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("damage", ["overwritten", "cut short", "schema"])
def test_a_damaged_file_is_told_and_left_alone(database: Path, damage: str) -> None:  # P48
    raw = bytearray(database.read_bytes())
    if damage == "overwritten":
        raw[:4096] = b"these bytes are no database" * 151 + b"!" * 19
    elif damage == "cut short":
        del raw[len(raw) // 2 :]
    else:
        raw[100:2048] = bytes(len(raw[100:2048]))
    database.write_bytes(raw)
    before = digest(database)
    code, words = started(database.parent.parent)
    assert code == 1, words
    assert str(database) in words
    assert "put a backup in its place" in words
    assert "Traceback" not in words
    assert digest(database) == before


def test_a_file_of_a_newer_clew_is_told_and_left_alone(database: Path) -> None:  # P2
    newer = sqlite3.connect(database)
    newer.execute("PRAGMA user_version = 9999")
    newer.close()
    before = digest(database)
    code, words = started(database.parent.parent)
    assert code == 1, words
    assert "newer clew" in words
    assert "Traceback" not in words
    assert digest(database) == before


def test_a_folder_that_cannot_be_written_is_told(small_disk: Path) -> None:  # P48
    (small_disk / "data").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    code, words = started(small_disk)
    assert code == 1, words
    assert f"{small_disk}/data" in words
    assert "cannot be written" in words
    assert "Traceback" not in words


def test_a_full_disk_at_the_start_is_told(small_disk: Path) -> None:  # P48, BO-046
    (small_disk / "data").mkdir()
    fill(small_disk)
    code, words = started(small_disk)
    assert code == 1, words
    assert "full" in words
    assert "Traceback" not in words
