"""The search index as SQLite alone has it: its own tables, and stores of older schemas."""

import sqlite3
from pathlib import Path

import pytest

from clew.messages import Text, blocks_to_json
from clew.store.sqlite.database import migrations
from tests.databases import SQLITE, databases
from tests.unit.store_rows import found, opened
from tests.unit.test_store_rebuilding import OF_ONE, filled, finished

pytestmark = SQLITE


@pytest.mark.asyncio
async def test_a_store_of_the_schema_before_places_gets_them(tmp_path: Path) -> None:  # P2, P20
    database = sqlite3.connect(tmp_path / "clew.db", isolation_level=None)
    for number, script in migrations():
        if number < 5:
            database.executescript(f"{script}\nPRAGMA user_version = {number};")
    database.execute("INSERT INTO chats (address, transport, direct, created) VALUES ('desk:ada', 'desk', 1, 0)")
    database.execute("INSERT INTO sessions (id, chat, created) VALUES ('s', 1, 0)")
    for seq, text in enumerate(("needle in the hay", "needle in the barn"), 1):
        blocks = blocks_to_json((Text(text),))
        database.execute("INSERT INTO messages VALUES (?, ?, 's', ?, 1, 'user', ?, 'ada', '', 't', '{}', 0)", (seq, f"m{seq}", seq, blocks))
    database.execute("INSERT INTO meta VALUES ('index_version', '1-0123456789abcdef')")
    database.close()
    async with opened(tmp_path) as store:
        assert await found(store, "needle") == {"m1", "m2"}
        assert await store.check() == []


@pytest.mark.asyncio
async def test_a_malformed_index_is_built_anew(tmp_path: Path) -> None:  # P20, BO-042
    async with opened(tmp_path) as store:
        await filled(store, 1)
    databases.altered(tmp_path, "UPDATE messages_fts_data SET block = x'00ff00ff' WHERE id > 10")
    async with opened(tmp_path) as store:
        assert await store.check() != []
        await store.rebuild_index()
        await finished(store)
        assert await store.check() == []
        assert len(await found(store, "needle")) == OF_ONE


@pytest.mark.asyncio
async def test_the_tables_are_those_of_the_migrations(tmp_path: Path) -> None:  # P20
    def shapes() -> list[tuple[str, str]]:
        database = sqlite3.connect(tmp_path / "clew.db")
        names = "SELECT name, sql FROM sqlite_schema WHERE name LIKE '%messages_fts%' OR name LIKE '%places%' OR name LIKE '%document_f%'"
        rows = database.execute(f"{names} ORDER BY name").fetchall()
        database.close()
        plain = [(name, " ".join((sql or "").partition("--")[0].replace('"', "").split())) for name, sql in rows]
        return [(name, sql.replace("( ", "(").replace(" )", ")").partition("(")[2].replace(" ", "")) for name, sql in plain]

    async with opened(tmp_path) as store:
        before = shapes()
        await filled(store, 1)
        await store.rebuild_index()
        await finished(store)
    assert [(name, sql) for name, sql in shapes() if name != "places"] == [(name, sql) for name, sql in before if name != "places"]
    database = sqlite3.connect(tmp_path / "clew.db")
    columns = database.execute("SELECT name, type, \"notnull\", pk FROM pragma_table_info('places')").fetchall()
    (key,) = database.execute('SELECT "table", "from", "to" FROM pragma_foreign_key_list(\'places\')').fetchall()
    database.close()
    assert columns == [("place", "INTEGER", 0, 1), ("message", "INTEGER", 1, 0)]
    assert key == ("messages", "message", "number")
