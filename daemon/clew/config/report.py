"""The faults of one file: each with its place, one for each key, and without anything secret."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from clew.config import yaml
from clew.config.wording import secret_texts, unknown, wording
from clew.errors import Finding

SHORTEST_SECRET = 4
"""Characters; shorter texts occur in messages by chance."""

MAX_FINDINGS = 100
"""Faults that are reported; with more of them the file is not what it was meant to be."""

M = TypeVar("M", bound=BaseModel)


class Report:
    """Collects what is wrong with the file `file`, read as `root`.

    `hidden`: texts that must not appear in a message; those too short to be a secret are not looked for.
    At one place only the first fault is kept: later ones follow from it.
    """

    def __init__(self, file: str, root: yaml.Mapping, hidden: Iterable[str], findings: Iterable[Finding]) -> None:
        self.file = file
        self.root = root
        self.hidden = set(hidden)
        self.findings = list(findings)[:MAX_FINDINGS]
        self.warnings: list[Finding] = []
        self._keys = {finding.key for finding in self.findings}

    @property
    def full(self) -> bool:
        """Whether no more faults are taken."""
        return len(self.findings) >= MAX_FINDINGS

    def fault(self, path: yaml.Path, message: str, nearest: str = "", *, at_key: bool = False) -> None:
        """Notes that the value at `path` (or, with `at_key`, its key) is wrong."""
        key = yaml.shown(path)
        if key in self._keys or self.full:
            return
        self._keys.add(key)
        mark = self._mark(path, at_key)
        self.findings.append(Finding(self.file, mark.line, mark.column, key, message, nearest))

    def warning(self, path: yaml.Path, message: str) -> None:
        """Notes that the value at `path` is hardly what was meant."""
        mark = self._mark(path, False)
        if len(self.warnings) < MAX_FINDINGS:
            self.warnings.append(Finding(self.file, mark.line, mark.column, yaml.shown(path), message))

    def validated(self, model: type[M], data: Any, path: yaml.Path = (), common: Sequence[str] = ()) -> M | None:
        """`data`, which stands at `path`, as a `model`; None if it is wrong, and then it is noted.

        `common`: keys that this section may have beside those of `model`.
        """
        self.hidden.update(secret_texts(model, data))
        try:
            return model.model_validate_json(json.dumps(data), strict=True, extra="forbid")
        except ValidationError as err:
            self._errors(model, err.errors(include_url=False, include_input=False), path, common)
            return None

    def _errors(self, model: type[BaseModel], errors: list[ErrorDetails], path: yaml.Path, common: Sequence[str]) -> None:
        wrong: dict[yaml.Path, list[str]] = {}
        for error in errors[:MAX_FINDINGS]:
            *_, (found, node) = yaml.nodes(self.root, (*path, *error["loc"]))
            if error["type"] == "extra_forbidden":
                message, nearest = unknown(model, found[len(path) :], common)
                self.fault(found, message, nearest, at_key=True)
                continue
            if error["type"] == "missing":
                found = (*found, error["loc"][-1])
            value = node.value if isinstance(node, yaml.Scalar) else None
            wrong.setdefault(found, []).append(self._safe(wording(error, value)))
        for found, messages in wrong.items():
            first, *others = dict.fromkeys(messages)
            self.fault(found, " or ".join([first, *(other.removeprefix("must be ") for other in others)]))

    def _safe(self, message: str) -> str:
        """`message`, unless a plug-in's own check quotes something hidden in it."""
        quoted = any(text in message for text in self.hidden if len(text) >= SHORTEST_SECRET)
        return "is not valid" if quoted else message

    def _mark(self, path: yaml.Path, at_key: bool) -> yaml.Mark:
        steps = list(yaml.nodes(self.root, path))
        found, node = steps[-1]
        if not found:
            return yaml.NOWHERE
        exact = len(found) == len(path)
        if exact and isinstance(node, yaml.Scalar) and not at_key:
            return node.mark
        parent = steps[-2][1]
        key = found[-1]
        return parent.keys[key] if isinstance(parent, yaml.Mapping) and isinstance(key, str) else node.mark
