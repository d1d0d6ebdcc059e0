import json
from pathlib import Path
from typing import Any

import pytest

from clew.errors import NotFound, UsageError
from clew.messages import Text, Thinking, ToolCall, ToolResult, Usage
from clew.store import Compaction, ModelCall, NewMessage, Outcome, Step
from clew.store.sql import SqlStore
from tests.databases import BOTH, databases
from tests.unit.store_rows import NOW, accept, claim, found, inbound, opened, reply, said, turn

pytestmark = BOTH
REPORT = '{"total": 2, "first_at": 1.0, "last_at": 2.0}'


async def whole(store: SqlStore) -> str:
    """A session with one of everything; its id."""
    await accept(store, inbound("1", "look it up", sender_name="Ada"))
    claimed = await claim(store)
    messages = (
        NewMessage(
            "assistant", (Thinking("local", '{"a":1}'), Text("wait"), ToolCall("c1", "look", '{"b": 1}')), NOW, metadata={"model": "x"}
        ),
        NewMessage("tool", (ToolResult("c1", "look", "seen", is_error=True),), NOW),
        NewMessage("assistant", (Text("Grüße 東京 🙂"),), NOW + 0.25),
    )
    call = ModelCall("call23456789", "reply", "ada", "local", "any", Usage(1, 2, 3, 4), NOW, NOW, NOW + 1)
    await store.finish(claimed, Outcome("done", Step(messages=messages, calls=(call,))), [reply()], NOW)
    new = Compaction(
        "comp23456789",
        claimed.session,
        None,
        1,
        2,
        "[]",
        "They met.",
        "count",
        "summary-1",
        '{"total": 2, "first_at": 1.0, "last_at": 2.0}',
        3,
        2,
        NOW,
    )
    assert await store.compact(None, new, ())
    return claimed.session


def pin(folder: Path, session: str, message: str) -> None:
    put = "INSERT INTO pins (session, message, by, at) VALUES (?, ?, 'ada', 1.5)"
    databases.beside(folder, lambda db: db.execute(put, (session, message)))


@pytest.mark.asyncio
async def test_an_export_imports_back_equal(tmp_path: Path) -> None:  # P4
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    async with opened(here) as store:
        session = await whole(store)
        pin(here, session, (await said(store, session))[0].id)
        exported = await store.export_session(session)
        rows, view = await said(store, session), await store.view(session)
    text = json.dumps(exported)
    async with opened(there) as store:
        assert await store.import_session(json.loads(text), NOW) == session
        assert json.dumps(await store.export_session(session)) == text
        assert await said(store, session) == rows
        assert await store.view(session) == view
        assert await found(store, "東京") == {rows[-1].id}
        assert await store.verify_session(session) == []
        with pytest.raises(UsageError, match="is here already"):
            await store.import_session(exported, NOW)
    async with opened(here) as store:
        await store.delete_session(session)
        await store.import_session(exported, NOW)
        assert await store.export_session(session) == exported
        assert await store.check() == []


@pytest.mark.asyncio
@pytest.mark.parametrize("spoil", [
    lambda data: data.pop("messages"),
    lambda data: data.update(clew=99),
    lambda data: data["messages"][1].update(role="king"),
    lambda data: data["messages"][1].update(blocks=[{"kind": "??"}]),
    lambda data: data["messages"][1].update(seq=1),
    lambda data: data["compactions"][0].update({"id); DROP TABLE messages; --": 1}),
    lambda data: data["compactions"][0].update(covered=1.5),
    lambda data: data["model_calls"][0].update(input=2**70),
    lambda data: data.update(session=5),
])  # fmt: skip
async def test_what_is_no_export_changes_nothing(tmp_path: Path, spoil: object) -> None:  # P4
    async with opened(tmp_path) as store:
        session = await whole(store)
        exported = await store.export_session(session)
        await store.delete_session(session)
        spoiled = json.loads(json.dumps(exported))
        spoil(spoiled)  # type: ignore[operator]
        with pytest.raises(UsageError):
            await store.import_session(spoiled, NOW)
        assert await store.sessions() == []
        assert await store.check() == []
        assert await store.import_session(exported, NOW) == session


