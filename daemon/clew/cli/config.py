"""`clew config`: check, show and describe the configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import yaml
from pydantic import BaseModel, SecretStr

from clew.config import Config, find_config, load, schema
from clew.errors import ConfigError
from clew.plugins import registry

_PYDANTICS_MASK = str(SecretStr("any"))
_path = click.option("--config", "path", type=click.Path(path_type=Path), help="The config file to read.")


@click.group()
def config() -> None:
    """Check, show and describe the configuration."""


@config.command()
@_path
@click.pass_context
def check(ctx: click.Context, path: Path | None) -> None:
    """List all that is wrong with the config file, with file, line and column."""
    try:
        path = find_config(path)
        _load(path)
    except ConfigError as err:
        _fail(ctx, err, to_stderr=not err.findings)
    click.echo(f"ok: {path}")


@config.command()
@_path
@click.pass_context
def show(ctx: click.Context, path: Path | None) -> None:
    """Print the effective configuration as YAML, secrets as ***."""
    try:
        settings = _load(find_config(path))
    except ConfigError as err:
        _fail(ctx, err, to_stderr=True)
    else:
        click.echo(yaml.safe_dump(_shown(settings), sort_keys=False, allow_unicode=True), nl=False)


@config.command("schema")
def schema_() -> None:
    """Print the JSON Schema of the config file, for editors."""
    click.echo(json.dumps(schema(transports=_models("clew.transports"), providers=_models("clew.providers")), indent=2))


def _fail(ctx: click.Context, err: ConfigError, *, to_stderr: bool) -> None:
    click.echo(str(err), err=to_stderr)
    if err.hint:
        click.echo(err.hint, err=True)
    ctx.exit(err.exit_code)


def _load(path: Path) -> Config:
    return load(path, transports=_models("clew.transports"), providers=_models("clew.providers"))


def _models(group: str) -> dict[str, type[BaseModel]]:
    return {kind: plugin.Config for kind, plugin in registry(group).items()}


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
