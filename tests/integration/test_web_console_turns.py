"""The console's page of a turn, which says what the model saw, and its search."""

import json
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio

from clew import costs
from clew.context import cache_ledger
from clew.store import Effect
from clew.web.console.search import marked
from clew.web.console.threads import THREAD
from clew.web.console.turns import TURN
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import calls_tool, echo
from tests.emulators.server import JsonObject
from tests.integration.console_harness import HOSTILE, seen
from tests.integration.engine import chat_script, is_summary
from tests.integration.test_web_console_threads import COMPRESSION, talk
from tests.integration.web_harness import Clew, running, settings

SUMMARY = "add | fact | owner | said | #1 | There are 0 valves in pump 0."
SEARCH = "/console/search"


@pytest_asyncio.fixture
async def model() -> AsyncIterator[OpenAIEmulator]:
    tool = calls_tool("current_time", {}, when=lambda body: "what time" in json.dumps(body["messages"][-1]), final=echo)
    async with OpenAIEmulator(script=chat_script(tool, SUMMARY)) as model:
        yield model


@pytest_asyncio.fixture
async def clew(tmp_path: Path, model: OpenAIEmulator) -> AsyncIterator[Clew]:
    async with running(settings(tmp_path / "c", base_url=model.base_url, agent={"compression": COMPRESSION})) as found:
        yield found


def replies(model: OpenAIEmulator) -> list[JsonObject]:
    return [record.body for record in model.calls if record.body and not is_summary(record.body)]


async def turn_of(clew: Clew, session: str, seq: int) -> str:
    return (await clew.service.store.lines(session, 1, after=seq - 1)).lines[0].message.turn


def window(page: str) -> list[int]:
    """The rows that the page says were in the window."""
    part = page[page.index('aria-labelledby="window"') : page.index('aria-labelledby="recall"')]
    return [int(each) for each in re.findall(r'<a href="/console/threads/message[^"]+">#(\d+)</a> <strong>', part)]


def sent_rows(body: JsonObject) -> int:
    """Messages of people and the model in a request."""
    return sum(message["role"] in ("user", "assistant", "tool") for message in body["messages"])


@pytest.mark.asyncio
async def test_the_window_of_every_turn_is_what_was_sent_then(clew: Clew, model: OpenAIEmulator) -> None:  # P6, P16, P21
    session = await talk(clew, *(f"There are {number} valves in pump {number}." for number in range(14)))
    bodies, last = replies(model), ""
    assert len(await clew.service.store.compactions(session)) == 2
    for number, body in enumerate(bodies):
        page = await seen(clew, f"{TURN}?id={await turn_of(clew, session, 2 * number + 1)}")
        rows = window(page)
        assert rows == list(range(rows[0], 2 * number + 2))
        assert (rows[0] > 1) == ("Summary of the conversation so far:" in json.dumps(body)) == ("The summary of" in page)
        opening = rows[0] > 1 and rows[0] % 2 == 0  # the line that says what was compacted is a message of its own
        assert len(rows) == sent_rows(body) - opening
        last = page
    newest = await clew.service.store.newest_compaction(session)
    assert newest is not None
    assert "There are 0 valves in pump 0." in last[last.index("The summary of") :]
    await clew.service.store.take_effect(session, Effect("undo", (newest.id,)), clew.service.time.wall())
    assert window(await seen(clew, f"{TURN}?id={await turn_of(clew, session, 27)}")) == window(last)


@pytest.mark.asyncio
async def test_calls_and_tools_of_a_turn_are_told_one_by_one(clew: Clew, model: OpenAIEmulator) -> None:  # P1, P30
    session = await talk(clew, "hello", f"what time is it? {HOSTILE}")
    turn = await turn_of(clew, session, 3)
    first, second = await seen(clew, f"{TURN}?id={turn}"), await seen(clew, f"{TURN}?id={turn}&call=2")
    assert window(first) == [1, 2, 3]
    assert window(second) == [1, 2, 3, 4, 5]
    past = await clew.service.store.past(turn)
    assert len(past.calls) == 2
    for call, page in zip(past.calls, (first, second), strict=True):
        for name, _, tokens in call.segments:
            assert name in page
            assert f">{tokens:,}<" in page
        assert f"the model counted {call.usage.prompt:,}" in page
    calls = await clew.service.store.spending.calls(session, costs.LEDGER_CALLS)
    readings = [each.reading for each in costs.explained(calls) if each.call.turn == turn]
    assert len(readings) == 2
    for reading in readings:
        assert reading is not None
        assert f"Prompt cache: {cache_ledger.told(reading)}" in unescape(first)
    assert first.count("no price known") == 2
    assert "<code>current_time</code>" in second
    assert ">done<" in second
    assert "<img src=x" not in first
    assert HOSTILE in unescape(first)
    assert "There is no turn" in await seen(clew, f"{TURN}?id=nosuch", 404)


