"""The strict part of YAML that a config file is written in."""

from pathlib import Path

import pytest

from clew.config import load, yaml
from clew.config.expand import Expansion
from clew.errors import ConfigError
from tests.unit.test_config_sections import complaints, loaded

BAD_CHARACTER = "not valid YAML: a character that cannot stand here (tabs cannot indent; quote text that begins with @ % `)"
BAD_COLON = "not valid YAML: a colon that cannot stand here; quote text with `: ` in it and check the indentation"
TAG = "tags are not supported; text that begins with ! must stand in quotes"


def values(text: str) -> object:
    root, findings = yaml.parse(text.encode(), "f")
    assert findings == []
    return Expansion("f", {}, Path(), ()).plain(root)


def faults(raw: bytes) -> list[str]:
    try:
        _, findings = yaml.parse(raw, "f")
    except ConfigError as err:
        findings = list(err.findings)
    return [str(finding) for finding in findings]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("12:30", "12:30"),
        ("190:20:30", "190:20:30"),
        ("2026-01-01", "2026-01-01"),
        ("0x1F", "0x1F"),
        ("017", "017"),
        ("1_000", "1_000"),
        ("-17", -17),
        ("0", 0),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("~", None),
        ("", None),
        ("null", None),
        ('"null"', "null"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("=", "="),
        ("<<", "<<"),
        ("[1, {a: b}]", [1, {"a": "b"}]),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_what_a_value_means(text: str, value: object) -> None:
    assert values(f"key: {text}") == {"key": value}


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"a: 1\nb: 2\na: 3", "f:3:1 a: is written twice in one section, first in line 1"),
        ("jos\u00e9: 1\njose\u0301: 2".encode(), "f:2:1 jose\u0301: is written twice in one section, first in line 1"),
        (b"s:\n  a: 1\n  \"a\": 2", "f:3:3 s.a: is written twice in one section, first in line 2"),
        (b"a: caf\xe9", "f:1:7 is not UTF-8 here; save the file as UTF-8"),
        (b"\xff\xfea\x00", "f:1:1 is not UTF-8 here; save the file as UTF-8"),
        ("é: 1\nb: é\x07".encode(), "f:2:5 has the control character U+0007"),
        (b"a:\n\tb: 1", f"f:2:1 {BAD_CHARACTER}"),
        (b"a: @b", f"f:1:4 {BAD_CHARACTER}"),
        (b"a: b: c", f"f:1:5 {BAD_COLON}"),
        (b"a: *b", "f:1:4 text that begins with * must stand in quotes (or the anchor is missing)"),
        (b"a: !b c", f"f:1:4 a: {TAG}"),
        (b"a: !!python/object:os.system x", f"f:1:4 a: {TAG}"),
        (b"a: 'b", "f:1:6 not valid YAML: a quote is not closed"),
        (b"- a", "f:1:1 must be `key: value` lines"),
        (b"a: 1\n---\nb: 2", "f:2:1 a second document begins; there must be only one"),
        (b"[a]: 1", "f:1:1 a key must be plain text"),
        (b"'': 1", "f:1:1 a key must be plain text"),
        (b'a: "\\0"', "f:1:4 a: has a character that no setting can hold"),
        (b"a: 1234567890123456789", "f:1:4 a: the number is too large"),
        (b"a: 1e999", "f:1:4 a: the number is too large"),
        (b"a: &x [*x]", "f:1:8 text that begins with * must stand in quotes (or the anchor is missing)"),
        (b"a: " + b"[" * 40 + b"]" * 40, "f:1:35 is nested deeper than 32 levels"),
        (b"#" * (2**20 + 1), "f is larger than 1 MiB"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_where_and_why(raw: bytes, fault: str) -> None:
    assert faults(raw) == [fault]


def test_a_nest_of_a_million_brackets_is_refused() -> None:
    [fault] = faults(b"a: " + b"[" * 1_000_000)
    assert "nested" in fault


def test_aliases_work_within_bounds() -> None:
    assert values("a: &x {k: [1]}\nb: *x\nc: [*x]") == {"a": {"k": [1]}, "b": {"k": [1]}, "c": [{"k": [1]}]}


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    assert "f:5" in faults("\n".join(lines).encode())[0]
    assert "has more than 50000 values" in faults("\n".join(lines).encode())[0]


def test_a_ladder_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 40))]
    assert "is nested deeper than 32 levels" in faults("\n".join(lines).encode())[0]


def test_reading_goes_on_after_a_fault_that_can_be_passed(tmp_path: Path) -> None:
    text = "http: {port: 1}\nhttp: {port: 2}\nlog: {level: loud}\n"
    assert complaints(tmp_path, text) == [
        "2:1 http: is written twice in one section, first in line 1",
        "3:14 log.level: must be debug, info, warning or error",
    ]


def test_a_byte_order_mark_and_windows_line_ends_are_taken(tmp_path: Path) -> None:
    assert loaded(tmp_path, "\ufeffhttp:\r\n  port: 81\r\n").http.port == 81


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read \(Is a directory\)"):
        load(tmp_path, transports={}, providers={})
    with pytest.raises(ConfigError, match=r"cannot be read \(No such file or directory\)"):
        load(tmp_path / "missing", transports={}, providers={})
