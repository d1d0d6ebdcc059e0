"""Whatever the file holds: a configuration or an error for people."""

import re
import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from clew.config import Config, load
from clew.config.units import duration_text
from clew.errors import ConfigError
from tests.unit.test_config_sections import PROVIDERS, TRANSPORTS

KEYS = sorted({*Config.model_fields, "enabled", "kind", "token", "mqtt", "web", "name", "cron", "compression", "<<"})
WORDS = ["${X}", "${file:x}", "$${", "!t", "*a", "&a x", "'", '"', "yes", "~", "1e999", "12:30", "@daily", "{", "[", "\t", "é", "\0"]
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.sampled_from(WORDS)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(KEYS) | st.text(), inner, max_size=4)),
    max_leaves=20,
)
lines = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(KEYS), st.sampled_from(WORDS) | st.text(max_size=8)), max_size=12).map(
    lambda rows: "\n".join(f"{'  ' * depth}{key}: {value}" for depth, key, value in rows)
)


def answer(raw: bytes, env: dict[str, str]) -> Config | ConfigError:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "clew.yaml"
        path.write_bytes(raw)
        try:
            return load(path, transports=TRANSPORTS, providers=PROVIDERS, env=env)
        except ConfigError as err:
            return err


def check(found: Config | ConfigError) -> None:
    if isinstance(found, ConfigError):
        assert found.findings
        assert all(re.fullmatch(r".*/clew\.yaml(:\d+:\d+)? .+", line) for line in str(found).splitlines())


@given(st.binary() | st.text().map(str.encode))
@example(b"\xef\xbb\xbf")
@example(b"? [a]\n: b")
@example(b"%YAML 9.9\n---\na: 1")
@example(b'a: "\\ud800"')
@example(b"--- &a\n*a : 1")
@example("a: \u2028b\x85c: 1".encode())
def test_any_bytes_give_a_configuration_or_findings(raw: bytes) -> None:
    check(answer(raw, {}))


@given(lines)
def test_any_lines_give_a_configuration_or_findings(text: str) -> None:
    check(answer(text.encode(), {"X": "sixteen candles!"}))


def written(value: object) -> str:
    """`value` in YAML's flow style, text in double quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)}: {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(char):08x}" for char in value) + '"'
    return "null" if value is None else str(value).lower()


@given(st.dictionaries(st.sampled_from(KEYS), values))
def test_any_values_give_a_configuration_or_findings(data: dict[str, object]) -> None:
    check(answer(written(data).encode(), {"X": "sixteen candles!"}))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=4).filter(lambda text: len(set(text)) > 3))
def test_an_expanded_secret_is_never_in_a_finding(secret: str) -> None:
    text = b"http: {token: ['${X}'], host: 1}\ntransports: {courier: {token: 'bad${X}', base_url: 1}}\nagent: {provider: '${X}'}\n"
    found = answer(text, {"X": secret})
    assert isinstance(found, ConfigError)
    messages = [finding.message for finding in found.findings]
    plain = answer(text, {"X": "~" * 40})
    assert isinstance(plain, ConfigError)
    assert messages == [finding.message for finding in plain.findings]


@given(st.integers(0, 10**9))
def test_a_duration_prints_as_it_reads(milliseconds: int) -> None:
    printed = duration_text(milliseconds / 1000)
    assert re.fullmatch(r"\d+(ms|s|m|h|d)", printed)
