"""Lanes: the common words of full segments, as they are made, asked, proved and dropped."""

from pathlib import Path

import pytest

from clew.clock import Time
from clew.context.regions import SEGMENT_BITS
from clew.metrics import Metrics
from clew.store import lanes
from clew.store.connection import Connection
from clew.store.sql import SqlStore
from clew.store.transcript import day_words
from clew.upkeep import Upkeep
from tests.databases import BOTH, databases
from tests.unit.store_rows import NOW, find, opened

pytestmark = BOTH

FIRST = (1 << SEGMENT_BITS) - 60
"""The place from which on a chat's messages are put: its first segment is full after sixty of them."""


def export(chat: str, session: str, texts: list[str]) -> dict[str, object]:
    messages = [
        {
            "id": f"{session}-{seq}",
            "seq": seq,
            "role": "user",
            "blocks": [{"kind": "text", "text": text}],
            "sender": chat,
            "sender_name": chat,
            "turn": "",
            "metadata": {},
            "at": NOW + seq,
            "address": f"desk:{chat}",
        }
        for seq, text in enumerate(texts, 1)
    ]
    about = {"id": session, "address": f"desk:{chat}", "direct": True, "title": "", "created": NOW}
    return {"clew": 1, "session": about, "messages": messages, "compactions": [], "pins": [], "retractions": [], "model_calls": []}


def said(chat: str) -> list[str]:
    """A hundred messages: a word in each, one in every third, a phrase in every fifth, one in two of them, and the chat's own."""
    extra = {3: "tide", 5: "north sea", 40: "needle"}
    return [" ".join(["harbour", f"own{chat}", *(word for every, word in extra.items() if n % every == 0)]) for n in range(1, 101)]


async def filled(store: SqlStore, folder: Path, chat: str) -> None:
    """A chat whose hundred messages stand on both sides of a segment's end, behind one that stands far from its first place."""
    await store.import_session(export(chat, f"{chat}0", ["anchor"]), NOW)

    def move(db: Connection) -> None:
        (number,) = db.execute("SELECT number FROM messages WHERE id = ?", (f"{chat}0-1",)).fetchone()
        (place,) = db.execute("SELECT place FROM places WHERE message = ?", (number,)).fetchone()
        db.execute("UPDATE places SET place = ? WHERE message = ?", (place + FIRST - 2, number))
        row = ("anchor", day_words(NOW + 1), chat)
        db.words("messages").remove(place, row)
        db.words("messages").put(place + FIRST - 2, row)

    databases.beside(folder, move)
    await store.import_session(export(chat, f"{chat}1", said(chat)), NOW)


async def answers(store: SqlStore, text: str, chat: str = "ada") -> list[tuple[str, float, tuple[str, ...]]]:
    result = await find(store, await store.scope_for(address=f"desk:{chat}"), text)
    return [(each.candidate.id, each.score, each.why) for each in result.scored]


ASKED = ("tide", "tide harbour", "needle tide", '"north sea"', "north harbour needle", "ownada", "ownbob")


@pytest.mark.asyncio
async def test_what_lanes_know_is_what_the_index_knows(tmp_path: Path) -> None:  # P20, P31, P33
    async with opened(tmp_path) as store:
        for chat in ("ada", "bob"):
            await filled(store, tmp_path, chat)
        before = {(text, chat): await answers(store, text, chat) for text in ASKED for chat in ("ada", "bob")}
        assert [await store.make_lanes() for _ in range(3)] == [True, True, False]
        assert stored(tmp_path) >= {"harbour", "tid", "north", "sea", "ownada"}
        assert "needle" not in stored(tmp_path)  # in too few messages
        for (text, chat), expected in before.items():
            assert await answers(store, text, chat) == expected
        assert before["needle tide", "ada"]
        assert not [each for each in before["ownbob", "ada"] if each[2]]