@pytest.mark.asyncio
async def test_each_excerpt_has_its_reason_and_its_place(clew: Clew) -> None:  # P31, P32
    kitchen = await talk(clew, "the locker code is 5512", chat="kitchen")
    session = await talk(clew, "what was the locker code?", chat="workshop")
    page = unescape(await seen(clew, f"{TURN}?id={await turn_of(clew, session, 1)}"))
    recall = page[page.index('aria-labelledby="recall"') : page.index('aria-labelledby="beside"')]
    assert "the locker code is 5512" in recall
    assert re.search(rf"thread\?id={kitchen}&at=[12]#m[12]", recall)
    assert re.search(r"by locker, code, score \d\.\d\d", recall)
    assert "Previously in another session:" in recall
    again = await talk(clew, "thanks", chat="workshop")
    page = await seen(clew, f"{TURN}?id={await turn_of(clew, again, 1)}")
    assert "Previously in another session:" not in page
    assert "kept for the newest turn of a thread alone" in page
    assert "it stood there already" in await seen(clew, f"{TURN}?id={await turn_of(clew, again, 3)}")


def places(page: str) -> list[tuple[str, str]]:
    """Where the hits lead: session and row."""
    return re.findall(r"thread\?id=(\w+)&amp;at=(\d+)#m", page)


@pytest.mark.asyncio
async def test_search_finds_what_the_api_finds_and_leads_to_it(clew: Clew) -> None:  # P20, P37
    kitchen = await talk(
        clew, f"the locker code is 5512 {HOSTILE}", "my key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789", chat="kitchen"
    )
    await talk(clew, "the locker is in the hall", chat="hall")
    _, found = await clew.get("/api/v1/search?query=locker")
    page = await seen(clew, f"{SEARCH}?q=locker")
    assert places(page) == [(each["session"], str(each["seq"])) for each in found["messages"]]
    assert "<mark>locker</mark>" in page
    assert "<img src=x" not in page
    link = f"{THREAD}?id={kitchen}&at=1"
    assert 'id="m1"' in await seen(clew, link)
    _, narrowed = await clew.get(f"/api/v1/search?query=locker&chat={quote('web:hall')}")
    page = await seen(clew, f"{SEARCH}?q=locker&chat={quote('web:hall')}")
    assert places(page) == [(each["session"], str(each["seq"])) for each in narrowed["messages"]] != []
    assert "Nothing was found" in await seen(clew, f"{SEARCH}?q={quote('zebra <b>')}")
    assert "exclude each other" in await seen(clew, f"{SEARCH}?q=x&chat=web:hall&person=ada", 400)
    assert "sk-ant-api03" not in await seen(clew, f"{SEARCH}?q=key")
    assert 'name="q"' in await seen(clew, SEARCH)


@pytest.mark.parametrize(
    ("line", "terms", "pieces"),
    [
        ("the codes are", ("code",), [("the ", False), ("codes", True), (" are", False)]),
        ("decode it", ("code",), [("decode it", False)]),
        ("a.b (c)", ("a.b", "("), [("a.b", True), (" ", False), ("(c", True), (")", False)]),
        ("Straße", ("STRASSE",), [("Straße", False)]),
        ("", ("x",), []),
        ("plain", (), [("plain", False)]),
    ],
)
def test_what_was_asked_for_is_marked(line: str, terms: tuple[str, ...], pieces: list[tuple[str, bool]]) -> None:
    assert list(marked(line, terms)) == pieces
