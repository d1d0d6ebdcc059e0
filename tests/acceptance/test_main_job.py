"""The main job, whole: two people and weeks of talk in a minute, with tools, a schedule, a stop and a kill."""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from clew.messages import Message, Usage
from clew.store import Compaction
from clew.store.sqlite import SqliteStore
from tests.acceptance.harness import DEADLINE_S, Correspondent, Daemon, JsonObject, running, write_config
from tests.emulators.anthropic import AnthropicEmulator, AnthropicRecord
from tests.emulators.anthropic_cache import Accounting, Block, flatten
from tests.emulators.scripts import last_user_text
from tests.emulators.server import Reply
from tests.servers import Mosquitto

pytestmark = [pytest.mark.e2e, pytest.mark.mosquitto, pytest.mark.asyncio, pytest.mark.timeout(400)]

MARK, KEEP = 60, 8
MINIMUM = 512
"""Tokens of a prefix below which this model caches nothing."""
IN_FLIGHT = 2
"""Messages a person has out at once."""
MANY = 12
"""Calls of one message that make more blocks, with their results, than a cache marker looks back over."""
DUE_S = 20
"""Seconds after which the scheduled prompt is due: behind the daemon's first start, whatever else happens then."""
PROMPT = " ".join(f"Rule {number}: be brief, be exact, and say so when you do not know." for number in range(20))
"""A base prompt that is long enough to be cached by itself."""
JOB = "ada-9001-schedule"
SUMMARY = "Summary of the conversation so far:"
FENCE = "⟦recalled"
OTHER, SAME = "Previously in another session:", "Earlier in this session:"
BUDGET = 2000
MARKER = re.compile(r"\b(ada|bob)-(\d{4})-[a-z]+")
THINGS = ("greenhouse heating", "harbour ferry", "cello lessons", "tax return", "roof repair", "bread starter", "night train", "wasp nest")
PLACES = ("Lisbon", "the northern valley", "Aunt Clara's house", "platform nine", "the old mill", "Tromsø", "the school")


def marker(person: str, number: int) -> str:
    """A word that only this message of this person holds."""
    return f"{person}-{number:04d}-{('lantern', 'anchor', 'thistle')[number % 3]}"


