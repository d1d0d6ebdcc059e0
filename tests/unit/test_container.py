"""The image and the compose file: what they name is there, and nothing in them has rights that it needs not."""

import fnmatch
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.test_config_example import load_here

TOP = Path(__file__).parents[2]
DEPLOY = TOP / "deploy"
ENV = {"HOME": "/data", "CLEW_TOKEN": "a-token-of-enough-characters", "CLEW_MQTT_PASSWORD": "secret", "CLEW_DATABASE_PASSWORD": "another"}


def compose(folder: str = "compose") -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / folder / "compose.yaml").read_text())
    return found


def test_what_the_image_copies_is_there_and_sent_to_the_builder() -> None:
    kept = [line[1:] for line in (TOP / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", (DEPLOY / "container" / "Containerfile").read_text(), re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert copied
    for source in copied:
        assert (TOP / source).exists(), source
        assert any(fnmatch.fnmatch(source, each) for each in kept), source


@pytest.mark.parametrize(
    ("folder", "name"),
    [("compose", "clew"), ("compose", "mosquitto"), *(("cluster", name) for name in ("clew-1", "clew-2", "mosquitto", "postgresql"))],
)
def test_every_service_runs_without_rights(folder: str, name: str) -> None:
    service = compose(folder)["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert all((DEPLOY / folder / each.split(":")[0]).exists() for each in service["volumes"] if each.startswith("."))
    assert "user" in service or re.search(r"^USER [1-9]\d*:", (DEPLOY / "container" / "Containerfile").read_text(), re.MULTILINE)


@pytest.mark.parametrize(("folder", "mqtt"), [("container", False), ("compose", True), ("cluster", True)])
def test_their_configs_hold(folder: str, mqtt: bool) -> None:
    config = load_here(DEPLOY / folder / "clew.yaml", ENV)
    assert str(config.data_dir) == "/data"
    assert config.transports["mqtt"].enabled is mqtt
    environment = compose("cluster" if folder == "cluster" else "compose")["services"]["clew-1" if folder == "cluster" else "clew"][
        "environment"
    ]
    asked = set(re.findall(r"\$\{(\w+)\}", (DEPLOY / folder / "clew.yaml").read_text()))
    assert asked <= set(environment)


def test_the_two_clews_of_the_cluster_differ_in_their_port_and_folder_alone() -> None:
    one, other = (compose("cluster")["services"][name] for name in ("clew-1", "clew-2"))
    assert one["ports"] != other["ports"]
    assert {each.split(":")[0] for each in one["volumes"]} & {each.split(":")[0] for each in other["volumes"]} == {"./clew.yaml"}
    for service in (one, other):
        del service["ports"], service["volumes"]
    assert one == other
