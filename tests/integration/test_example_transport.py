"""The transport of docs/examples is installed as its page says, and is then one like the others."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.acceptance.harness import PROGRAM, Daemon
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import last_user_text, say
from tests.emulators.server import JsonObject, Reply
from tests.example import PACKAGE, ROOT, installed
from tests.integration.webhook_harness import until


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of a process that has the package."""
    return {"PYTHONPATH": str(installed(tmp_path_factory.mktemp("example")))}


def clew(environment: dict[str, str], config: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")} | environment
    return subprocess.run([PROGRAM, "--config", str(config), *args], capture_output=True, text=True, timeout=100, check=False, env=env)


def written(folder: Path, transports: JsonObject, model: str = "http://127.0.0.1:9") -> Path:
    config = {
        "data_dir": str(folder / "data"),
        "http": {"port": 0},
        "log": {"format": "json"},
        "providers": {"model": {"kind": "openai", "base_url": f"{model}/v1", "model": "any", "context_window": 32768}},
        "agent": {"provider": "model", "timezone": "UTC"},
        "people": {"ada": {"role": "owner", "identities": ["folder:ada"]}},
        "transports": transports,
    }
    path = folder / "clew.yaml"
    path.write_text(json.dumps(config))
    return path


def examined(environment: dict[str, str], config: Path) -> JsonObject:
    """What the doctor says of the transport."""
    found = json.loads(clew(environment, config, "doctor", "--json").stdout)
    return next(each for each in found if (each["check"], each["of"]) == ("transport", "folder"))


def moved_in(place: Path, name: str, words: str) -> None:
    new = place / "new"
    new.write_text(words)
    new.rename(place / "in" / "ada" / name)


def replies(place: Path) -> list[str]:
    return [each.read_text() for each in sorted(place.glob("out/ada/*.txt"))]


def script(body: JsonObject) -> Reply:
    return say(f"echo: {last_user_text(body).rpartition('] ')[2]}")


def test_an_installed_transport_stands_in_the_config_and_in_the_schema(tmp_path: Path, environment: dict[str, str]) -> None:  # P42
    config = written(tmp_path, {})
    shown = yaml.safe_load(clew(environment, config, "config", "show").stdout)["transports"]
    assert shown["folder"] == {"enabled": False, "kind": "folder", "path": "", "every": "1s"}
    assert '"folder"' in clew(environment, config, "config", "schema").stdout
    config.write_text(json.dumps({**json.loads(config.read_text()), "people": {}}))
    assert set(shown) - set(yaml.safe_load(clew({}, config, "config", "show").stdout)["transports"]) == {"folder"}


def test_its_section_is_checked_as_strictly_as_a_built_in_one(tmp_path: Path, environment: dict[str, str]) -> None:
    right = written(tmp_path, {"folder": {"enabled": True, "path": "/srv/clew"}})
    checked = clew(environment, right, "config", "check")
    assert checked.returncode == 0, checked.stderr
    odd = json.loads(right.read_text())
    odd["people"]["ada"]["identities"] = ["folder:Ada Lovelace"]
    right.write_text(json.dumps(odd))
    checked = clew(environment, right, "config", "check")
    assert "people.ada.identities[0]: no message can ever come from it: behind folder: must stand the name of a folder" in checked.stdout
    sections = {"a": {"pth": "/srv"}, "b": {"path": "/srv", "every": "0s"}, "c": {}}
    wrong = written(tmp_path, {name: {"enabled": True, "kind": "folder", **each} for name, each in sections.items()})
    checked = clew(environment, wrong, "config", "check")
    assert checked.returncode != 0
    for fault in ("transports.a.pth", "transports.b.every", "transports.c.path"):
        assert fault in checked.stdout + checked.stderr


def test_init_sets_it_up(tmp_path: Path, environment: dict[str, str]) -> None:
    place, config = tmp_path / "folder", tmp_path / "new.yaml"
    (place / "in").mkdir(parents=True)
    home = {**environment, "HOME": str(tmp_path)}
    answers = ("--transport", "folder", "--set", f"folder.path={place}", "--identity", "folder:ada", "--provider", "none")
    ran = clew(home, config, "init", "--yes", *answers)
    assert ran.returncode == 0, ran.stderr
    assert "ok       transport folder: nothing is wrong with it" in ran.stdout
    assert f"Then, on folder: mv message.txt {place / 'in' / 'ada'}/" in ran.stdout
    assert clew(home, config, "config", "check").stdout == f"ok: {config}\n"


def test_the_doctor_asks_it(tmp_path: Path, environment: dict[str, str]) -> None:
    place = tmp_path / "folder"
    config = written(tmp_path, {"folder": {"enabled": True, "path": str(place)}})
    sick = examined(environment, config)
    assert sick["level"] == "problem"
    assert sick["text"] == f"{place} is no folder"
    assert sick["command"] == f"mkdir -p {place / 'in'}"
    (place / "in").mkdir(parents=True)
    well = examined(environment, config)
    assert well["level"] == "ok"


@pytest.mark.asyncio
async def test_a_file_is_answered_by_a_file_and_a_kill_loses_none(tmp_path: Path, environment: dict[str, str]) -> None:  # P42 P43
    place = tmp_path / "folder"
    (place / "in" / "ada").mkdir(parents=True)
    async with OpenAIEmulator(script=script) as model:
        config = written(tmp_path, {"folder": {"enabled": True, "path": str(place), "every": "20ms"}}, model.url)
        daemon = Daemon(config, environment, transport="folder")
        await daemon.start()
        try:
            moved_in(place, "one.txt", "Where is the key?\n")
            await until(lambda: bool(replies(place)))
            held = model.hold()
            moved_in(place, "one.txt", "And the lamp?")
            await held.reached.wait()
        finally:
            await daemon.kill()
        moved_in(place, "two.txt", "And the oil?")
        held.release()
        await daemon.start()
        try:
            await until(lambda: len(replies(place)) >= 3)
        finally:
            assert await daemon.terminate() == 0
    assert replies(place) == ["echo: Where is the key?\n", "echo: And the lamp?\n", "echo: And the oil?\n"]
    assert not list(place.glob("in/*/*"))
    assert not list(place.glob("taken/*"))


def test_the_page_shows_the_package_as_it_is() -> None:
    page = (ROOT / "docs" / "extending.md").read_text("utf-8")
    entry = (PACKAGE / "pyproject.toml").read_text("utf-8").partition('[project.entry-points."clew.transports"]\n')[2].splitlines()[0]
    assert entry in page
