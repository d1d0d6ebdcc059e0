"""Nobody's notes reach another: whatever was noted where, each place sees exactly what a plain model says."""

import asyncio
import tempfile
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.config import Notes as Settings
from clew.context.notes import SCOPES, ScopeKind
from clew.errors import UsageError
from clew.notes import Bounds, made_of, noted
from clew.store import Person, PromptState
from clew.store.notes import By, DropAll, DropEntity, DropPreference, Edit, PutFact, PutPreference, PutRelation, Where, reading
from clew.store.sql import SqlStore
from clew.tools import ToolContext
from clew.tools.notes import CreateEntities, NoteTools, OpenNodes, SearchNodes
from tests.databases import BOTH
from tests.unit.store_rows import NOW, opened, turn

pytestmark = BOTH
PEOPLE = ("ada", "bob")
DIRECT = {"ada": "ada", "ada/garden": "ada", "bob": "bob"}
"""Direct chats, and whose they are."""
GROUPS = ("team", "team/seven")
CHATS = (*DIRECT, *GROUPS)
PROJECTS = ("garden", "house")


@dataclass(frozen=True)
class Write:
    """Somebody notes something in a chat, in a kind of notes that may not be there."""

    chat: str
    kind: ScopeKind


@dataclass(frozen=True)
class Forget:
    """All of one kind of notes is removed from a chat; one entity of it if `one`."""

    chat: str
    kind: ScopeKind
    one: bool


@dataclass(frozen=True)
class Name:
    """The config names the chats of projects anew."""

    chats: tuple[tuple[str, str], ...]


Event = Write | Forget | Name

kinds = st.sampled_from(SCOPES)
chats = st.sampled_from(CHATS)
events = st.lists(
    st.one_of(
        st.builds(Write, chats, kinds),
        st.builds(Write, chats, kinds),
        st.builds(Forget, chats, kinds, st.booleans()),
        st.builds(lambda named: Name(tuple(sorted(named.items()))), st.dictionaries(chats, st.sampled_from(PROJECTS), max_size=3)),
    ),
    max_size=14,
)


@dataclass
class Model:
    """Who may see what, in plain words."""

    named: dict[str, str] = field(default_factory=dict)
    notes: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def sees(self, chat: str) -> dict[str, tuple[str, str]]:
        """A person's own notes are seen in their direct chats. A project's are seen in its chats, and in the threads of these."""
        seen = {"project": ("project", self.named.get(chat) or self.named.get(chat.partition("/")[0]) or chat)}
        if chat in DIRECT:
            seen |= {"user": ("user", DIRECT[chat]), "cross": ("cross", DIRECT[chat])}
        return seen

    def visible(self, chat: str) -> set[str]:
        return set().union(*(self.notes.get(scope, set()) for scope in self.sees(chat).values()))


async def play(store: SqlStore, model: Model, happened: list[Event]) -> None:
    for number, event in enumerate(happened):
        match event:
            case Write(chat, kind):
                await write(store, model, chat, kind, number)
            case Forget(chat, kind, one):
                scope = model.sees(chat).get(kind)
                known = sorted(model.notes.get(scope, set())) if scope else []
                edits: list[Edit] = forgetting(known[0]) if one and known else [DropAll()]
                try:
                    await store.notes.change(at(chat), kind, edits, By(), NOW)
                except UsageError:
                    assert scope is None
                    continue
                assert scope is not None
                model.notes[scope] = set(known[1:]) if one and known else set()
            case Name(named):
                model.named = dict(named)
                people = {name: Person(name, "member", None, (f"desk:{name}",)) for name in PEOPLE}
                await store.sync(people, None, (), NOW, {f"desk:{chat}": project for chat, project in named})


def forgetting(secret: str) -> list[Edit]:
    return [DropEntity(f"thing {secret}"), DropEntity(f"other {secret}"), DropPreference(secret)]