def stored(folder: Path) -> set[str]:
    return {word for (word,) in databases.rows(folder, "SELECT term FROM lanes")}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "fault",
    [
        "UPDATE lanes SET lane = (SELECT lane FROM lanes WHERE term = 'harbour') WHERE term = 'tid'",
        "UPDATE lanes SET lane = x'00' WHERE term = 'tid'",
        "DELETE FROM lanes WHERE term = 'tid'",
        "UPDATE lanes SET term = 'tide' WHERE term = 'tid'",
        "INSERT INTO lanes (segment, term, lane) VALUES (5, 'tid', x'00')",
        "INSERT INTO lanes (segment, term, lane) VALUES (5, '', x'')",
    ],
)
async def test_a_lane_that_is_wrong_is_told(tmp_path: Path, fault: str) -> None:  # P20
    async with opened(tmp_path) as store:
        await filled(store, tmp_path, "ada")
        while await store.make_lanes():
            pass
        assert await store.check() == []
        databases.altered(tmp_path, fault if databases.kind == "sqlite" else fault.replace("x'", "'\\x"))
        (problem,) = await store.check()
        assert problem.startswith("the lanes of common words differ")


@pytest.mark.asyncio
async def test_what_is_deleted_is_in_no_lane(tmp_path: Path) -> None:  # P20
    async with opened(tmp_path) as store:
        await filled(store, tmp_path, "ada")
        await filled(store, tmp_path, "bob")
        while await store.make_lanes():
            pass
        await store.import_session(export("ada", "ada2", ["harbour at last"] * 9), NOW)
        await store.delete_session("ada0")  # the first of those of the segment
        assert "ownada" not in stored(tmp_path)
        assert "ownbob" in stored(tmp_path)
        assert len(await answers(store, "ownada")) > 50
        assert await store.make_lanes()
        assert "ownada" in stored(tmp_path)
        await store.delete_session("ada1")
        assert "harbour at last" in {message.text for message in await store.transcript("ada2")}
        assert {identifier[:4] for identifier, _, why in await answers(store, "harbour tide") if why} == {"ada2"}
        assert await store.check() == []


@pytest.mark.asyncio
async def test_upkeep_makes_lanes(tmp_path: Path) -> None:  # P31
    async with opened(tmp_path) as store:
        upkeep = Upkeep(store, None, Time(), Metrics())
        await upkeep.look()
        assert stored(tmp_path) == set()
        for chat in ("ada", "bob"):
            await filled(store, tmp_path, chat)
        await upkeep.look()  # too few messages came since to look again
        assert stored(tmp_path) == set()
        upkeep = Upkeep(store, None, Time(), Metrics())
        await upkeep.look()
        assert stored(tmp_path) >= {"harbour", "ownada"}
        assert "ownbob" not in stored(tmp_path)  # one segment at a time
        await upkeep.look()
        assert "ownbob" in stored(tmp_path)


@pytest.mark.asyncio
async def test_lanes_of_a_segment_that_changed_meanwhile_are_not_kept(tmp_path: Path) -> None:  # P20
    async with opened(tmp_path) as store:
        await filled(store, tmp_path, "ada")

        def make(db: Connection) -> lanes.Making:
            making = lanes.due(db)
            assert making is not None
            (first, last), *_ = list(making.slices)[-1:]
            rows = db.execute(
                "SELECT place, number, id FROM places JOIN messages ON number = message WHERE place <= ? ORDER BY place", (last,)
            )
            making.add([(*row, {"harbour"}) for row in rows])
            assert first < making.words[0][0] <= last
            return making

        making = databases.beside(tmp_path, make)
        await store.delete_session("ada0")
        databases.beside(tmp_path, lambda db: lanes.put(db, making))
        assert stored(tmp_path) == set()


@pytest.mark.asyncio
async def test_an_index_built_anew_beside_the_old_one_begins_the_lanes_anew(tmp_path: Path) -> None:  # P20
    async with opened(tmp_path) as store:
        await filled(store, tmp_path, "ada")
        assert await store.make_lanes()
        await store.rebuild_index()
        assert stored(tmp_path)
        while await store.rebuild_some() is not None:
            pass
        assert stored(tmp_path) == set()  # places were given anew
        assert await answers(store, "tide harbour")
        assert await store.check() == []


@pytest.mark.asyncio
async def test_rebuilding_the_index_begins_the_lanes_anew(tmp_path: Path) -> None:  # P2, P20
    async with opened(tmp_path) as store:
        await filled(store, tmp_path, "ada")
        assert await store.make_lanes()
    databases.altered(tmp_path, "UPDATE meta SET value = '0' WHERE key = 'index_version'")
    async with opened(tmp_path) as store:
        assert stored(tmp_path) == set()
        assert not await store.make_lanes()  # places are given anew from 1, so that no segment is full
        assert await answers(store, "tide harbour")
        assert await store.check() == []
