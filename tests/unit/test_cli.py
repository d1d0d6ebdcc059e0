"""The command line itself: names, exit codes, and what people are told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from clew import cli
from clew.cli import main
from clew.clock import span
from clew.errors import NotFound

CLEW = [sys.executable, "-c", "from clew.cli import main; main()"]


def called(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(args)
    shown = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, shown.out, shown.err


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "clew.yaml"
    path.write_text(f"data_dir: {tmp_path / 'data'}\n")
    return path


def test_version_is_quick_to_import() -> None:
    asked = "import sys; from clew.cli import clew; clew.main(['version'], standalone_mode=False); print([*sys.modules])"
    shown = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("clew ")
    assert not [heavy for heavy in ("aiohttp", "pydantic", "prompt_toolkit", "apscheduler") if f"'{heavy}'" in shown]


def test_wrong_usage_is_2_and_says_so_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    for args in (["bogus"], ["session", "show"], ["session", "list", "--limit", "0"], ["chat", "--continue", "--resume", "a"]):
        code, out, err = called(capsys, *args)
        assert (code, out) == (2, "")
        assert err.startswith("clew: ")


def test_the_version_is_an_option_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert called(capsys, "--version") == called(capsys, "version")


def test_a_config_that_cannot_be_used_is_78(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("htp: {}\n")
    for args in (["run"], ["chat"], ["status"], ["session", "list"], ["cron", "list"], ["config", "check"]):
        code, out, err = called(capsys, *args, "--config", str(bad))
        assert code == 78
        assert f"{bad}:1:1 htp: unknown key (did you mean http?)" in out + err


def test_an_error_for_people_has_no_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    @click.argument("kind")
    def fails(kind: str) -> None:
        raise {"found": NotFound("There is none.", hint="Look elsewhere."), "file": PermissionError(13, "Permission denied", "/x")}.get(
            kind, KeyboardInterrupt()
        )

    monkeypatch.setattr(cli, "clew", fails)
    assert called(capsys, "found") == (3, "", "clew: There is none.\nLook elsewhere.\n")
    assert called(capsys, "file") == (1, "", "clew: /x: Permission denied\n")
    assert called(capsys, "interrupted")[0] == 130


def test_config_may_stand_in_front_and_behind(capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("store: sqlite\n")
    assert called(capsys, "--config", str(config), "config", "check")[1] == f"ok: {config}\n"
    assert called(capsys, "--config", str(config), "config", "check", "--config", str(other))[1] == f"ok: {other}\n"
    code, _, err = called(capsys, "--config", str(config), "session", "list")
    assert (code, err.splitlines()[0]) == (3, f"clew: Nothing is stored yet: there is no {tmp_path / 'data' / 'clew.db'}.")


def test_reading_commands_find_nothing_before_anything_is_stored(capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path) -> None:
    for args in (
        ["session", "list"],
        ["sessions", "list"],
        ["session", "show", "a"],
        ["session", "search", "a"],
        ["session", "export", "a"],
        ["session", "compactions", "a"],
        ["session", "verify"],
        ["session", "delete", "a", "--yes"],
        ["access", "list"],
        ["outbox", "list"],
        ["cron", "history", "a"],
        ["db", "check"],
    ):
        assert called(capsys, *args, "--config", str(config))[0] == 3, args
    assert not (tmp_path / "data").exists()  # nothing was written


def test_status_says_that_none_runs(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    code, out, err = called(capsys, "status", "--config", str(config))
    assert (code, out) == (1, "")
    assert "no daemon runs" in err
    code, out, _ = called(capsys, "status", "--json", "--config", str(config))
    assert (code, json.loads(out)) == (1, {"running": False})


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (59.9, "59 s"), (250, "4 min"), (3600, "1 h"), (7260, "2 h 1 min"), (90_000, "1 d 1 h"), (86_500, "1 d")],
)
def test_a_time_that_something_lasts_is_said_for_people(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_a_job_is_not_run_where_nobody_delivers_its_reply(capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path) -> None:
    code, out, err = called(capsys, "cron", "run", "morning", "--config", str(config))
    assert (code, out) == (1, "")
    assert err == f"clew: no daemon runs on {tmp_path / 'data'}.\n`clew run` starts one.\n"
    assert not (tmp_path / "data").exists()


def test_without_a_config_file_the_defaults_are_used(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLEW_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "data"))
    if Path("/etc/clew/clew.yaml").is_file():
        pytest.skip("this machine has a config of its own")
    code, _, err = called(capsys, "session", "list")
    assert (code, err.splitlines()[0]) == (3, f"clew: Nothing is stored yet: there is no {tmp_path / 'data' / 'clew.db'}.")
    assert called(capsys, "config", "check") == (0, "ok: no config file: the defaults\n", "")
    code, out, err = called(capsys, "config", "show")
    assert (code, err) == (0, "no config file: the defaults\n")
    assert f"data_dir: {tmp_path / 'data'}\n" in out
    monkeypatch.setenv("CLEW_CONFIG", "gone.yaml")
    assert called(capsys, "session", "list")[0] == 78


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [*CLEW, "cron", "next", "* * * * *", "--timezone", "UTC", "--count", "1000"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert ended.stderr == b""


def test_import_refuses_what_is_no_export(capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    for text, said in (
        ("{", "not JSON (line 1, column 2"),
        ("\xff", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("{}", "no `clew`"),
        ("[]", "no `clew`"),
    ):
        wrong.write_text(text, encoding="latin-1")
        code, out, err = called(capsys, "session", "import", str(wrong), "--config", str(config))
        assert (code, out) == (1, "")
        assert err.startswith("clew: not a clew export: it is ")
        assert said in err


# Schedules -------------------------------------------------------------------------------------------------------


def test_cron_next_crosses_a_clock_change(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["cron", "next", "30 8 * * 1-5", "--timezone", "Europe/Berlin", "--from", "2027-03-26T00:00", "--count", "3"]
    code, out, _ = called(capsys, *args)
    assert code == 0
    assert out.splitlines() == ["2027-03-26T08:30:00+01:00", "2027-03-29T08:30:00+02:00", "2027-03-30T08:30:00+02:00"]
    assert json.loads(called(capsys, *args, "--json")[1]) == out.splitlines()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["30 8 30 2 *", "--timezone", "UTC"], "never occurs"),
        (["nonsense", "--timezone", "UTC"], "is not a cron expression"),
        (["@daily", "--timezone", "Mars/Base"], "is not a time zone"),
        (["@daily", "--timezone", "UTC", "--from", "soon"], "is no time"),
    ],
)
def test_cron_next_says_what_is_wrong(capsys: pytest.CaptureFixture[str], args: list[str], said: str) -> None:
    code, out, err = called(capsys, "cron", "next", *args)
    assert (code, out) == (2, "")
    assert said in err


def test_cron_list_needs_no_store(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    with config.open("a") as file:
        file.write("schedule:\n  - {name: morning, cron: '30 8 * * *', timezone: Asia/Tokyo, prompt: hi, deliver_to: 'web:local'}\n")
    (job,) = json.loads(called(capsys, "cron", "list", "--json", "--config", str(config))[1])
    assert (job["name"], job["schedule"], job["timezone"], job["last"]) == ("morning", "30 8 * * *", "Asia/Tokyo", None)
    assert len(job["next"]) == 5
    assert all(each.endswith("T08:30:00+09:00") for each in job["next"])
    assert "morning  config  30 8 * * *  Asia/Tokyo" in called(capsys, "cron", "list", "--config", str(config))[1]


def test_jobs_are_made_without_a_daemon(capsys: pytest.CaptureFixture[str], config: Path) -> None:  # P45
    added = [*CLEW, "cron", "add", "tea", "--every", "6h", "--to", "web:local", "--config", str(config)]
    assert subprocess.run(added, capture_output=True, text=True, check=True).stdout.startswith("tea: every 6h ")
    assert called(capsys, "cron", "list", "--config", str(config))[1].splitlines()[1].split()[:2] == ["tea", "cli"]
