"""`${…}` in a config file: what it reads, and what happens when that is not there."""

from pathlib import Path

import pytest

from clew.config.units import duration_text, size_text
from tests.unit.test_config_sections import complaints, loaded


def prompt(directory: Path, text: str, env: dict[str, str]) -> str:
    return loaded(directory, f"agent: {{system_prompt: '{text}'}}", env).agent.system_prompt


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${NAME}", "Ada"),
        ("I am ${NAME}, ${NAME}!", "I am Ada, Ada!"),
        ("${NAME:-Bob}", "Ada"),
        ("${OTHER:-Bob}", "Bob"),
        ("${OTHER:-}", ""),
        ("${EMPTY:-Bob}", "Bob"),
        ("${EMPTY}", ""),
        ("$${NAME}", "${NAME}"),
        ("$NAME $ {}", "$NAME $ {}"),
        ("${NESTED}", "${NAME}"),
        ("${NAME:-a:-b}", "Ada"),
        ("${OTHER:-http://x:1}", "http://x:1"),
    ],
)
def test_the_environment_is_read(tmp_path: Path, text: str, value: str) -> None:
    assert prompt(tmp_path, text, {"NAME": "Ada", "EMPTY": "", "NESTED": "${NAME}"}) == value


def test_a_number_from_the_environment_stays_text(tmp_path: Path) -> None:
    token = loaded(tmp_path, "http: {token: '${TOKEN}'}", {"TOKEN": "12345"}).http.token
    assert token is not None
    assert token.get_secret_value() == "12345"
    assert complaints(tmp_path, "http: {port: '${PORT}'}", {"PORT": "80"}) == ["1:14 http.port: must be a whole number"]


def test_a_secret_file_is_read_without_its_last_line_end(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("one\ntwo\r\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "other").write_text("three")
    env = {"HOME": str(tmp_path / "home")}
    assert prompt(tmp_path, "${file:secret}", env) == "one\ntwo"
    assert prompt(tmp_path, f"${{file:{tmp_path}/secret}}", env) == "one\ntwo"
    assert prompt(tmp_path, "${file:~/other}", env) == "three"


def test_a_credential_of_systemd_is_read(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    config = loaded(tmp_path, "http: {token: '${cred:token}'}", {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert config.secrets() == {"s3cret"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${NAME}", "the environment variable NAME is not set (${NAME:-} would make it optional)"),
        ("${file:gone}", "the secret file of ${file:gone} is not a file that can be read"),
        ("${file:.}", "the secret file of ${file:.} is not a file that can be read"),
        ("${file:large}", "the secret file of ${file:large} is larger than 64 KiB"),
        ("${file:latin}", "the secret file of ${file:latin} does not hold UTF-8 text"),
        ("${cred:gone}", "the credential gone is not a file that can be read"),
        ("${cred:../clew.yaml}", "${cred:NAME} needs the name of one credential, without a slash"),
        ("${cred:..}", "${cred:NAME} needs the name of one credential, without a slash"),
        ("${WRONG}", "the environment variable WRONG does not hold UTF-8 text"),
        ("${}", "${ must be followed by NAME}, NAME:-default}, file:PATH} or cred:NAME}; a plain ${ is $${"),
        ("${NAME", "${ must be followed by NAME}, NAME:-default}, file:PATH} or cred:NAME}; a plain ${ is $${"),
        ("${a b}", "${ must be followed by NAME}, NAME:-default}, file:PATH} or cred:NAME}; a plain ${ is $${"),
    ],
)
def test_what_cannot_be_expanded_is_a_fault(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "large").write_bytes(b"x" * (2**16 + 1))
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    env = {"CREDENTIALS_DIRECTORY": str(tmp_path), "WRONG": "caf\udce9"}
    found = complaints(tmp_path, f"agent: {{system_prompt: '{text}'}}", env)
    assert found == [f"1:24 agent.system_prompt: {message}"]


def test_without_systemd_a_credential_is_a_fault(tmp_path: Path) -> None:
    [found] = complaints(tmp_path, "http: {token: '${cred:token}'}")
    assert "$CREDENTIALS_DIRECTORY is not set" in found


def test_a_disabled_transport_takes_what_is_unset_as_empty(tmp_path: Path) -> None:
    text = "transports: {courier: {enabled: %s, token: '${TOKEN}'}}"
    settings = loaded(tmp_path, text % "false").transports["courier"].settings
    assert settings.model_dump()["token"].get_secret_value() == ""
    [found] = complaints(tmp_path, text % "true")
    assert "the environment variable TOKEN is not set" in found


@pytest.mark.parametrize(
    ("text", "env", "place"),
    [
        ("", {"HOME": "/home/ada"}, "/home/ada/.local/share/clew"),
        ("", {"HOME": "/home/ada", "STATE_DIRECTORY": "/var/lib/clew"}, "/var/lib/clew"),
        ("data_dir: ~/clew", {"HOME": "/home/ada", "STATE_DIRECTORY": "/var/lib/clew"}, "/home/ada/clew"),
        ("data_dir: /srv/clew", {}, "/srv/clew"),
    ],
)
def test_the_data_directory(tmp_path: Path, text: str, env: dict[str, str], place: str) -> None:
    assert loaded(tmp_path, text, env or {"HOME": "/"}).data_dir == Path(place)


def test_a_relative_data_directory_is_beside_the_file(tmp_path: Path) -> None:
    assert loaded(tmp_path, "data_dir: data").data_dir == tmp_path / "data"


@pytest.mark.parametrize("text", ["500ms", "30s", "10m", "36h", "7d", "0s", "90s"])
def test_durations_print_as_they_are_read(tmp_path: Path, text: str) -> None:
    job = f"schedule: [{{name: a, every: 1h, prompt: x, deliver_to: web:a, grace: {text}}}]"
    grace = loaded(tmp_path, job).schedule[0].grace
    assert grace is not None
    assert grace == {"500ms": 0.5, "30s": 30, "10m": 600, "36h": 129_600, "7d": 604_800, "0s": 0, "90s": 90}[text]
    assert duration_text(grace) == text


@pytest.mark.parametrize(("text", "value"), [("128KiB", 131_072), ("2MiB", 2_097_152), ("2049B", 2049), ("4096", 4096)])
def test_sizes_are_read(tmp_path: Path, text: str, value: int) -> None:
    assert loaded(tmp_path, f"limits: {{message_bytes: {text}}}").limits.message_bytes == value
    assert size_text(value).removesuffix("B") in (text.removesuffix("B"), "4Ki")
