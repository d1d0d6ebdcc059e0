"""Errors for people: what happened, where, and what to do about it.

Each class carries the exit code that the command line ends with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class ClewError(Exception):
    """Something a person can understand and act upon; shown without a traceback.

    `message` says what happened and where, `hint` what to do (may be empty).
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def told(self) -> str:
        """All of it, as one line of text."""
        return f"{self.message} {self.hint}".strip()


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault in a configuration file.

    `line` and `column` count from 1; 0 means that the fault has no place in the file. `key` is the dotted path,
    `nearest` the valid key that was probably meant (empty if none is near).
    """

    file: str
    line: int
    column: int
    key: str
    message: str
    nearest: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        meant = f" (did you mean {self.nearest}?)" if self.nearest else ""
        return f"{place} {self.key + ': ' if self.key else ''}{self.message}{meant}"


class ConfigError(ClewError):
    """The configuration cannot be used. Its text has one line for each finding."""

    exit_code: ClassVar[int] = 78

    def __init__(self, message: str = "", *, findings: Sequence[Finding] = (), hint: str = "") -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join([message] * bool(message) + [str(each) for each in self.findings]), hint=hint)


class StoreError(ClewError):
    """The database cannot be opened, read or written. `lasting`: waiting will not mend it (the file is damaged or closed)."""

    def __init__(self, message: str, *, hint: str = "", lasting: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.lasting = lasting


class UsageError(ClewError):
    """A command or request that makes no sense as written."""

    exit_code: ClassVar[int] = 2


class NotFound(ClewError):
    """Nothing matches what was asked for."""

    exit_code: ClassVar[int] = 3
