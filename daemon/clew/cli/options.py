"""What many commands share: their options, and the config they name."""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from datetime import datetime, tzinfo
from functools import partial, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from zoneinfo import ZoneInfo

import click
from pydantic import BaseModel

from clew.config import Config, Source, defaults, find_config, load
from clew.plugins import registry

P = ParamSpec("P")
T = TypeVar("T")

config_option = click.option("--config", "path", type=click.Path(path_type=Path), help="The config file to read.")
NO_FILE = "no config file: the defaults"
"""What is said where none is named and none of the usual places has one."""
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def limit_option(default: int, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--limit N`: at most so many, 1 to 100,000."""
    return click.option("--limit", type=click.IntRange(1, 100_000), default=default, show_default=True, help=f"At most so many {what}.")


def settings(path: Path | None) -> Config:
    """The config in `path`, or in the first usual place; the defaults where there is none. Raises ConfigError."""
    return read(find_config(path))


def read(found: Path | None) -> Config:
    """The config that `find_config` found. Raises ConfigError."""
    transports, providers = models("transports"), models("providers")
    if found is None:
        return defaults(transports=transports, providers=providers)
    return load(found, transports=transports, providers=providers, plugins=registry("clew.transports"))


def source(path: Path | None, before: Callable[[Config], object]) -> Source:
    """Where the config of a daemon is read from. before: told of each that is read."""
    return Source(path, models("transports"), models("providers"), before)


def models(group: str) -> dict[str, type[BaseModel]]:
    """The config model of each kind of `transports` or `providers`."""
    return {kind: plugin.Config for kind, plugin in registry(f"clew.{group}").items()}


def zone(config: Config) -> tzinfo | None:
    """The zone that times are printed in: the agent's, or None for the machine's."""
    return ZoneInfo(config.agent.timezone) if config.agent.timezone else None


def zone_name(config: Config) -> str:
    """The same zone by name: the agent's, else the machine's."""
    from clew import assembly  # only now: it brings the providers with it

    return assembly.zone_name(config)


def local(at: float, where: tzinfo | None) -> datetime:
    """Seconds since the epoch as a time in the zone `where`, None meaning the machine's."""
    return datetime.fromtimestamp(at, where) if where else datetime.fromtimestamp(at).astimezone()


def log_to_stderr(config: Config, level: str, secrets: Collection[str] = ()) -> None:
    """Let what is logged from `level` on go to stderr, without the config's secrets. secrets: others that it is without too."""
    from clew.context.redact import redact
    from clew.logging import setup

    setup(level, config.log.format, partial(redact, known=config.secrets() | frozenset(secrets)))


def asynchronous(command: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Lets a coroutine function be a command."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return asyncio.run(command(*args, **kwargs))

    return run
