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
class Remark:
    """What `clew doctor` tells of a section beside its faults: what was seen, or cannot be seen from here."""

    text: str


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with the setting `key` of a section that is used, without its value, which may be a secret. serious: clew does not
    start with it; else it is a warning."""

    key: str
    text: str
    serious: bool = True


@dataclass(frozen=True, slots=True)
class Ask:
    """A setting that a person is asked for by `clew init`.

    question: what it is, in a few words. hint: where it is found. env: the variable of the environment that it is usually in. needed: it
    cannot be left empty. drawn: where it is left empty, a random one is made.
    """

    key: str
    question: str
    hint: str = ""
    env: str = ""
    needed: bool = True
    drawn: bool = False


@dataclass(frozen=True, slots=True)
class Setup:
    """What `clew init` has to know of a kind of transports.

    what: what it is, in a line. asks: the settings that are asked for, in order. first: `first(settings, sender)` is how the first message
    is sent; `sender` may be empty. sender, sender_hint: the question for the person's own sender there, and where it is found; empty where
    there is none to ask.
    """

    what: str
    asks: tuple[Ask, ...]
    first: Callable[[Any, str], str]
    sender: str = ""
    sender_hint: str = ""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A kind that the config can name.

    Config: the model of its section. build: `build(name, settings)` returns the transport, provider or recall;
    `name` is the section's name. It connects to nothing. examine: `examine(name, settings)` asks the platform for `clew doctor` what is
    wrong with the section's account; it takes a few seconds at most, and changes nothing there.

    Three more are asked when a config is read, and are pure. mistakes: `mistakes(name, settings)` are those of an enabled section that
    the model alone cannot see. sender: `sender(settings, text)` is the sender of an identity, `<section>:<text>` in the config, as
    `Inbound.sender` will have it; raises ValueError with what it must look like where no message can ever have it. account:
    `account(settings)` is the key of a setting and what of it may be read by one section only, such as a bot's token.

    setup: for `clew init`, which offers no kind without it.
    """

    name: str
    Config: type[BaseModel]
    build: Callable[[str, Any], Any]
    examine: Callable[[str, Any], Awaitable[Sequence[Fault | Remark]]] | None = None
    mistakes: Callable[[str, Any], Sequence[Mistake]] | None = None
    sender: Callable[[Any, str], str] | None = None
    account: Callable[[Any], tuple[str, str]] | None = None
    setup: Setup | None = None


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