def words(person: str, number: int) -> str:
    """A message: its marker, and topics that both people share and come back to."""
    thing, place = THINGS[number * 5 % len(THINGS)], PLACES[number // 3 % len(PLACES)]
    return (
        f"{marker(person, number)}: what did we decide about the {thing} in {place}? "
        f"I would like to settle it before the {number % 27 + 1}th, and it should cost less than {100 + number} euros."
    )


class Model:
    """What the emulated model says: tools for every tenth message, a summary where one is asked for, else an answer."""

    def __init__(self) -> None:
        self.summaries = 0
        self._calls = 0

    def __call__(self, body: JsonObject) -> Reply:
        if is_summary(body):
            return self._summary(json.dumps(body["messages"]))
        found = MARKER.search(last_user_text(body))
        assert found is not None, "a message without its marker"
        asked = int(found[2])
        wanted = rounds(asked)
        done = _rounds_done(body)
        if done < len(wanted):
            return Reply([self._call(*call) for call in wanted[done]], "tool_use")
        return Reply([{"type": "text", "text": answer(found[0])}])

    def _call(self, name: str, arguments: JsonObject) -> JsonObject:
        self._calls += 1
        return {"type": "tool_use", "id": f"toolu_{self._calls:05d}", "name": name, "input": arguments}

    def _summary(self, asked: str) -> Reply:
        self.summaries += 1
        (owner,) = owners(asked)
        lines = [
            f"Facts and identifiers: {owner}-{8000 + self.summaries}-summary",
            *(f"- the {thing} is to be settled in {place}, for less than 500 euros" for thing in THINGS for place in PLACES[:2]),
        ]
        return Reply([{"type": "text", "text": "\n".join(lines)}])


def rounds(number: int) -> list[list[tuple[str, JsonObject]]]:
    """The tool calls for a message: rounds of calls made at the same time."""
    if number % 100 == 77:
        return [[("current_time", {})] * MANY]
    if number % 10 != 3:
        return []
    search: tuple[str, JsonObject] = ("session_search", {"query": f"{THINGS[number % len(THINGS)]} {PLACES[number % len(PLACES)]}"})
    first = [search, ("current_time", {})] if number % 20 == 13 else [search]
    return [first, [("session_open", {"id": "nosuchmessage"})]] if number % 50 == 43 else [first]


def answer(asked: str) -> str:
    return f"About {asked}: we said that it is settled, and that I remind you a week before. Nothing else is open there."


def _rounds_done(body: JsonObject) -> int:
    done = 0
    for message in reversed(body["messages"]):
        kinds = {part["type"] for part in message["content"]}
        if message["role"] == "user" and "tool_result" not in kinds:
            return done
        done += "tool_use" in kinds
    return done


def asks(word: str) -> Callable[[JsonObject], bool]:
    """Recognises the calls for the reply to the message with this marker."""
    return lambda body: not is_summary(body) and word in last_user_text(body)


def is_summary(body: JsonObject) -> bool:
    return "<new_messages>" in body["messages"][-1]["content"][-1].get("text", "")


def owners(text: str) -> set[str]:
    """Whose words these are, by their markers."""
    return {found[1] for found in MARKER.finditer(text)}


def tokens(text: str) -> int:
    return (len(text) + 3) // 4


# The talk ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Talk:
    """One person's side. `new_after`: message numbers after which a new session is begun."""

    person: Correspondent
    count: int
    new_after: tuple[int, ...]
    out: list[str] = field(default_factory=list)

    async def hold(self) -> None:
        for number in range(1, self.count + 1):
            await self._send(marker(self.person.name, number), words(self.person.name, number))
            if number in self.new_after:
                await self._send(f"new-{number}", "/new")
        await self.person.reply_to(self.out[-1])

    async def _send(self, identifier: str, text: str) -> None:
        if len(self.out) >= IN_FLIGHT:
            await self.person.reply_to(self.out[-IN_FLIGHT])
        await self.person.send(identifier, text)
        self.out.append(identifier)

    async def reached(self, number: int) -> None:
        """Until that many messages were answered."""
        await self.person.reply_to(marker(self.person.name, number))

    @property
    def spoken(self) -> list[str]:
        return [identifier for identifier in self.out if not identifier.startswith("new-")]


async def interrupt(clew: Daemon, model: AnthropicEmulator, ada: Talk, bob: Talk) -> None:
    """A stop while both talk, then a kill while the model is asked for both."""
    await ada.reached(ada.count // 3)
    assert await clew.terminate() == 0
    await clew.start()
    late = ada.count * 2 // 3
    holds = [model.hold(asks(marker(talk.person.name, late))) for talk in (ada, bob)]
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(hold.reached.wait() for hold in holds))
    await clew.kill()
    cut_off = [call for call in model.calls if call.outcome in ("open", "disconnected")]
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(call.finished.wait() for call in cut_off))
    await clew.start()


@dataclass(frozen=True, slots=True)
class Stored:
    """What the store holds of one person in the end: sessions from old to new."""

    sessions: list[str]
    rows: list[tuple[Message, ...]]
    compactions: list[list[Compaction]]
    calls: list[JsonObject]
    problems: list[str]


async def stored(database: Path, person: str) -> Stored:
    store = await SqliteStore.open(database, time.time(), read_only=True)
    try:
        sessions = [row.id for row in sorted(await store.sessions(f"mqtt:{person}"), key=lambda row: row.created)]
        return Stored(
            sessions,
            [await store.transcript(session) for session in sessions],
            [await store.compactions(session) for session in sessions],
            sorted(
                [call for session in sessions for call in (await store.export_session(session))["model_calls"]],
                key=lambda call: float(call["started"]),
            ),
            [problem for session in sessions for problem in await store.verify_session(session)],
        )
    finally:
        await store.close()


