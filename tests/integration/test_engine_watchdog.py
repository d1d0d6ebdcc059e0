"""systemd is told that all is well as long as the dispatcher comes round, and no longer."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from clew import dispatcher, lifecycle
from tests.integration.engine import DEADLINE_S, World, engine

HUNG_S = 0.3
PINGS_S = 0.02


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A stand-in for systemd, which wants a sign of life every few hundredths of a second."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.setblocking(False)
        listening.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", str(int(2 * PINGS_S * 1e6)))
        monkeypatch.setattr(lifecycle, "HUNG", HUNG_S)
        monkeypatch.setattr(dispatcher, "LOOK", PINGS_S)
        yield listening


def heard(manager: socket.socket) -> int:
    """Signs of life since the last look."""
    count = 0
    with contextlib.suppress(BlockingIOError):
        while manager.recv(4096) == b"WATCHDOG=1":
            count += 1
    return count


@contextlib.asynccontextmanager
async def watched(world: World) -> AsyncIterator[None]:
    async with world.running():
        task = asyncio.create_task(lifecycle._watchdog(world.service))
        try:
            yield
        finally:
            task.cancel()


@pytest.mark.asyncio
async def test_a_dispatcher_that_hangs_is_reported_by_silence_though_the_loop_runs(tmp_path: Path, manager: socket.socket) -> None:  # P48
    async with engine(tmp_path) as world, watched(world):
        go = threading.Event()
        async with asyncio.timeout(DEADLINE_S):
            while not heard(manager):
                await asyncio.sleep(PINGS_S)
            hanging = asyncio.ensure_future(world.store._db.write(lambda db: go.wait()))  # as a disk that no longer answers
            while world.service.time.steady() - world.service.dispatcher.progress < HUNG_S:
                await asyncio.sleep(PINGS_S)
            heard(manager)
            for _ in range(20):
                await asyncio.sleep(PINGS_S)
            assert heard(manager) == 0
            go.set()
            await hanging
            while not heard(manager):
                await asyncio.sleep(PINGS_S)
