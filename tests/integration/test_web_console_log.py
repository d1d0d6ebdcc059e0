"""The console's page of the log: which lines it shows, to whom, and that none holds a secret."""

import re
from collections.abc import AsyncIterator, Iterator
from functools import partial
from html import unescape
from pathlib import Path

import pytest
import pytest_asyncio
import structlog

from clew.context.redact import redact
from clew.log_ring import recent
from clew.web.console.log import SIZE
from tests.integration.console_harness import HOSTILE, seen
from tests.integration.web_harness import Clew, running, settings
from tests.unit.test_log_ring import logging_to_stderr

TOKEN = "a-long-enough-token"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def log() -> Iterator[structlog.typing.FilteringBoundLogger]:
    with logging_to_stderr(partial(redact, known=["house-secret-77"])) as found:
        yield found


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    async with running(settings(tmp_path / "c")) as found:
        yield found


def events(page: str) -> list[str]:
    return [unescape(each) for each in re.findall(r"<b>([^<]*)</b>", page)]


@pytest.mark.asyncio
async def test_the_newest_lines_are_shown_and_found(clew: Clew, log: structlog.typing.FilteringBoundLogger) -> None:  # BO-099
    log.info("shown.begun", session="abcdef", calls=2)
    log.warning("shown.warned", session="xyz", err=HOSTILE)
    log.error("shown.failed", session="abcdef", key="it was house-secret-77")
    page = await seen(clew, "/console/log?event=shown")
    assert events(page) == ["shown.failed", "shown.warned", "shown.begun"]
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    assert "house-secret-77" not in page
    assert "calls=</span>2" in page
    assert events(await seen(clew, "/console/log?event=SHOWN&level=warning")) == ["shown.failed", "shown.warned"]
    assert events(await seen(clew, "/console/log?event=shown&session=abc")) == ["shown.failed", "shown.begun"]
    assert "No line of the log is like that." in await seen(clew, "/console/log?event=nosuch")
    for query in ("level=loud", "before=-1", "x=1", "event=" + "x" * 101):
        await seen(clew, f"/console/log?{query}", 400)


@pytest.mark.asyncio
async def test_a_page_that_stands_open_gets_what_is_new(clew: Clew, log: structlog.typing.FilteringBoundLogger) -> None:
    log.info("opened.first")
    page = await seen(clew, "/console/log?event=opened")
    [again] = [unescape(each) for each in re.findall(r'hx-get="([^"]+)"', page)]
    asks = {"HX-Request": "true", "HX-Target": "lines"}
    async with clew.http.get(clew.url + again, headers=asks) as response:
        assert (response.status, await response.text()) == (204, "")
    log.info("opened.second")
    part = await seen(clew, again, headers=asks)
    assert part.lstrip().startswith('<div id="lines"')
    assert events(part)[:2] == ["opened.second", "opened.first"]


@pytest.mark.asyncio
async def test_older_lines_stand_on_further_pages(clew: Clew, log: structlog.typing.FilteringBoundLogger) -> None:
    start = recent.newest
    for number in range(SIZE + 3):
        log.info(f"many.{number}")
    page = await seen(clew, "/console/log?event=many")
    [older] = [unescape(each) for each in re.findall(r'rel="next" href="([^"]+)"', page)]
    assert f"before={start + 4}" in older
    page = await seen(clew, older)
    assert events(page)[:3] == ["many.2", "many.1", "many.0"]
    assert "hx-get" not in page  # what one reads stays


@pytest.mark.asyncio
async def test_nobody_else_reads_the_log(tmp_path: Path, log: structlog.typing.FilteringBoundLogger) -> None:  # P19
    async with running(settings(tmp_path / "g", http={"port": 0, "token": TOKEN})) as guarded:
        log.warning("guarded.line", url=f"GET /bot{TOKEN}/me")  # a secret that this log does not know
        assert "guarded.line" not in await seen(guarded, "/console/log", 401)
        page = await seen(guarded, "/console/log", headers=AUTHORIZED)
        assert "guarded.line" in page
        assert TOKEN not in page
