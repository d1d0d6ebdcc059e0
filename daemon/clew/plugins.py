"""Plug-ins: found by entry point, the built-in ones too."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import BaseModel

from clew.errors import ClewError


@dataclass(frozen=True, slots=True)
class Fault:
    """What `clew doctor` is to tell of a section. command: mends it. serious: it does not work until then."""

    text: str
    command: str
    serious: bool = True


@dataclass(frozen=True, slots=True)
class Plugin:
    """A kind that the config can name.

    Config: the model of its section. build: `build(name, settings)` returns the transport, provider or recall;
    `name` is the section's name. examine: `examine(name, settings)` asks the platform for `clew doctor` what is wrong with the
    section's account; it takes a few seconds at most, and changes nothing there.
    """

    name: str
    Config: type[BaseModel]
    build: Callable[[str, Any], Any]
    examine: Callable[[str, Any], Awaitable[Sequence[Fault]]] | None = None


@cache
def registry(group: str) -> dict[str, Plugin]:
    """The plug-ins of an entry-point group such as `clew.transports`, by kind, in the order of their names."""
    found = {point.name: _loaded(point) for point in entry_points(group=group)}
    return {name: found[name] for name in sorted(found)}


def _loaded(point: EntryPoint) -> Plugin:
    try:
        plugin = point.load()
    except Exception as error:
        raise ClewError(
            f"The plug-in {point.name} ({point.value}) cannot be loaded: {type(error).__name__}: {error}",
            hint="Install clew again, or uninstall the package that brings this plug-in.",
        ) from error
    if not isinstance(plugin, Plugin):
        raise ClewError(f"{point.value} is no clew plug-in.", hint="Its author has to make it a `clew.plugins.Plugin`.")
    return plugin
