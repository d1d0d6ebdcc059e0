"""deploy/clew.service and deploy/install.sh, without touching the machine."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = DEPLOY / "clew.service"


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed (apt-get install systemd): the unit file is not checked")
    # It insists on a program that exists, and clew need not be installed in /opt here.
    program = "ExecStart=/opt/clew/bin/clew"
    text = UNIT.read_text()
    assert text.count(program) == 1
    copy = tmp_path / "clew.service"
    copy.write_text(text.replace(program, f"ExecStart={shutil.which('true')}"))
    done = subprocess.run([analyze, "verify", "--man=no", copy], capture_output=True, text=True, timeout=60)
    complaints = [line for line in done.stderr.splitlines() if "clew.service" in line]
    assert (done.returncode, complaints) == (0, [])


def test_the_unit_restarts_a_crash_and_not_a_bad_config() -> None:  # P48, BO-097
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(UNIT)
    service = unit["Service"]
    assert service["Type"] == "notify"
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == "78"
    assert service["StateDirectory"] == "clew"
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"


def install(*args: str) -> subprocess.CompletedProcess[str]:
    script = DEPLOY / "install.sh"
    return subprocess.run(["/bin/sh", script, *args], capture_output=True, text=True, timeout=60)


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
