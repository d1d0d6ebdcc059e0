"""The console's pages of threads: found, read from end to end, and acted on."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio

from clew.clock import new_id
from clew.store import Effect, Filed
from clew.transport import Address, Inbound
from clew.web.console.threads import DELETE, FILE, MESSAGE, PAGE, PIN, SHOWN, THREAD, THREADS, VERIFY, WINDOW
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import calls_tool, echo
from tests.integration.console_harness import HOSTILE, seen, sent
from tests.integration.engine import chat_script
from tests.integration.web_harness import DEADLINE_S, Clew, Tab, running, settings
from tests.pictures import png

COMPRESSION = {"trigger_messages": 12, "keep_recent": 4}


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    tool = calls_tool("current_time", {}, when=lambda body: "what time" in json.dumps(body["messages"][-1]), final=echo)
    async with OpenAIEmulator(script=chat_script(tool)) as model:
        agent = {"compression": COMPRESSION}
        async with running(settings(tmp_path / "c", base_url=model.base_url, agent=agent)) as found:
            yield found


async def talk(clew: Clew, *texts: str, chat: str = "local") -> str:
    """Say each of these, each after the answer to the one before it. Returns the session."""
    async with Tab.open(clew, f"chat={chat}&after=0") as tab:
        for text in texts:
            identifier = new_id()
            await tab.say(identifier, text)
            await tab.until("message", role="assistant", in_reply_to=identifier)
    session = await clew.service.store.current_session(f"web:{chat}")
    assert session is not None
    return session


def numbers(page: str) -> list[int]:
    """The rows of a transcript that a page shows."""
    return [int(each) for each in re.findall(r'<li id="m(\d+)"', page)]


@pytest.mark.asyncio
async def test_threads_are_listed_found_and_paged(clew: Clew) -> None:  # P4
    first = await talk(clew, "hello", chat="kitchen")
    second = await talk(clew, "hello there", "and again", chat="garden")
    await clew.service.store.open_chat(Inbound("", Address("web", "empty"), "local", ""), "owner", 1.0, "nothing said")
    page = await seen(clew, THREADS)
    assert re.findall(r"thread\?id=(\w+)", page) == [second, first]
    for words in ("web:garden", "4 messages", "2 threads", "of 32,768 tokens"):
        assert words in page
    assert "web:kitchen" not in await seen(clew, f"{THREADS}?q=garden")
    assert first in await seen(clew, f"{THREADS}?q={first[:6]}")
    assert second in await seen(clew, f"{THREADS}?transport=web")
    for nothing in ("q=%25", "q=_", "transport=mqtt", "runs=yes", "page=2", f"q={quote(HOSTILE)}"):
        page = await seen(clew, f"{THREADS}?{nothing}")
        assert "<img" not in page.replace('<img class="mark"', "")
        assert re.findall(r"thread\?id=(\w+)", page) == []
    assert await clew.service.store.session_page(Filed(), 1, 1) == ([await clew.service.store.listed(first)], 2)


@pytest.mark.asyncio
async def test_a_transcript_is_read_from_end_to_end_both_ways(clew: Clew) -> None:  # P1
    session = await talk(clew, "hello")
    await import_rows(clew, "longer", 3 * PAGE + 7)
    page = await seen(clew, f"{THREAD}?id=longer")
    total = 3 * PAGE + 7
    assert numbers(page) == list(range(total - PAGE + 1, total + 1))
    back = list(numbers(page))
    while before := re.search(r'hx-get="([^"]+before=\d+)"', page):
        asked = unescape(before[1])
        part = await seen(clew, asked, headers={"HX-Request": "true", "HX-Target": "earlier"})
        page = await seen(clew, asked)
        assert numbers(page) == numbers(part)
        assert "<!doctype" not in part
        back = numbers(page) + back
    assert back == list(range(1, total + 1))
    forth = numbers(page)
    while after := re.search(r'<a id="to-later" class="quiet" href="([^"]+after=\d+)"', page):
        page = await seen(clew, unescape(after[1]))
        forth += numbers(page)
    assert forth == back
    middle = await seen(clew, f"{THREAD}?id=longer&at=80")
    assert numbers(middle)[8] == 80
    assert "Earlier messages" in middle
    assert "Later messages" in middle
    first = await seen(clew, f"{THREAD}?id=longer&after=0")
    assert "Earlier messages" not in first
    assert first.count("Changed by its writer") == 1
    assert f"line 3 {HOSTILE}" in unescape(first)
    assert "<img src=x" not in first
    assert "What the model saw" not in first  # an import has no turns
    assert await seen(clew, f"{THREAD}?id={session[:5]}")
    assert "There is no session" in await seen(clew, f"{THREAD}?id=nosuch", 404)


async def import_rows(clew: Clew, session: str, messages: int) -> None:
    """A session of so many rows of somebody."""
    rows = [
        {
            "id": f"{session}{seq:06}",
            "seq": seq,
            "role": "user",
            "blocks": [{"kind": "text", "text": f"line {seq}"}],
            "sender": "local",
            "sender_name": "Ada",
            "turn": "",
            "metadata": {},
            "at": 1e9 + seq,
            "address": "web:old",
        }
        for seq in range(1, messages + 1)
    ]
    head = {"id": session, "address": "web:old", "direct": True, "title": "An old one", "created": 1e9}
    rest: dict[str, list[object]] = {name: [] for name in ("compactions", "pins", "retractions", "model_calls")}
    rest["edits"] = [{"message": f"{session}000003", "text": f"line 3 {HOSTILE}", "at": 1e9 + 9}]
    await clew.service.store.import_session({"clew": 1, "session": head, "messages": rows, **rest}, 2e9)


@pytest.mark.asyncio
async def test_new_messages_come_into_a_page_that_is_open(clew: Clew) -> None:
    session = await talk(clew, "hello")
    page = await seen(clew, f"{THREAD}?id={session}")
    url = unescape(re.findall(r'id="later" hx-get="([^"]+)"', page)[0])
    later = {"HX-Request": "true", "HX-Target": "later"}
    assert numbers(await seen(clew, url, headers=later)) == []
    await talk(clew, "again")
    part = await seen(clew, url, headers=later)
    assert numbers(part) == [3, 4]
    assert "after=4" in part


@pytest.mark.asyncio
async def test_a_row_says_where_it_is_and_what_was_done_to_it(clew: Clew) -> None:  # P4, P6, P13
    session = await talk(clew, *(f"fact {number}: the pump has {number} valves" for number in range(6)))
    page = await seen(clew, f"{THREAD}?id={session}")
    assert "in the summary" not in page
    status, where = await sent(clew, PIN, id=session, message=await _message(clew, session, 1), do="pin")
    assert (status, where) == (303, f"{THREAD}?id={session}&at=1#m1")
    await talk(clew, "one more to come to the mark")
    page = await seen(clew, f"{THREAD}?id={session}")
    assert "[compressed summary] compaction 1" in page
    rows = re.findall(r'<li id="m(\d+)"(.*?)</li>', page, re.DOTALL)
    places = {int(number): re.findall(r'class="tag[^"]*">([^<]+)<', row) for number, row in rows}
    assert places[1] == ["pinned", "word for word in the summary"]
    assert places[2] == ["in the summary"]
    assert places[14] == []
    store = clew.service.store
    await store.take_effect(session, Effect("take_back", (await _message(clew, session, 14),)), 1.0)
    await store.take_effect(session, Effect("forget", (await _message(clew, session, 2),)), 1.0)
    page = await seen(clew, f"{THREAD}?id={session}")
    told = dict(re.findall(r'<li id="m(\d+)"(.*?)</li>', page, re.DOTALL))
    assert "taken back" in told["14"]
    assert "one more to come" in told["14"]
    assert "Its words are not shown" in told["2"]
    assert "fact 0" not in told["2"]
    for path in (f"{MESSAGE}?id={session}&message=", f"{THREAD}?at=2&id={session}&x="):
        assert "fact 0" not in unescape(await seen(clew, path + await _message(clew, session, 2), 200 if "message=" in path else 400))


async def _message(clew: Clew, session: str, seq: int) -> str:
    lines = await clew.service.store.lines(session, 1, after=seq - 1)
    return lines.lines[0].message.id


@pytest.mark.asyncio
async def test_calls_results_and_files_are_folded_and_linked(clew: Clew) -> None:  # P1, P47
    session = await talk(clew, "what time is it?")
    page = await seen(clew, f"{THREAD}?id={session}")
    assert "<summary>Tool call: <code>current_time</code></summary>" in page
    assert "<summary>Result of <code>current_time</code>" in page
    picture = png(4, 4)
    async with clew.http.post(
        f"{clew.url}/chat/files?chat=local&name={quote(HOSTILE)}.png", data=picture, headers={"Content-Type": "application/octet-stream"}
    ) as response:
        file = (await response.json())["id"]
    async with Tab.open(clew) as tab:
        await tab.ws.send_json({"type": "message", "id": "with-file", "text": "look", "attachments": [file]})
        await tab.until("message", role="assistant", in_reply_to="with-file")
    page = await seen(clew, f"{THREAD}?id={session}")
    link = unescape(re.findall(r'href="(/console/threads/file[^"]+)"', page)[0])
    async with clew.http.get(clew.url + link) as response:
        assert (response.status, response.content_type, await response.read()) == (200, "image/png", picture)
    assert HOSTILE in unescape(page)
    assert "<img src=x" not in page
    message = await _message(clew, session, 1)
    assert "not kept" in await seen(clew, f"{FILE}?id={session}&message={message}&file=0", 404)
    assert "no message" in await seen(clew, f"{MESSAGE}?id={session}&message=nosuch", 404)
    other = await talk(clew, "elsewhere", chat="elsewhere")
    assert "no message" in await seen(clew, f"{MESSAGE}?id={other}&message={message}", 404)


@pytest.mark.asyncio
async def test_long_words_and_texts_stay_bounded_and_whole(clew: Clew) -> None:
    long = "ا" * SHOWN + "the end" + HOSTILE
    session = await talk(clew, long)
    page = await seen(clew, f"{THREAD}?id={session}")
    assert "the end" not in page
    assert f"{SHOWN:,} of {len(long):,} characters are shown" in page
    link = unescape(re.findall(r'href="(/console/threads/message[^"]+)">Show all', page)[0])
    assert long in unescape(await seen(clew, link))


@pytest.mark.asyncio
async def test_a_thread_is_verified_and_deleted_when_that_was_confirmed(clew: Clew) -> None:  # P4, P6
    session = await talk(clew, "hello")
    assert ">ok<" in await seen(clew, f"{VERIFY}?id={session}")
    page = await seen(clew, f"{DELETE}?id={session}")
    assert "for good" in page
    assert (await sent(clew, DELETE, id=session[:6]))[0] == 400
    async with clew.http.post(clew.url + DELETE, data={"id": session}) as response:
        assert response.status == 403
    assert (await clew.service.store.find_session(session)).messages == 2
    assert await sent(clew, DELETE, id=session) == (303, THREADS)
    await seen(clew, f"{THREAD}?id={session}", 404)
    assert "There are no threads yet" in await seen(clew, THREADS)


@pytest.mark.asyncio
async def test_runs_of_jobs_beside_their_chats_are_threads_of_their_own(clew: Clew) -> None:  # P45
    fields = {"name": "count", "prompt": "Count the valves.", "deliver_to": "web:local", "every": "1h", "session": "isolated"}
    assert (await clew.post("/api/v1/jobs", fields))[0] == 200
    store = clew.service.store
    await clew.service.scheduler.run_now("count")
    async with asyncio.timeout(DEADLINE_S):
        while not (runs := await store.job_history("count", 1)) or runs[0]["outcome"] != "done":
            await store.changed(store.version, 1.0)
    assert await store.session_page(Filed(), 10, 0) == ([], 0)
    page = await seen(clew, f"{THREADS}?runs=yes")
    (run,) = re.findall(r"thread\?id=(\w+)", page)
    page = await seen(clew, f"{THREAD}?id={run}")
    assert "Count the valves." in page
    turn = unescape(re.findall(r'href="(/console/threads/turn[^"]+)"', page)[0])
    page = await seen(clew, turn)
    assert "Count the valves." in page
    assert "1 row of the transcript" in page


@pytest.mark.asyncio
async def test_the_window_is_told_as_context_tells_it(clew: Clew) -> None:  # P24
    session = await talk(clew, "hello")
    _, answer = await clew.get(f"/api/v1/sessions/{session}/context")
    page = unescape(await seen(clew, f"{WINDOW}?id={session}"))
    for line in filter(None, answer["told"].splitlines()):
        assert line.startswith("- ") or f"<p>{line}</p>" in page
    for part in answer["context"]["parts"]:
        assert part["name"] in page
        assert f">{part['tokens']:,}<" in page


@pytest.mark.asyncio
async def test_nobody_else_reads_a_thread(tmp_path: Path) -> None:
    async with running(settings(tmp_path / "g", http={"port": 0, "token": "a-long-enough-token"})) as guarded:
        for path in (THREADS, f"{THREAD}?id=x", f"{MESSAGE}?id=x&message=y", f"{VERIFY}?id=x", f"{DELETE}?id=x", f"{WINDOW}?id=x"):
            assert "Log in" in await seen(guarded, path, 401)
        for path in (PIN, DELETE):
            assert (await sent(guarded, path, id="x"))[0] == 401
