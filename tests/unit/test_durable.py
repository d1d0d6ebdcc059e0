"""What holds beyond a conversation, and what becomes of it when a compaction lets it go."""

from pathlib import Path

import pytest

from clew.context.durable import lasting
from clew.context.revision import NO_ROOM, Change
from clew.offering import MOST, offers
from clew.store import Compaction
from clew.store.notes import Where
from clew.store.sqlite import SqliteStore
from tests.unit.store_rows import NOW, opened, said, turn


@pytest.mark.parametrize(
    "text",
    [
        "I am allergic to nuts",
        "My wife is called Mia.",
        "I work at the harbor clinic",
        "Ich wohne in Lyon",
        "Je préfère le thé",
        "Soy alérgico a las nueces",
        "Sono allergico alle noci",
        "Tenho alergia a amendoim",
        "Ik woon in Utrecht",
        "Mam alergię na orzechy",
        "Я живу в Москве",
        "我对花生过敏",
        "私はベジタリアンです",
    ],
)
def test_what_somebody_says_of_themselves_lasts(text: str) -> None:  # P39
    assert lasting(text)


@pytest.mark.parametrize(
    "text",
    [
        "I think I prefer tea",
        "do I prefer tea?",
        "If I move, I live in Oslo",
        "We live in Oslo until May",
        "I prefer the blue one for tonight",
        "I love it, thanks",
        "It costs 80 euros",
        "My password is [redacted: password]",
        "I am allergic to nuts " * 20,
        "",
    ],
)
def test_guesses_questions_plans_secrets_and_things_of_a_day_do_not(text: str) -> None:  # P18, P19, P39
    assert not lasting(text)


def left(text: str, source: str, why: str = NO_ROOM) -> Change:
    return Change(1, "fact", text, (source,), why=why)


@pytest.mark.asyncio
async def test_only_what_a_person_said_and_found_no_room_is_offered(tmp_path: Path) -> None:  # P39
    async with opened(tmp_path) as store:
        claimed = await turn(store, "1", "I am allergic to nuts", "I am allergic to dust")
        asked, answered = (row.id for row in await said(store, claimed.session))
        offered = await offers(
            store,
            [
                left("I am allergic to nuts", asked),
                left("I am allergic to dust", answered),
                left("I live in Lyon", asked, why="a correction takes it back"),
                left("I live in Oslo", "gone"),
            ],
        )
        assert [(each.person, each.text, each.source, each.at) for each in offered] == [("ada", "I am allergic to nuts", asked, NOW)]
        assert len(await offers(store, [left(f"I prefer tea {n}", asked) for n in range(MOST + 5)])) == MOST


def compacted(session: str, parent: str | None = None, name: str = "one") -> Compaction:
    return Compaction(name, session, parent, 1, 2, "[]", "a summary", "command", "", '{"total": 2, "first_at": 0.0}', 1, 2, NOW)


async def known_to(store: SqliteStore, where: Where) -> list[tuple[str, str, str]]:
    return [(each.scope, each.name, fact.text) for each in (await store.notes.listing(where, None, NOW)).entities for fact in each.facts]


@pytest.mark.asyncio
async def test_what_is_offered_is_noted_with_the_compaction_or_not_at_all(tmp_path: Path) -> None:  # P33, P39
    async with opened(tmp_path) as store:
        claimed = await turn(store, "1", "I am allergic to nuts", "noted", sender="ada")
        offered = await offers(store, [left("I am allergic to nuts", (await said(store, claimed.session))[0].id)])
        assert not await store.compact("another", compacted(claimed.session), (), offered=offered)
        assert await known_to(store, Where(person="ada")) == []
        assert await store.compact(None, compacted(claimed.session), (), offered=offered)
        assert await known_to(store, Where(person="ada")) == [("user", "ada", "I am allergic to nuts")]
        [change] = {each.by for each in await store.notes.changes(Where(person="ada"), "user", 10)}
        assert change == "clew"
        assert await store.compact("one", compacted(claimed.session, "one", "two"), (), offered=offered)
        assert len(await known_to(store, Where(person="ada"))) == 1


@pytest.mark.asyncio
async def test_in_a_group_it_is_noted_for_the_group_and_in_a_chat_for_its_person_alone(tmp_path: Path) -> None:  # P33, P39
    async with opened(tmp_path) as store:
        group = await turn(store, "1", "I am allergic to nuts", "noted", "team", sender="ada", direct=False)
        offered = await offers(store, [left("I am allergic to nuts", (await said(store, group.session))[0].id)])
        own = await turn(store, "2", "hello", "hi", "bob")
        assert await store.compact(None, compacted(own.session), (), offered=offered)
        assert await known_to(store, Where(address="desk:bob")) == []
        assert await store.compact(None, compacted(group.session, name="two"), (), offered=offered)
        assert await known_to(store, Where(address="desk:team")) == [("project", "ada", "I am allergic to nuts")]
        assert await known_to(store, Where(person="ada")) == []
