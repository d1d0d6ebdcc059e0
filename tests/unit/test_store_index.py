from datetime import UTC, datetime
from pathlib import Path

import pytest

from clew import recall
from clew.context.query import query
from clew.context.regions import BLOCKS
from clew.context.text import clean, index_text, tokens
from clew.store import Scope
from clew.store.sql import SqlStore
from tests.databases import BOTH, databases
from tests.unit.store_rows import NOW, accept, claim, find, found, inbound, opened, said, turn

pytestmark = BOTH

TODAY = datetime.fromtimestamp(NOW, UTC).date()
ODD = [
    "don't", '"open', "a(b", "C++", "*", "^x", "note: done", "--flag", "AND", "this OR that", "NEAR(x y", "tea AND milk", "🙂", " ",
    "'; --", "scope:chat1", "text:*", "\x00", "(((", "-", "col\\umn", "𝔘𝔫𝔦",
    "ก" * 500, "a" * 20_000, "https://a.b/c?d=e&f=(g)", '""', "NOT NOT",
]  # fmt: skip


async def put(store: SqlStore, *texts: str, chat: str = "ada") -> dict[str, str]:
    """Store texts as messages of their own; their ids."""
    ids = {}
    for n, text in enumerate(texts):
        claimed = await turn(store, f"{chat}{n}{abs(hash(text))}", text, "noted", chat)
        ids[text] = (await said(store, claimed.session))[-2].id
    return ids


async def best(store: SqlStore, text: str, first: int = 3) -> list[str]:
    scored = await recall.search(store, await store.scope_for(operator=True), text, limit=first, today=TODAY)
    return [each.candidate.text for each in scored]


@pytest.mark.asyncio
async def test_a_message_can_be_found_as_soon_as_it_is_stored(tmp_path: Path) -> None:  # P20, BO-040
    async with opened(tmp_path) as store:
        ids = await put(store, "the locker code is 5512", "something else")
        assert await found(store, "locker") == {ids["the locker code is 5512"]}


@pytest.mark.asyncio
async def test_the_index_is_whole_after_inserts_deletes_and_imports(tmp_path: Path) -> None:  # P4, P20, BO-040
    async with opened(tmp_path) as store:
        for chat in ("ada", "bob", "eve"):
            await put(store, *(f"needle {chat} {n}" for n in range(10)), chat=chat)
        sessions = {row.address: row.id for row in await store.sessions()}
        exported = await store.export_session(sessions["desk:bob"])
        assert await store.delete_session(sessions["desk:ada"]) == 20
        assert await store.delete_session(sessions["desk:bob"]) == 20
        assert await store.check() == []
        assert len(await found(store, "needle")) == 10
        await store.import_session(exported, NOW)
        assert await store.check() == []
        assert len(await found(store, "needle bob")) == 20
        assert not await found(store, "ada")
    counted = databases.beside(tmp_path, lambda db: db.words("messages").counts())
    assert [counted[term] for term in tokens(index_text("needle noted"))] == [20, 20]


@pytest.mark.asyncio
@pytest.mark.parametrize("text", ODD)
async def test_any_text_is_a_valid_query(tmp_path: Path, text: str) -> None:  # P35, BO-034
    async with opened(tmp_path) as store:
        await put(store, "I don't drink coffee", "C++ and tea")
        await found(store, text)
        assert len(await found(store, "don't drink")) >= 1
        await put(store, f"{clean(text)}!")
        assert await store.check() == []


@pytest.mark.asyncio
async def test_a_person_of_thousands_of_chats_finds_what_was_said_in_each(tmp_path: Path) -> None:  # P31, P33
    async with opened(tmp_path) as store:
        (first,) = (await put(store, "the needle")).values()
        rows = [(f"desk:ada/{n}", "desk", 1, "ada", NOW) for n in range(3000)]
        into = "INSERT INTO chats (address, transport, direct, person, created) VALUES (?, ?, ?, ?, ?)"
        databases.beside(tmp_path, lambda db: db.executemany(into, rows))
        (last,) = (await put(store, "a needle", chat="ada/2999")).values()
        assert await found(store, "needle", await store.scope_for(person="ada")) == {first, last}


@pytest.mark.asyncio
async def test_hyphenated_words_are_phrases(tmp_path: Path) -> None:  # P31, BO-035
    async with opened(tmp_path) as store:
        await put(store, "send the chat", "restart the chat-send service")
        assert (await best(store, "what about chat-send?"))[0] == "restart the chat-send service"
        assert (await best(store, '"chat-send service"'))[0] == "restart the chat-send service"


@pytest.mark.asyncio
async def test_a_natural_question_finds_its_answer_among_300_rows(tmp_path: Path) -> None:  # P31, BO-036
    async with opened(tmp_path) as store:
        fillers = [f"note {n}: when could you remind me to see the {word}?" for n in range(75) for word in ("bank", "plumber")]
        await put(store, *fillers[:75], "Dentist visit is with Dr Okoro on the 14th", *fillers[75:])
        assert "Dentist visit is with Dr Okoro on the 14th" in await best(store, "hey, could you remind me when I am seeing the dentist?")


