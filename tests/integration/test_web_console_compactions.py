"""The console's pages of compactions: what each did, in the words of the command line, and making, undoing and redoing them."""

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from html import unescape
from pathlib import Path

import pytest
import pytest_asyncio

from clew.compacted import preview_words
from clew.web.console.compactions import COMPACT, COMPACTION, COMPACTIONS, REDO, UNDO
from clew.web.console.threads import THREAD, VERIFY
from tests.databases import databases
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import echo, say
from tests.emulators.server import Answer, JsonObject
from tests.integration.console_harness import HOSTILE, seen, sent
from tests.integration.engine import is_summary
from tests.integration.test_web_console_threads import COMPRESSION, talk
from tests.integration.web_harness import Clew, running, settings

FACTS = [f"Pump number {number} is at /srv/pump{number}.yaml, not at /opt." for number in range(6)]


@dataclass(slots=True)
class World:
    """A clew, and what its summariser says next: nothing for a refusal."""

    clew: Clew
    folder: Path
    summary: str

    async def printed(self, *words: str) -> str:
        """What `clew` prints."""
        program = Path(sys.executable).with_name("clew")
        process = await asyncio.create_subprocess_exec(program, *words, "--config", self.folder / "c" / "clew.yaml", stdout=PIPE)
        return (await process.communicate())[0].decode()


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    held: list[World] = []

    def script(body: JsonObject) -> Answer:
        return say(held[0].summary) if is_summary(body) else echo(body)

    async with OpenAIEmulator(script=script) as model:
        config = settings(tmp_path / "c", base_url=model.base_url, agent={"compression": COMPRESSION})
        async with running(config) as clew:
            held.append(World(clew, tmp_path, f"add | fact | owner | said | #1 | {FACTS[0]}\nadd | goal | owner | said | #3 | {HOSTILE}"))
            yield held[0]


async def compacted(world: World) -> str:
    """A session with one compaction."""
    session = await talk(world.clew, FACTS[0], HOSTILE, *FACTS[1:5], "one more to come to the mark")
    assert await world.clew.service.store.newest_compaction(session)
    return session


@pytest.mark.asyncio
async def test_a_compaction_says_what_it_kept_dropped_and_changed(world: World) -> None:  # P16, P21
    session = await compacted(world)
    world.summary = "drop | 1 | it is done\nadd | decision | owner | said | #9 | They water at night."
    await talk(world.clew, *(f"{fact} Again." for fact in FACTS[1:5]))
    listing = await seen(world.clew, f"{COMPACTIONS}?id={session}")
    assert re.findall(r">Compaction (\d+)<", listing) == ["2", "1"]
    page = unescape(await seen(world.clew, f"{COMPACTION}?id={session}&number=2"))
    told = json.loads(await world.printed("session", "compactions", session, "2", "--json", "--diff"))
    report = told["report"]
    for name in ("dropped", "changed", "added", "kept", "refused"):
        assert f"{name}: {len(report[name])}" in page
        for entry in report[name]:
            assert entry["text"] in page
            for source in entry["sources"]:
                assert f"message={source}" in page
    assert report["refused"]
    for each in told["diff"][2:]:
        assert each.startswith("@@") or each[1:] in page
    for words in (report["model"], told["prompt_version"], f"{report['tokens_before']:,} →", told["text"], "Undo this compaction"):
        assert words in page
    first = await seen(world.clew, f"{COMPACTION}?id={session}&number=1")
    assert "What is new" in first
    assert "Undo this compaction" not in first
    assert "<img src=x" not in first
    assert HOSTILE in unescape(first)
    assert "There is no compaction 3; there are 2" in await seen(world.clew, f"{COMPACTION}?id={session}&number=3", 404)


