"""Sections of plug-ins, and the small set of kinds that the config's tests use."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr, field_validator

from clew.config import Config, load
from clew.errors import ConfigError


class Web(BaseModel):
    pass


class Mqtt(BaseModel):
    host: str = "127.0.0.1"
    port: int = 1883
    username: str | None = None
    password: SecretStr | None = None


class Courier(BaseModel):
    token: SecretStr = SecretStr("")
    base_url: str = "https://example.org"

    @field_validator("token")
    @classmethod
    def begins_with_a_number(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value().startswith("bad"):
            raise ValueError(f"{value.get_secret_value()} is no token")
        return value


class Waits(BaseModel):
    first_byte: int = 60


class Anthropic(BaseModel):
    model: str = "claude-sonnet-5-5"
    api_key: SecretStr = SecretStr("")
    timeouts: Waits = Waits()


class OpenAi(BaseModel):
    base_url: str
    model: str = "any"
    context_window: int | None = None


class Offline(BaseModel):
    pass


TRANSPORTS: dict[str, type[BaseModel]] = {"web": Web, "mqtt": Mqtt, "courier": Courier}
PROVIDERS: dict[str, type[BaseModel]] = {"anthropic": Anthropic, "openai": OpenAi, "offline": Offline}

NO_TRANSPORT = "no kind of transports that exists in this version; `kind` must be one of: web, mqtt, courier"
NO_PROVIDER = "no kind of providers that exists in this version; `kind` must be one of: anthropic, openai, offline"
BAD_NAME = "a name here has up to 64 of a-z, 0-9, _ and -, and begins with a letter"
WRONG_BELOW = "providers.c.timeouts.frist_byte: unknown key (did you mean first_byte?)"
EMPTY = "must not be empty while the transport is enabled"
AUTO = "a provider cannot be called auto; agent.provider has its own use for it"


def loaded(directory: Path, text: str, env: dict[str, str] | None = None) -> Config:
    """The configuration that `text` means, in a file of `directory` and with `env` alone as environment."""
    path = directory / "clew.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path, transports=TRANSPORTS, providers=PROVIDERS, env=env or {"HOME": "/home/ada"})


def complaints(directory: Path, text: str, env: dict[str, str] | None = None) -> list[str]:
    """What is wrong with `text`, as `line:column key: message`."""
    with pytest.raises(ConfigError) as caught:
        loaded(directory, text, env)
    assert caught.value.findings
    return [str(finding).removeprefix(f"{directory / 'clew.yaml'}:") for finding in caught.value.findings]


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    config = loaded(tmp_path, "")
    assert config.agent == Config().agent
    assert {name: section.kind for name, section in config.providers.items()} == {
        "claude": "anthropic",
        "local": "openai",
        "none": "offline",
    }
    assert {name: section.enabled for name, section in config.transports.items()} == {"web": True, "mqtt": False, "courier": False}
    assert config.data_dir == Path("/home/ada/.local/share/clew")


@pytest.mark.parametrize("text", ["", "# store: sqlite\n", "---\n", "people:\nschedule:\n"])
def test_a_file_that_sets_nothing_is_told_of(tmp_path: Path, text: str) -> None:
    (warning,) = loaded(tmp_path, text).warnings
    assert str(warning).startswith(f"{tmp_path / 'clew.yaml'} sets nothing")
    assert not loaded(tmp_path, "store: sqlite").warnings


def test_a_key_without_value_means_its_default(tmp_path: Path) -> None:
    assert loaded(tmp_path, "people:\nschedule:\nhttp:\n") == loaded(tmp_path, "")


def test_the_defaults_name_only_kinds_that_exist(tmp_path: Path) -> None:
    path = tmp_path / "clew.yaml"
    path.write_text("")
    config = load(path, transports={}, providers={"offline": Offline}, env={})
    assert (list(config.providers), list(config.transports)) == (["none"], [])


def test_providers_are_only_the_written_ones_and_web_stays_on(tmp_path: Path) -> None:
    config = loaded(tmp_path, "providers: {mine: {kind: offline}}\ntransports: {mqtt: {host: broker}}")
    assert list(config.providers) == ["mine"]
    assert config.transports["web"].enabled
    assert config.transports["mqtt"].enabled
    assert config.transports["mqtt"].settings == Mqtt(host="broker")


def test_a_section_may_have_another_name_than_its_kind(tmp_path: Path) -> None:
    section = loaded(tmp_path, "transports: {garden: {kind: mqtt, port: 1884}}").transports["garden"]
    assert (section.kind, section.name, section.settings) == ("mqtt", "garden", Mqtt(port=1884))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("transports:\n  telegram: {enabled: false}", f"2:3 transports.telegram: {NO_TRANSPORT}"),
        ("transports:\n  a: {kind: mqqt}", f"2:13 transports.a.kind: {NO_TRANSPORT} (did you mean mqtt?)"),
        ("providers: {x: {kind: 3}}", f"1:23 providers.x.kind: {NO_PROVIDER}"),
        ("transports: {mqtt: {prot: 1}}", "1:21 transports.mqtt.prot: unknown key (did you mean port?)"),
        ("transports: {mqtt: {enabeld: true}}", "1:21 transports.mqtt.enabeld: unknown key (did you mean enabled?)"),
        ("transports: {mqtt: {enabled: no}}", "1:30 transports.mqtt.enabled: must be true or false"),
        ("transports: {mqtt: {port: \"1\"}}", "1:27 transports.mqtt.port: must be a whole number"),
        ("transports: {mqtt: {password: 12345}}", "1:31 transports.mqtt.password: must be text; put it in quotes"),
        ("transports: {mqtt: 3}", "1:20 transports.mqtt: must be a section of `key: value` lines"),
        ("transports: [mqtt]", "1:1 transports: must be a section of `name: {…}` lines"),
        ("transports: {A/b: {kind: mqtt}}", f"1:14 transports.A/b: {BAD_NAME}"),
        ("providers: {c: {kind: anthropic, timeouts: {frist_byte: 1}}}", f"1:45 {WRONG_BELOW}"),
        ("providers: {c: {kind: openai}}", "1:13 providers.c.base_url: is missing"),
        ("transports: {courier: {token: \"\"}}", f"1:31 transports.courier.token: {EMPTY}"),
        ("providers: {auto: {kind: offline}}", f"1:13 providers.auto: {AUTO}"),
    ],
)  # fmt: skip
def test_faults_in_sections_are_named_with_their_place(tmp_path: Path, text: str, complaint: str) -> None:
    assert complaints(tmp_path, text) == [complaint]


def test_a_provider_with_an_empty_key_is_not_configured(tmp_path: Path) -> None:
    without = loaded(tmp_path, "")
    assert not without.providers["claude"].configured
    assert without.providers["local"].configured
    assert loaded(tmp_path, "", {"ANTHROPIC_API_KEY": "sk-1"}).providers["claude"].configured


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("agent: {provider: claude}", "1:19 agent.provider"),
        ("agent: {fallback: [none, claude]}", "1:26 agent.fallback[1]"),
        ("agent: {compression: {provider: claude}}", "1:33 agent.compression.provider"),
    ],
)
def test_naming_a_provider_without_key_is_an_error(tmp_path: Path, text: str, place: str) -> None:
    assert complaints(tmp_path, text) == [f"{place}: this provider's api_key is empty"]


def test_a_secret_is_never_in_a_complaint(tmp_path: Path) -> None:
    texts: list[tuple[str, dict[str, str]]] = [
        ("transports: {courier: {token: bad-secret}}", {}),
        ("transports: {courier: {token: '${TOKEN}'}}", {"TOKEN": "bad-secret"}),
        ("transports: {courier: {token: [bad-secret]}}", {}),
        ("transports: {courier: {token: !bad-secret }}", {}),
        ("transports: {courier: {token: *bad-secret }}", {}),
        ("transports: {courier: {token: bad-secret: 1}}", {}),
        ("transports: {courier: {token: ok, base_url: ['${TOKEN}']}}", {"TOKEN": "bad-secret"}),
        ("http: {token: 'bad-secret', host: 3}", {}),
        ("agent: {provider: '${TOKEN}', timezone: '${TOKEN}'}", {"TOKEN": "bad-secret"}),
    ]
    for text, env in texts:
        found = complaints(tmp_path, text, env)
        assert not [line for line in found if "bad-secret" in line], found


def test_secrets_are_listed_for_the_redactor(tmp_path: Path) -> None:
    (tmp_path / "place").write_text("hidden-host\n")
    text = """
http: {token: t0ken}
transports:
  mqtt: {enabled: false, password: pass, host: "${file:place}"}
  courier: {token: "${TOKEN}"}
"""
    assert loaded(tmp_path, text, {"TOKEN": "c0urier", "ANTHROPIC_API_KEY": "sk-1"}).secrets() == {
        "t0ken",
        "pass",
        "hidden-host",
        "c0urier",
        "sk-1",
    }


@pytest.mark.parametrize("value", [{"store": "other"}, {"data_dir": Path("/elsewhere")}])
def test_a_configuration_cannot_be_changed(tmp_path: Path, value: dict[str, Any]) -> None:
    config = loaded(tmp_path, "")
    for name, new in value.items():
        with pytest.raises(ValueError, match="frozen"):
            setattr(config, name, new)
