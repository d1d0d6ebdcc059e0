"""`clew config`: check, show and describe the configuration."""

from __future__ import annotations

import json
import time
from importlib.resources import files
from pathlib import Path

import click
import yaml

from clew.cli.options import NO_FILE, config_option, models, read, zone_name
from clew.config import find_config, notes, schema, shown
from clew.errors import ConfigError


@click.group()
def config() -> None:
    """Check, show and describe the configuration."""


@config.command()
@config_option
@click.pass_context
def check(ctx: click.Context, path: Path | None) -> None:
    """List all that is wrong or doubtful in the config file, with file, line and column, and note what has no effect."""
    try:
        found = find_config(path)
        settings = read(found)
    except ConfigError as err:
        _fail(ctx, err, to_stderr=not err.findings)
    else:
        for warning in settings.warnings:
            click.echo(f"warning: {warning}")
        for line in notes(settings, time.time(), zone_name(settings) if settings.schedule else "UTC"):
            click.echo(f"note: {line}")
        click.echo(f"ok: {found or NO_FILE}")


@config.command()
@config_option
@click.pass_context
def show(ctx: click.Context, path: Path | None) -> None:
    """Print the effective configuration as YAML, secrets as ***."""
    try:
        found = find_config(path)
        settings = read(found)
    except ConfigError as err:
        _fail(ctx, err, to_stderr=True)
    else:
        if found is None:
            click.echo(NO_FILE, err=True)
        click.echo(yaml.safe_dump(shown(settings), sort_keys=False, allow_unicode=True), nl=False)


@config.command()
def example() -> None:
    """Print a config with every key, its default and what it does."""
    packaged = files("clew").joinpath("config.example.yaml")
    place = packaged if packaged.is_file() else Path(__file__).parents[3].joinpath("config.example.yaml")
    click.echo(place.read_text("utf-8"), nl=False)


@config.command("schema")
def schema_() -> None:
    """Print the JSON Schema of the config file, for editors."""
    click.echo(json.dumps(schema(transports=models("transports"), providers=models("providers")), indent=2))


def _fail(ctx: click.Context, err: ConfigError, *, to_stderr: bool) -> None:
    click.echo(f"clew: {err}" if to_stderr else str(err), err=to_stderr)
    if err.hint:
        click.echo(err.hint, err=True)
    ctx.exit(err.exit_code)
