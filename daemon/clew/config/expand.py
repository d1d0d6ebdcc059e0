"""`${NAME}`, `${NAME:-default}`, `${file:PATH}`, `${cred:NAME}` in the texts of a config file; `$${` is a plain one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clew.config import yaml
from clew.errors import Finding

MAX_SECRET_BYTES = 64 * 2**10
"""Largest secret file; a TLS key with its chain takes about 8 KiB."""

_EXPANSION = re.compile(r"\$\$\{|\$\{([^{}]*)\}|\$\{")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.ASCII | re.DOTALL)


def located(text: str, base: Path, env: Mapping[str, str]) -> Path:
    """The path that `text` means: `~/` is $HOME, and what is relative is in the directory `base`."""
    return Path(env.get("HOME", "/")) / text[2:] if text.startswith("~/") else base / text


class _UnsetError(Exception):
    """What an expansion asks for is not there."""


class Expansion:
    """Expands the texts of a tree.

    `env`: the environment; `base`: the directory that relative secret files are in; `lenient`: paths of the sections
    in which what is not set counts as empty. Afterwards `expanded` holds every value that came from outside,
    `credentials` those from files, `files` where those are that `${file:}` named, and `findings` what went wrong.
    """

    def __init__(self, file: str, env: Mapping[str, str], base: Path, lenient: Iterable[yaml.Path]) -> None:
        self.file = file
        self.env = env
        self.base = base
        self.lenient = frozenset(lenient)
        self.findings: list[Finding] = []
        self.expanded: set[str] = set()
        self.credentials: set[str] = set()
        self.files: set[Path] = set()

    def plain(self, node: yaml.Node, path: yaml.Path = ()) -> Any:
        """The plain value of `node`, expanded."""
        if isinstance(node, yaml.Mapping):
            return {key: self.plain(item, (*path, key)) for key, item in node.items.items()}
        if isinstance(node, yaml.List):
            return [self.plain(item, (*path, index)) for index, item in enumerate(node.items)]
        if isinstance(node.value, str) and "${" in node.value:
            return self._text(node.value, node.mark, path)
        return node.value

    def _text(self, text: str, mark: yaml.Mark, path: yaml.Path) -> str:
        def one(found: re.Match[str]) -> str:
            if found[0] == "$${":
                return "${"
            try:
                return self._value(found[1])
            except _UnsetError as err:
                if path[:2] not in self.lenient:
                    self._fault(mark, path, str(err))
            except ValueError as err:
                self._fault(mark, path, str(err))
            return ""

        return _EXPANSION.sub(one, text)

    def _fault(self, mark: yaml.Mark, path: yaml.Path, message: str) -> None:
        self.findings.append(Finding(self.file, mark.line, mark.column, yaml.shown(path), message))

    def _value(self, body: str | None) -> str:
        kind, _, name = (body or "").partition(":")
        if kind == "file":
            path = located(name, self.base, self.env)
            self.files.add(path)
            return self._file(path, f"the secret file of ${{file:{name}}}")
        if kind == "cred":
            return self._credential(name)
        found = _VARIABLE.fullmatch(body or "")
        if not found:
            raise ValueError("${ must be followed by NAME}, NAME:-default}, file:PATH} or cred:NAME}; a plain ${ is $${")
        value = self.env.get(found[1], "") or found[2]
        if value is None and found[1] not in self.env:
            raise _UnsetError(f"the environment variable {found[1]} is not set (${{{found[1]}:-}} would make it optional)")
        return self._checked(value or "", f"the environment variable {found[1]}")

    def _credential(self, name: str) -> str:
        directory = self.env.get("CREDENTIALS_DIRECTORY", "")
        if not name or "/" in name or name in (".", ".."):
            raise ValueError("${cred:NAME} needs the name of one credential, without a slash")
        if not directory:
            raise _UnsetError("$CREDENTIALS_DIRECTORY is not set; systemd sets it for LoadCredential=")
        return self._file(Path(directory) / name, f"the credential {name}")

    def _file(self, path: Path, what: str) -> str:
        try:
            if not path.is_file():
                raise _UnsetError(f"{what} is not a file that can be read")
            with path.open("rb") as file:
                raw = file.read(MAX_SECRET_BYTES + 1)
        except OSError as err:
            raise _UnsetError(f"{what} cannot be read ({err.strerror})") from None
        if len(raw) > MAX_SECRET_BYTES:
            raise ValueError(f"{what} is larger than {MAX_SECRET_BYTES // 1024} KiB")
        value = self._checked(raw.decode("utf-8", "surrogateescape").rstrip("\r\n"), what)
        self.credentials.add(value)
        return value

    def _checked(self, value: str, what: str) -> str:
        if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            raise ValueError(f"{what} does not hold UTF-8 text")
        self.expanded.add(value)
        return value