@pytest.mark.asyncio
async def test_a_thread_is_compacted_undone_and_written_anew(world: World) -> None:  # P21, P24
    clew = world.clew
    session = await talk(clew, FACTS[0], HOSTILE, *FACTS[1:4])
    page = await seen(clew, f"{COMPACT}?id={session}")
    assert preview_words(**asdict(await clew.service.compactor.preview(session))) in unescape(page)
    where = f"{COMPACTION}?id={session}&number=1"
    assert await sent(clew, COMPACT, id=session, focus=f"the pumps {HOSTILE}") == (303, where)
    page = await seen(clew, where)
    assert f"the pumps {HOSTILE}" in unescape(page)
    made = re.findall(r'name="compaction" value="(\w+)"', page)[0]
    assert "There is nothing to compact yet." in await seen(clew, f"{COMPACT}?id={session}")
    status, told = await sent(clew, COMPACT, id=session)
    assert (status, "There is nothing to compact" in told) == (409, True)

    world.summary = f"add | fact | owner | said | #5 | {FACTS[1]}"
    assert await sent(clew, REDO, id=session, focus="all", instructions="Be short.") == (303, f"{COMPACTION}?id={session}&number=2")
    page = await seen(clew, f"{COMPACTION}?id={session}&number=2")
    assert "Be short." in page
    status, told = await sent(clew, UNDO, id=session, compaction=made)
    assert (status, "not the newest compaction any more" in told) == (409, True)
    newest = await clew.service.store.newest_compaction(session)
    assert newest is not None
    assert await sent(clew, UNDO, id=session, compaction=newest.id) == (303, f"{COMPACTIONS}?id={session}")
    assert (await seen(clew, f"{COMPACTIONS}?id={session}")).count(">undone<") == 2
    assert (await sent(clew, UNDO, id=session, compaction=newest.id))[0] == 404
    assert (await sent(clew, REDO, id=session))[0] == 409


@pytest.mark.asyncio
async def test_failures_are_said_where_one_looks_for_compactions(world: World) -> None:  # P25
    world.summary = ""
    session = await talk(world.clew, *FACTS[:5])
    status, told = await sent(world.clew, COMPACT, id=session)
    assert status == 409
    assert "Compacting did not work: " in told
    page = await seen(world.clew, f"{COMPACTIONS}?id={session}")
    assert "1 compaction failed in a row, the last one so:" in page
    assert "It was never compacted." in page


@pytest.mark.asyncio
async def test_buttons_of_compactions_are_the_consoles_own(world: World) -> None:
    session = await compacted(world)
    for path in (COMPACT, UNDO, REDO):
        async with world.clew.http.post(world.clew.url + path, data={"id": session}) as response:
            assert response.status == 403
    assert len(await world.clew.service.store.compactions(session)) == 1


@pytest.mark.asyncio
async def test_results_that_were_shortened_are_named_and_come_back(world: World) -> None:  # P10, P21
    session = await talk(world.clew, FACTS[0], FACTS[1])
    row = (await world.clew.service.store.lines(session, 1, after=1)).lines[0].message
    assert (await world.clew.service.compactor.shorten(session, "tokens", [row.id])).state == "done"
    page = await seen(world.clew, f"{COMPACTION}?id={session}&number=1")
    assert "One line each in the window" in page
    assert f"message={row.id}" in page
    assert "What it did" not in page
    assert "Results of tools were shortened" in await seen(world.clew, f"{COMPACTIONS}?id={session}")
    assert "one line in the window" in await seen(world.clew, f"{THREAD}?id={session}")


@pytest.mark.asyncio
async def test_a_damaged_compaction_is_said_to_be_so(world: World) -> None:
    session = await compacted(world)
    databases.altered(world.folder / "c" / "data", "UPDATE compactions SET report = '{', ledger = '{'")
    for path in (f"{COMPACTIONS}?id={session}", f"{THREAD}?id={session}"):
        await seen(world.clew, path)
    assert "cannot be read" in await seen(world.clew, f"{COMPACTION}?id={session}&number=1", 409)
    assert "cannot be read" in await seen(world.clew, f"{VERIFY}?id={session}")