async def unsettled(database: Path) -> dict[str, int]:
    store = await SqliteStore.open(database, time.time(), read_only=True)
    try:
        counts = await store.counts(time.time())
    finally:
        await store.close()
    return {name: counts[name] for name in ("inbox_new", "outbox_pending", "outbox_unknown", "outbox_dead", "turns_running")}


# What must hold ----------------------------------------------------------------------------------------------------


def check_replies(talk: Talk) -> None:
    # P42, P43, P44: each message answered once, in order, by its own answer.
    person = talk.person
    answered = [reply["in_reply_to"] for reply in person.replies if reply["in_reply_to"] is not None]
    assert answered == talk.out
    for asked in talk.spoken:
        (reply,) = person.to(asked)
        assert (reply["text"], reply["answers"], reply["final"]) == (answer(asked), [asked], True)
    assert person.repeats <= 1  # only the reply that the broker had, and clew had not noted yet, when it was killed


def is_for_job(body: JsonObject) -> bool:
    """Whether a request is for the scheduled prompt, which is the only one of its thread."""
    asked = body["messages"][0]["content"]
    text = asked if isinstance(asked, str) else asked[0].get("text", "")
    return str(text).partition("] ")[2].startswith(JOB)


def check_transcript(talk: Talk, kept: Stored) -> None:
    # P2: what is stored is what was said, both ways, word for word and in order.
    name = talk.person.name
    rows = [row for session in kept.rows for row in session]
    heard = [row.text for row in rows if row.role == "user"]
    said = [row.text for row in rows if row.role == "assistant" and not row.calls]
    assert heard == [words(name, number) for number in range(1, talk.count + 1)]
    assert said == [answer(found[0]) for text in heard if (found := MARKER.match(text))]
    called = [[(call.name, json.loads(call.arguments)) for call in row.calls] for row in rows if row.calls]
    assert called == [each for text in heard if (found := MARKER.match(text)) for each in rounds(int(found[2]))]
    assert [result.call_id for row in rows for result in row.results] == [call.id for row in rows for call in row.calls]
    assert len(kept.sessions) == len(talk.new_after) + 1
    assert kept.problems == []


def expected_compactions(rows: Sequence[Message]) -> list[tuple[int, int]]:
    """(new length of the window, messages demoted) of each compaction of a session, by P8 and P26 alone."""
    window: list[tuple[str, str]] = []
    found = []
    for row in rows:
        if row.role == "assistant" and len(window) >= MARK:  # in front of it stood a model call
            cut = min(len(window) - KEEP, next(i for i, (_, turn) in enumerate(window) if turn == row.turn))
            cut += window[cut][0] == "tool"
            found.append((len(window) - cut + 1, cut))
            del window[:cut]
        if not (row.role == "tool" and window[-1][0] == "tool"):
            window.append((row.role, row.turn))
    return found


def check_compactions(kept: Stored, clew: Daemon, name: str) -> None:
    # P8, P26
    for session, rows, compactions in zip(kept.sessions, kept.rows, kept.compactions, strict=True):
        expected = expected_compactions(rows)
        logged = clew.events("agent.compressed", session=session)
        assert [(line["messages"], line["covered"]) for line in logged] == expected
        assert {line["trigger"] for line in logged} <= {"count"}
        assert [(each.messages, each.covered) for each in compactions] == expected
        assert all(length in (KEEP, KEEP + 1) for length, _ in expected)
        assert [covered for length, covered in expected[:1] if length == KEEP + 1] in ([], [MARK + 1 - KEEP], [MARK + 3 - KEEP])
        assert all(name in each.text and owners(each.text) <= {name} for each in compactions)


