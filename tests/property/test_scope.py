"""Nothing that was written in one chat is seen from another that may not see it, on any path that leads to a text."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clew import recall
from clew.clock import Time, new_id
from clew.config import Recall
from clew.embedders import Vectors
from clew.meaning import Meaning
from clew.messages import Text
from clew.metrics import Metrics
from clew.recall import IndexRecall, SessionView
from clew.store import Effect, NewMessage, Outcome, PromptState, Scope, Step
from clew.store.connection import Connection
from clew.store.sql import SqlStore
from clew.tools import Tool, ToolContext, ToolError
from clew.tools.sessions import tools
from tests.databases import BOTH
from tests.unit.store_rows import LEASE, NOW, accept, find, holding, inbound, opened

pytestmark = BOTH
PEOPLE = ("ada", "bob", "eve")
GROUPS = ("team", "club")
NEEDLE = "needle"


@dataclass(frozen=True)
class Say:
    """`person` writes in `chat` (a group, or their own direct chat) and is answered."""

    person: str
    chat: str


@dataclass(frozen=True)
class Leave:
    person: str
    group: str


@dataclass(frozen=True)
class Retract:
    """The nth message so far is taken back (modulo their number)."""

    nth: int


@dataclass(frozen=True)
class Fresh:
    """A chat begins a new session."""

    chat: str
    person: str


@dataclass(frozen=True)
class Hush:
    """What is said in a chat's conversation is private from now on, or no more."""

    chat: str
    on: bool


Event = Say | Leave | Retract | Fresh | Hush

chats = st.tuples(st.sampled_from(PEOPLE), st.sampled_from(("", *GROUPS)))
says = chats.map(lambda pair: Say(pair[0], pair[1] or pair[0]))
events = st.lists(
    st.one_of(
        says,
        says,
        says,
        st.builds(Leave, st.sampled_from(PEOPLE), st.sampled_from(GROUPS)),
        st.builds(Retract, st.integers(0, 50)),
        chats.map(lambda pair: Fresh(pair[1] or pair[0], pair[0])),
        st.builds(Hush, st.sampled_from((*PEOPLE, *GROUPS)), st.booleans()),
    ),
    min_size=1,
    max_size=14,
)


@dataclass
class Line:
    id: str
    session: str
    chat: str
    seq: int
    at: float
    retracted: bool = False
    private: bool = False


@dataclass
class Model:
    """Who may see what, in plain words."""

    lines: list[Line] = field(default_factory=list)
    spans: dict[tuple[str, str], list[list[float]]] = field(default_factory=dict)
    chats: set[str] = field(default_factory=set)
    hushed: set[str] = field(default_factory=set)

    def joins(self, person: str, group: str, now: float) -> None:
        spans = self.spans.setdefault((person, group), [])
        if not spans or spans[-1][1] != float("inf"):
            spans.append([now, float("inf")])

    def leaves(self, person: str, group: str, now: float) -> None:
        spans = self.spans.get((person, group))
        if spans and spans[-1][1] == float("inf"):
            spans[-1][1] = now

    def may_see(self, at_chat: str, line: Line, session: str | None = None) -> bool:
        """What was written in a direct chat is seen there and nowhere else; a group's words in that group, and in the direct chat of a
        person who was a member when they were written. There is no asking from a chat that is not there yet. What was said in private is
        seen by its own session alone."""
        if line.private and line.session != session:
            return False
        if line.retracted or at_chat not in self.chats:
            return False
        if line.chat == at_chat:
            return True
        return at_chat not in GROUPS and line.chat in GROUPS and self.is_of(at_chat, line)

    def is_of(self, person: str, line: Line) -> bool:
        """Whether a person said or heard it: in their direct chat, or in a group of which they were a member then."""
        if line.private:
            return False
        if line.retracted or line.chat not in GROUPS:
            return not line.retracted and line.chat == person
        return any(start <= line.at <= end for start, end in self.spans.get((person, line.chat), ()))


def done(db: Connection, statement: str, *values: object) -> None:
    db.execute(statement, values)


async def play(store: SqlStore, happened: Sequence[Event]) -> Model:
    """Let `happened` happen in the store and in the model."""
    model = Model()
    for number, event in enumerate(happened):
        now = NOW + 10.0 * number
        match event:
            case Say(person, chat):
                await say(store, model, person, chat, now, number)
            case Leave(person, group):
                left = (
                    "UPDATE chat_members SET left_at = ? WHERE person = ? AND left_at IS NULL AND chat ="
                    " (SELECT id FROM chats WHERE address = ?)"
                )
                await store._db.write(done, left, now, person, f"desk:{group}")
                model.leaves(person, group, now)
            case Retract(nth) if model.lines:
                line = model.lines[nth % len(model.lines)]
                line.retracted = True
                gone = "INSERT INTO retractions (message, reason, at) VALUES (?, 'deleted', ?) ON CONFLICT DO NOTHING"
                await store._db.write(done, gone, line.id, now)
            case Hush(chat, on) if session := await store.current_session(f"desk:{chat}"):
                await store.take_effect(session, Effect("private" if on else "open", ()), now)
                (model.hushed.add if on else model.hushed.discard)(session)
            case Fresh(chat, person):
                direct = chat not in GROUPS
                model.chats.add(chat)
                await store.open_chat(inbound("", chat=chat, sender=person, direct=direct), person, now)
                if not direct:
                    model.joins(person, chat, now)
    return model


