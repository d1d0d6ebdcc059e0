"""The command line beside a daemon, and the daemon as a process."""

import asyncio
import io
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import IO

import pytest

from clew.store import Decide, Verdict
from clew.store.sqlite import SqliteStore
from clew.transport import Address, Inbound
from tests.unit.test_cli import CLEW, called

ENV = {key: value for key, value in os.environ.items() if key in ("PATH", "PYTHONPATH", "HOME")}
JOB = "{name: morning, cron: '30 8 * * *', timezone: Asia/Tokyo, prompt: hi, deliver_to: 'web:local'}"
QUIET = "No model is configured"


def written(folder: Path, more: str = "") -> Path:
    path = folder / "clew.yaml"
    path.write_text(f"data_dir: {folder / 'data'}\nhttp: {{port: 0}}\nproviders: {{none: {{kind: offline}}}}\n{more}\n")
    return path


def started(config: Path, log: IO[str] | int = subprocess.PIPE) -> subprocess.Popen[str]:
    """A daemon. log: where its stderr goes; a pipe that nobody reads holds it up once it is full."""
    command = [*CLEW, "run", "--config", str(config)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=ENV)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


def asks(code: str) -> Decide:
    return lambda item, sender: Verdict(refused="unknown sender", pair=code)


async def ask_for_access(path: Path) -> None:
    """Two people knock: mqtt:eve with the code AAAAAA, mqtt:mallory with BBBBBB."""
    store = await SqliteStore.open(path, time.time())
    for name, code in (("eve", "AAAAAA"), ("mallory", "BBBBBB")):
        knock = Inbound(f"mqtt/{name}/1", Address("mqtt", name), name, "let me in", sender_name=name)
        await store.accept("mqtt", [knock], None, time.time(), asks(code))
    await store.close()


