"""`clew config check | show | schema`."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from clew.cli.config import config
from clew.config import load
from clew.config import schema as schema_of
from tests.unit.test_config_sections import PROVIDERS, TRANSPORTS


def run(*args: str, env: dict[str, str] | None = None) -> Result:
    result = CliRunner().invoke(config, args, env={"ANTHROPIC_API_KEY": None, "CLEW_CONFIG": None, **(env or {})})
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def test_check_says_ok_and_which_file(tmp_path: Path) -> None:
    path = tmp_path / "clew.yaml"
    path.write_text("store: sqlite\n")
    result = run("check", "--config", str(path))
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"ok: {path}\n", "")
    assert run("check", env={"CLEW_CONFIG": str(path)}).stdout == f"ok: {path}\n"


def test_check_lists_all_findings(tmp_path: Path) -> None:  # BO-100
    path = tmp_path / "clew.yaml"
    path.write_text("http: {prot: 1}\nlog: {level: loud}\n")
    result = run("check", "--config", str(path))
    assert result.exit_code == 78
    assert result.stdout.splitlines() == [
        f"{path}:1:8 http.prot: unknown key (did you mean port?)",
        f"{path}:2:14 log.level: must be debug, info, warning or error",
    ]


def test_check_warns_with_the_place_and_is_content(tmp_path: Path) -> None:  # BO-100
    path = tmp_path / "clew.yaml"
    path.write_text("http: {port: 1, token: abc}\ntransports:\n  mqtt: {host: broker.lan, tls: false}\n")
    result = run("check", "--config", str(path))
    first, second, last = result.stdout.splitlines()
    assert (result.exit_code, last) == (0, f"ok: {path}")
    assert first.startswith(f"warning: {path}:1:24 http.token: can be guessed")
    assert second.startswith(f"warning: {path}:3:33 transports.mqtt.tls: messages and password go to broker.lan without encryption")


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_missing_file_is_told_on_stderr(tmp_path: Path, command: str) -> None:
    result = run(command, "--config", str(tmp_path / "gone.yaml"))
    assert (result.exit_code, result.stdout) == (78, "")
    assert "there is no such file" in result.stderr


def test_show_prints_what_is_in_effect_without_secrets(tmp_path: Path) -> None:
    path = tmp_path / "clew.yaml"
    (tmp_path / "place").write_text("broker.secret.example\n")
    mqtt = "{enabled: true, username: ada, password: pass-word, host: '${file:place}'}"
    path.write_text(f"http: {{token: hush-hush}}\ntransports: {{mqtt: {mqtt}}}\nagent: {{approver: {{allow: [pay]}}}}\n")
    result = run("show", "--config", str(path), env={"ANTHROPIC_API_KEY": "sk-ant-secret"})
    assert result.exit_code == 0
    shown = yaml.safe_load(result.stdout)
    assert shown["http"]["token"] == "***"
    assert shown["providers"]["claude"]["api_key"] == "***"
    assert shown["transports"]["mqtt"]["password"] == shown["transports"]["mqtt"]["host"] == "***"
    assert shown["agent"]["approver"]["allow"] == ["pay"]
    assert shown["limits"]["message_bytes"] == "128KiB"
    assert not [word for word in ("hush", "pass-word", "sk-ant", "broker.secret") if word in result.output]


def test_show_prints_no_password_of_an_address(tmp_path: Path) -> None:  # P19, BO-099
    path, again = tmp_path / "clew.yaml", tmp_path / "again.yaml"
    path.write_text('providers: {house: {kind: openai, base_url: "http://ada:p%40ss@127.0.0.1:8080/v1", model: any}}\n')
    again.write_text(run("show", "--config", str(path)).stdout)
    assert yaml.safe_load(again.read_text())["providers"]["house"]["base_url"] == "http://ada:***@127.0.0.1:8080/v1"
    assert run("check", "--config", str(again)).stdout == f"ok: {again}\n"


def test_what_show_prints_loads_again(tmp_path: Path) -> None:
    path, again = tmp_path / "clew.yaml", tmp_path / "again.yaml"
    path.write_text(
        "schedule: [{name: a, at: 2027-03-01T08:30, prompt: x, deliver_to: web:a, grace: 90s}]\ntransports: {web: {enabled: true}}"
    )
    again.write_text(run("show", "--config", str(path)).stdout)
    assert run("check", "--config", str(again)).stdout == f"ok: {again}\n"
    assert run("show", "--config", str(again)).stdout == again.read_text()


def test_schema_covers_all_keys_and_plug_ins() -> None:
    document = json.loads(run("schema").stdout)
    assert document["additionalProperties"] is False
    assert {"http", "agent", "transports", "schedule"} <= set(document["properties"])
    mqtt = document["$defs"]["transports.mqtt"]
    assert {"kind", "enabled", "host", "port"} <= set(mqtt["properties"])
    assert mqtt["properties"]["kind"] == {"const": "mqtt"}


def test_every_reference_in_the_schema_has_its_definition() -> None:
    document = schema_of(transports=TRANSPORTS, providers=PROVIDERS)
    text = json.dumps(document)
    names = {part.partition('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert names
    assert names <= set(document["$defs"])


def test_the_schema_is_of_what_loads(tmp_path: Path) -> None:
    path = tmp_path / "clew.yaml"
    path.touch()
    filled = load(path, transports=TRANSPORTS, providers=PROVIDERS, env={}).model_dump(mode="json")
    document = schema_of(transports=TRANSPORTS, providers=PROVIDERS)
    assert set(filled) == set(document["properties"])
