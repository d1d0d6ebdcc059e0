"""`clew config`: check, show and describe the configuration."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click
import yaml
from pydantic import SecretStr

from clew.cli.options import NO_FILE, config_option, models, read, zone_name
from clew.config import Config, find_config, notes, schema
from clew.errors import ConfigError

_PYDANTICS_MASK = str(SecretStr("any"))


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
        click.echo(yaml.safe_dump(_shown(settings), sort_keys=False, allow_unicode=True), nl=False)


@config.command("schema")
def schema_() -> None:
    """Print the JSON Schema of the config file, for editors."""
    click.echo(json.dumps(schema(transports=models("transports"), providers=models("providers")), indent=2))


def _fail(ctx: click.Context, err: ConfigError, *, to_stderr: bool) -> None:
    click.echo(f"clew: {err}" if to_stderr else str(err), err=to_stderr)
    if err.hint:
        click.echo(err.hint, err=True)
    ctx.exit(err.exit_code)


def _shown(settings: Config) -> dict[str, Any]:
    plain = settings.model_dump(mode="json")
    for group in ("providers", "transports"):
        plain[group] = {name: _flat(section) for name, section in plain[group].items()}
    hidden = sorted(settings.secrets(), key=len, reverse=True)
    masked: dict[str, Any] = _masked(plain, hidden)
    return masked


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
    return value