def say_always(path: Path) -> None:
    """Eve has said always to two tools in her chat."""
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO chats (address, transport, direct, created) VALUES ('mqtt:eve', 'mqtt', 0, 1)")
        for tool in ("pay", "wire"):
            db.execute("INSERT INTO standing_approvals SELECT id, 'eve', ?, 'eve', 1, '' FROM chats WHERE address = 'mqtt:eve'", (tool,))
    db.close()


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The config of a daemon that runs."""
    path = written(tmp_path_factory.mktemp("daemon"), f"schedule: [{JOB}]\nagent: {{compression: {{keep_recent: 2}}}}")
    (path.parent / "data").mkdir(mode=0o700)
    asyncio.run(ask_for_access(path.parent / "data" / "clew.db"))
    say_always(path.parent / "data" / "clew.db")
    with (path.parent / "log").open("w") as log:
        process = started(path, log)
        assert first_line(process).startswith("clew is ready: http://127.0.0.1:")
        yield path
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0, (path.parent / "log").read_text()


class Command:
    """Calls commands with this config, as a user would from a script."""

    def __init__(self, config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._config = config
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *args: str, stdin: str = "") -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        return called(self._capsys, "--config", str(self._config), *args)

    def ok(self, *args: str, stdin: str = "") -> str:
        code, out, err = self(*args, stdin=stdin)
        assert code == 0, err
        return out

    def talk(self, *lines: str) -> str:
        """A new session in which these lines were said. Returns its id."""
        shown = self.ok("chat", "--json", stdin="".join(f"{line}\n" for line in lines))
        return str(json.loads(shown.splitlines()[0])["session"])

    def talk_on(self, session: str, *lines: str) -> None:
        """The same session goes on with these lines."""
        self.ok("chat", "--resume", session, stdin="".join(f"{line}\n" for line in lines))


@pytest.fixture
def clew(config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(config, capsys, monkeypatch)


# Chat --------------------------------------------------------------------------------------------------------------


def test_each_line_is_a_message_and_the_end_waits_for_the_replies(clew: Command) -> None:
    code, out, err = clew("chat", "--title", "Lines", stdin="one\n\ntwo\r\n/status\nthree")
    assert code == 0
    assert err.startswith("session ")
    assert err.endswith(" · Lines\n")
    assert out.count(QUIET) == 3
    assert "In view: 4 messages" in out
    assert "\x1b" not in out + err


def test_json_lines_are_objects(clew: Command) -> None:
    begun, reply = (json.loads(line) for line in clew.ok("chat", "--json", stdin="hello\n").splitlines())
    assert begun["type"] == "session"
    assert (reply["type"], reply["role"]) == ("message", "assistant")
    assert QUIET in reply["text"]


def test_a_line_that_is_too_long_is_refused_and_the_rest_goes_on(clew: Command) -> None:
    code, out, err = clew("chat", stdin="x" * 200_000 + "\nshort\n")
    assert code == 1
    assert "longer than 131,072 bytes" in err
    assert out.count(QUIET) == 1


class Refuses(BaseHTTPRequestHandler):
    """A model server that knows no key."""

    def do_GET(self) -> None:
        self.send_error(401)

    do_POST = do_GET  # noqa: N815 - the name that the server calls

    def log_message(self, *args: object) -> None:
        pass


def test_a_reply_that_says_that_there_is_none_is_a_failure(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), Refuses) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        model = f"{{mine: {{kind: openai, base_url: 'http://127.0.0.1:{server.server_port}', api_key: k, context_window: 32768}}}}"
        config = tmp_path / "clew.yaml"
        config.write_text(f"data_dir: {tmp_path / 'data'}\nhttp: {{port: 0}}\nproviders: {model}\nagent: {{provider: mine}}\n")
        command = [*CLEW, "chat", "--config", str(config)]
        plain = subprocess.run(command, input="hello\n", capture_output=True, text=True, env=ENV, check=False)
        as_json = subprocess.run([*command, "--json"], input="hello\n", capture_output=True, text=True, env=ENV, check=False)
        server.shutdown()
        thread.join()
    assert (plain.returncode, as_json.returncode) == (1, 1)
    assert plain.stdout.strip()
    assert json.loads(as_json.stdout.splitlines()[1])["failed"] is True


def test_a_session_is_continued_by_order_or_by_the_beginning_of_its_id(clew: Command) -> None:  # P3
    first, second = clew.talk("one"), clew.talk("two")
    assert first != second
    for args, session in ((["--continue"], second), (["--resume", first[:8]], first), (["--session", second], second)):
        assert json.loads(clew.ok("chat", "--json", *args))["session"] == session
    clew.ok("chat", "--resume", first, stdin="three\n")
    assert json.loads(clew.ok("chat", "--json", "--continue"))["session"] == first
    assert clew("chat", "--resume", "nowhere")[0] == 3
    unused = clew.talk()
    assert unused not in clew.ok("session", "list")
    assert unused in clew.ok("session", "list", "--all")
    assert clew("chat", "--continue", "--title", "x")[0] == 2


# Sessions ----------------------------------------------------------------------------------------------------------


def test_every_listed_id_is_accepted_everywhere(clew: Command) -> None:  # P3, P4
    clew.talk("the aubergine ledger")
    for row in json.loads(clew.ok("session", "list", "--json")):
        for command in ("show", "export", "compactions", "verify"):
            assert clew("session", command, row["id"])[0] == 0
        assert row["id"] in clew.ok("sessions", "list")


def test_search_shows_where_and_what(clew: Command) -> None:  # P4
    session = clew.talk("the aubergine ledger is in the blue drawer")
    (hit,) = [each for each in json.loads(clew.ok("session", "search", "blue drawer", "--json")) if each["role"] == "user"]
    assert (hit["session"], hit["text"]) == (session, "the aubergine ledger is in the blue drawer")
    assert f"{session} #1 " in clew.ok("session", "search", "blue drawer", "--person", "owner")
    assert clew("session", "search", "blue drawer", "--chat", "mqtt:ada")[0] == 3
    assert clew("session", "search", "blue drawer", "--session", session)[0] == 3  # it is in view there
    assert clew("session", "search", "unheard of")[0] == 3
    assert clew("session", "search", "unheard of", "--person", "owner")[2] == "clew: Nothing was found for 'unheard of'.\n"
    code, _, err = clew("session", "search", "blue drawer", "--person", "nobody")
    assert code == 3
    assert err.startswith("clew: There is no person 'nobody'.\nKnown are: ")
    assert "owner" in err
    assert clew("session", "search", "x", "--chat", "a:b", "--person", "c")[0] == 2


def test_an_export_comes_back_equal(clew: Command, tmp_path: Path) -> None:  # P4
    session = clew.talk("to be kept", "/compact", "and this")
    file = tmp_path / "talk.json"
    assert clew("session", "export", session, "--output", str(file))[:2] == (0, "")
    for command in (("session", "export", session), ("privacy", "export", "owner")):
        nowhere = file.parent / "gone" / "x"
        assert f"clew: {nowhere}: No such file or directory" in clew(*command, "--output", str(nowhere))[2]
    assert file.stat().st_mode & 0o777 == 0o600
    assert [*tmp_path.iterdir()] == [file]
    assert clew("session", "import", str(file))[0] == 2  # it is here already
    assert clew("session", "delete", session)[0] == 2  # nobody to ask
    clew.ok("session", "delete", session, "--yes")
    assert clew("session", "show", session)[0] == 3
    assert clew.ok("session", "import", "-", stdin=file.read_text()) == f"{session}\n"
    assert clew.ok("session", "export", session) == file.read_text()
    assert clew("session", "import", "-", stdin='{"clew": 1, "session": {}}')[0] == 1


def test_compact_now_and_look_at_what_became_of_it(clew: Command) -> None:  # P4, P6, P24
    session = clew.talk("one", "two", "three")
    assert "4 messages would go into the summary and 2 stay" in clew.ok("session", "compact", session, "--preview")
    assert "never compacted" in clew("session", "compactions", session)[2]
    assert "Compacted: 4 messages went into the summary; with it the window has 3 now." in clew.ok(
        "session", "compact", session, "--focus", "numbers"
    )
    assert "nothing to compact" in clew.ok("session", "compact", session)
    (done,) = json.loads(clew.ok("session", "compactions", session, "--json"))
    assert (done["number"], done["to_seq"], done["trigger"]) == (1, 4, "command")
    detail = clew.ok("session", "compactions", session, "1")
    assert detail.strip().endswith(done["text"].strip())
    assert "range: rows 1-4, 4 messages; the window had 3 then" in detail
    assert clew("session", "compactions", session, "2")[0] == 3
    shown = clew.ok("session", "show", session)
    assert shown.index("    two") < shown.index("[compressed summary] of messages 1-4") < shown.index("    three")
    assert json.loads(clew.ok("session", "show", session, "--json", "--limit", "1"))["messages"][0]["seq"] == 6
    assert clew.ok("session", "verify", session) == f"{session}: ok\n"


def test_a_compaction_is_examined_undone_and_written_anew(clew: Command) -> None:  # P21
    session = clew.talk("Never deploy on Fridays.", "two", "three", "four")
    assert clew("session", "redo", session)[0] == 3
    assert clew("session", "undo-compaction", session)[0] == 3
    clew.ok("session", "compact", session)
    clew.talk_on(session, "Never call me before nine, and the host is db-7.example.org.", "six")
    clew.ok("session", "compact", session)
    first, second = json.loads(clew.ok("session", "compactions", session, "--json"))
    assert (first["kind"], second["parent"], second["from_seq"]) == ("summary", first["id"], first["to_seq"] + 1)
    assert {"tokens_before", "tokens_after", "seconds", "cost", "model", "kept", "changed", "dropped"} <= set(second["report"])
    diff = clew.ok("session", "compactions", session, "--diff")
    assert diff.startswith("--- compaction 1\n+++ compaction 2\n")
    assert json.loads(clew.ok("session", "compactions", session, "1", "--diff", "--json"))["diff"][0] == "--- compaction (none)"
    listed = clew.ok("session", "compactions", session)
    assert (listed.count("command"), "undone" in listed) == (2, False)
    assert "Compacted: 4 messages went into the summary" in clew.ok("session", "redo", session, "--focus", "Fridays")
    assert [each["undone_at"] is None for each in json.loads(clew.ok("session", "compactions", session, "--json"))] == [True, False, True]
    clew.ok("session", "redo", session, "--instructions", "Keep the hosts.\nNothing else.")
    assert clew.ok("session", "compactions", session, "--diff").startswith(
        "instructions: Keep the hosts. Nothing else.\n--- compaction 1\n"
    )
    shown = clew.ok("session", "compactions", session, "4")
    assert "instructions: Keep the hosts. Nothing else.\n" in shown
    assert "focus: Fridays\n" in clew.ok("session", "compactions", session, "3")
    undone = json.loads(clew.ok("session", "undo-compaction", session, "--json"))
    assert undone["undone_at"] is not None
    assert "undone" in clew.ok("session", "compactions", session)
    assert clew.ok("session", "verify", session) == f"{session}: ok\n"


def test_messages_are_pinned_and_let_go(clew: Command) -> None:  # P13
    session = clew.talk("Never deploy on Fridays.", "two", "three")
    (first, *_) = json.loads(clew.ok("session", "show", session, "--json"))["messages"]
    assert clew.ok("session", "pin", session, "#1") == f"#1 {first['id']} pinned: Never deploy on Fridays.\n"
    assert "was pinned already" in clew.ok("session", "pin", session, first["id"][:11])
    clew.ok("session", "compact", session)
    assert "Never deploy on Fridays." in clew.ok("session", "compactions", session, "1").partition("word for word")[2]
    assert json.loads(clew.ok("session", "unpin", session, "#1", "--json"))["new"] is True
    assert "was not pinned" in clew.ok("session", "unpin", session, first["id"])
    assert clew("session", "pin", session, "#99")[0] == 3


# The rest ----------------------------------------------------------------------------------------------------------


def test_who_knocked_is_let_in_or_not(clew: Command) -> None:
    assert [each["identity"] for each in json.loads(clew.ok("access", "list", "--json"))] == ["mqtt:eve", "mqtt:mallory"]
    assert clew.ok("access", "approve", "aaaaaa", "--role", "guest") == "mqtt:eve may talk to clew now, as guest\n"
    assert clew.ok("access", "deny", "mqtt:mallory") == "mqtt:mallory may not talk to clew\n"
    assert "Nobody waits" in clew("access", "list")[2]
    assert "mqtt:eve" in clew.ok("access", "list", "--all")
    assert clew("access", "approve", "ZZZZZZ")[0] == 3


def test_people_are_changed_linked_and_removed(clew: Command) -> None:  # P46
    assert clew.ok("access", "approve", "mqtt:dora", "--as", "Dora") == "mqtt:dora may talk to clew now, as member\n"
    assert clew.ok("access", "role", "Dora", "guest") == "Dora is guest now.\n"
    assert clew.ok("access", "rename", "mqtt:dora", "Theodora") == "Dora is called Theodora now.\n"
    assert clew.ok("access", "link", "Theodora", "telegram:77") == "telegram:77 is Theodora too now.\n"
    (dora,) = [each for each in json.loads(clew.ok("access", "people", "--json")) if each["id"] == "mqtt:dora"]
    assert (dora["name"], dora["role"], [each["identity"] for each in dora["identities"]]) == (
        "Theodora",
        "guest",
        ["mqtt:dora", "telegram:77"],
    )
    assert "Theodora" in clew.ok("access", "people")
    assert clew.ok("access", "unlink", "telegram:77") == "telegram:77 is not Theodora any more: clew does not know it.\n"
    assert clew.ok("access", "remove", "Theodora").startswith("Theodora may not talk to clew any more")
    for args, code, words in (
        (("remove", "Theodora"), 3, "There is no person 'Theodora'"),
        (("remove", "owner"), 2, "owner is in the config"),
        (("role", "owner", "king"), 2, "'king' is not one of"),
        (("unlink", "telegram:77"), 3, "There is no person"),
        (("web",), 2, "http.token is not set"),
        (("logout",), 2, "Name one"),
        (("logout", "nosuchlogin1"), 3, "No browser is logged in under this id"),
    ):
        found, _, said = clew("access", *args)
        assert (found, words in said) == (code, True), said
    assert "No browser is logged in" in clew("access", "logins")[2]


def test_a_browser_is_let_in_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    http = "http: {port: 8131, token: a-long-enough-token, public_url: 'https://clew.example.org'}"
    config = written(tmp_path, "people: {ada: {role: owner}, bob: {role: member}}")
    config.write_text(config.read_text().replace("http: {port: 0}", http))
    clew = Command(config, capsys, monkeypatch)
    code, out, err = clew("access", "web", "bob")
    assert code == 0, err
    assert out.startswith("https://clew.example.org/login/link#")
    assert re.search(r"as bob, once, until \d{4}-\d\d-\d\d \d\d:\d\d\.$", err, re.MULTILINE)
    link = json.loads(clew.ok("access", "web", "--json"))
    assert (link["person"], link["url"] != out.strip()) == ("ada", True)
    assert clew.ok("access", "logout", "--all") == "No browsers were logged out.\n"
    assert clew.ok("access", "logout", "--person", "bob") == "No browsers were logged out, of bob.\n"


def test_a_yes_for_good_is_listed_and_taken_back(clew: Command) -> None:
    assert [(each["tool"], each["address"]) for each in json.loads(clew.ok("approvals", "list", "--json"))] == [
        ("pay", "mqtt:eve"),
        ("wire", "mqtt:eve"),
    ]
    assert clew.ok("approvals", "list").split()[:6] == ["TOOL", "AT", "FOR", "SAID", "BY", "SINCE"]
    assert clew("approvals", "remove", "pay", "mqtt:eve", "--person", "adam")[0] == 3
    assert clew.ok("approvals", "remove", "pay", "mqtt:eve") == "clew asks again before pay is called at mqtt:eve\n"
    assert clew("approvals", "remove", "pay", "mqtt:eve")[0] == 3
    assert [each["tool"] for each in json.loads(clew.ok("approvals", "list", "--json"))] == ["wire"]
    clew.ok("approvals", "remove", "wire", "mqtt:eve", "--person", "eve")
    assert "Nobody said always" in clew("approvals", "list")[2]
    assert "No question waits" in clew("approvals", "list", "--open")[2]


def test_a_job_is_run_by_hand(clew: Command) -> None:
    assert "has not run yet" in clew("cron", "history", "morning")[2]
    clew.ok("cron", "run", "morning")
    assert [each["outcome"] for each in json.loads(clew.ok("cron", "history", "morning", "--json"))] in (["fired"], ["done"])
    (job,) = json.loads(clew.ok("cron", "list", "--json"))
    assert (job["last"] in ("fired", "done"), job["enabled"], len(job["next"])) == (True, True, 5)
    assert clew("cron", "run", "evening")[0] == clew("cron", "history", "evening")[0] == 3


def test_jobs_are_made_listed_switched_and_removed(clew: Command) -> None:  # P45, BO-085
    made = clew.ok("cron", "add", "Feed the cat", "--cron", "0 7 * * *", "--timezone", "Europe/Berlin", "--to", "web:local")
    assert made.startswith("feed-the-cat: 0 7 * * * Europe/Berlin, next\n  ")
    listed = {each["name"]: each for each in json.loads(clew.ok("cron", "list", "--json"))}
    assert {name: (each["origin"], len(each["next"])) for name, each in listed.items()} == {
        "morning": ("config", 5),
        "feed-the-cat": ("cli", 5),
    }
    table = clew.ok("cron", "list").splitlines()
    assert table[0].split() == ["NAME", "FROM", "SCHEDULE", "ZONE", "NEXT", "LAST", "TO"]
    assert len(table) == 11
    clew.ok("cron", "disable", "feed-the-cat")
    clew.ok("cron", "disable", "morning")
    assert [each["next"] for each in json.loads(clew.ok("cron", "list", "--json"))] == [[], []]
    clew.ok("cron", "enable", "morning")
    for wrong in (
        ["--cron", "61 * * * *"],
        ["--cron", "0 0 31 2 *"],
        ["--every", "evry 5 minutes"],
        [],
        ["--every", "1h", "--cron", "@daily"],
        ["--every", "1h", "--to", "web:日 本"],
    ):
        assert clew("cron", "add", "hi", "--to", "web:local", *wrong)[0] == 2
    clew.ok("cron", "enable", "feed-the-cat")
    edited = clew.ok("cron", "edit", "feed-the-cat", "--prompt", "Feed both cats", "--every", "90m", "--grace", "2h")
    assert edited.startswith("feed-the-cat: every 90m Europe/Berlin, next\n  ")
    assert json.loads(clew.ok("cron", "edit", "feed-the-cat", "--grace", "", "--json"))["schedule"] == "every 90m"
    for wrong in (
        ["feed-the-cat"],
        ["feed-the-cat", "--cron", "61 * * * *"],
        ["feed-the-cat", "--prompt", ""],
        ["morning", "--prompt", "x"],
    ):
        assert clew("cron", "edit", *wrong)[0] == 2
    assert clew("cron", "edit", "nosuch", "--prompt", "x")[0] == 3
    assert clew("cron", "remove", "morning")[0] == 2
    assert clew("cron", "remove", "nosuch")[0] == 3
    clew.ok("cron", "remove", "feed-the-cat")
    assert [each["name"] for each in json.loads(clew.ok("cron", "list", "--json"))] == ["morning"]


def test_status_and_doctor_of_a_daemon_that_runs(clew: Command) -> None:
    status = json.loads(clew.ok("status", "--json"))
    assert (status["running"], status["ready"]) == (True, True)
    assert "ready: yes" in clew.ok("status")
    assert "a daemon runs and is ready" in clew.ok("doctor")
    assert clew.ok("db", "check").endswith(": ok\n")
    assert clew("outbox", "list")[0] == 0
    lines = clew.ok("status").splitlines()
    empty = [line for line, after in pairwise([*lines, ""]) if line.endswith(":") and not after.startswith(" ")]
    assert [line for line in lines if line.strip() == "detail:"] == empty == []


def test_a_backup_is_made_beside_a_daemon_that_runs(clew: Command, tmp_path: Path) -> None:
    session = clew.talk("to be kept twice")
    copy = tmp_path / "data" / "clew.db"
    copy.parent.mkdir()
    assert clew.ok("db", "backup", str(copy)) == f"{copy}: {copy.stat().st_size:,} bytes, checked\n"
    assert copy.stat().st_mode & 0o777 == 0o600
    code, out, err = clew("db", "backup", str(copy))
    assert (code, out) == (1, "")
    assert "is there already" in err
    shown = subprocess.run(
        [*CLEW, "session", "show", session, "--config", str(written(tmp_path))], capture_output=True, text=True, env=ENV, check=True
    )
    assert "to be kept twice" in shown.stdout


def test_backups_in_a_folder_are_kept_in_number_and_known(clew: Command, config: Path, tmp_path: Path) -> None:
    clew.talk("worth a backup")
    folder = tmp_path / "backups"
    folder.mkdir()
    old = ["clew-20200101T000000Z.db", "clew-20210101T000000Z.db"]
    for name in [*old, "clew-notes.db", "clew-20200101T000000Z.db.txt"]:
        (folder / name).write_text("somebody's")
    made = json.loads(clew.ok("db", "backup", str(folder), "--keep", "2", "--json"))
    assert made["removed"] == [str(folder / old[0])]
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [old[1], "clew-notes.db", "clew-20200101T000000Z.db.txt", Path(made["path"]).name]
    )
    known = [json.loads(line) for line in (config.parent / "data" / "backups.jsonl").read_text().splitlines()]
    assert known[-1] == {key: made[key] for key in ("path", "made", "size", "files")}
    code, out, err = clew("db", "backup", str(tmp_path / "none"), "--keep", "2")
    assert (code, out) == (2, "")
    assert "--keep needs a folder that is there" in err


def test_the_room_of_what_was_deleted_is_given_back(clew: Command, config: Path) -> None:
    session = clew.talk(*(f"{number} {'long words ' * 500}" for number in range(40)))
    clew.ok("session", "delete", session, "--yes")
    done = json.loads(clew.ok("db", "vacuum", "--json"))
    assert done["after"] < done["before"]
    assert (config.parent / "data" / "clew.db").stat().st_size == done["after"]
    assert clew.ok("db", "check").endswith(": ok\n")


def test_a_second_daemon_is_told_so(config: Path) -> None:
    ended = subprocess.run([*CLEW, "run", "--config", str(config)], capture_output=True, text=True, env=ENV, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "another clew uses this data directory" in ended.stderr
    assert "Traceback" not in ended.stderr


# The process: BO-096 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_daemon(tmp_path: Path, number: signal.Signals) -> None:
    process = started(written(tmp_path))
    first_line(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert '"daemon.stopped"' in err
    assert not (tmp_path / "data" / "clew.sock").exists()


def test_a_daemon_without_a_config_file_says_so_once(tmp_path: Path) -> None:
    if Path("/etc/clew/clew.yaml").is_file():
        pytest.skip("this machine has a config of its own")
    env = ENV | {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "STATE_DIRECTORY": str(tmp_path / "data")}
    process = subprocess.Popen([*CLEW, "run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=tmp_path)
    first_line(process)  # the address, or nothing where the usual port is taken
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert err.count('"config.defaults"') == 1
    assert (tmp_path / "data").is_dir()


def test_a_failed_start_ends_with_a_plain_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        config = written(tmp_path)
        config.write_text(config.read_text().replace("port: 0", f"port: {taken.getsockname()[1]}"))
        process = started(config)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert "Cannot listen on 127.0.0.1:" in err
    assert "Traceback" not in err


def test_ctrl_c_ends_a_chat_in_lines(tmp_path: Path) -> None:
    command = [*CLEW, "chat", "--config", str(written(tmp_path))]
    # A shell starts what runs in its background with Ctrl-C ignored, and a child inherits that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.stderr
    assert process.stderr.readline().startswith("session ")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_without_a_daemon_a_chat_brings_its_own_and_the_next_command_sees_it(tmp_path: Path) -> None:
    config = written(tmp_path)
    command = [*CLEW, "chat", "--config", str(config)]
    ended = subprocess.run(command, input="hello\n", capture_output=True, text=True, env=ENV, check=True)
    assert ended.stdout.startswith(QUIET)
    command = [*CLEW, "session", "list", "--json", "--config", str(config)]
    (row,) = json.loads(subprocess.run(command, capture_output=True, text=True, env=ENV, check=True).stdout)
    assert row["messages"] == 2
    assert not (tmp_path / "data" / "clew.sock").exists()
