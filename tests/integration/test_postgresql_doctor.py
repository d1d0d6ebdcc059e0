"""`clew doctor` on a store in PostgreSQL: what is said of a server that is there, is not, or does not let clew work."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.cli.doctor import folders, machine
from clew.cli.doctor.findings import Finding
from clew.cli.doctor.postgresql import postgresql
from clew.config import Config
from tests.databases import POSTGRESQL, databases
from tests.servers import free_port

SECRET = "rather-long-secret"
pytestmark = [pytest.mark.asyncio, POSTGRESQL]


async def found(where: str) -> Sequence[Finding]:
    return await postgresql(Config(store=where))


async def test_a_server_that_clew_can_work_with(tmp_path: Path) -> None:
    where = databases.store(tmp_path)
    [finding] = await found(where)
    assert finding.level == "ok"
    assert finding.text.startswith(f"{where} is PostgreSQL 1")
    assert " ms away" in finding.text


async def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    [finding] = await found(f"postgresql://clew:{SECRET}@127.0.0.1:{free_port()}/clew")
    assert finding.level == "problem"
    assert "cannot be used just now" in finding.text
    assert finding.command.startswith("psql postgresql://clew@127.0.0.1:")
    assert SECRET not in finding.text + finding.command


async def test_a_database_that_is_not_there() -> None:
    [finding] = await found(databases.server.url("elsewhere"))
    assert finding.level == "problem"
    assert 'database "elsewhere" does not exist' in finding.text


async def test_who_may_make_no_tables_is_told_so() -> None:
    where, server = databases.untouched(), databases.server
    name = where.rpartition("/")[2]
    server.sql(f"CREATE ROLE reader_{name} LOGIN")
    [finding] = await found(where.replace("clew@", f"reader_{name}@"))
    assert finding.level == "problem"
    assert "may not make tables" in finding.text


@pytest.mark.parametrize("option", ["nonsense=1", "sslmode=verifyfull", "ssl=on", "statement_timeout=soon"])
async def test_an_option_that_there_is_not_is_told(tmp_path: Path, option: str) -> None:
    [finding] = await found(f"{databases.store(tmp_path)}?{option}")
    assert finding.level == "problem"
    assert option.partition("=")[0] in finding.text


async def test_a_database_of_another_encoding_is_refused() -> None:
    databases.server.sql("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    [finding] = await found(databases.server.url("latin"))
    assert finding.level == "problem"
    assert "LATIN1" in finding.text


async def test_checks_of_a_file_are_not_asked_of_a_server(tmp_path: Path) -> None:
    config = Config(store=databases.store(tmp_path), data_dir=tmp_path)
    assert await machine.sqlite(config) == []
    [pages] = await folders.integrity(config)
    [copy] = await folders.backup(config)
    assert (pages.level, copy.level) == ("ok", "ok")
    assert "pg_dump" in copy.text
    assert await postgresql(Config()) == []
