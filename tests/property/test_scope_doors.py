"""The same as `test_scope`, through the doors that people and models use: no request, answer, listing or search holds what may not be seen.

Each message has a word of its own. Whatever reaches a model on behalf of a chat (recall, tools, notes, summaries, scheduled prompts), is
answered there, or is found for it on the command line or over the API, is searched for such words.
"""

import asyncio
import contextlib
import io
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clew.cli import main
from clew.config import Job
from clew.web.server import serve
from tests.databases import BOTH, databases
from tests.emulators.scripts import say
from tests.emulators.server import JsonObject, Reply
from tests.integration.engine import START, Clock, World, calling, engine, words_of
from tests.property.test_scope import GROUPS, NEEDLE, PEOPLE, Fresh, Leave, Line, Model, Say

pytestmark = BOTH
CHATS = (*PEOPLE, *GROUPS)
WORD = re.compile(r"(?:tok|note)[0-9]+x")
STEP = 60.0
"""Seconds between two events."""


@dataclass(frozen=True)
class Compact:
    chat: str


@dataclass(frozen=True)
class Note:
    """`person` notes something in `chat`: as their own in their direct chat, else for the group."""

    person: str
    chat: str


Event = Say | Leave | Fresh | Compact | Note

places = st.tuples(st.sampled_from(PEOPLE), st.sampled_from(("", *GROUPS)))
says = places.map(lambda pair: Say(pair[0], pair[1] or pair[0]))
events = st.lists(
    st.one_of(
        says,
        says,
        says,
        st.builds(Leave, st.sampled_from(PEOPLE), st.sampled_from(GROUPS)),
        places.map(lambda pair: Fresh(pair[1] or pair[0], pair[0])),
        st.builds(Compact, st.sampled_from(CHATS)),
        places.map(lambda pair: Note(pair[0], pair[1] or pair[0])),
    ),
    min_size=6,
    max_size=16,
)


@dataclass
class Play:
    """What happened, and who may see which word of it. notes: of each chat."""

    world: World
    clock: Clock
    model: Model = field(default_factory=Model)
    words: dict[str, str] = field(default_factory=dict)
    notes: dict[str, set[str]] = field(default_factory=dict)
    seen: int = 0

    def allowed(self, chat: str) -> set[str]:
        """Each line stands for its word; what is noted is seen where it was noted."""
        said = {self.words[line.id] for line in self.model.lines if self.model.may_see(chat, line)}
        return said | self.notes.get(chat, set())

    def of(self, person: str) -> set[str]:
        """What a search for a person finds."""
        return {self.words[line.id] for line in self.model.lines if self.model.is_of(person, line)}

    async def ask(self, text: str, chat: str, person: str) -> str:
        """Say something; nothing that the models and the person are then told may hold what the chat may not see."""
        self.clock.at += STEP
        answer = await self.world.desk.ask(text, chat, sender=person, direct=chat not in GROUPS)
        self.check(chat, answer)
        return answer

    def check(self, chat: str, *told: str) -> None:
        calls, self.seen = self.world.model.calls[self.seen :], len(self.world.model.calls)
        heard = json.dumps([*told, *(record.body for record in calls)], ensure_ascii=False)
        assert set(WORD.findall(heard)) <= self.allowed(chat), chat

    async def happen(self, number: int, event: Event) -> None:
        match event:
            case Say(person, chat):
                await self.say(f"tok{number}x", person, chat)
            case Leave(person, group):
                self.leave(person, group)
            case Fresh(chat, person) if chat in self.model.chats:
                await self.ask("/new", chat, person)
                self.joined(person, chat)
            case Compact(chat) if chat in self.model.chats:
                person = chat if chat in PEOPLE else PEOPLE[0]
                await self.ask("/compact", chat, person)
                self.joined(person, chat)
            case Note(person, chat) if chat in self.model.chats:
                self.notes.setdefault(chat, set()).add(f"note{number}x")
                await self.ask(f"/memory set key{number} note{number}x", chat, person)
                self.joined(person, chat)

    async def say(self, word: str, person: str, chat: str) -> None:
        self.model.chats.add(chat)
        line = Line(word, "", chat, 0, self.clock.at + STEP)
        self.model.lines.append(line)
        self.words[word] = word
        await self.ask(f"the {NEEDLE} {word} of {person}", chat, person)
        self.joined(person, chat, line.at)

    def joined(self, person: str, chat: str, at: float | None = None) -> None:
        if chat in GROUPS:
            self.model.joins(person, chat, self.clock.at if at is None else at)

    def leave(self, person: str, group: str) -> None:
        self.clock.at += STEP
        left = (
            "UPDATE chat_members SET left_at = ? WHERE person = ? AND left_at IS NULL AND chat = (SELECT id FROM chats WHERE address = ?)"
        )
        databases.beside(self.world.folder, lambda db: db.execute(left, (self.clock.at, person, f"desk:{group}")))
        self.model.leaves(person, group, self.clock.at)


def repeats(body: JsonObject) -> Reply:
    """An answer with the word of what was said."""
    return say(" ".join(["heard", *WORD.findall(words_of(body["messages"][-1]))]))