async def say(store: SqlStore, model: Model, person: str, chat: str, now: float, number: int) -> None:
    direct = chat not in GROUPS
    model.chats.add(chat)
    if not direct:
        model.joins(person, chat, now)
    await accept(store, inbound(f"{number}", f"{NEEDLE} from {person}", chat, sender=person, direct=direct), now=now)
    claimed = await store.claim_turn("me", now, LEASE, frozenset())
    assert claimed is not None
    answer = Step(messages=(NewMessage("assistant", (Text(f"{NEEDLE} back to {person}"),), now),))
    await store.finish(claimed, Outcome("done", answer), (), now)
    for message in (await store.transcript(claimed.session))[-2:]:
        hushed = claimed.session in model.hushed
        model.lines.append(Line(message.id, claimed.session, chat, message.seq, message.at, private=hushed))


def context(chat: str, session: str, after: int) -> ToolContext:
    return ToolContext(session, "", f"desk:{chat}", None, after, UTC, "UTC", NOW)


async def looks_from(store: SqlStore, model: Model, chat: str) -> None:
    """Every path that leads from `chat` to a text."""
    session = await store.current_session(f"desk:{chat}") or new_id()
    own = [line.seq for line in model.lines if line.session == session]
    for after in {0, *own[len(own) // 2 : len(own) // 2 + 1]}:
        allowed = {line.id for line in model.lines if model.may_see(chat, line, session)}
        in_view = {line.id for line in model.lines if line.session == session and line.seq > after}
        everything = [line.id for line in model.lines]
        scope = await store.scope_for(session=(session, f"desk:{chat}", after))

        searched = await find(store, scope, NEEDLE, 1000)
        assert holding(searched) == allowed - in_view
        assert {each.candidate.id for each in searched.scored} <= allowed - in_view
        shown = await store.search(scope, lambda frequency, total: None, 10, everything)
        assert shown.visible == allowed - in_view

        for line in model.lines:
            opened_around = await store.around(scope, line.id, 3, 3)
            assert {each.id for each in opened_around} <= allowed
            assert bool(opened_around) == (line.id in allowed)

        await tools_see(store, model, context(chat, session, after), allowed)
        await recall_sees(store, chat, session, after, allowed - in_view)


async def tools_see(store: SqlStore, model: Model, asking: ToolContext, allowed: set[str]) -> None:
    by_name: dict[str, Tool] = {tool.name: tool for tool in tools(store)}
    search, open_message = by_name["session_search"], by_name["session_open"]
    text = await search.run(asking, search.Arguments.model_validate({"query": NEEDLE, "limit": 20}))
    assert isinstance(text, str)
    ids = {line.id for line in model.lines}
    assert {identifier for identifier in ids if identifier in text} <= allowed
    for line in model.lines:
        arguments = open_message.Arguments.model_validate({"id": line.id, "around": 20})
        try:
            opened_text = await open_message.run(asking, arguments)
        except ToolError as error:
            assert str(error) == f"There is no message {line.id}."  # noqa: PT017 - most ids may not be seen
            continue
        assert isinstance(opened_text, str)
        assert {identifier for identifier in ids if f"[{identifier}]" in opened_text} <= allowed


class Alike:
    """An embedding model that finds everything near to everything."""

    version = "alike"

    async def prepare(self) -> None:
        return None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return Vectors([b"\x7f\x01"] * len(texts))

    async def close(self) -> None:
        return None


async def recall_sees(store: SqlStore, chat: str, session: str, after: int, allowed: set[str]) -> None:
    meaning = Meaning(store, Alike(), (), Time())
    await meaning.catch_up()
    engine = IndexRecall(store, Recall(max_excerpts=100, budget_chars=100_000), Metrics(), meaning)
    for text in (NEEDLE, "What was said on 15 January 2027?"):  # by a word, and by nothing but the day
        view = SessionView(session, f"desk:{chat}", after, text, (), (), UTC, PromptState(), False, at=NOW + 86_400)
        block = await engine.system_appendix(view)
        assert {identifier for excerpt in block.shown for identifier in excerpt.ids} <= allowed


async def outside_of_a_session(store: SqlStore, model: Model, name: str) -> None:
    """What `clew session search --person` and `--chat` find."""

    async def found(scope: Scope) -> set[str]:
        meaning = Meaning(store, Alike(), (), Time())
        return {each.candidate.id for each in await recall.search(store, scope, NEEDLE, limit=100, meaning=meaning)}

    assert await found(await store.scope_for(address=f"desk:{name}")) == {line.id for line in model.lines if model.may_see(name, line)}
    if name in PEOPLE:
        theirs = await found(await store.scope_for(person=name))
        assert theirs == {line.id for line in model.lines if model.is_of(name, line)}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example([Say("bob", "bob"), Say("bob", "team"), Hush("team", True), Say("ada", "team"), Hush("team", False), Say("ada", "team")])
@example([Say("ada", "ada"), Hush("ada", True), Say("ada", "ada"), Fresh("ada", "ada"), Say("ada", "ada")])
@given(events)
def test_no_path_leads_to_a_text_that_may_not_be_seen(happened: list[Event]) -> None:  # P33, P36, P37, BO-031
    async def run() -> None:
        with tempfile.TemporaryDirectory() as name:
            async with opened(Path(name)) as store:
                model = await play(store, happened)
                for chat in (*PEOPLE, *GROUPS, "nobody"):
                    await looks_from(store, model, chat)
                    await outside_of_a_session(store, model, chat)
                assert await store.check() == []

    asyncio.run(run())
