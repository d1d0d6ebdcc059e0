"""A person erased: nothing of theirs is left in the tables, in the file's bytes, or on the disk; others keep theirs."""

import asyncio
import io
import json
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from click.testing import CliRunner

from clew.cli import clew as cli
from clew.erasing import Erasing
from clew.errors import NotFound, UsageError
from clew.store.sqlite.backup import backup
from clew.transport import Attachment
from tests.databases import BOTH, SQLITE, databases
from tests.emulators.scripts import echo
from tests.integration.engine import START, Clock, World, calling, engine
from tests.integration.test_engine_forget import bytes_of
from tests.unit.test_cli import called

pytestmark = BOTH

WORD, OTHERS = "marmalade", "cinnamon"
"""What ada says, and what others do."""
TABLES = {
    "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%fts%'",
    "postgresql": "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
}
PLACES = (b"marmalad", b"desk:ada")


class Terminal(io.StringIO):
    """Answers that somebody types."""

    def isatty(self) -> bool:
        return True


@asynccontextmanager
async def talking(folder: Path) -> AsyncIterator[World]:
    async with engine(folder, echo, clock=Clock(START)) as world:
        world.compression(trigger_messages=1000, keep_recent=2)
        async with world.running():
            yield world


async def lived(world: World) -> None:
    """Ada talks in her own chats and in a group, notes, plans and sends a file; bob talks too."""
    group = {"direct": False}
    await world.desk.ask(f"bob likes {OTHERS}", "bob")
    await world.desk.ask(f"{OTHERS} for all", "team", sender="bob", **group)
    note = {"entities": [{"name": "jar", "entityType": "thing", "observations": [f"the {WORD} is in it"]}]}
    world.model.script = calling(("memory_create_entities", note), then=f"your {WORD}")
    await world.desk.ask(f"my jar of orange jam, the {WORD}, is in the cellar")
    world.model.script = echo
    world.desk.files["r1"] = f"a list of {WORD}s\n".encode()
    await world.desk.ask("see the list", attachments=(Attachment("list.txt", "text/plain", 0, "r1"),))
    await world.desk.ask(f"/memory set jam {WORD}")
    for number in range(3):
        await world.desk.ask(f"talk {number} of {WORD}")
    await world.desk.ask("/compact")
    await world.desk.ask(f"where is the {WORD} jar?", "ada/work")
    await world.desk.ask(f"we must not open the {WORD}", "team", sender="ada", **group)
    await world.desk.ask(f"and the {OTHERS} stays shut", "team", sender="bob", **group)
    for number in range(2):
        await world.desk.ask(f"talk {number} of {OTHERS}", "team", sender="bob", **group)
    await world.desk.ask("/compact", "team", sender="bob", **group)
    await world.desk.ask("what of the jar?", "team", sender="bob", **group)
    await world.idle()


@pytest.mark.asyncio
async def test_nothing_of_a_person_is_left_and_others_keep_theirs(tmp_path: Path) -> None:  # P1, P5, P6, P33
    async with talking(tmp_path) as world:
        await lived(world)
        team = await world.session("team")
        begun = await world.service.erasing.begin("ada")
        done = await world.service.erasing.until_done(begun.id, 30)
        assert done.done is not None
        assert {"messages", "threads", "lines in groups", "notes", "files", "arrivals and deliveries"} <= {
            kind for kind, count in done.counts.items() if count
        }
        assert await world.store.check() == []
        for row in await world.store.sessions():
            assert await world.store.verify_session(row.id) == []
        left = [row.text for row in await world.store.transcript(team)]
        assert any("stays shut" in text for text in left)
        assert not any(WORD in text for text in left)
        assert OTHERS in await world.desk.ask(f"/recall {OTHERS}", "bob")
        rows = await world.store.view(team)
        assert rows.compaction is not None
        with pytest.raises(NotFound):
            await world.service.erasing.begin("nobody")
    left_bytes = bytes_of(tmp_path)
    assert OTHERS[:8].encode() in left_bytes
    assert b"marmalad" not in left_bytes
    for (table,) in databases.rows(tmp_path, TABLES[databases.kind]):
        if table in ("people", "identities"):  # the config names her
            continue
        for row in databases.rows(tmp_path, f"SELECT * FROM {table}"):
            assert not any(value == "ada" or (isinstance(value, str) and "desk:ada" in value) for value in row), (table, row)
    assert databases.rows(tmp_path, "SELECT count(*) FROM messages WHERE sender = 'bob'")[0][0] >= 5


