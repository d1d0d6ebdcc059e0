"""A database in PostgreSQL that clew does not begin to use: whoever starts it is told why, and nothing is made there."""

from pathlib import Path

import pytest

from clew.errors import StoreError
from clew.store.indexing import Indexer
from clew.store.opening import open_store
from clew.store.postgresql.database import PostgresDatabase
from tests.databases import POSTGRESQL, databases
from tests.unit.store_rows import NOW

pytestmark = [POSTGRESQL, pytest.mark.asyncio]
TABLES = "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"


def name(where: str) -> str:
    return where.rpartition("/")[2]


async def refusal(where: str, folder: Path, *, read_only: bool = False) -> StoreError:
    with pytest.raises(StoreError) as caught:
        await open_store(where, folder, NOW, read_only=read_only)
    return caught.value


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE customers (id INT)",
        "CREATE TABLE sessions (id INT)",
        "CREATE TABLE schema_version (version TEXT, at TEXT); INSERT INTO schema_version VALUES ('1.2.3', '')",
        "CREATE TABLE schema_version (version BIGINT)",
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
async def test_the_database_of_another_program_is_left_alone(tmp_path: Path, made: str, read_only: bool) -> None:
    where = databases.untouched()
    databases.server.sql(made, name(where))
    error = await refusal(where, tmp_path, read_only=read_only)
    assert "is another program's" in error.message
    assert made.split()[2] in error.message
    assert "a database of its own" in error.hint
    assert error.lasting
    assert databases.server.sql(TABLES, name(where)).strip() == "1"


async def test_tables_of_extensions_and_of_other_schemas_are_in_nobodys_way() -> None:
    where = databases.untouched()
    databases.server.sql("CREATE EXTENSION pg_stat_statements; CREATE SCHEMA theirs; CREATE TABLE theirs.sessions (id INT)", name(where))
    await (await PostgresDatabase.open(where, Indexer(()))).close()
    await (await PostgresDatabase.open(where, Indexer(()), read_only=True)).close()


async def test_an_encoding_that_does_not_hold_every_text_is_refused(tmp_path: Path) -> None:
    where = databases.server.url("latin_1")
    databases.server.sql("CREATE DATABASE latin_1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    error = await refusal(where, tmp_path)
    assert "LATIN1" in error.message
    assert "--encoding=UTF8" in error.hint


@pytest.mark.parametrize("option", ["ssl=on", "statement_timeout=soon"])
async def test_an_option_that_the_server_does_not_take_is_told(tmp_path: Path, option: str) -> None:
    error = await refusal(f"{databases.untouched()}?{option}", tmp_path)
    assert option.partition("=")[0] in error.message
    assert "options behind the ?" in error.hint


async def test_a_database_of_a_newer_clew_is_left_alone(tmp_path: Path) -> None:  # P2
    where = databases.untouched()
    await (await open_store(where, tmp_path, NOW)).close()
    databases.server.sql("UPDATE schema_version SET version = 9999", name(where))
    for read_only in (False, True):
        error = await refusal(where, tmp_path, read_only=read_only)
        assert "was written by a newer clew" in error.message
        assert error.lasting


async def test_who_may_only_read_the_tables_is_told_whose_they_should_be(tmp_path: Path) -> None:
    where = databases.untouched()
    await (await open_store(where, tmp_path, NOW)).close()
    reader = f"only_reads_{name(where)}"
    databases.server.sql(f"CREATE ROLE {reader} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader}", name(where))
    error = await refusal(where.replace("clew@", f"{reader}@"), tmp_path)
    assert "permission denied" in error.message
    assert "ALTER DATABASE" in error.hint
    await (await open_store(where.replace("clew@", f"{reader}@"), tmp_path, NOW, read_only=True)).close()