async def write(store: SqlStore, model: Model, chat: str, kind: ScopeKind, number: int) -> None:
    secret = f"secret{number}"
    edits: list[Edit] = [
        PutFact(f"thing {secret}", f"needle {secret}"),
        PutRelation(f"thing {secret}", f"other {secret}", "near"),
        PutPreference(secret, "wanted"),
    ]
    scope = model.sees(chat).get(kind)
    try:
        await store.notes.change(at(chat), kind, edits, By(), NOW + number)
    except UsageError:
        assert scope is None
        return
    assert scope is not None
    model.notes.setdefault(scope, set()).add(secret)


def at(chat: str) -> Where:
    return Where(address=f"desk:{chat}")


async def looks_from(store: SqlStore, model: Model, chat: str, written: int) -> None:
    """Every way that leads from a chat to a note."""
    allowed = model.visible(chat)
    everything = {f"secret{number}" for number in range(written)}
    context = ToolContext("s", "t", f"desk:{chat}", None, 0, UTC, "UTC", NOW)
    tools = NoteTools(store)
    names = [f"thing {secret}" for secret in sorted(everything)] or ["nothing"]
    searched = await tools.search_nodes(context, SearchNodes(query="needle", limit=50))
    listed = await tools.search_nodes(context, SearchNodes(query="", limit=50))
    whole = await tools.open_nodes(context, OpenNodes(names=names))
    for text in (searched, whole, listed):
        assert {secret for secret in everything if f"{secret} " in text or f"{secret}\n" in text} == allowed

    bounds = Bounds(Settings(budget_chars=100_000), 100_000, UTC, "UTC")
    asked = await store._db.read(reading.standing, f"desk:{chat}", PromptState(), NOW)
    state = await noted(store, at(chat), PromptState(), asked, bounds, free=True, now=NOW)
    assert {secret for secret in everything if f"- {secret}: wanted" in state.notes} <= allowed
    assert {secret for secret in everything if f"needle {secret} " in state.notes} == allowed
    assert state.notes == made_of(await store.notes.standing(at(chat), NOW), bounds).text
    for kind in SCOPES:
        try:
            notes = await store.notes.listing(at(chat), kind, NOW)
        except UsageError:
            assert kind not in model.sees(chat)
            continue
        seen = model.notes.get(model.sees(chat)[kind], set())
        assert {each.name.removeprefix("thing ") for each in notes.entities if each.name.startswith("thing")} == seen
        history = await store.notes.changes(at(chat), kind, 100)
        assert all(secret not in each.summary for each in history for secret in everything - ever(model, chat, kind, everything))


def ever(model: Model, chat: str, kind: str, everything: set[str]) -> set[str]:
    """What may stand in the history of a scope: all but what another scope holds now."""
    own = model.sees(chat)[kind]
    elsewhere = set().union(*(secrets for scope, secrets in model.notes.items() if scope != own))
    return everything - elsewhere


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events)
def test_each_place_sees_its_own_notes_and_no_other(happened: list[Event]) -> None:  # P33, P39, BO-031
    async def run() -> None:
        with tempfile.TemporaryDirectory() as name:
            async with opened(Path(name)) as store:
                for number, chat in enumerate(CHATS):
                    sender = DIRECT.get(chat, "ada")
                    await turn(store, str(number), "hello", "hi", chat, sender=sender, direct=chat in DIRECT)
                model = Model()
                await play(store, model, happened)
                for chat in (*CHATS, "nobody"):
                    if chat == "nobody":
                        assert await store.notes.search(at(chat), "needle", 50, NOW) == ()
                    else:
                        await looks_from(store, model, chat, len(happened))
                for person in PEOPLE:
                    found = await store.notes.search(Where(person=person), "needle", 50, NOW)
                    own = model.notes.get(("user", person), set()) | model.notes.get(("cross", person), set())
                    assert {each.name.removeprefix("thing ") for each in found} == own
                assert await store.check() == []

    asyncio.run(run())


def test_a_model_cannot_name_another_persons_scope() -> None:  # P33, P39
    """What a tool may be told of whose notes are meant is one of four words."""
    schema = CreateEntities.model_json_schema()
    assert schema["properties"]["scope"]["enum"] == ["default", "user", "project", "cross"]
    assert set(schema["properties"]) == {"entities", "scope"}
