"""What opens a store is tested on both databases, and what a test leaves in a database of PostgreSQL the next one does not find."""

import ast
from pathlib import Path

import pytest

from clew.store.connection import Unfit
from tests.database_pool import DatabasePool, aside
from tests.databases import BOTH, POSTGRESQL, databases
from tests.unit.store_rows import NOW, accept, inbound, opened

TESTS = Path(__file__).parents[1]
FOLDERS = ("property", "unit")
OPENING = {"opened", "side_by_side", "beside", "engine", "open_store", "SqliteStore", "PostgresStore", "SqliteDatabase", "PostgresDatabase"}
MARKS = {"BOTH", "POSTGRESQL", "SQLITE"}
ALONE = {
    "unit/test_bench.py": "the stores of the benchmarks are files",
    "unit/test_store_server_kill.py": "a server of its own, which is killed",
}
"""Modules without a mark that open a store, and why."""


def names(path: Path) -> set[str]:
    """What a module takes from others."""
    tree = ast.parse(path.read_text("utf-8"))
    return {each.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for each in node.names}


def test_what_opens_a_store_says_on_which_database() -> None:
    modules = {str(path.relative_to(TESTS)): names(path) for folder in FOLDERS for path in (TESTS / folder).glob("test_*.py")}
    assert {module for module, taken in modules.items() if taken & OPENING and not taken & MARKS} == ALONE.keys()


@BOTH
@pytest.mark.asyncio
async def test_each_folder_has_a_store_of_its_own_and_a_new_one_is_empty(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        async with opened(tmp_path / name) as store:
            assert await store.sessions() == []
            [receipt] = await accept(store, inbound("1"))
            assert receipt.status == "stored"
        assert "hello" in databases.dump(tmp_path / name)


@POSTGRESQL
def test_a_database_is_used_again_without_rows_and_not_where_its_schema_was_altered() -> None:
    pool = DatabasePool(databases.server)

    def used(statement: str) -> str:
        url = pool.take()
        assert aside(url, lambda db: db.execute("SELECT count(*) FROM meta").fetchone()) == (0,)
        assert aside(url, lambda db: db.insert("INSERT INTO timeline (address) VALUES (?)", ("desk:ada",), "seq")) == 1
        aside(url, lambda db: db.script(statement))
        pool.give_back(url)
        return url

    first = used("INSERT INTO meta (key, value) VALUES ('salt', '1')")
    assert used("CREATE INDEX another ON timeline (address)") == first
    assert used("SELECT 1") != first


@BOTH
@pytest.mark.asyncio
async def test_a_store_is_damaged_past_its_triggers_and_not_altered_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, inbound("1"))
        put = f"INSERT INTO pins (session, message, by, at) VALUES ('s', 'nobody', 'ada', {NOW})"
        with pytest.raises(Unfit):
            databases.altered(tmp_path, "UPDATE inbox SET state = 'elsewhere'")
        databases.damaged(tmp_path, put)
        assert databases.rows(tmp_path, "SELECT message FROM pins") == [("nobody",)]
