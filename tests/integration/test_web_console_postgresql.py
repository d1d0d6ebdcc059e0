"""The console and the API on a store in PostgreSQL, whose server wants to know of what type each value is."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from clew.web.console import PLACES
from tests.databases import POSTGRESQL, databases
from tests.integration.web_harness import Clew, running, settings

pytestmark = [pytest.mark.asyncio, POSTGRESQL]


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    folder = tmp_path / "c"
    async with running(settings(folder, store=databases.store(folder))) as found:
        yield found


async def status(clew: Clew, path: str) -> int:
    async with clew.http.get(clew.url + path) as response:
        return response.status


async def test_every_page_of_the_console_is_shown(clew: Clew) -> None:
    assert {place.path: await status(clew, place.path) for place in PLACES} == dict.fromkeys((place.path for place in PLACES), 200)


async def test_a_name_with_a_nul_is_nobodys(clew: Clew) -> None:
    for path in ("sessions/%00", "sessions/a%00b/context", "jobs/%00/history", "people/%00/belongings"):
        assert await status(clew, f"/api/v1/{path}") in (200, 404), path
