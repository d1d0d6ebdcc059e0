"""The console's page of long work and backups, and the backups that a daemon makes itself."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from clew.backing_up import KEPT, BackingUp, Stopped
from clew.clock import Time
from clew.errors import UsageError
from clew.progress import Progress, Work
from clew.store.sqlite import SqliteStore
from tests.integration.console_harness import HOSTILE, seen, sent
from tests.integration.web_harness import DEADLINE_S, Clew, running, settings

PATH = "/console/upkeep"


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    async with running(settings(tmp_path / "c")) as found:
        yield found


async def ended(clew: Clew, name: str) -> Work:
    async with asyncio.timeout(DEADLINE_S):
        while not (found := [each for each in clew.service.progress.works if each.name == name and each.ended is not None]):
            await asyncio.sleep(0)
    return found[0]


@pytest.mark.asyncio
async def test_a_backup_is_made_by_the_button_and_listed(clew: Clew) -> None:
    page = await seen(clew, PATH)
    assert "clew knows of none." in page
    assert "None goes on" in page
    assert await sent(clew, PATH, do="back_up") == (303, PATH)
    work = await ended(clew, "backup")
    assert (work.state, work.done, work.unit) == ("done", work.of, "pages")
    [made] = await clew.service.backing_up.listed()
    store = await SqliteStore.open(Path(made.path), clew.service.time.wall())
    assert await store.check() == []
    await store.close()
    page = await seen(clew, PATH)
    assert made.path in page
    assert "not there any more" not in page
    assert ">done<" in page
    Path(made.path).unlink()
    assert "not there any more" in await seen(clew, PATH)
    _, answer = await clew.get("/api/v1/database/backups")
    assert [each["path"] for each in answer["backups"]] == [made.path]


@pytest.mark.asyncio
async def test_a_backup_that_fails_says_why_and_the_next_one_is_made(clew: Clew) -> None:
    folder = clew.service.backing_up.folder
    folder.write_text("no folder")
    with capture_logs() as logs:
        clew.service.backing_up.begin()
        with pytest.raises(UsageError, match="already"):
            clew.service.backing_up.begin()
        work = await ended(clew, "backup")
    assert work.state == "failed"
    assert [line["event"] for line in logs if line["event"].startswith("backup")] == ["backup.failed"]
    for path in (PATH, "/console"):
        page = await seen(clew, path)
        assert ">failed<" in page
        assert "File exists" in page
    folder.unlink()
    clew.service.backing_up.begin()
    while (work := await ended(clew, "backup")).state == "failed":
        await asyncio.sleep(0)
    assert work.state == "done"


def test_only_the_newest_are_kept_and_nothing_is_left_of_one_that_is_stopped(tmp_path: Path) -> None:
    seconds = iter(range(1_000_000, 2_000_000))
    asyncio.run(emptied(tmp_path / "clew.db"))
    backing = BackingUp(tmp_path / "clew.db", Progress(Time()), Time(wall=lambda: float(next(seconds))))
    for _ in range(KEPT + 2):
        backing._make(Work("backup", "pages", 0.0))
    kept = sorted(backing.folder.iterdir())
    assert len(kept) == KEPT
    backing._ending.set()
    with pytest.raises(Stopped):
        backing._make(Work("backup", "pages", 0.0))
    assert sorted(backing.folder.iterdir()) == kept


async def emptied(path: Path) -> None:
    await (await SqliteStore.open(path, 1.0)).close()


@pytest.mark.asyncio
async def test_the_index_is_built_anew_by_the_button(clew: Clew) -> None:
    assert await sent(clew, PATH, do="reindex") == (303, PATH)
    assert (await ended(clew, "search index")).state == "done"


@pytest.mark.asyncio
async def test_work_is_shown_as_it_goes_on_and_words_stay_words(clew: Clew) -> None:
    with clew.service.progress.of("import", "messages", 5000) as work:
        work.at(1200)
        for path in (PATH, "/console"):
            page = await seen(clew, path)
            assert "1,200 of 5,000 messages" in page
            assert 'max="5000" value="1200"' in page
        part = await seen(clew, PATH, headers={"HX-Request": "true", "HX-Target": "now"})
        assert part.lstrip().startswith('<div id="now"')
    assert "1,200 of 5,000" not in await seen(clew, "/console")  # what is done is no news there
    with pytest.raises(OSError), clew.service.progress.of("import", "messages"):  # noqa: PT011 - our own
        raise OSError(HOSTILE)
    page = await seen(clew, PATH)
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page


@pytest.mark.asyncio
async def test_nobody_else_sees_or_presses_anything(tmp_path: Path, clew: Clew) -> None:
    for headers in ({}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert (await sent(clew, PATH, headers, do="back_up"))[0] == 403
    assert (await sent(clew, PATH, do="vacuum"))[0] == 400
    async with running(settings(tmp_path / "g", http={"port": 0, "token": "a-long-enough-token"})) as guarded:
        assert "Backups" not in await seen(guarded, PATH, 401)
        assert (await sent(guarded, PATH, do="back_up"))[0] == 401
        assert guarded.service.progress.works == []