@dataclass(frozen=True, slots=True)
class Call:
    """A model call for a reply, taken apart. Texts of the system blocks; indices count all blocks of the request."""

    accounting: Accounting
    blocks: list[Block]
    system: list[str]

    @classmethod
    def of(cls, record: AnthropicRecord) -> "Call":
        assert record.accounting is not None
        return cls(record.accounting, flatten(record.body, tokens), [block["text"] for block in record.body["system"]])

    @property
    def _before_system(self) -> int:
        return sum(block.level == "tools" for block in self.blocks)

    @property
    def base_index(self) -> int:
        return self._before_system

    @property
    def summary(self) -> str:
        return next((text for text in self.system if text.startswith(f"\n\n{SUMMARY}")), "")

    @property
    def summary_index(self) -> int:
        return self._before_system + self.system.index(self.summary)

    @property
    def base(self) -> list[str]:
        return [block.canonical for block in self.blocks[: self.base_index + 1]]

    @property
    def marked(self) -> list[str]:
        """What stands in front of the last marker, and what it marks."""
        return [block.canonical for block in self.blocks[: self.accounting.markers[-1][0] + 1]]

    @property
    def in_loop(self) -> bool:
        return '"tool_result"' in self.blocks[-1].canonical

    @property
    def recall(self) -> list[str]:
        return [block.canonical for block in self.blocks if FENCE in block.canonical and '"tool_result"' not in block.canonical]

    @property
    def messages(self) -> list[str]:
        return [block.canonical for block in self.blocks if block.level == "messages" and FENCE not in block.canonical]

    def tokens_to(self, index: int) -> int:
        return self.accounting.prefixes[index][1]


def check_cache(calls: Sequence[Call], compactions: int) -> None:
    """`calls`: one person's, in order."""
    first: dict[str, Call] = {}
    for call in calls:
        # P28: not one readable token is missed.
        assert call.accounting.read == call.accounting.longest_unexpired_prefix
        assert call.base_index in dict(call.accounting.markers)
        if call is not calls[0] and call.tokens_to(call.base_index) >= MINIMUM:
            assert call.accounting.read >= call.tokens_to(call.base_index)
        if call.summary:
            index = call.summary_index
            assert index in dict(call.accounting.markers)
            assert call.tokens_to(index) >= MINIMUM
            if call.summary in first:
                assert call.accounting.read >= call.tokens_to(index)
            else:
                first[call.summary] = call
                assert index in dict(call.accounting.writes)
    assert len(first) == compactions
    for before, after in pairwise(calls):
        # P29: nothing in front of the newest messages moves, unless a summary or the recalled excerpts change.
        assert after.base == before.base
        if after.summary == before.summary and len(after.messages) > len(before.messages):
            assert after.messages[: len(before.messages)] == before.messages
        if after.in_loop:
            assert after.recall == before.recall
        if after.marked[: len(before.marked)] == before.marked:
            assert after.accounting.read >= before.accounting.read + before.accounting.created


def check_recall(calls: Sequence[Call], records: Sequence[AnthropicRecord], placement: str) -> None:
    # P31, P32
    texts = [text for record in records for text in _texts(record.body, placement)]
    shown = [text.strip() for text in texts if FENCE in text]
    assert any(OTHER in text for text in shown)
    assert any(SAME in text for text in shown)
    assert max(map(len, shown)) <= BUDGET
    if placement == "system":
        assert all(
            FENCE not in block.canonical
            for call in calls
            for block in call.blocks
            if block.level == "messages" and '"tool_result"' not in block.canonical
        )


def _texts(body: JsonObject, placement: str) -> Iterator[str]:
    """The texts of the place where recall belongs."""
    parts = body["system"] if placement == "system" else [part for message in body["messages"] for part in message["content"]]
    return (part["text"] for part in parts if part["type"] == "text")


def check_usage(records: Sequence[AnthropicRecord], calls: Sequence[JsonObject]) -> None:
    """What clew wrote down of each call is what the endpoint accounted for."""
    accounted = [each.accounting for each in records if each.accounting is not None]
    assert [(call["cache_read"], call["cache_write"], call["input"]) for call in calls] == [(a.read, a.created, a.input) for a in accounted]


