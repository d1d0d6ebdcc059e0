"""What is stored moves as the table in docs/operation.md says, and no other way."""

import contextlib
import itertools
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.store_rows import NOW, accept, claim, inbound, opened

PAGE = Path(__file__).parents[2] / "docs" / "operation.md"
ROW = re.compile(r"^\| [^|]+\(`(?P<table>\w+)`\) \| (?P<states>[a-z, ]+) \| (?P<moves>.+) \|$", re.MULTILINE)
COLUMNS = {"job_runs": "outcome"}
ROWS = {
    "inbox": "INSERT INTO inbox (external_id, client_id, kind, state, transport, address, sender_name, text, context, received)"
    " VALUES ('x', '', 'message', ?, 'desk', 'desk:ada', '', '', '{}', 1.0)",
    "turns": "INSERT INTO turns (id, session, chat, kind, state, owner, epoch, lease_until, started)"
    " SELECT 'x', id, chat, 'message', ?, 'me', 1, 1.0, 1.0 FROM sessions",
    "tool_calls": "INSERT INTO tool_calls (turn, call_id, name, arguments, state) VALUES ('x', 'c', 't', '{}', ?)",
    "approvals": "INSERT INTO approvals (id, turn, call_id, chat, person, question, state, asked) SELECT 'x', 'x', 'c', id, 'ada',"
    " '', ?, 1.0 FROM chats",
    "outbox": "INSERT INTO outbox (id, state, transport, address, session, turn, text, parts, in_reply_to, answers, context, next_at,"
    " created) VALUES ('x', ?, 'desk', 'desk:ada', '', '', '', '[]', '', '[]', '{}', 1.0, 1.0)",
    "job_runs": "INSERT INTO job_runs (job, instant, outcome, at) VALUES ('x', 1.0, ?, 1.0)",
}


def documented() -> dict[str, tuple[list[str], set[tuple[str, str]]]]:
    """(the states, the moves) of each table that the page lists."""
    found = {}
    for row in ROW.finditer(PAGE.read_text("utf-8")):
        moves = {(one, other) for one, other in re.findall(r"`(\w+) → (\w+)`", row["moves"])}
        found[row["table"]] = (row["states"].split(", "), moves)
    return found


def possible(database: sqlite3.Connection, table: str, states: list[str]) -> Iterator[tuple[str, str]]:
    """The moves that the file allows."""
    column = COLUMNS.get(table, "state")
    for one, other in itertools.permutations(states, 2):
        database.execute("SAVEPOINT try")
        database.execute(ROWS[table], (one,))
        with contextlib.suppress(sqlite3.IntegrityError):
            database.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (other, one))
            yield one, other
        database.execute("ROLLBACK TO try")


@pytest.mark.asyncio
async def test_the_file_allows_the_moves_that_are_documented_and_no_others(tmp_path: Path) -> None:  # P42, P43
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        await store.release(await claim(store))
    database = sqlite3.connect(tmp_path / "clew.db", isolation_level=None)
    database.execute("DELETE FROM turns")
    database.execute("DELETE FROM inbox")
    assert documented().keys() == ROWS.keys()
    for table, (states, moves) in documented().items():
        assert set(possible(database, table, states)) == moves, table
    database.close()


@pytest.mark.asyncio
async def test_a_state_that_is_none_is_refused(tmp_path: Path) -> None:  # P42, P43
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        await claim(store)
    with contextlib.closing(sqlite3.connect(tmp_path / "clew.db")) as database:
        for table in ROWS:
            with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed"):
                database.execute(ROWS[table], ("elsewhere",))


@pytest.mark.asyncio
async def test_a_state_that_stays_may_be_written_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        claimed = await claim(store)
        with sqlite3.connect(tmp_path / "clew.db") as database:
            database.execute("UPDATE turns SET state = 'running', lease_until = 0")
        assert (await claim(store, NOW, owner="another")).turn == claimed.turn
