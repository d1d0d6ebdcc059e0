"""Nobody's documents reach another: whatever was added where, each place sees exactly what a plain model says."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.context.chunks import Chunk
from clew.passages import Asked, Passages, shown_passages
from clew.store import Person, PromptState
from clew.store.documents import NewDocument
from clew.store.notes import Where
from clew.store.sql import SqlStore
from clew.tools import ToolContext
from clew.tools.documents import Search, tools
from tests.databases import BOTH
from tests.unit.store_rows import NOW, opened, turn

pytestmark = BOTH
PEOPLE = ("ada", "bob")
DIRECT = {"ada": "ada", "ada/garden": "ada", "bob": "bob"}
"""Direct chats, and whose they are."""
GROUPS = ("team", "team/seven")
CHATS = (*DIRECT, *GROUPS)
PROJECTS = ("garden", "house")
NEEDLE = "needle"


@dataclass(frozen=True)
class Add:
    """A document of a person, a project, or the chat that is a project of its own; the same source again takes the old one's place."""

    scope: str
    source: int


@dataclass(frozen=True)
class Remove:
    scope: str
    source: int


@dataclass(frozen=True)
class Name:
    """The config names the chats of projects anew."""

    chats: tuple[tuple[str, str], ...]


Event = Add | Remove | Name

scopes = st.sampled_from(
    [*(f"user:{person}" for person in PEOPLE), *(f"project:{name}" for name in PROJECTS), *(f"project:desk:{chat}" for chat in CHATS)]
)
events = st.lists(
    st.one_of(
        st.builds(Add, scopes, st.integers(0, 2)),
        st.builds(Add, scopes, st.integers(0, 2)),
        st.builds(Remove, scopes, st.integers(0, 2)),
        st.builds(
            lambda named: Name(tuple(sorted(named.items()))), st.dictionaries(st.sampled_from(CHATS), st.sampled_from(PROJECTS), max_size=3)
        ),
    ),
    max_size=12,
)


@dataclass
class Model:
    """Whose documents there are, in plain words: of each scope and source the words that it holds."""

    there: dict[tuple[str, int], str] = field(default_factory=dict)
    projects: dict[str, str] = field(default_factory=dict)

    def seen(self, chat: str) -> set[str]:
        named = self.projects.get(chat) or self.projects.get(chat.partition("/")[0])
        within = {f"project:{named or f'desk:{chat}'}"} | ({f"user:{DIRECT[chat]}"} if chat in DIRECT else set())
        return {words for (scope, _), words in self.there.items() if scope in within}


async def carry_out(store: SqlStore, model: Model, event: Event, number: int) -> None:
    match event:
        case Add(scope, source):
            words = f"word{number}"
            new = NewDocument(f"/docs/{source}.md", f"{source}.md", "", "markdown", str(number), 10)
            await store.documents.put(scope, new, [Chunk("", f"{NEEDLE} {words}")], NOW)
            model.there[scope, source] = words
        case Remove(scope, source):
            found = await store.documents.there(scope, f"/docs/{source}.md")
            assert (found is not None) is (model.there.pop((scope, source), None) is not None)
            if found is not None:
                await store.documents.remove([found.id])
        case Name(chats):
            model.projects = dict(chats)
            named = {f"desk:{chat}": name for chat, name in chats}
            await store.sync({name: Person(name, "member", None, (f"desk:{name}",)) for name in PEOPLE}, None, [], NOW, named)


def words_in(texts: Sequence[str]) -> set[str]:
    return {word for text in texts for word in text.split() if word.startswith("word")}


async def every_way(store: SqlStore, chat: str, state: PromptState) -> tuple[list[set[str]], PromptState]:
    """What each way to documents gives at a chat, and the state of its prompt, which showed something before."""
    where = Where(address=f"desk:{chat}")
    every = [each.passage.id for each in await Passages(store, 10_000).search(None, NEEDLE, 100)]

    async def nearest(where: Where | None, text: str, limit: int) -> Sequence[int]:
        return every

    by_words, by_meaning = Passages(store, 10_000), Passages(store, 10_000, nearest)
    [tool] = tools(by_meaning)
    context = ToolContext("s", "t", where.address or "", None, 0, UTC, "UTC", NOW)
    told = await tool.run(context, Search(query=NEEDLE, limit=20))
    assert isinstance(told, str)
    found = [
        words_in([each.passage.text for each in await by_words.search(where, NEEDLE, 100)]),
        words_in([each.passage.text for each in await by_meaning.search(where, NEEDLE, 100)]),
        words_in([told]),
    ]
    for keep in (True, False):
        state = await by_meaning.decide(Asked(where, f"{NEEDLE} {min(found[0], default='')}", (), replace(state), keep, 100_000))
        assert words_in([state.documents]) == words_in([each.text for each in shown_passages(state)])
        found.append(words_in([state.documents]))
    return found, state


async def run(happened: Sequence[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with opened(Path(folder)) as store:
            for number, chat in enumerate(CHATS):
                await turn(
                    store, f"m{number}", "hello", "yes", chat, direct=chat in DIRECT, sender="ada" if chat in GROUPS else DIRECT[chat]
                )
            model, states = Model(), dict.fromkeys(CHATS, PromptState())
            for number, event in enumerate(happened):
                await carry_out(store, model, event, number)
                for chat in CHATS:
                    may = model.seen(chat)
                    found, states[chat] = await every_way(store, chat, states[chat])
                    assert found[0] == found[1] == found[2] == may
                    assert all(shown <= may for shown in found[3:])
                    assert bool(found[4]) is bool(may)
            everything = await Passages(store, 10_000).search(None, NEEDLE, 100)
            assert words_in([each.passage.text for each in everything]) == set(model.there.values())
            assert await store.documents.check() == []


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(events)
def test_each_place_sees_its_own_documents_and_no_other(happened: Sequence[Event]) -> None:  # P41, P33
    asyncio.run(run(happened))
