"""What holds beyond a conversation, and what becomes of it when a compaction lets it go."""

from pathlib import Path

import pytest

from clew.context.durable import chosen, lasting, worth_asking
from clew.context.ledger import Entry
from clew.context.revision import NO_ROOM, Change
from clew.messages import Message, Role, Text
from clew.offering import ASKED, MOST, candidates, offers
from clew.store import Compaction
from clew.store.notes import Offer, Where
from clew.store.sql import SqlStore
from tests.databases import BOTH
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


@pytest.mark.parametrize(
    "text", ["I play the cello in an orchestra", "We keep bees on the roof", "Ich habe drei Jahre in Peru gelebt", "我以前是护士"]
)
def test_a_model_may_be_asked_about_what_somebody_tells_of_themselves(text: str) -> None:  # P39
    assert worth_asking(text)


@pytest.mark.parametrize(
    "text",
    [
        "Maybe I play the cello",
        "If I had a cello I would play it",
        "Do I play the cello?",
        "The cello is out of tune",
        "I play " * 60,
        "my PIN is [redacted: password]",
        "ich glaube, ich spiele Cello",
        "",
    ],
)
def test_about_guesses_questions_and_secrets_no_model_is_asked(text: str) -> None:  # P18, P19, P39
    assert not worth_asking(text)


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("1, 3", (1, 3)), ("3\n1\n1", (1, 3)), ("[2]", (2,)), ("#1 #2", (1, 2)), ("0, 4, 99", ()), ("none", ()), ("", ()),
        ("1. Ada plays the cello", ()), ("I choose 1 and 2", ()), ("1" * 500, ()),
    ],
)  # fmt: skip
def test_an_answer_that_says_more_than_numbers_chooses_nothing(answer: str, numbers: tuple[int, ...]) -> None:  # P39
    assert chosen(answer, 3) == numbers


def row(number: int, text: str, role: Role = "user", sender: str = "ada") -> Message:
    return Message(f"m{number}", number, role, (Text(text),), NOW + number, sender, sender.title(), "t")


def test_sentences_that_leave_are_offered_to_the_model_in_the_words_of_whoever_said_them() -> None:  # P39
    rows = [
        row(1, "Hello! I play the cello in an orchestra. Is it late?"), row(2, "I play the harp", "assistant", ""),
        row(3, "We keep bees on the roof", sender="bob"), row(4, "I live in Lyon"), row(5, "my password is hunter2-Xy7"),
        row(6, "I know swordfish"),
    ]  # fmt: skip
    ledger = (Entry("fact", "I live in Lyon", sources=("m4",)),)
    offered = (Offer("bob", "Bob", "We keep bees on the roof", "m3", NOW),)
    found = candidates(rows, [left("I have a boat", "m1"), left("I have a plan", "m1", why="done")], ledger, offered, {"swordfish"})
    assert [(each.name, each.text, each.source) for each in found] == [
        ("Ada", "I play the cello in an orchestra.", "m1"),
        ("Ada", "I have a boat", "m1"),
    ]
    many = [row(n, f"I have {n} bees in a box") for n in range(ASKED + 9)]
    assert len(candidates(many, (), (), (), ())) == ASKED


def left(text: str, source: str, why: str = NO_ROOM) -> Change:
    return Change(1, "fact", text, (source,), why=why)


@BOTH
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


async def known_to(store: SqlStore, where: Where) -> list[tuple[str, str, str]]:
    return [(each.scope, each.name, fact.text) for each in (await store.notes.listing(where, None, NOW)).entities for fact in each.facts]


@BOTH
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


@BOTH
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
