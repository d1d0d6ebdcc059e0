"""Daemons that are killed at one of their own points, and the points at which they still have to be."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

from clew.config import Config, load
from clew.plugins import registry
from tests.acceptance import stamp
from tests.acceptance.harness import DEADLINE_S
from tests.acceptance.server_points import KILLED
from tests.databases import Postgres, databases
from tests.integration.webhook_harness import until

TRIES = 3
"""Runs in which a point may fail to come before it is given up."""
LOOK_S = 0.05
"""Seconds between two looks at whether a daemon has come to its end."""
VARYING = ("written ", "committed ")
"""What the number of may differ from run to run: what is looked for in the background may find something or not."""


class Daemons:
    """Starts daemons that are killed at a point, one at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    @contextlib.asynccontextmanager
    async def ready(cls, environment: dict[str, str]) -> AsyncIterator["Daemons"]:
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("CLEW_", "ANTHROPIC_", "NOTIFY_"))}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.acceptance.fault_points"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**bare, **environment},
        )
        assert process.stdin is not None
        try:
            yield cls(process)
        finally:
            process.stdin.close()
            await process.wait()

    async def run(self, folder: Path, config: Path, at: str, end: str) -> list[str]:
        """Run one until it is killed at point `at` (empty: not at all), or has passed `end` and was stopped.

        Returns the points that it passed; `at` is the last of them if it was killed. It may only end by itself where it wrote less often
        than `at` says, and then it has come to `end` and ends well.
        """
        points = folder / "points"
        number, ended = await self._begun(folder, config, at)
        await until(lambda: ended.done() or end in points.read_text())
        with contextlib.suppress(ProcessLookupError):
            if not ended.done():
                os.kill(number, signal.SIGTERM)
        status, passed = await ended, points.read_text().splitlines()
        where = self._told(folder, at)
        if at in passed:
            assert (status, passed[-1]) == (-signal.SIGKILL, at), where
            if databases.kind == "postgresql":  # who comes next has not to wait until its lease is over
                databases.altered(folder / "data", "UPDATE leases SET until = 0")
        else:
            assert status == 0, where
            assert any(end in point for point in passed), where
            assert not at or at.startswith(VARYING), where
        return passed

    async def run_over(self, folder: Path, config: Path, at: str, server: Postgres, store: str, ended: Callable[[], bool]) -> list[str]:
        """Run one whose database server is killed at point `at` (empty: not at all) and started again, until `ended`, then stop it.

        store: address of the database. Returns the points that were passed.
        """
        points = folder / "points"
        number, over = await self._begun(folder, config, at, str(server.folder), store)

        def killed() -> bool:
            return KILLED in points.read_text()

        try:
            async with asyncio.timeout(DEADLINE_S):
                await until(lambda: over.done() or killed() or ended())
                if killed():
                    await asyncio.to_thread(server.start_again)
                while not (over.done() or ended()):
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise AssertionError(self._told(folder, at)) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGTERM)
        assert await over == 0, self._told(folder, at)
        if killed() and not ended():
            await asyncio.to_thread(server.start_again)
        return points.read_text().splitlines()

    async def _begun(self, folder: Path, config: Path, at: str, server: str = "", store: str = "") -> tuple[int, asyncio.Future[int]]:
        """Start a daemon. Returns its process id, and what will be its status."""
        points = folder / "points"
        points.write_text("")
        (folder / "stamps").touch()
        paths = {"config": str(config), "points": str(points), "log": str(folder / "log")}
        job = {**paths, "at": at, "environment": {stamp.FILE: str(folder / "stamps")}, "server": server, "store": store}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        return await self._number(), asyncio.ensure_future(self._number())

    def _told(self, folder: Path, at: str) -> str:
        return f"to be killed at {at or 'nothing'}, passed {(folder / 'points').read_text().splitlines()}\n{(folder / 'log').read_text()}"

    async def _number(self) -> int:
        assert self._process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            return int(await self._process.stdout.readline())


async def at_each(points: Sequence[str], run: Callable[[str], Awaitable[Sequence[str]]], at_least: int) -> None:
    """Kill a daemon at each of these points, and at those that only a later run passed.

    run: a run that is to be killed at a point, with all that is to be checked then; gives the points it passed. A point that it did not
    come to is tried again. at_least: how many of them there are at which a daemon is killed, whatever varies.
    """
    waiting, tries, killed = deque(dict.fromkeys(points)), Counter[str](), set[str]()
    known = set(waiting)
    while waiting:
        at = waiting.popleft()
        passed = await run(at)
        tries[at] += 1
        if at in passed:
            killed.add(at)
        elif tries[at] < TRIES:
            waiting.append(at)
        waiting.extend(new := [point for point in passed if point not in known])
        known.update(new)
    told = f"killed at {len(killed)} of {len(known)} points"
    print(told, *(f"not again: {point}" for point in sorted(known - killed)), sep="\n")
    assert len(killed) >= at_least, told


def after(point: str, passed: Sequence[str]) -> Sequence[str]:
    """The points from this one on, none if it was not passed."""
    return passed[passed.index(point) :] if point in passed else ()


def read(path: Path) -> Config:
    """The config at `path`, read by this process."""
    transports, providers = (
        {name: each.Config for name, each in registry(f"clew.{group}").items()} for group in ("transports", "providers")
    )
    return load(path, transports=transports, providers=providers)
