"""`clew doctor`: what stands on this machine."""

import asyncio
import json
import os
import socket
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clew.cli.doctor import folders
from clew.cli.doctor.findings import Bounded, Finding
from clew.cli.doctor.findings import examined as looked_at
from clew.cli.options import settings
from clew.config import Config
from clew.data_dir import locked
from clew.store import backups
from clew.store.sqlite.quick import looked
from tests.unit.test_cli import called


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CLEW_CONFIG", "STATE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "clew.yaml"
    path.write_text(f"data_dir: {tmp_path / 'data'}\nhttp: {{port: 0}}\nproviders: {{none: {{kind: offline}}}}\n")
    return path


def examined(capsys: pytest.CaptureFixture[str], config: Path, *args: str) -> tuple[int, dict[str, dict[str, str]]]:
    code, out, _ = called(capsys, "doctor", "--json", "--config", str(config), *args)
    return code, {f"{each['check']} {each['of']}".strip(): each for each in json.loads(out)}


def test_doctor_finds_no_problem_on_a_fresh_machine_and_mends_what_it_can(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    code, found = examined(capsys, config)
    assert code == 0
    assert found["data folder"]["level"] == "warning"
    assert found["data folder"]["command"].startswith("mkdir ")
    assert {each["level"] for name, each in found.items() if name not in ("data folder", "provider", "disk")} == {"ok"}
    assert examined(capsys, config, "--fix")[1]["data folder"]["level"] == "ok"
    assert (config.parent / "data").stat().st_mode & 0o777 == 0o700


def test_doctor_says_what_is_wrong_and_what_mends_it(capsys: pytest.CaptureFixture[str], config: Path, free_port: int) -> None:
    (config.parent / "data").mkdir()
    (config.parent / "data").chmod(0o755)
    (config.parent / "data" / "clew.db").write_bytes(b"no database" * 100)
    with config.open("a") as file:
        file.write(f"transports: {{mqtt: {{port: {free_port}}}}}\n")
    code, found = examined(capsys, config)
    assert code == 1
    assert {name for name, each in found.items() if each["level"] == "problem"} == {
        "data folder",
        "store",
        "integrity",
        "transport mqtt",
    }
    assert found["data folder"]["command"].startswith("chmod 700 ")
    assert found["transport mqtt"]["text"] == f"nobody answers at 127.0.0.1:{free_port}"
    shown = called(capsys, "doctor", "--config", str(config))[1]
    assert "problem  store: " in shown
    config.write_text("htp: 1\n")
    code, found = examined(capsys, config)
    assert (code, list(found)) == (78, ["config"])
    assert found["config"]["text"].endswith("htp: unknown key (did you mean http?)")


def test_doctor_says_which_tools_a_window_cannot_afford(capsys: pytest.CaptureFixture[str], config: Path) -> None:  # P9
    assert examined(capsys, config)[1]["tools"]["level"] == "ok"
    local = "providers: {local: {kind: openai, base_url: 'http://127.0.0.1:9/v1', model: any, context_window: 8192}}"
    config.write_text(f'data_dir: {config.parent / "data"}\n{local}\nagent: {{provider: local, system_prompt: "{"rule " * 2000}"}}\n')
    found = examined(capsys, config)[1]
    assert found["tools"]["level"] == "warning"
    assert "left out: current_time, document_search, fetch_url, memory_add_observations, " in found["tools"]["text"]


def test_doctor_names_rules_for_tools_that_there_are_not(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    assert examined(capsys, config)[1]["approver"] == {
        "check": "approver",
        "of": "",
        "level": "ok",
        "text": "mode ask, 0 rules",
        "command": "",
    }
    rules = "mode: pattern, allow: ['files__*', '*', 'fetch_url(url=*)'], deny: [fetch_ulr, 'schedule_*', 'mail__send', 'f*__x']"
    config.write_text(f"data_dir: {config.parent / 'data'}\nmcp_servers: {{files: {{command: [x]}}}}\nagent: {{approver: {{{rules}}}}}\n")
    found = examined(capsys, config)[1]["approver"]
    assert (found["level"], found["text"]) == ("warning", "agent.approver names tools that there are not: fetch_ulr, mail__send")


def test_doctor_says_what_is_doubtful_in_the_config(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    config.write_text(f"data_dir: {config.parent / 'data'}\nhttp: {{token: abc}}\n")
    found = examined(capsys, config)[1]["config"]
    assert (found["level"], found["command"]) == ("warning", "clew config check")
    assert f"{config}:2:15 http.token: can be guessed" in found["text"]


def test_doctor_does_not_write(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    before = sorted(os.listdir(config.parent))
    examined(capsys, config)
    assert sorted(os.listdir(config.parent)) == before


@pytest.fixture
def open_config() -> Iterator[Path]:
    """A config in a folder that every user of this machine can pass. (Those of pytest are closed.)"""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        path = Path(name) / "clew.yaml"
        path.write_text(f"data_dir: {name}/data\nhttp: {{port: 0}}\nproviders: {{none: {{kind: offline}}}}\n")
        path.chmod(0o644)
        yield path


def test_doctor_names_secrets_that_others_can_read_and_closes_them(capsys: pytest.CaptureFixture[str], open_config: Path) -> None:
    secret = open_config.parent / "web.token"
    secret.write_text("0123456789abcdef-of-the-page\n")
    secret.chmod(0o644)
    open_config.write_text(open_config.read_text().replace("port: 0", "port: 0, token: '${file:web.token}'"))
    code, found = examined(capsys, open_config)
    assert (code, found["permissions"]["level"]) == (1, "problem")
    assert found["permissions"]["text"] == f"{secret} holds secrets, and every user can read it"
    assert found["permissions"]["command"] == f"chmod 600 {secret}"
    told = [
        each
        for each in json.loads(called(capsys, "doctor", "--json", "--fix", "--config", str(open_config))[1])
        if each["check"] == "permissions"
    ]
    assert [(each["level"], each["text"], each["command"]) for each in told] == [
        ("ok", f"mended: {secret} holds secrets, and every user can read it", ""),
        ("ok", "no secret and nothing that was said can be read by other users", ""),
    ]
    assert (secret.stat().st_mode & 0o777, open_config.stat().st_mode & 0o777) == (0o600, 0o644)  # the config itself holds none
    open_config.write_text(open_config.read_text().replace("${file:web.token}", "a-secret-in-the-config"))
    assert examined(capsys, open_config)[1]["permissions"]["text"].startswith(str(open_config))
    open_config.parent.chmod(0o700)
    assert examined(capsys, open_config)[1]["permissions"]["level"] == "ok"


def test_doctor_says_who_can_change_the_config(capsys: pytest.CaptureFixture[str], open_config: Path) -> None:
    open_config.chmod(0o666)
    found = examined(capsys, open_config)[1]["permissions"]
    assert (found["level"], found["command"]) == ("problem", f"chmod go-w {open_config}")
    examined(capsys, open_config, "--fix")
    assert open_config.stat().st_mode & 0o777 == 0o600


def test_doctor_takes_a_socket_away_that_nobody_listens_on(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    data = config.parent / "data"
    data.mkdir(mode=0o700)
    with closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(data / "clew.sock"))
    found = examined(capsys, config)[1]["leftovers"]
    assert (found["level"], found["command"]) == ("warning", f"rm {data / 'clew.sock'}")
    assert (data / "clew.sock").exists()
    assert examined(capsys, config, "--fix")[1]["leftovers"]["level"] == "ok"
    assert not (data / "clew.sock").exists()


def test_doctor_leaves_a_socket_that_somebody_listens_on(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    data = config.parent / "data"
    data.mkdir(mode=0o700)
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(data / "clew.sock"))
        listener.listen()
        found = asyncio.run(folders.leftovers(settings(config)))
        assert [(each.level, each.text) for each in found] == [("ok", "none")]


def test_doctor_leaves_the_socket_of_a_process_that_holds_the_folder(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    data = config.parent / "data"
    data.mkdir(mode=0o700)
    with closing(socket.socket(socket.AF_UNIX)) as left, locked(data):
        left.bind(str(data / "clew.sock"))
        found = examined(capsys, config, "--fix")[1]["leftovers"]
    assert (found["level"], found["command"]) == ("warning", "clew status")
    assert (data / "clew.sock").exists()


def test_doctor_says_that_somebody_else_has_the_port(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        number = taken.getsockname()[1]
        config.write_text(config.read_text().replace("port: 0", f"port: {number}"))
        code, found = examined(capsys, config)
    assert (code, found["port"]["level"]) == (1, "problem")
    assert "is in use by another program" in found["port"]["text"]
    assert examined(capsys, config)[1]["port"]["level"] == "ok"


def test_doctor_says_that_a_token_can_be_read_on_the_way(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    http = "http: {port: 0, host: 0.0.0.0, token: 0123456789abcdef}"
    config.write_text(config.read_text().replace("http: {port: 0}", http))
    assert examined(capsys, config)[1]["port"]["level"] == "warning"
    config.write_text(config.read_text().replace("}", ", public_url: 'https://clew.example.org'}", 1))
    found = examined(capsys, config)[1]
    assert (found["port"]["level"], found["public address"]["level"]) == ("ok", "ok")
    assert "tried while a daemon runs" in found["public address"]["text"]


def test_a_look_at_the_store_finds_broken_references_and_ends_in_time(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "CREATE TABLE people (id INTEGER PRIMARY KEY); CREATE TABLE said (who INTEGER REFERENCES people, word TEXT);"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO said SELECT NULL, hex(i) FROM n;"
        )
        assert looked(path, 60) == []
        assert looked(path, -1) is None
        db.execute("INSERT INTO said VALUES (7, 'x')")
        db.commit()
        assert looked(path, 60) == ["rows of said refer to rows of people that are not there"]
    path.write_bytes(b"no database" * 100)
    assert looked(path, 60) == ["file is not a database"]


@pytest.mark.asyncio
async def test_a_check_that_does_not_end_holds_up_nobody() -> None:
    async def endless(config: Config) -> list[Finding]:
        await asyncio.Event().wait()
        raise AssertionError

    async def quick(config: Config) -> list[Finding]:
        return [Finding("ok", "done")]

    async def impossible(config: Config) -> list[Finding]:
        raise PermissionError(13, "Permission denied")

    checks = {"a": Bounded(endless, 0.01), "b": Bounded(quick), "c": Bounded(impossible)}
    found = await looked_at(Config(), checks, False)
    assert [(name, *((each.level, each.text) for each in some)) for name, some in found.items()] == [
        ("a", ("warning", "could not be looked at within 0 s")),
        ("b", ("ok", "done")),
        ("c", ("problem", "could not be looked at: [Errno 13] Permission denied")),
    ]


def test_doctor_says_how_old_the_newest_backup_is(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    data, copy = config.parent / "data", config.parent / "copy.db"
    data.mkdir(mode=0o700)
    (data / "clew.db").touch()
    found = examined(capsys, config)[1]["backup"]
    assert (found["level"], found["text"]) == ("warning", "clew knows of no backup")
    for days, level, age in ((0.5, "ok", "12 hours"), (6, "ok", "6 days"), (8, "warning", "8 days")):
        copy.touch(0o600)
        backups.note(data, backups.Backup(str(copy), time.time() - days * 86_400, 1, 0))
        found = examined(capsys, config)[1]["backup"]
        assert (found["level"], found["text"]) == (level, f"the newest is {age} old: {copy}")
    copy.unlink()
    assert examined(capsys, config)[1]["backup"]["text"] == "of 1 backups that were made none is where it was put"