@pytest.mark.parametrize(("placement", "count", "prompt"), [("system", 400, ""), ("message", 120, PROMPT)], ids=["system", "message"])
async def test_two_people_for_weeks(
    placement: str, count: int, prompt: str, tmp_path: Path, mosquitto: Mosquitto, capsys: pytest.CaptureFixture[str]
) -> None:
    says = Model()
    job = f"{JOB}: remind me of the {THINGS[0]} in {PLACES[0]}"
    due = (datetime.now(UTC) + timedelta(seconds=DUE_S)).isoformat(timespec="seconds")
    schedule = [{"name": "reminder", "at": due, "prompt": job, "deliver_to": "mqtt:ada/reminders"}]
    ada, bob = Correspondent("ada"), Correspondent("bob")
    talks = [Talk(ada, count, (count * 2 // 5, count * 3 // 4)), Talk(bob, count, (count // 2,))]
    async with AnthropicEmulator(script=says, tok=tokens) as model:
        agent = {"system_prompt": prompt, "recall": {"placement": placement}}
        config = write_config(tmp_path, broker_port=mosquitto.port, model_url=model.url, agent=agent, schedule=schedule)
        async with ada.connected(mosquitto.port), bob.connected(mosquitto.port), running(config) as clew:
            started = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for talk in talks:
                    group.create_task(talk.hold())
                group.create_task(interrupt(clew, model, *talks))
            await ada.until(lambda: any(reply["in_reply_to"] is None for reply in ada.replies), "the scheduled reply")
            seconds = time.monotonic() - started
            assert await clew.terminate() == 0
        database = tmp_path / "data" / "clew.db"
        answered = [call for call in model.calls if call.outcome == "answered"]

        # Every request was valid; only the calls that the kill cut off have no answer.
        assert {call.status for call in answered} == {200}
        assert {call.outcome for call in model.calls} == {"answered", "disconnected"}
        assert len(model.calls) - len(answered) == len(talks)
        # P33: nobody's words in a request made for somebody else.
        whose = {record.request_id: owners(record.raw.decode()) for record in model.calls}
        assert {len(names) for names in whose.values()} == {1}
        (reminder,) = [reply for reply in ada.replies if reply["in_reply_to"] is None]
        assert reminder["text"] == answer(JOB)
        assert len([record for record in answered if is_for_job(record.body)]) == len(rounds(9001)) + 1
        # P45: the thread in which it was read knows it.
        (thread,) = (await stored(database, "ada/reminders")).rows
        assert [row.text.partition("\n")[0] for row in thread] == [job, answer(JOB)]
        assert set((await unsettled(database)).values()) == {0}
        assert clew.plain == []
        assert clew.events("view.repaired") == clew.events("recall.failed") == clew.events("agent.compress_failed") == []

        spent = Usage()
        for talk in talks:
            name = talk.person.name
            kept = await stored(database, name)
            check_replies(talk)
            check_transcript(talk, kept)
            check_compactions(kept, clew, name)
            records = [record for record in answered if whose[record.request_id] == {name} and not is_for_job(record.body)]
            check_usage(records, kept.calls)
            replies = [record for record in records if not is_summary(record.body)]
            calls = [Call.of(record) for record in replies]
            compactions = sum(map(len, kept.compactions))
            assert compactions == len(records) - len(replies) > 0
            check_cache(calls, compactions)
            check_recall(calls, replies, placement)
            for call in calls:
                spent += Usage(input=call.accounting.total - call.accounting.read, cache_read=call.accounting.read)
    with capsys.disabled():
        print(
            f"\nplacement {placement}: {len(model.calls)} calls, {says.summaries} compactions, {seconds:.0f} s;"
            f" {spent.cache_read:,} of {spent.prompt:,} prompt tokens of replies read from cache ({spent.cache_read / spent.prompt:.1%})"
        )
