"""The console's outbox: what it shows of replies that are not sent, and what its buttons do with them."""

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import pytest
import pytest_asyncio

from clew.store import Reply, Settlement
from clew.transport import Address, Part
from clew.web.console.outbox import SIZE, WORDS
from tests.integration.console_harness import HOSTILE, seen, sent
from tests.integration.web_harness import Clew, running, settings

TOKEN = "a-long-enough-token"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    async with running(settings(tmp_path / "c")) as found:
        yield found


async def reply(clew: Clew, state: str, text: str = "hello", reason: str = "") -> str:
    """A reply in that state, at an address that no transport of this clew serves."""
    now = clew.service.time.wall()
    identifier = await clew.service.store.say(Reply(Address("mqtt", "ada"), text, (Part(text),)), now)
    if state != "pending":
        delivery, _ = await clew.service.store.claim_delivery("test", "mqtt", now)
        assert delivery is not None
        assert delivery.id == identifier
        await clew.service.store.settle(delivery, Settlement(state, reason=reason), now)  # type: ignore[arg-type]
    return identifier


async def states(clew: Clew) -> dict[str, str]:
    return {row["id"]: row["state"] for row in await clew.service.store.outbox(("pending", "unknown", "dead"))}


@pytest.mark.asyncio
async def test_what_is_not_sent_is_shown_with_its_reason_and_found_by_state(clew: Clew) -> None:  # P43
    assert "Nothing waits to be sent." in await seen(clew, "/console/outbox")
    dead = await reply(clew, "dead", reason="the chat is closed")
    unknown = await reply(clew, "unknown", reason="no answer came")
    waiting = await reply(clew, "pending", text="tomorrow")
    page = await seen(clew, "/console/outbox")
    assert re.findall(r"<code>(\w+)</code>", page) == [dead, unknown, waiting]
    for words in ("the chat is closed", "no answer came", "tomorrow", "mqtt:ada", "0 s ago", ">dead<", ">unknown<"):
        assert words in page
    assert re.findall(r'value="retry">[^<]+<span class="unseen"> (\w+)<', page) == [dead, unknown]
    assert re.findall(r'value="discard">[^<]+<span class="unseen"> (\w+)<', page) == [dead, unknown, waiting]
    only = await seen(clew, "/console/outbox?state=dead")
    assert re.findall(r"<code>(\w+)</code>", only) == [dead]
    assert "Dead 1" in only
    assert 'href="/console/outbox">outbox</a>' in await seen(clew, "/console")


@pytest.mark.asyncio
async def test_buttons_send_once_more_and_give_up(clew: Clew) -> None:  # P43
    dead, unknown, waiting = await reply(clew, "dead"), await reply(clew, "unknown"), await reply(clew, "pending")
    assert await sent(clew, "/console/outbox", id=unknown, do="discard", state="unknown") == (303, "/console/outbox?state=unknown")
    assert await sent(clew, "/console/outbox", id=dead, do="retry") == (303, "/console/outbox")
    assert await states(clew) == {dead: "pending", waiting: "pending"}
    assert await sent(clew, "/console/outbox", id=waiting, do="discard") == (303, "/console/outbox")
    status, page = await sent(clew, "/console/outbox", id=waiting, do="retry")
    assert (status, "No dead or unknown delivery has this id." in page) == (404, True)
    assert await states(clew) == {dead: "pending"}
    for headers in ({}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert (await sent(clew, "/console/outbox", headers, id=dead, do="discard"))[0] == 403
    for identifier, do, state in ((dead, "remove", ""), ("", "discard", ""), (dead, "discard", "sent")):
        assert (await sent(clew, "/console/outbox", id=identifier, do=do, state=state))[0] == 400
    assert await states(clew) == {dead: "pending"}


@pytest.mark.asyncio
async def test_what_others_wrote_stays_words_and_is_cut(clew: Clew) -> None:
    await reply(clew, "dead", text=HOSTILE + "x" * WORDS, reason=HOSTILE)
    page = await seen(clew, "/console/outbox")
    assert "<img src=x" not in page
    assert page.count("&lt;img src=x") == 2
    [words] = re.findall(r'class="words"[^>]*>([^<]*)<', page)
    assert len(unescape(words)) == WORDS


@pytest.mark.asyncio
async def test_many_replies_come_in_pages(clew: Clew) -> None:
    for number in range(SIZE + 1):
        await reply(clew, "pending", text=f"number {number}")
    page = await seen(clew, "/console/outbox?state=pending")
    assert page.count("<article") == SIZE
    assert 'href="/console/outbox?page=2&amp;state=pending"' in page
    assert f"number {SIZE}" in await seen(clew, "/console/outbox?page=2")
    assert "Nothing stands on this page." in await seen(clew, "/console/outbox?page=9")
    for query in ("page=0", "state=sent", "x=1"):
        await seen(clew, f"/console/outbox?{query}", 400)


@pytest.mark.asyncio
async def test_no_secret_is_shown_and_nobody_else_sees_or_presses_anything(tmp_path: Path) -> None:  # P19, BO-099
    async with running(settings(tmp_path / "g", http={"port": 0, "token": TOKEN})) as guarded:
        dead = await reply(guarded, "dead", text=f"{'y' * (WORDS - 8)} {TOKEN}", reason=f"GET /bot{TOKEN}/send failed")
        page = await seen(guarded, "/console/outbox", headers=AUTHORIZED)
        assert "[redacted" in page
        assert TOKEN[:7] not in page
        assert dead not in await seen(guarded, "/console/outbox", 401)
        assert (await sent(guarded, "/console/outbox", id=dead, do="discard"))[0] == 401
        assert await states(guarded) == {dead: "dead"}