@pytest.mark.asyncio
async def test_a_deleted_session_leaves_nothing_to_read(tmp_path: Path) -> None:  # P4
    async with opened(tmp_path) as store:
        session = await whole(store)
        await turn(store, "bob1", "kept words", "kept answer", "bob")
        assert await store.delete_session(session) == 4
        assert [row.address for row in await store.sessions()] == ["desk:bob"]
        assert len(await found(store, "kept")) == 2
        assert not await found(store, "look seen Grüße")
        assert await store.check() == []
        with pytest.raises(NotFound):
            await store.delete_session((await store.find_session(session)).id)
        assert (await turn(store, "2", "hello again", "yes")).session != session
    left = databases.dump(tmp_path)
    assert "look it up" not in left
    assert "Grüße" not in left
    assert "They met." not in left


@pytest.mark.asyncio
async def test_a_session_whose_turn_runs_is_not_deleted(tmp_path: Path) -> None:  # P4, P42
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        claimed = await claim(store)
        with pytest.raises(UsageError, match="A turn of session"):
            await store.delete_session(claimed.session)
        assert len(await said(store, claimed.session)) == 1


@pytest.mark.asyncio
async def test_an_unambiguous_beginning_of_an_id_is_enough(tmp_path: Path) -> None:  # P3
    async with opened(tmp_path) as store:
        exported = await store.export_session(await whole(store))
        for identifier in ("abcd22222222", "abce22222222", "abc_22222222"):
            copy = json.loads(json.dumps(exported))
            copy["session"]["id"] = identifier
            copy["compactions"], copy["model_calls"] = [], []
            for message in copy["messages"]:
                message["id"] = identifier[:4] + message["id"][4:]
            await store.import_session(copy, NOW)
        assert (await store.find_session("abcd")).id == "abcd22222222"
        assert (await store.find_session("abc_")).id == "abc_22222222"
        with pytest.raises(UsageError, match="abcd22222222, abce22222222"):
            await store.find_session("abc")
        for unknown in ("", "zzz", "%", "_bcd"):
            with pytest.raises(NotFound):
                await store.find_session(unknown)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("DELETE FROM messages WHERE seq = 3", "gaps"),
        ("UPDATE compactions SET to_seq = 9", "not in the transcript"),
        ("UPDATE compactions SET from_seq = 2", "1 comes next"),
        ("UPDATE compactions SET to_seq = 0", "covers 1-0"),
        ("UPDATE compactions SET parent = id", "does not revise the one before it"),
        ("UPDATE compactions SET shortened = '[\"gone\"]'", "shortened and not in the window: gone"),
        ("UPDATE compactions SET held = '[\"gone\"]'", "held in the summary and not behind it: gone"),
        ("UPDATE compactions SET kind = 'shorten'", "covers 1-"),
        (lambda db: db.words("messages").clear(), "not found by search: "),
    ],
)
async def test_verify_finds_what_is_wrong(tmp_path: Path, damage: Any, problem: str) -> None:  # P6
    async with opened(tmp_path) as store:
        session = await whole(store)
        assert await store.verify_session(session) == []
        databases.damaged(tmp_path, damage)
        assert problem in " ".join(await store.verify_session(session))


@pytest.mark.asyncio
async def test_the_timeline_of_an_address_has_both_sides_in_order(tmp_path: Path) -> None:  # P1, P43
    async with opened(tmp_path) as store:
        for n in range(3):
            await turn(store, str(n), f"question {n}", f"answer {n}")
        everything = await store.history("desk:ada", 0, 100)
        assert [said.text for said in everything] == ["question 0", "answer 0", "question 1", "answer 1", "question 2", "answer 2"]
        assert [said.role for said in everything[:2]] == ["user", "assistant"]
        assert everything[0].id == "0"
        seqs = [said.seq for said in everything]
        assert seqs == sorted(set(seqs))
        assert await store.history("desk:ada", seqs[3], 100) == everything[4:]
        assert await store.history("desk:ada", 0, 2) == everything[-2:]
        assert await store.history("desk:ada", 0, 2, newest=False) == everything[:2]
        assert await store.history("desk:bob", 0, 100) == []
