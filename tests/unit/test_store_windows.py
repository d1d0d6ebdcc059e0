"""What a claim shows is what a new reading shows, whatever was read before and happened since."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from clew.messages import Message, Text
from clew.store import Claim, Effect, NewMessage, Outcome, PromptState, Seen, Step, ViewRows
from clew.store.sql import SqlStore
from clew.store.transcript import REMEMBERED_CHARS
from clew.store.windows import LIMIT, Windows
from clew.threads import last_exchange
from tests.databases import BOTH
from tests.unit.store_rows import NOW, accept, claim, inbound, opened, reply, turn
from tests.unit.test_store_marks import revision

pytestmark = BOTH


async def shown(store: SqlStore, number: int) -> Claim:
    """A turn, of which the rows that it shows are compared with those that are read anew."""
    await accept(store, inbound(f"m{number}", f"question {number}"))
    claimed = await claim(store)
    assert claimed.rows == await store.view(claimed.session)
    step = Step(messages=(NewMessage("assistant", (Text(f"answer {number}"),), NOW),))
    await store.finish(claimed, Outcome("done", step), [reply(f"answer {number}")], NOW)
    return claimed


async def changed(store: SqlStore, session: str, name: str, rand: random.Random) -> None:
    """Something that changes what is in view."""
    rows = await store.view(session)
    match rand.choice(("take back", "compact", "undo")):
        case "take back" if taken := last_exchange(rows.messages):
            await store.take_effect(session, Effect("take_back", tuple(row.id for row in taken)), NOW)
        case "compact" if len(rows.messages) > 2:
            parent, last = rows.compaction.id if rows.compaction else None, rows.messages[-3].seq
            assert await store.compact(parent, revision(session, name, parent, first=rows.to_seq + 1, last=last), ())
        case "undo" if rows.compaction:
            await store.take_effect(session, Effect("undo", (rows.compaction.id,)), NOW)


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(5))
async def test_a_turn_is_shown_what_stands_whatever_was_read_before(tmp_path: Path, seed: int) -> None:  # P6
    rand = random.Random(seed)
    async with opened(tmp_path) as store:
        for number in range(30):
            session = (await shown(store, number)).session
            for step in range(rand.randrange(3)):
                await changed(store, session, f"c{number}.{step}", rand)


@pytest.mark.asyncio
async def test_what_was_read_for_a_turn_is_not_read_for_the_next(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await turn(store, "1", "long " * REMEMBERED_CHARS, "yes")
        first, second = [(await turn(store, each, "and then?", "yes")).rows for each in ("2", "3")]
        assert first is not None
        assert second is not None
        assert second.messages[0] is first.messages[0]


@pytest.mark.asyncio
async def test_a_session_that_is_imported_again_is_shown_as_it_was_imported(tmp_path: Path) -> None:  # P2, P4
    async with opened(tmp_path) as store:
        session = (await turn(store, "1", "the door is green", "yes")).session
        await turn(store, "2", "what colour?", "green")
        exported = await store.export_session(session)
        exported["messages"][0]["blocks"][0]["text"] = "the door is blue"
        await store.delete_session(session)
        assert await store.import_session(exported, NOW) == session
        await store.join_chat(inbound("3"), "ada", session, NOW)
        rows = (await turn(store, "3", "what colour?", "blue")).rows
        assert rows is not None
        assert [message.text for message in rows.messages] == ["the door is blue", "yes", "what colour?", "green", "what colour?"]


def test_windows_are_bounded_and_those_of_runs_are_not_kept() -> None:
    windows = Windows()
    for number in range(2 * LIMIT):
        windows.keep(rows_of(f"s{number}"))
        windows.keep(rows_of(f"r{number}", base="s0"))
    assert list(windows.seen()) == [f"s{number}" for number in range(LIMIT, 2 * LIMIT)]


def rows_of(session: str, base: str | None = None) -> ViewRows:
    message = Message("m", 1, "user", (Text("hi"),), NOW)
    return ViewRows(session, None, (message,), frozenset(), (), PromptState(), base=base)


def test_what_a_turn_wrote_joins_the_window_unless_something_came_in_between() -> None:
    rows = [Message(f"m{seq}", seq, "user", (Text("yes"),), NOW) for seq in range(1, 6)]
    windows = Windows()
    windows.add("s", rows)
    assert windows.seen() == {}
    windows.keep(replace(rows_of("s"), messages=tuple(rows[:2]), taken_back=1))
    windows.add("s", rows[2:3])
    windows.add("s", ())
    assert windows.seen() == {"s": Seen(0, tuple(rows[:3]), 1)}
    windows.add("s", rows[4:])
    assert windows.seen() == {"s": Seen(0, tuple(rows[:3]), 1)}
