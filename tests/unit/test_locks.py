"""The two lock files say the same, and nothing about where a package was fetched from."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = [ROOT / "requirements.lock", ROOT / "deploy" / "requirements.lock"]


def pins(lock: Path) -> dict[str, str]:
    """Package name to its whole entry: version, marker and hashes."""
    lines = [line for line in lock.read_text().splitlines() if not line.lstrip().startswith("#")]
    entries = re.split(r"\n(?=\S)", "\n".join(lines))
    return {entry.split("==", 1)[0]: entry for entry in entries}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_every_entry_is_one_version_with_hashes(lock: Path) -> None:
    for name, entry in pins(lock).items():
        assert re.fullmatch(r"[a-z0-9-]+", name), entry
        assert re.search(r"^ +--hash=sha256:[0-9a-f]{64}", entry, re.MULTILINE), entry


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_no_registry_and_no_local_path_is_named(lock: Path) -> None:
    text = lock.read_text()
    assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host|file:| @ ", text)


def test_a_server_runs_what_was_tested() -> None:
    # Where an entry counts may differ: what is optional on a server may be needed by a tool.
    tested, served = ({name: re.sub(r" ;[^\\]*", " ", entry) for name, entry in pins(lock).items()} for lock in LOCKS)
    assert served.items() <= tested.items()


def test_all_dependencies_are_locked_for_a_server() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["build"]]
    names = {re.split(r"[\[<>=~! ;]", requirement)[0] for requirement in wanted}
    assert names <= pins(LOCKS[1]).keys()