async def everything(play: Play, happened: Sequence[Event]) -> dict[str, set[str]]:
    """Let it happen, then look through every door. Returns what each chat and person may see, for the command line."""
    for number, event in enumerate(happened):
        await play.happen(number, event)
    looks = [chat for chat in CHATS if chat in play.model.chats]
    # What a search may find from here on: the looks leave tool results behind, which hold what their own chat may see.
    expected = {f"--chat desk:{chat}": play.allowed(chat) for chat in CHATS} | {f"--person {name}": play.of(name) for name in PEOPLE}
    for chat in CHATS:
        if chat in looks:
            expected[f"--session {await play.world.session(chat)}"] = play.allowed(chat)
    await over_the_api(play, expected)
    tools = play.world.service.tools.tools
    ids = [row.id for session in await play.world.store.sessions() for row in await play.world.store.transcript(session.id)]
    asked: list[tuple[str, JsonObject]] = [("session_open", {"id": each, "around": 20}) for each in ids[:: max(1, len(ids) // 10)]]
    asked += [(name, {"query": NEEDLE}) for name, each in tools.items() if "query" in each.Arguments.model_fields]
    asked += [("memory_open_nodes", {"names": [*PEOPLE]}), ("memory_search_nodes", {})]
    for chat in looks:
        play.world.model.script = calling(*asked)
        person = chat if chat in PEOPLE else next(name for name in PEOPLE if (name, chat) in play.model.spans)
        await play.ask(f"what do you know of a {NEEDLE}?", chat, person)
        for command in ("/why", f"/recall {NEEDLE}", "/memory", "/memory history", "/dropped"):
            await play.ask(command, chat, person)
        sent = len(play.world.desk.sent)
        await play.world.service.scheduler.run_now(f"of-{chat}")
        await play.world.desk.until(lambda: len(play.world.desk.sent) > sent)  # noqa: B023 - waited for at once
        play.check(chat, play.world.desk.sent[-1].text)
        assert str(play.world.desk.sent[-1].address) == f"desk:{chat}"
    return expected


async def over_the_api(play: Play, expected: dict[str, set[str]]) -> None:
    async with serve(play.world.service) as listening, aiohttp.ClientSession() as http:
        for narrowed, words in expected.items():
            option, _, value = narrowed.removeprefix("--").partition(" ")
            url = f"http://127.0.0.1:{listening.port}/api/v1/search?query={NEEDLE}&limit=1000&{option}={quote(value)}"
            async with http.get(url) as response:
                if response.status == 404:
                    continue  # a person whom nobody knows
                assert set(WORD.findall(json.dumps((await response.json())["messages"]))) <= words, narrowed


def on_the_command_line(config: Path, expected: dict[str, set[str]]) -> None:
    for narrowed, words in expected.items():
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()), pytest.raises(SystemExit) as ended:
            main(("session", "search", NEEDLE, "--json", "--limit", "1000", "--config", str(config), *narrowed.split(" ")))
        assert ended.value.code in (0, 3), narrowed
        hits = [hit for hit in json.loads(out.getvalue() or "[]") if hit["role"] != "tool"]
        assert set(WORD.findall(json.dumps(hits))) <= words, narrowed


@pytest.mark.timeout(900)  # eight engines, some hundred turns
@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(events)
@example([Say("ada", "team"), Say("bob", "team"), Leave("bob", "team"), Say("ada", "team"), Say("bob", "bob"), Fresh("bob", "bob")])
@example([Say("ada", "ada"), Note("ada", "ada"), Fresh("ada", "ada"), Say("ada", "team"), Note("ada", "team"), Say("bob", "team")])
@example([Say("eve", "club"), Say("eve", "club"), Say("eve", "club"), Compact("club"), Say("eve", "eve"), Say("ada", "ada")])
def test_no_door_leads_to_what_may_not_be_seen(happened: list[Event]) -> None:  # P33, P37, P38, P39, BO-031
    async def run(folder: Path) -> dict[str, set[str]]:
        clock = Clock(START)
        async with engine(folder, repeats, clock=clock) as world:
            world.compression(keep_recent=2, trigger_messages=40)
            jobs = [
                Job.model_validate(
                    {"name": f"of-{chat}", "cron": "0 8 1 1 *", "prompt": f"Say all of the {NEEDLE}.", "deliver_to": f"desk:{chat}"}
                )
                for chat in CHATS
            ]
            world.config = world.config.model_copy(update={"schedule": jobs, "http": world.config.http.model_copy(update={"port": 0})})
            async with world.running():
                return await everything(Play(world, clock), happened)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = asyncio.run(run(folder))
        people = ", ".join(f"{each}: {{role: member, identities: ['desk:{each}']}}" for each in PEOPLE)
        config = folder / "clew.yaml"
        desk = "transports: {desk: {kind: mqtt, enabled: false}}\n"
        config.write_text(f"data_dir: {folder}\npeople: {{{people}, me: {{role: owner, identities: ['web:local']}}}}\n{desk}")
        on_the_command_line(config, expected)
