"""A real installation for one person, brought up to date, and taken away again."""

import os
import subprocess
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"

pytestmark = pytest.mark.e2e


def script(home: Path, name: str, *args: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}
    done = subprocess.run(
        ["/bin/sh", DEPLOY / name, "--user", "--yes", *args],
        capture_output=True,
        text=True,
        timeout=600,
        env={**kept, "HOME": str(home)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(*command: str | Path, home: Path) -> str:
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, check=True).stdout


@pytest.mark.timeout(1500)
def test_clew_is_installed_updated_and_taken_away(tmp_path: Path) -> None:  # P2
    home = tmp_path / "home"
    home.mkdir()
    assert "clew is installed" in script(home, "install.sh")
    clew, config = home / ".local/bin/clew", home / ".config/clew/clew.yaml"
    assert run(clew, "version", home=home).strip()
    assert config.stat().st_mode & 0o777 == 0o600
    assert str(home / ".local/lib/clew/bin/clew run") in (home / ".config/systemd/user/clew.service").read_text()

    config.write_text(f"data_dir: {tmp_path / 'data'}\nproviders: {{none: {{kind: offline}}}}\n")
    assert "stays as it is" in script(home, "install.sh")
    assert run(clew, "config", "check", home=home)
    assert str(tmp_path / "data") in config.read_text()

    script(home, "uninstall.sh")
    assert not clew.exists()
    assert not (home / ".local/lib/clew").exists()
    assert config.exists()
    script(home, "uninstall.sh", "--purge")
    assert not config.exists()