@pytest.mark.asyncio
async def test_an_erasure_goes_on_after_a_restart_at_every_slice(tmp_path: Path) -> None:  # P2, P48
    async with talking(tmp_path) as world:
        await lived(world)
    async with world.file() as store:
        begun = await store.erase("ada", START)
    slices = 0
    while True:
        async with world.file() as store:  # opened anew for every slice
            assert await store.check() == []
            for row in await store.sessions():
                assert await store.verify_session(row.id) == []
            if await store.erase_some(begun.id, ZoneInfo("UTC"), START) == "cleared":
                break
            slices += 1
    assert slices >= 6
    async with engine(tmp_path, echo, clock=Clock(START)) as world, world.running():
        done = await world.service.erasing.until_done(begun.id, 30)
        assert done.done is not None
    assert b"marmalad" not in bytes_of(tmp_path)


@SQLITE
@pytest.mark.asyncio
async def test_a_backup_that_is_put_back_is_erased_again(tmp_path: Path) -> None:  # P5
    home, kept = tmp_path / "home", tmp_path / "kept.db"
    home.mkdir()
    async with talking(home) as world:
        await lived(world)
        await world.desk.ask(f"forget the {OTHERS} one", "eve")
        eve = await world.session("eve")
        backup(home / "clew.db", kept)
        await world.desk.ask("/forget", "eve")
        begun = await world.service.erasing.begin("ada")
        await world.service.erasing.until_done(begun.id, 30)
        await world.service.upkeep.look()
    told = (home / "erased.jsonl").read_text()
    assert "ada" not in told
    assert WORD not in told
    for old in home.glob("clew.db*"):
        old.unlink()
    kept.rename(home / "clew.db")
    assert b"marmalad" in bytes_of(home)
    async with engine(home, echo, clock=Clock(START)) as world, world.running():
        done = await world.service.erasing.until_done(begun.id, 30)
        assert done.counts["messages"] > 0
        while await world.store.erasures():
            await world.service.erasing.until_done((await world.store.erasures())[0].id, 30)
        assert await world.store.transcript(eve) == ()
        assert await world.store.check() == []
    assert b"marmalad" not in bytes_of(home)


@pytest.mark.asyncio
@pytest.mark.parametrize("where", ["ada", "team"])
async def test_nothing_is_erased_under_a_turn_that_runs(tmp_path: Path, where: str) -> None:  # P44
    async with talking(tmp_path) as world:
        await world.desk.ask(f"the {WORD}")
        await world.desk.ask(f"the {WORD}", "team", sender="ada", direct=False)
        session = await world.session(where)
    turn = (
        "INSERT INTO turns (id, session, chat, kind, state, owner, epoch, lease_until, started)"
        " SELECT 't', id, chat, 'message', ?, '', 1, 9e9, 0"
    )

    def run(state: str) -> None:
        databases.altered(tmp_path, "DELETE FROM turns WHERE id = 't'")
        databases.beside(tmp_path, lambda db: db.execute(f"{turn} FROM sessions WHERE id = ?", (state, session)))

    async with world.file() as store:
        if where == "ada":
            run("running")
            with pytest.raises(UsageError, match="is being answered just now"):
                await store.erase("ada", START)
            run("done")
        begun = await store.erase("ada", START)
        run("running")
        states = [await store.erase_some(begun.id, ZoneInfo("UTC"), START) for _ in range(6)]
        assert states[-1] == "busy"
        assert next(row.text for row in await store.transcript(session)).endswith(WORD)
        run("done")
        while await store.erase_some(begun.id, ZoneInfo("UTC"), START) != "cleared":
            pass
        assert await store.check() == []


@pytest.mark.asyncio
async def test_what_is_being_sent_is_waited_for(tmp_path: Path) -> None:  # P5, P43
    async with talking(tmp_path) as world:
        stuck = world.desk.stuck["desk:ada"] = asyncio.Event()
        await world.desk.accept(world.desk.message(f"the {WORD}"))
        await world.desk.until(lambda: bool(world.desk.tries))
        begun = await world.service.erasing.begin("ada")
        while (await world.store.erasure(begun.id)).keys.get("stage") not in ("rest", None):
            await world.store.changed(world.store.version, 0.2)
        assert (await world.service.erasing.until_done(begun.id, 0.2)).done is None
        del world.desk.stuck["desk:ada"]
        stuck.set()
        assert (await world.service.erasing.until_done(begun.id, 30)).done is not None
    assert PLACES[0] not in bytes_of(tmp_path)


