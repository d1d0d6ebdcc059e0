"""The console's notes: what is known, what became of it, what a model is given of it, and what people change by hand."""

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
import pytest_asyncio

from clew.context.notes import HEADING, ScopeKind
from clew.store.notes import By, DropEntity, Edit, PutEntity, PutFact, PutPreference, PutRelation, Where
from clew.web.console.notes import SIZE
from tests.integration.console_harness import HOSTILE, seen, sent
from tests.integration.web_harness import Clew, running, settings

PEOPLE = {"ada": {"role": "owner", "timezone": "Europe/Berlin"}, "bo": {"role": "member"}}
PATH = "/console/notes"
TOKEN = "a-long-enough-token"
ADA, BY = Where(person="ada"), By("ada")


@pytest_asyncio.fixture
async def clew(tmp_path: Path) -> AsyncIterator[Clew]:
    async with running(settings(tmp_path / "c", people=PEOPLE, projects={"garden": ["mqtt:ada/garden"]})) as found:
        yield found


async def noted(clew: Clew, *edits: Edit, where: Where = ADA, kind: ScopeKind = "user", by: By = BY) -> None:
    done = await clew.service.store.notes.change(where, kind, edits, by, clew.service.time.wall())
    assert not [each for each in done if each.state == "refused"]


async def known(clew: Clew, where: Where = ADA, kind: ScopeKind = "user") -> dict[str, list[tuple[str, bool]]]:
    """Each entity's facts, and whether they hold."""
    notes = await clew.service.store.notes.listing(where, kind, clew.service.time.wall())
    return {each.name: [(fact.text, fact.until is None) for fact in each.facts] for each in notes.entities}


def items(page: str, words: str) -> str:
    """The name of the item whose form stands behind the first place at which these words do."""
    found = re.search(r'name="item" value="(\w+)"', page[page.index(words) :])
    assert found
    return found[1]


def facts(page: str) -> list[str]:
    return [unescape(each) for each in re.findall(r'class="fact"[^>]*>([^<]*)<', page)]


@pytest.mark.asyncio
async def test_notes_are_shown_by_scope_as_the_command_line_tells_them(clew: Clew) -> None:  # P39, P40
    await noted(clew, PutPreference("style", "short answers"), PutEntity("Ana", "person"), PutFact("Ana", "likes tea"))
    await noted(clew, PutRelation("Ana", "Bo", "sister_of"))
    await noted(clew, PutFact("Ana", "lives in Rome"))
    await noted(clew, PutFact("Ana", "lives in Paris"))
    await noted(clew, PutFact("shed", "is red"), where=Where(project="garden"), kind="project")
    await noted(clew, PutFact("all", "is well"), kind="cross")
    page = await seen(clew, PATH)
    assert "Notes of <bdi>ada</bdi>" in page
    day = facts(page)[0].rpartition("(")[2]
    assert {f"likes tea ({day}", f"Ana sister of Bo ({day}"} <= set(facts(page))
    assert any(each.startswith("lives in Rome") and each.endswith("no longer so)") for each in facts(page))
    assert 'value="short answers"' in page
    for scope, of, words in (("project", "garden", "is red"), ("cross", "ada", "is well")):
        link = f"{PATH}?" + urlencode({"scope": scope, "of": of})
        assert f'href="{link}"'.replace("&", "&amp;") in page
        assert len(facts(await seen(clew, link))) == 1
        assert words in facts(await seen(clew, link))[0]
    assert facts(await seen(clew, f"{PATH}?of=bo")) == []
    found = await seen(clew, f"{PATH}?find=Paris")
    assert "lives in Paris" in found
    assert "Nothing is noted like that." in await seen(clew, f"{PATH}?find=zebra")
    for query, status in (("scope=all", 400), ("scope=project", 400), ("of=nobody", 404), ("scope=project&of=nosuch", 404), ("x=1", 400)):
        await seen(clew, f"{PATH}?{query}", status)


@pytest.mark.asyncio
async def test_notes_are_set_added_changed_and_deleted_by_hand(clew: Clew) -> None:  # P40
    await noted(clew, PutFact("Ana", "likes tea"), PutRelation("Ana", "Bo", "sister_of"), PutFact("Bo", "has a boat"))
    there = f"{PATH}?scope=user&of=ada"
    assert await sent(clew, PATH, do="set", key="style", value="short answers") == (303, there)
    page = await seen(clew, PATH)
    assert await sent(clew, PATH, do="edit", item=items(page, "likes tea"), value="likes coffee") == (303, there)
    page = await seen(clew, PATH)
    [ana, bo] = re.findall(r'<article[^>]* aria-labelledby="entity-(\w+)"', page)
    assert await sent(clew, PATH, do="add", item=ana, value="plays the cello") == (303, there)
    assert await sent(clew, PATH, do="drop", item=items(await seen(clew, PATH), "Ana sister of Bo")) == (303, there)
    assert await known(clew) == {
        "Ana": [("likes tea", False), ("likes coffee", True), ("plays the cello", True)],
        "Bo": [("has a boat", True)],
    }
    assert await sent(clew, PATH, do="drop", item=bo) == (303, there)
    assert await sent(clew, PATH, do="drop", item=items(await seen(clew, PATH), "likes coffee (")) == (303, there)
    assert await sent(clew, PATH, do="drop", item=items(await seen(clew, PATH), 'id="preferences"')) == (303, there)
    assert await known(clew) == {"Ana": [("likes tea", False), ("plays the cello", True)]}
    notes = await clew.service.store.notes.listing(Where(person="ada"), "user", clew.service.time.wall())
    assert notes.preferences == ()