@pytest.mark.asyncio
async def test_words_of_one_message_need_not_stand_side_by_side(tmp_path: Path) -> None:  # P31, BO-037
    async with opened(tmp_path) as store:
        ids = await put(store, "the orange plugin loads the old version")
        assert set(ids.values()) <= await found(store, "orange version")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("明天下午三点在图书馆开会", "图书馆"),
        ("회의실은 3층에 있습니다", "회의실"),
        ("サンプル会議の議事録", "議事録"),
        ("图书馆开会改到周五", "图书馆开会的具体时间是什么"),
    ],
)
async def test_scripts_without_spaces_are_found_by_part(tmp_path: Path, stored: str, asked: str) -> None:  # P35, BO-038, BO-039
    async with opened(tmp_path) as store:
        await put(store, "unrelated words", stored, "还有别的事情")
        assert stored in await best(store, asked)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("我们去东京", "东"),
        ("我们去东京", "东京"),
        ("すしが好きです", "すし"),
        ("ร้านกาแฟอยู่ใกล้สถานี", "กาแฟ"),
        ("मेरा नाम हिन्दी में लिखो", "हिन्दी"),
        ("كتب المُدَرِّسُ على السبورة", "المدرس"),
        ("שָׁלוֹם עולם", "שלום"),
        ("das Café in der Straße", "cafe strasse"),
        ("the ﬁle on ＫＥＹ drive", "file key"),
        ("we had 🍕 by the river", "🍕"),
        ("restart kube_proxy now", "kubeproxy"),
        ("restart kube_proxy now", "proxy"),
        ("call getUserName first", "user name"),
        ("call getUserName first", "getusername"),
        ("edit /etc/nginx/site.conf", "nginx"),
        ("edit /etc/nginx/site.conf", "/etc/nginx/site.conf"),
        ("it failed with ERR_CONN-0x80070005", "0x80070005"),
        ("plan B it is", "b"),
        ("to be or not to be", "to be"),
    ],
)
async def test_every_script_sign_and_identifier_is_found(tmp_path: Path, stored: str, asked: str) -> None:  # P35, BO-038
    async with opened(tmp_path) as store:
        await put(store, "something else", stored, "still another thing")
        assert stored in await best(store, asked)


@pytest.mark.asyncio
async def test_what_was_written_on_a_day_is_found_by_it(tmp_path: Path) -> None:  # P31
    async with opened(tmp_path) as store:
        for day, text in enumerate(("older", "old", "new")):
            await turn(store, text, text, "noted", now=NOW - 40 * 86_400 * (2 - day))
        scored = await recall.search(store, await store.scope_for(operator=True), "6 December 2026", limit=1, today=TODAY)
        assert scored[0].candidate.text == "old"


@pytest.mark.asyncio
async def test_credentials_are_not_in_the_index(tmp_path: Path) -> None:  # P19
    key = "sk-ant-api03-" + "Zx9Qw7Er5Ty3Ui1Op8As6Df4Gh2Jk0Lz" * 2
    async with opened(tmp_path) as store:
        ids = await put(store, f"the key is {key} for now")
        assert await found(store, "key for now") == set(ids.values())
        assert not await found(store, key)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "fault",
    ["UPDATE meta SET value = '0' WHERE key = 'index_version'", "DELETE FROM meta WHERE key = 'salt'", "DELETE FROM meta"],
)
async def test_an_index_of_another_version_is_built_anew(tmp_path: Path, fault: str) -> None:  # P20, BO-042
    async with opened(tmp_path) as store:
        ids = await put(store, "needle in the hay")
    databases.beside(tmp_path, lambda db: db.words("messages").clear())
    databases.altered(tmp_path, fault)
    async with opened(tmp_path) as store:
        assert await found(store, "needle") == set(ids.values())
        assert await store.check() == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "fault",
    [
        "DELETE FROM places WHERE message = 1",
        "UPDATE places SET place = place + (CAST(1 AS BIGINT) << 40) WHERE message = 1",
        "UPDATE places SET place = place + 9 WHERE message = 1",
    ],
)
async def test_a_wrong_place_is_told(tmp_path: Path, fault: str) -> None:  # P20, BO-040
    async with opened(tmp_path) as store:
        ids = await put(store, "needle in the hay", "needle in the barn")
    databases.altered(tmp_path, fault)
    async with opened(tmp_path) as store:
        problems = await store.check()
        assert problems[0].startswith("the search index has no place, or a wrong one, for ")
        assert ids["needle in the hay"] in problems[0]


