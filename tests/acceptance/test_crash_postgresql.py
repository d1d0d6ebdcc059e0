"""One turn with a tool call, over whose writes the PostgreSQL server is killed: behind each write, in its commit, and behind that.

The daemon goes on by itself once the server is there again. What is stored and what was received must be what a turn leaves behind over
which nothing was killed. In a commit means that the server has it and nobody was told, see `tests.acceptance.server_points`.
"""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import stamp
from tests.acceptance.clients import online
from tests.acceptance.kills import after
from tests.acceptance.server_points import KILLED, SERVER
from tests.acceptance.test_crash_points import House, expected, found, house, subscribed
from tests.database_pool import aside
from tests.databases import Postgres, postgres
from tests.servers import Mosquitto, free_port

pytestmark = [pytest.mark.e2e, pytest.mark.mosquitto, pytest.mark.asyncio, pytest.mark.timeout(600)]

LANES = {"mqtt": 4, "webhook": 2}
"""Servers that are killed at the same time: what takes time is that daemons wait before they try again."""
VERBS = {"mqtt": ("accept", "claim", "record", "finish", "settle"), "webhook": ("accept", "settle")}
"""Whose writes are killed over; what differs between the two is how a message comes in and a reply goes out."""
AT_LEAST = {"mqtt": 18, "webhook": 5}
"""Points at which the server is killed."""
UNDONE = (
    "SELECT (SELECT count(*) FROM inbox WHERE state NOT IN ('answered', 'failed')) + (SELECT count(*) FROM turns WHERE state = 'running')"
    " + (SELECT count(*) FROM outbox WHERE state IN ('draft', 'pending', 'sending'))"
)


@contextlib.contextmanager
def waiting_for_a_standby() -> Iterator[Postgres]:
    with postgres() as server:
        for each in SERVER:
            server.sql(f"ALTER SYSTEM SET {each}")
        server.stop()
        server.start()
        yield server


def rows(url: str, sql: str) -> list[Any]:
    return aside(url, lambda db: db.execute(sql).fetchall())


async def killed_at(home: House, server: Postgres, at: str = "") -> Sequence[str]:
    """Run the turn, over which the server is killed at a point (empty: not at all), and compare. Returns the points from its first on."""
    number = next(home.numbers)
    folder, name, url = home.folder / f"{home.kind}{number}", f"ada{number}", server.create()
    port = free_port() if home.kind == "webhook" else 0
    path, client = home.config(folder, name, port, url), home.client(name, port)
    home.model.calls = 0

    def ended() -> bool:
        with contextlib.suppress(subprocess.CalledProcessError):  # it starts
            return bool(client.replies) and server.sql(UNDONE, url.rpartition("/")[2]) == "0\n"
        return False

    async with online([client]), asyncio.TaskGroup() as group:
        group.create_task(client.say("Please stamp this."))
        passed = await home.daemons.run_over(folder, path, at, server, url, ended)
    where = f"killed at {at or 'nothing'}, passed {passed}"
    assert found(partial(rows, url), client) == expected(client, interrupted=False), where
    assert len(stamp.stamps(folder)) == 1, where
    assert client.differing == [], where
    return after("written accept 1", passed)


@contextlib.asynccontextmanager
async def lane(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[House, Postgres]]:
    """A server that can be killed alone, and what stands around its daemons."""
    (folder / "mosquitto").mkdir(parents=True)
    with waiting_for_a_standby() as server, Mosquitto(folder / "mosquitto") as broker:
        async with house(folder, kind, broker, monkeypatch) as home:
            if kind == "mqtt":
                await subscribed(home)
            yield home, server


@pytest.mark.parametrize("kind", ["mqtt", "webhook"])
async def test_a_server_killed_in_any_commit_of_a_turn_takes_nothing_with_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # P42 P43 P48
    async with lane(tmp_path / "first", kind, monkeypatch) as (home, server):
        points = await killed_at(home, server)
    print("\n".join(points))
    left, killed = iter([point for point in points if point.split()[1] in VERBS[kind]]), []

    async def kill(number: int) -> None:
        async with lane(tmp_path / f"lane{number}", kind, monkeypatch) as (home, server):
            for at in left:
                passed = await killed_at(home, server, at)
                killed.extend([at] if f"{KILLED} 1" in passed else [])

    async with asyncio.TaskGroup() as group:
        for number in range(LANES[kind]):
            group.create_task(kill(number))
    print(f"killed at {len(killed)} points: {killed}")
    assert len(killed) >= AT_LEAST[kind]
