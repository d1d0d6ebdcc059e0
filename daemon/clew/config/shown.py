"""The configuration as people see it: what counts, without secrets, and where each value comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import SecretStr

from clew.config import yaml
from clew.config.load import read
from clew.config.settings import Config

_PYDANTICS_MASK = str(SecretStr("any"))
_EXPANSION = re.compile(r"(?<!\$)\$\{(?:(file|cred):)?([^{}:]+)")
_READS = {"": "${}", "file": "the file {}", "cred": "the credential {}"}
_PASSWORD = re.compile(r"((?<=://)[^\s/@:]{0,200}:)[^\s/@]{1,500}(?=@)|([?&]sslpassword=)[^\s&]{1,500}")
"""In the address of a server."""
_NOWHERE: Any = object()


def shown(config: Config) -> dict[str, Any]:
    """The effective values as plain ones, secrets as `***`; sections of plug-ins have their own settings among the common ones."""
    masked: dict[str, Any] = _masked(_plain(config, "json"), sorted(config.secrets(), key=len, reverse=True))
    return masked


def _plain(config: Config, mode: Literal["json", "python"]) -> dict[str, Any]:
    plain = config.model_dump(mode=mode)
    for group in ("providers", "transports"):
        plain[group] = {name: _flat(section) for name, section in plain[group].items()}
    return plain


def _flat(section: dict[str, Any]) -> dict[str, Any]:
    common = {key: value for key, value in section.items() if key not in ("name", "settings")}
    return {**common, **section["settings"]}


def _masked(value: Any, hidden: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _masked(item, hidden) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, hidden) for item in value]
    if not isinstance(value, str):
        return value
    for text in [_PYDANTICS_MASK, *hidden]:
        value = value.replace(text, "***")
    return _PASSWORD.sub(r"\1\2***", value)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value stands in the file. line: from 1. reads: what its text is read from, such as `$TOKEN`."""

    line: int
    reads: tuple[str, ...] = ()


class Origins:
    """Where the values of a file come from. Raises ConfigError where it cannot be read."""

    def __init__(self, file: Path) -> None:
        self._root, _ = yaml.parse(read(file), str(file))

    def of(self, path: yaml.Path) -> Origin | None:
        """None: the value is a default."""
        *above, (found, node) = yaml.nodes(self._root, path)
        if found != path or not above:
            return None
        parent = above[-1][1]
        mark = parent.keys.get(str(path[-1]), node.mark) if isinstance(parent, yaml.Mapping) else node.mark
        return Origin(mark.line, tuple(dict.fromkeys(_reads(node))))


def _reads(node: yaml.Node) -> Iterator[str]:
    if isinstance(node, yaml.Mapping):
        for each in node.items.values():
            yield from _reads(each)
    elif isinstance(node, yaml.List):
        for each in node.items:
            yield from _reads(each)
    elif isinstance(node.value, str):
        yield from (_READS[kind].format(f"${name}" if not kind else name) for kind, name in _EXPANSION.findall(node.value))


@dataclass(frozen=True, slots=True)
class Value:
    """One value. section: the key at the top that it stands below. text: as YAML would have it, secrets as `***`.

    origin: None where it is a default, or where no file is known.
    """

    section: str
    key: str
    text: str
    origin: Origin | None = None


def values(config: Config, origins: Origins | None = None) -> list[Value]:
    """All effective values, in the order of the sections."""
    return [_value(path, value, origins.of(path) if origins else None) for path, value in _leaves(shown(config))]


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that one config has otherwise than another; a text is empty where there is none."""

    section: str
    key: str
    before: str
    after: str


def differences(before: Config, after: Config) -> list[Difference]:
    """What differs, secrets too, of which both texts are `***`."""
    real = [dict(_leaves(_plain(each, "python"))) for each in (before, after)]
    texts = [dict(_leaves(shown(each))) for each in (before, after)]
    unlike = [path for path in {**real[0], **real[1]} if real[0].get(path, _NOWHERE) != real[1].get(path, _NOWHERE)]
    one, other = ({path: _text(each[path]) for path in unlike if path in each} for each in texts)
    return [Difference(str(path[0]), yaml.shown(path), one.get(path, ""), other.get(path, "")) for path in unlike]


def _leaves(value: Any, path: yaml.Path = ()) -> Iterator[tuple[yaml.Path, Any]]:
    """The values with their paths; a list of plain values is one."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, str(key)))
    elif isinstance(value, (list, tuple)) and any(isinstance(item, (Mapping, list, tuple)) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path, value


def _value(path: yaml.Path, value: Any, origin: Origin | None) -> Value:
    return Value(str(path[0]), yaml.shown(path), _text(value), origin)


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(each) for each in value)}]"
    if isinstance(value, Mapping):
        return "{}"
    return str(value) if str(value) else '""'
