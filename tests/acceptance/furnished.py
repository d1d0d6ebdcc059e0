"""A clew with something to see on every page: for tests that look at all of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from clew.cli.options import source
from clew.context.redact import redact
from clew.store import AccessEffect, Reply, Settlement, Verdict
from clew.store.notes import By, Edit, PutEntity, PutFact, PutPreference, PutRelation, Where
from clew.transport import Address, Inbound, Part
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import say
from tests.emulators.server import Answer, JsonObject
from tests.emulators.server import Reply as Said
from tests.integration.engine import plugged
from tests.integration.test_engine_approvals import Ledger
from tests.integration.web_harness import Clew, Tab, running
from tests.unit.test_log_ring import logging_to_stderr

LONG = "Pneumonoultramicroscopicsilicovolcanoconiosis" * 6
"""A word that no line has room for."""
CONFIG = """\
data_dir: {folder}/data
http: {{port: 0}}
providers:
  model: {{kind: openai, base_url: "{base_url}", model: any, context_window: 32768}}
people:
  ada: {{role: owner, timezone: Europe/Berlin}}
  bo: {{role: member, identities: ["mqtt:bo"]}}
projects:
  garden: ["mqtt:ada/garden"]
budgets:
  house: {{per: all, every: month, money: 20}}
  {long}: {{per: person, every: day, tokens: 90000}}
prices: {{any: {{input: 3, output: 15}}}}
agent: {{compression: {{trigger_messages: 12, keep_recent: 4}}}}
docs: {{paths: ["{folder}/library"]}}
schedule:
  - {{name: morning, cron: "30 7 * * 1-5", timezone: Europe/Berlin, prompt: "What is on today?", deliver_to: "web:local"}}
  - {{name: {long}, every: 6h, prompt: "Count to a hundred.", deliver_to: "web:local"}}
"""


def script(body: JsonObject) -> Answer:
    last = str(body["messages"][-1]["content"])
    if "pay" in last and body["messages"][-1]["role"] == "user":
        return Said([{"type": "tool_use", "id": "c1", "name": "pay", "input": {"note": f"rent {LONG}"}}], "tool_use")
    return say(f"You wrote: {last[-40:]}")


@asynccontextmanager
async def furnished(folder: Path) -> AsyncIterator[Clew]:
    """Talk, notes, documents, replies that cannot be sent, a question that waits, lines of the log."""
    (folder / "library").mkdir()
    (folder / "library" / "garden.md").write_text("# Garden\n\nRoses are watered on Mondays.\n")
    (folder / "library" / "broken.pdf").write_bytes(b"%PDF-1.7 nothing of the kind")
    ledger, known = Ledger(), ["house-secret-77"]
    with logging_to_stderr(lambda text: redact(text, known=known)) as log, plugged("clew.tools", "pay", ledger.tool):
        async with OpenAIEmulator(script=script) as model:
            file = folder / "clew.yaml"
            file.write_text(CONFIG.format(folder=folder, base_url=model.base_url, long=LONG[:60].lower()))
            where = source(file, lambda config: None)
            async with running(where.read(), where) as clew:
                await _fill(clew, log)
                file.write_text(file.read_text().replace("trigger_messages: 12", "trigger_messages: 14"))
                yield clew


async def _fill(clew: Clew, log: structlog.typing.FilteringBoundLogger) -> None:
    service = clew.service
    now = service.time.wall()
    async with Tab.open(clew) as tab:
        for number, text in enumerate(("The boat lies at berth 14.", f"And {LONG}?", "pay the rent")):
            await tab.say(f"m{number}", text)
            await tab.until("message", role="assistant", in_reply_to=f"m{number}")
    await _people(clew)
    await _talk(clew)
    edits: list[Edit] = [PutEntity("Ana", "person"), PutFact("Ana", "likes tea"), PutFact("Ana", "likes coffee", replaces=("likes tea",))]
    edits += [PutRelation("Ana", "Bo", "sister_of"), PutFact(LONG[:190], LONG), PutPreference("style", "short answers")]
    await service.store.notes.change(Where(person="ada"), "user", edits, By("ada"), now)
    await service.store.notes.change(Where(project="garden"), "project", [PutFact("shed", "is red")], By("ada"), now)
    for state, reason in (("dead", f"the chat is closed {LONG}"), ("unknown", "no answer came"), ("pending", "")):
        await service.store.say(Reply(Address("mqtt", "ada"), f"Hello. {LONG}", (Part("Hello."),)), now)
        if state != "pending":
            delivery, _ = await service.store.claim_delivery("test", "mqtt", now)
            assert delivery is not None
            await service.store.settle(delivery, Settlement(state, reason=reason), now)  # type: ignore[arg-type]
    await service.watch.look()
    await service.store.missed("morning", [now - 86_400.0], None, now, "it was off")
    with service.progress.of("import", "messages", 500) as work:
        work.at(120)
    for level in ("info", "warning", "error"):
        await asyncio.to_thread(getattr(log, level), f"example.{level}", session="abcdef", err=LONG)


async def _people(clew: Clew) -> None:
    """A stranger who asks to be let in, somebody who was, and an account that is linked."""
    knocking = Inbound("mqtt/eve/1", Address("mqtt", "eve"), "eve", "let me in", sender_name=f"Eve {LONG}")
    code = Verdict(refused="unknown sender", pair="7KQ2XMPN")
    await clew.service.store.accept("mqtt", [knocking], None, clew.service.time.wall(), lambda item, sender: code)
    await clew.service.change_access(AccessEffect("approve", "mqtt:carol", role="guest", name="Carol"))
    await clew.service.change_access(AccessEffect("link", "bo", identity=f"telegram:{LONG}"))


async def _talk(clew: Clew) -> None:
    """A short thread; then one that recalls it, was compacted twice, and has something pinned and something taken back."""
    service = clew.service
    told = [
        "Which berth has the boat?",
        "Do not paint it red.",
        "שלום, זה טקסט מימין לשמאל",
        LONG,
        *(f"Plank {number} is new." for number in range(8)),
    ]
    async with Tab.open(clew, "chat=harbour&after=0") as tab:
        await tab.say("h0", "The harbour master gave the boat berth 14.")
        await tab.until("message", role="assistant", in_reply_to="h0")
    async with Tab.open(clew, "chat=boat&after=0") as tab:
        for number, text in enumerate(told):
            await tab.say(f"b{number}", text)
            await tab.until("message", role="assistant", in_reply_to=f"b{number}")
    session = await service.store.current_session("web:boat")
    assert session is not None
    threads = service.threads
    for effect in ((await threads.pin(session, "#1")).effect, (await threads.take_back(session)).effect):
        await threads.carry_out(session, effect)
    assert (await service.compactor.compact(session, "command", "the berth")).state == "done"