@pytest.mark.asyncio
async def test_what_was_changed_by_hand_counts_as_such_at_once(clew: Clew) -> None:  # P29, P40
    await noted(clew, PutPreference("style", "long answers"))
    before = await clew.service.store.notes.standing(Where(person="ada"), clew.service.time.wall())
    await sent(clew, PATH, do="set", key="style", value="short answers")
    after = await clew.service.store.notes.standing(Where(person="ada"), clew.service.time.wall())
    assert after.breaks["user:ada"] == before.breaks["user:ada"] + 1


@pytest.mark.asyncio
async def test_the_history_is_shown_and_changes_are_undone(clew: Clew) -> None:  # P40
    await noted(clew, PutFact("Ana", "likes tea"), PutFact("Ana", "has a boat"))
    await noted(clew, DropEntity("Ana"))
    history = f"{PATH}/history?scope=user&of=ada"
    page = await seen(clew, history)
    assert [int(each) for each in re.findall(r'name="item" value="(\d+)"', page)] == [2, 1]
    assert "by <bdi>ada</bdi>" in page
    assert await sent(clew, PATH, do="undo", item=2, of="ada") == (303, history)
    assert await known(clew) == {"Ana": [("likes tea", True), ("has a boat", True)]}
    page = await seen(clew, history)
    assert "undone by 3" in page
    assert "by <bdi>operator</bdi>" in page
    for item, status in ((2, 400), (99, 404), ("x", 400)):
        assert (await sent(clew, PATH, do="undo", item=item))[0] == status


@pytest.mark.asyncio
async def test_what_a_model_is_given_is_shown_byte_for_byte(clew: Clew) -> None:  # P40
    assert "Nothing: no notes stand in the prompt." in await seen(clew, f"{PATH}/given")
    await noted(clew, PutPreference("style", "short <b>answers</b> & 'quotes'"), PutFact("Ana", "likes tea"))
    page = await seen(clew, f"{PATH}/given?scope=user&of=ada")
    [shown] = re.findall(r"<pre[^>]*>\n(.*?)</pre>", page, re.DOTALL)
    _, answer = await clew.get("/api/v1/memory/context")
    assert unescape(shown) == answer["text"]
    assert HEADING in answer["text"]
    await seen(clew, f"{PATH}/given?session=nosuch", 404)


@pytest.mark.asyncio
async def test_an_item_that_was_changed_meanwhile_is_left_alone_and_a_refusal_is_told(clew: Clew) -> None:
    await noted(clew, PutFact("Ana", "likes tea"))
    item = items(await seen(clew, PATH), "likes tea")
    await noted(clew, PutFact("Ana", "likes green tea", replaces=("likes tea",)))
    status, page = await sent(clew, PATH, do="edit", item=item, value="likes coffee")
    assert (status, "no more as the page showed it" in page) == (404, True)
    assert await known(clew) == {"Ana": [("likes tea", False), ("likes green tea", True)]}
    status, page = await sent(clew, PATH, do="set", key="key", value="ghp_" + "aB3dE5fG7h" * 4)
    assert (status, "was not noted" in page) == (400, True)
    for fields in ({"do": "clear"}, {"do": "drop"}, {"do": "set", "key": "", "value": ""}, {"do": "set", "scope": "all", "key": "a"}):
        assert (await sent(clew, PATH, **fields))[0] in (400, 404)  # type: ignore[arg-type]


@pytest.mark.asyncio
async def test_what_others_noted_stays_words_and_long_notes_come_in_pages(clew: Clew) -> None:
    await noted(clew, PutFact(HOSTILE, HOSTILE), PutPreference("style", HOSTILE))
    for path in (PATH, f"{PATH}/history", f"{PATH}/given", f"{PATH}?{urlencode({'find': HOSTILE})}"):
        page = await seen(clew, path)
        assert "<img src=x" not in page
        assert "&lt;img src=x" in page
    await noted(clew, *(PutFact(f"name {number}", "is there") for number in range(SIZE)))
    page = await seen(clew, PATH)
    assert page.count("<article") == SIZE
    assert (await seen(clew, f"{PATH}?page=2")).count("<article") == 1


@pytest.mark.asyncio
async def test_nobody_else_sees_or_changes_anything(tmp_path: Path) -> None:
    async with running(settings(tmp_path / "g", people=PEOPLE, http={"port": 0, "token": TOKEN})) as guarded:
        await noted(guarded, PutFact("Ana", "likes tea"))
        for path in (PATH, f"{PATH}/history", f"{PATH}/given"):
            assert "Ana" not in await seen(guarded, path, 401)
        assert (await sent(guarded, PATH, do="set", key="a", value="b"))[0] == 401
        for headers in ({}, {"Origin": "https://evil.example"}):
            allowed = {**headers, "Authorization": f"Bearer {TOKEN}"}
            assert (await sent(guarded, PATH, allowed, do="set", key="a", value="b"))[0] == 403
        assert (await guarded.service.store.notes.listing(Where(person="ada"), "user", 1.0)).preferences == ()
