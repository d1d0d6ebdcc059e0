"""The units in deploy/, install.sh and uninstall.sh, without touching the machine."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = DEPLOY / "clew.service"


def checked(name: str, tmp_path: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What systemd-analyze says of a unit of ours."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed (apt-get install systemd): the unit files are not checked")
    # It insists on a program that exists, and clew need not be installed in /opt here.
    text = re.sub(r"(?<=^ExecStart=)\S+/bin/clew", str(shutil.which("true")), (DEPLOY / name).read_text(), flags=re.MULTILINE)
    (tmp_path / name).write_text(text)
    return subprocess.run([analyze, *command, tmp_path / name], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", ["clew.service", "clew-user.service", "clew-backup.service", "clew-backup.timer"])
def test_systemd_accepts_the_units(name: str, tmp_path: Path) -> None:
    (tmp_path / "clew-backup.service").write_text("[Service]\nExecStart=/bin/true\n")  # what the timer starts
    done = checked(name, tmp_path, "verify", "--man=no")
    complaints = [line for line in done.stderr.splitlines() if name in line]
    assert (done.returncode, complaints) == (0, [])


@pytest.mark.parametrize("name", ["clew.service", "clew-backup.service"])
def test_the_units_are_exposed_by_less_than_two_points(name: str, tmp_path: Path) -> None:
    done = checked(name, tmp_path, "security", "--offline=true", "--no-pager", "--threshold=19")
    assert done.returncode == 0, done.stdout


def test_the_unit_restarts_a_crash_and_not_a_bad_config() -> None:  # P48, BO-097
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(UNIT)
    service = unit["Service"]
    assert service["Type"] == "notify"
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == "78"
    assert service["StateDirectory"] == "clew"
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"


def script(name: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", DEPLOY / name, *args], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def install(*args: str) -> subprocess.CompletedProcess[str]:
    return script("install.sh", *args)


def test_install_shows_what_it_would_do(tmp_path: Path) -> None:
    prefix = tmp_path / "clew"
    done = install("--dry-run", "--prefix", str(prefix))
    if "no Python 3.11 or later" in done.stderr:
        pytest.skip("install.sh finds no system-wide Python 3.11 or later here: its dry run is not checked")
    assert done.returncode == 0, done.stderr
    assert f"-m venv --clear {prefix}" in done.stdout
    assert f"{prefix}/bin/python -m pip" in done.stdout
    assert "--require-hashes -r" in done.stdout
    assert "+ write /etc/systemd/system/clew.service (root:root, 0644)" in done.stdout
    assert not prefix.exists()


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--prefix"], "--prefix needs a folder"),
        (["--prefix", "opt/clew"], "--prefix needs an absolute path"),
        (["--prefix", "/opt/a b"], "--prefix needs an absolute path"),
        (["--force"], "unknown argument: --force"),
    ],
)
def test_install_refuses_what_it_does_not_understand(args: list[str], complaint: str) -> None:
    done = install("--dry-run", *args)
    assert done.returncode == 1
    assert complaint in done.stderr


@pytest.mark.parametrize("name", ["install.sh", "uninstall.sh"])
def test_nothing_is_done_where_nobody_can_be_asked(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    done = script(name, "--user")
    assert done.returncode == 1
    assert "nobody is here to be asked" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_uninstall_takes_away_nothing_that_is_not_an_installed_clew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    precious = tmp_path / "photos"
    precious.mkdir()
    done = script("uninstall.sh", "--user", "--yes", "--prefix", str(precious))
    assert (done.returncode, precious.is_dir()) == (1, True)
    assert "no virtual environment with clew in it" in done.stderr
