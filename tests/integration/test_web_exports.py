"""`/export`: a link for one person, once."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from clew.store.exports import LASTS
from tests.integration.engine import START, Clock, engine
from tests.integration.web_harness import Tab, running, settings

LINK = re.compile(r"https?://\S+/export/(\S+)")


@pytest.mark.asyncio
async def test_a_link_gives_the_thread_once_and_to_whoever_has_it_alone(tmp_path: Path) -> None:  # P4, P33
    async with running(settings(tmp_path)) as clew, Tab.open(clew) as tab:
        await tab.say("m1", "the jar is in the cellar")
        await tab.until("message", in_reply_to="m1")
        await tab.say("m2", "/export")
        text = (await tab.until("message", in_reply_to="m2"))["text"]
        match = LINK.search(text)
        assert match is not None
        url = f"{clew.url}/export/{match[1]}"
        for _ in range(2):  # a preview of the link uses nothing up
            async with clew.http.get(url) as response:
                assert (response.status, response.content_type) == (200, "text/html")
                assert "cellar" not in await response.text()
        async with clew.http.post(url, headers={"Origin": "https://elsewhere.example"}) as response:
            assert response.status == 403
        async with clew.http.post(url) as response:
            assert response.status == 200
            assert response.headers["Content-Disposition"].startswith("attachment; filename=")
            assert response.headers["Cache-Control"] == "no-store"
            exported = json.loads(await response.text())
        assert exported["messages"][0]["blocks"][0]["text"] == "the jar is in the cellar"
        async with clew.http.post(url) as response:
            assert response.status == 404
        for wrong in ("x", "../..", "%00", "a" * 500):
            async with clew.http.post(f"{clew.url}/export/{wrong}") as response:
                assert response.status in (403, 404, 405)


@pytest.mark.asyncio
async def test_of_two_that_fetch_at_once_one_gets_it(tmp_path: Path) -> None:  # P33
    async with running(settings(tmp_path)) as clew, Tab.open(clew) as tab:
        await tab.say("m1", "/export")
        match = LINK.search((await tab.until("message", in_reply_to="m1"))["text"])
        assert match is not None

        async def fetched() -> int:
            async with clew.http.post(f"{clew.url}/export/{match[1]}") as response:
                return response.status

        assert sorted(await asyncio.gather(*(fetched() for _ in range(5)))) == [200, 404, 404, 404, 404]


@pytest.mark.asyncio
async def test_a_group_gets_no_link_and_a_platform_none_that_it_cannot_open(tmp_path: Path) -> None:  # P33
    clock = Clock(START)
    async with engine(tmp_path, clock=clock) as world:
        async with world.running():
            await world.desk.ask("hello")
            await world.desk.ask("hello", "team", sender="ada", direct=False)
            answer = await world.desk.ask("/export", "team", sender="ada", direct=False)
            assert answer == "Write /export in a chat of your own with me: what it gives is for you alone."
            session = await world.session()
            assert f"`clew session export {session}` writes it out: ask whoever runs me." in await world.desk.ask("/export")
        world.config = world.config.model_copy(update={"http": world.config.http.model_copy(update={"public_url": "https://clew.example"})})
        async with world.running():
            match = LINK.search(await world.desk.ask("/export"))
            assert match is not None
            assert match[0].startswith("https://clew.example/export/")
            clock.at += LASTS + 1
            assert await world.store.redeem_export(match[1], clock.at) is None
            match = LINK.search(await world.desk.ask("/export"))
            assert match is not None
            await world.store.delete_session(session)
            assert await world.store.redeem_export(match[1], clock.at) is None