@pytest.mark.asyncio
async def test_what_somebody_took_back_is_not_found(tmp_path: Path) -> None:  # P33, BO-040
    async with opened(tmp_path) as store:
        ids = await put(store, "needle one", "needle two")
        databases.altered(tmp_path, f"INSERT INTO retractions (message, reason, at) VALUES ('{ids['needle one']}', 'deleted', 0)")
        assert await found(store, "needle") == {ids["needle two"]}
        operator = await store.scope_for(operator=True)
        assert await store.around(operator, ids["needle one"], 3, 3) == []
        assert ids["needle one"] not in {each.id for each in await store.around(operator, ids["needle two"], 3, 3)}


@pytest.mark.asyncio
async def test_a_word_without_a_count_is_found_where_the_index_joins_it(tmp_path: Path) -> None:  # P31
    async with opened(tmp_path) as store:
        ids = await put(store, "we operate the needle", "hay")
        joined = {ids["we operate the needle"]} if databases.kind == "sqlite" else set()  # PostgreSQL is given words as they are counted
        assert await found(store, "operator telescope") == joined
        assert await found(store, "telescope microscope periscope") == set()
        assert await found(store, "telescope microscope needle") == {ids["we operate the needle"]}


@pytest.mark.asyncio
async def test_what_is_in_view_is_not_found_in_its_own_session(tmp_path: Path) -> None:  # P36
    async with opened(tmp_path) as store:
        ids = await put(store, "needle one", "needle two", "needle three")
        (row,) = await store.sessions()
        for after, expected in ((0, set()), (2, {"needle one"}), (4, {"needle one", "needle two"})):
            scope = await store.scope_for(session=(row.id, row.address, after))
            assert await found(store, "needle", scope) == {ids[text] for text in expected}


@pytest.mark.asyncio
async def test_a_message_is_opened_by_its_position_in_the_session_that_asks_alone(tmp_path: Path) -> None:  # P20 P33
    async with opened(tmp_path) as store:
        ids = await put(store, "needle one", "needle two")
        (row,) = await store.sessions()
        own = await store.scope_for(session=(row.id, row.address, 0))
        (opened_one,) = await store.around(own, "#1", 0, 0)
        assert opened_one.id == ids["needle one"]
        operator = await store.scope_for(operator=True)
        for scope, asked in ((own, "#99"), (own, "#"), (own, "1"), (operator, "#1"), (Scope((), row.id), "#1")):
            assert await store.around(scope, asked, 0, 0) == []


@pytest.mark.asyncio
async def test_there_is_no_search_without_a_scope(tmp_path: Path) -> None:  # P33
    async with opened(tmp_path) as store:
        ids = await put(store, "needle")
        with pytest.raises(ValueError, match="scope"):
            await store.scope_for()
        nothing = Scope(())
        assert not await found(store, "needle", nothing)
        assert await store.around(nothing, ids["needle"], 1, 1) == []
        elsewhere = await store.scope_for(session=("", "desk:nobody", 0))
        assert not await found(store, "needle", elsewhere)


@pytest.mark.asyncio
async def test_a_query_of_filler_alone_asks_nothing(tmp_path: Path) -> None:  # P35
    async with opened(tmp_path) as store:
        await accept(store, inbound("1", "the and of"))
        await claim(store)
        result = await find(store, await store.scope_for(operator=True), "   ")
        assert (result.query, result.scored) == (None, ())
        assert query("") is None


@pytest.mark.asyncio
async def test_what_somebody_said_is_looked_at_where_their_name_is_asked_for(tmp_path: Path) -> None:  # P31
    async with opened(tmp_path) as store:
        for name, count in (("Ada", 1), ("Bob", 10 * BLOCKS), ("Cy", 3 * BLOCKS)):
            await store.import_session(spoken(name, count), NOW)
        operator = await store.scope_for(operator=True)
        result = await find(store, operator, "What did Ada say of harbours?")
        assert result.scored[0].candidate.id == "Ada-1"  # though many newer ones speak of them
        assert result.query is not None
        assert [name for name, _ in result.query.speakers] == ["ada"]
        common = await find(store, operator, "What did Bob say of harbours?")
        assert common.query is not None
        assert common.query.speakers == ()  # most was said by him


def spoken(name: str, count: int) -> dict[str, object]:
    """A session in which somebody says so many times what everybody says."""
    messages = [
        {
            "id": f"{name}-{seq}",
            "seq": seq,
            "role": "user",
            "blocks": [{"kind": "text", "text": "Harbours are cold."}],
            "sender": "ada",
            "sender_name": name,
            "turn": "",
            "metadata": {},
            "at": NOW,
            "address": "desk:ada",
        }
        for seq in range(1, count + 1)
    ]
    about = {"id": name, "address": "desk:ada", "direct": True, "title": "", "created": NOW}
    return {"clew": 1, "session": about, "messages": messages, "compactions": [], "pins": [], "retractions": [], "model_calls": []}
