"""Commands on a store in PostgreSQL: those that read open it, those that look after a file say what they do instead."""

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clew.cli import clew as cli
from clew.errors import StoreError
from tests.databases import POSTGRESQL, databases
from tests.servers import free_port
from tests.unit.store_rows import opened, turn

pytestmark = POSTGRESQL


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    file = tmp_path / "clew.yaml"
    file.write_text(json.dumps({"data_dir": str(folder), "store": databases.store(folder), "providers": {"none": {"kind": "offline"}}}))
    return file


def run(config: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, [*words, "--config", str(config)])


async def talked(config: Path) -> None:
    async with opened(config.parent / "data") as store:
        await turn(store, "m1", "where are the roses?", "behind the house")


def test_a_database_without_tables_has_nothing_yet(config: Path) -> None:
    config.write_text(json.dumps(json.loads(config.read_text()) | {"store": databases.untouched()}))
    found = run(config, "session", "list")
    assert "Nothing is stored yet" in str(found.exception)
    assert run(config, "cron", "list").exit_code == 0
    assert run(config, "memory", "--action", "context", "--person", "ada").exit_code == 0
    assert not (config.parent / "data" / "clew.db").exists()


def test_commands_read_the_database(config: Path) -> None:
    asyncio.run(talked(config))
    [session] = json.loads(run(config, "session", "list", "--json").output)
    assert "behind the house" in run(config, "session", "show", session["id"]).output
    assert "behind the house" in run(config, "session", "search", "roses house").output
    checked = run(config, "db", "check")
    assert checked.output == f"{databases.store(config.parent / 'data')}: ok\n"
    exported = run(config, "session", "export", session["id"])
    assert len(json.loads(exported.output)["messages"]) == 2


def test_what_is_said_of_a_server_that_is_gone_is_no_traceback(config: Path) -> None:
    where = databases.store(config.parent / "data")
    text = config.read_text().replace(where.rpartition("/")[2], "elsewhere")
    config.write_text(text)
    for words in (("session", "list"), ("db", "check"), ("cron", "list")):
        found = run(config, *words)
        assert "the store cannot be used just now" in str(found.exception)
        assert type(found.exception).__name__ == "StoreError"


def opening(config: Path, store: str) -> StoreError:
    """What `clew run` says of a database that it cannot use."""
    config.write_text(json.dumps(json.loads(config.read_text()) | {"store": store}))
    found = run(config, "run")
    assert isinstance(found.exception, StoreError)
    assert "by itself" not in found.exception.hint
    return found.exception


def test_a_start_says_what_of_the_address_is_wrong(config: Path) -> None:
    where, server = databases.store(config.parent / "data"), databases.server
    name = where.rpartition("/")[2]
    server.sql(f"CREATE ROLE poor_{name} LOGIN")
    assert "owner of the database" in opening(config, where.replace("clew@", f"poor_{name}@")).hint
    assert "Make the database" in opening(config, server.url("elsewhere")).hint
    assert "user and password" in opening(config, where.replace("clew@", "nobody@")).hint
    for option in ("nonsense=1", "sslmode=verifyfull"):
        assert "options behind the ?" in opening(config, f"{where}?{option}").hint
    assert "Is the server there" in opening(config, f"postgresql://clew@127.0.0.1:{free_port()}/clew").hint


def test_a_backup_is_pg_dumps_to_make(config: Path, tmp_path: Path) -> None:
    asyncio.run(talked(config))
    told = run(config, "db", "backup", str(tmp_path))
    assert told.exit_code == 0
    assert f"pg_dump --format=custom --file={tmp_path}/clew.dump {databases.store(tmp_path / 'data')}" in told.output
    assert json.loads(run(config, "db", "backup", str(tmp_path / "a.dump"), "--json").output)["path"] is None
    assert not (tmp_path / "a.dump").exists()
