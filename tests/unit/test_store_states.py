"""What is stored moves as the table in docs/operation.md says, and no other way."""

import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from clew.store.connection import Connection, Unfit
from tests.databases import BOTH, databases
from tests.unit.store_rows import NOW, accept, claim, inbound, opened

pytestmark = BOTH
PAGE = Path(__file__).parents[2] / "docs" / "operation.md"
ROW = re.compile(r"^\| [^|]+\(`(?P<table>\w+)`\) \| (?P<states>[a-z, ]+) \| (?P<moves>.+) \|$", re.MULTILINE)
COLUMNS = {"job_runs": "outcome"}
ROWS = {
    "inbox": "INSERT INTO inbox (external_id, client_id, kind, state, transport, address, sender_name, text, context, received)"
    " VALUES ('x', '', 'message', ?, 'desk', 'desk:ada', '', '', '{}', 1.0)",
    "turns": "INSERT INTO turns (id, session, chat, kind, state, owner, epoch, lease_until, started)"
    " SELECT 'x', id, chat, 'message', ?, 'me', 1, 1.0, 1.0 FROM sessions",
    "tool_calls": "INSERT INTO tool_calls (turn, call_id, name, arguments, state) VALUES ('past', 'c', 't', '{}', ?)",
    "approvals": "INSERT INTO approvals (id, turn, call_id, chat, person, question, state, asked) SELECT 'x', 'past', 'c', id, 'ada',"
    " '', ?, 1.0 FROM chats",
    "outbox": "INSERT INTO outbox (id, state, transport, address, session, turn, text, parts, in_reply_to, answers, context, next_at,"
    " created) VALUES ('x', ?, 'desk', 'desk:ada', '', '', '', '[]', '', '[]', '{}', 1.0, 1.0)",
    "job_runs": "INSERT INTO job_runs (job, instant, outcome, at) VALUES ('x', 1.0, ?, 1.0)",
}


class Undone(Exception):
    """What was tried is taken back."""


def documented() -> dict[str, tuple[list[str], set[tuple[str, str]]]]:
    """(the states, the moves) of each table that the page lists."""
    found = {}
    for row in ROW.finditer(PAGE.read_text("utf-8")):
        moves = {(one, other) for one, other in re.findall(r"`(\w+) → (\w+)`", row["moves"])}
        found[row["table"]] = (row["states"].split(", "), moves)
    return found


def possible(database: Connection, table: str, states: list[str]) -> Iterator[tuple[str, str]]:
    """The moves that the database allows."""
    column = COLUMNS.get(table, "state")
    for one, other in itertools.permutations(states, 2):
        with suppress(Undone), database.attempt():
            database.execute(ROWS[table], (one,))
            with suppress(Unfit):
                with database.attempt():
                    database.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (other, one))
                yield one, other
            raise Undone


def allowed(database: Connection) -> dict[str, set[tuple[str, str]]]:
    database.execute("DELETE FROM turns")
    database.execute("DELETE FROM inbox")
    database.execute(ROWS["turns"].replace("'x'", "'past'"), ("done",))
    return {table: set(possible(database, table, states)) for table, (states, _) in documented().items()}


@pytest.mark.asyncio
async def test_the_database_allows_the_moves_that_are_documented_and_no_others(tmp_path: Path) -> None:  # P42, P43
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        await store.release(await claim(store))
    assert documented().keys() == ROWS.keys()
    assert databases.beside(tmp_path, allowed) == {table: moves for table, (_, moves) in documented().items()}


@pytest.mark.asyncio
async def test_a_state_that_is_none_is_refused(tmp_path: Path) -> None:  # P42, P43
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        await claim(store)
    for statement in ROWS.values():
        with pytest.raises(Unfit, match=r"(?i)check constraint"):
            databases.altered(tmp_path, statement.replace("?", "'elsewhere'"))


@pytest.mark.asyncio
async def test_a_state_that_stays_may_be_written_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        claimed = await claim(store)
        databases.altered(tmp_path, "UPDATE turns SET state = 'running', lease_until = 0")
        assert (await claim(store, NOW, owner="another")).turn == claimed.turn
