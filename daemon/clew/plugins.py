"""Plug-ins: found by entry point, the built-in ones too."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Plugin:
    """A kind that the config can name.

    Config: the model of its section. build: `build(name, settings)` returns the transport, provider or recall;
    `name` is the section's name.
    """

    name: str
    Config: type[BaseModel]
    build: Callable[[str, Any], Any]


@cache
def registry(group: str) -> dict[str, Plugin]:
    """The plug-ins of an entry-point group such as `clew.transports`, by kind, in the order of their names."""
    found = {point.name: point.load() for point in entry_points(group=group)}
    return {name: found[name] for name in sorted(found)}