@pytest.mark.asyncio
async def test_what_is_said_while_the_rest_goes_goes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # P5, P6
    async with engine(tmp_path, echo, clock=Clock(START)) as world:
        async with world.running():
            await world.desk.ask("hello")
            await world.desk.ask("hello all", "team", sender="ada", direct=False)
        async with world.file() as store:
            begun = await store.erase("ada", START + 100)
            while (await store.erasure(begun.id)).keys["stage"] != "rest":
                await store.erase_some(begun.id, UTC, START + 100)
        with monkeypatch.context() as patched:
            patched.setattr(Erasing, "run", lambda self: asyncio.Event().wait())  # the next slice comes after what she says
            async with world.running():
                await world.desk.ask(f"the {WORD}")
                await world.desk.ask(f"{WORD} for all", "team", sender="ada", direct=False)
        async with world.running():
            done = await world.service.erasing.until_done(begun.id, 30)
            assert (done.done is not None, done.counts["threads"], done.counts["lines in groups"]) == (True, 2, 2)
            assert await world.store.check() == []
    assert PLACES[0] not in bytes_of(tmp_path)


def test_the_command_line_writes_out_and_erases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # P4, P5
    async def talked() -> None:
        async with talking(tmp_path / "data") as world:
            await lived(world)

    (tmp_path / "data").mkdir()
    asyncio.run(talked())
    config = tmp_path / "clew.yaml"
    store = databases.store(tmp_path / "data")
    settings = {"data_dir": str(tmp_path / "data"), "store": store, "http": {"port": 0}, "providers": {"none": {"kind": "offline"}}}
    config.write_text(json.dumps(settings))
    run = CliRunner()
    target = tmp_path / "ada.zip"
    out = run.invoke(cli, ["privacy", "export", "ada", "--output", str(target), "--config", str(config)])
    assert out.exit_code == 0, out.output
    with zipfile.ZipFile(target) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        texts = archive.read("messages.jsonl").decode()
        lines = [json.loads(line) for line in texts.splitlines()]
        assert manifest["counts"]["messages"] == len(lines)
        assert any(line["address"] == "desk:team" and line["sender"] == "ada" for line in lines)
        assert not any(line["address"] == "desk:team" and line["sender"] != "ada" for line in lines)
        assert OTHERS not in texts
        (file,) = [name for name in archive.namelist() if name.startswith("files/")]
        assert WORD in archive.read(file).decode()
        assert {"notes.jsonl", "preferences.jsonl", "usage.jsonl", "identities.jsonl"} <= set(archive.namelist())
    assert target.stat().st_mode & 0o777 == 0o600
    again = run.invoke(cli, ["privacy", "export", "ada", "--output", str(target), "--config", str(config)])
    assert again.exit_code != 0
    preview = run.invoke(cli, ["privacy", "erase", "ada", "--preview", "--config", str(config)])
    assert "Nothing was erased" in preview.output, preview.output
    unasked = run.invoke(cli, ["privacy", "erase", "ada", "--config", str(config)])
    assert unasked.exit_code != 0
    unknown = run.invoke(cli, ["privacy", "erase", "Ada", "--yes", "--config", str(config)])
    assert isinstance(unknown.exception, NotFound)
    assert "An id is meant" in (unknown.exception.hint or "")
    monkeypatch.setattr("sys.stdin", Terminal("Ada\n"))
    code, _, asked = called(capsys, "privacy", "erase", "ada", "--config", str(config))
    assert code != 0
    assert "Write ada to go on: " in asked
    assert "nothing was erased, since that is not ada." in asked
    assert WORD[:8].encode() in bytes_of(tmp_path / "data")
    done = run.invoke(cli, ["privacy", "erase", "ada", "--yes", "--config", str(config)])
    assert done.exit_code == 0, done.output
    assert "Erased: " in done.output
    assert WORD[:8].encode() not in bytes_of(tmp_path / "data")
    assert OTHERS[:8].encode() in bytes_of(tmp_path / "data")
