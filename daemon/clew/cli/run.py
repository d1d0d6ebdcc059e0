"""`clew run`: the daemon."""

from functools import partial
from pathlib import Path

import click
import structlog

from clew.cli.options import asynchronous, config_option, log_to_stderr, read, source
from clew.config import Config, find_config

log = structlog.get_logger()


@click.command()
@config_option
@asynchronous
async def run(path: Path | None) -> None:
    """Run the daemon until SIGTERM or Ctrl-C. It logs to stderr and says on stdout when it is ready."""
    found = find_config(path)
    config = read(found)
    from clew import lifecycle, tracing  # only now: a fault in the config is told at once
    from clew.web.server import serve

    log_to_stderr(config, config.log.level)
    if found is None:
        log.warning("config.defaults", reason="no config file", hint="`clew init` writes one")
    stop_tracing = tracing.start()
    try:
        await lifecycle.run(config, serve, _ready, source(path, partial(_hide, config, set(config.secrets()))))
    finally:
        stop_tracing()


def _hide(config: Config, hidden: set[str], again: Config) -> None:
    """Keep what a config that is taken over later has of secrets out of the log too."""
    if not again.secrets() <= hidden:
        hidden |= again.secrets()
        log_to_stderr(config, config.log.level, hidden)


def _ready(url: str) -> None:
    click.echo(f"clew is ready: {url}")
