"""From a file to a `Config`: find it, read it, expand it, check it, and report all faults at once."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from clew.config import yaml
from clew.config.checks import doubts, faults
from clew.config.expand import Expansion, located
from clew.config.plugged import said, with_senders
from clew.config.report import Report
from clew.config.settings import Config, ProviderSection, TransportSection, empty
from clew.errors import ConfigError
from clew.plugins import Plugin

DEFAULTS: Mapping[str, Any] = {
    "data_dir": "${STATE_DIRECTORY:-~/.local/share/clew}",
    "providers": {
        "claude": {"kind": "anthropic", "model": "claude-sonnet-5-5", "api_key": "${ANTHROPIC_API_KEY:-}"},
        "local": {"kind": "openai", "base_url": "http://127.0.0.1:8080/v1", "model": "any", "context_window": 32768},
        "home": {"kind": "ollama", "model": "qwen3", "context_window": 32768},
        "sub": {"kind": "claude_cli"},
        "none": {"kind": "offline"},
    },
    "transports": {
        "web": {"enabled": True},
        "terminal": {"enabled": True},
    },
}
"""What stands in for absent keys: `data_dir` and `providers` as a whole, `transports` name by name; each other kind of these stands
there switched off."""

Models = Mapping[str, type[BaseModel]]
"""The config model of each kind."""

Plugins = Mapping[str, Plugin]
"""The plug-in of each kind of transports, for what it says of a config beyond its model."""
NO_PLUGINS: Plugins = {}

SECTION_KEYS = {"providers": ("kind",), "transports": ("kind", "enabled")}
"""The keys that every section of a plug-in has beside those of its own model."""

NOTHING = "sets nothing, so that all is as without it; `clew init` writes one"

_SECTION_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)


def find_config(explicit: str | Path | None = None, env: Mapping[str, str] = os.environ) -> Path | None:
    """The config file to use: `explicit`, $CLEW_CONFIG, or the first of the usual places that exists; None if none does.

    Raises ConfigError if the one that is named, by `explicit` or $CLEW_CONFIG, is missing.
    """
    if explicit or env.get("CLEW_CONFIG"):
        chosen = Path(explicit or env["CLEW_CONFIG"])
        if chosen.exists():
            return chosen
        source = "--config" if explicit else "$CLEW_CONFIG"
        raise ConfigError(f"{chosen}: there is no such file (named by {source})")
    home = Path(env.get("XDG_CONFIG_HOME") or located("~/.config", Path(), env))
    places = [Path("clew.yaml"), home / "clew" / "clew.yaml", Path("/etc/clew/clew.yaml")]
    return next((place for place in places if place.is_file()), None)


def load(
    path: str | Path, *, transports: Models, providers: Models, plugins: Plugins = NO_PLUGINS, env: Mapping[str, str] = os.environ
) -> Config:
    """The configuration in the file `path`.

    transports, providers: the config model of each kind that exists. A plug-in's model gets its section without
    `kind` and `enabled`, strictly and without unknown keys; it must accept the empty text for a secret, which is
    what a disabled section holds.
    plugins: kinds of transports that are asked about accounts, senders and addresses too.
    env: the environment for `${NAME}`, $HOME, $STATE_DIRECTORY and $CREDENTIALS_DIRECTORY.
    Raises ConfigError with all findings, in the order of the file.
    """
    path = Path(path)
    models = {"providers": providers, "transports": transports}
    return _loaded(read(path), str(path), path.absolute().parent, models, plugins, env)


def defaults(*, transports: Models, providers: Models, env: Mapping[str, str] = os.environ) -> Config:
    """The configuration where there is no file: what an empty one means. The arguments are those of `load`.

    Raises ConfigError where the environment holds what no setting can.
    """
    return _loaded(None, "the defaults", Path.cwd(), {"providers": providers, "transports": transports}, NO_PLUGINS, env)


def _loaded(raw: bytes | None, file: str, base: Path, models: Mapping[str, Models], plugins: Plugins, env: Mapping[str, str]) -> Config:
    root, found = yaml.parse(raw or b"", file)
    is_empty = raw is not None and all(isinstance(node, yaml.Scalar) and node.value is None for node in root.items.values())
    _fill(root, models)
    expansion = Expansion(file, env, base, _disabled(root))
    data = expansion.plain(root)
    report = Report(file, root, expansion.expanded, [*found, *expansion.findings])
    if is_empty:
        report.warning((), NOTHING)
    for fault in faults(data):
        report.fault(fault.path, fault.message, fault.nearest)
    for doubt in doubts(data):
        report.warning(doubt.path, doubt.message)
    built = {group: _sections(report, group, data.pop(group), models[group]) for group in models}
    config = report.validated(Config, data)
    if config:
        config = config.model_copy(
            update={
                "data_dir": located(str(config.data_dir), base, env),
                "providers": {name: ProviderSection(**each) for name, each in built["providers"].items()},
                "transports": {name: TransportSection(**each) for name, each in built["transports"].items()},
            }
        )
        config._credentials = frozenset(expansion.credentials)
        config._secret_files = frozenset(expansion.files)
        _unusable(report, config)
        config = _asked(report, config, plugins)
    if report.findings or not config:
        hint = f"only {len(report.findings)} of the faults are listed" if report.full else ""
        raise ConfigError(findings=sorted(report.findings, key=lambda each: (each.line, each.column)), hint=hint)
    return config


def _asked(report: Report, config: Config, plugins: Plugins) -> Config:
    """`config` as the plug-ins read it; what they find wrong is noted."""
    known, wrong = with_senders(config, plugins)
    for each in (*wrong, *said(known, plugins)):
        (report.fault if each.serious else report.warning)(each.path, each.message)
    known._warnings = tuple(sorted(report.warnings, key=lambda each: (each.line, each.column)))
    return known


def read(path: Path) -> bytes:
    """The bytes of a config file, as far as one may be long. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            return file.read(yaml.MAX_BYTES + 1)
    except OSError as err:
        raise ConfigError(f"{path}: cannot be read ({err.strerror})") from None


def _fill(root: yaml.Mapping, models: Mapping[str, Models]) -> None:
    """Puts the defaults where a key is absent or its value left empty. An unknown key stays, empty or not: it is a fault."""
    for key in Config.model_fields:
        node = root.items.get(key)
        if isinstance(node, yaml.Scalar) and node.value is None:
            del root.items[key]
    whole = dict(DEFAULTS)
    for group, kinds in models.items():
        sections = whole[group].items()
        whole[group] = {name: body for name, body in sections if body.get("kind", name) in kinds}
    others = {kind: {"enabled": False} for kind in models["transports"] if kind not in whole["transports"]}
    whole["transports"] = whole["transports"] | others
    filled = yaml.section(whole)
    for key, node in filled.items.items():
        root.items.setdefault(key, node)
        root.keys.setdefault(key, node.mark)
    given, usual = root.items["transports"], filled.items["transports"]
    if isinstance(given, yaml.Mapping) and isinstance(usual, yaml.Mapping):
        root.items["transports"] = yaml.Mapping(given.mark, {**usual.items, **given.items}, {**usual.keys, **given.keys})


def _disabled(root: yaml.Mapping) -> list[yaml.Path]:
    transports = root.items["transports"]
    sections = transports.items.items() if isinstance(transports, yaml.Mapping) else ()
    return [
        ("transports", name)
        for name, node in sections
        if isinstance(node, yaml.Mapping) and isinstance(state := node.items.get("enabled"), yaml.Scalar) and state.value is False
    ]


def _sections(report: Report, group: str, data: Any, models: Models) -> dict[str, dict[str, Any]]:
    """The fields of each valid section in `data`, by name."""
    if not isinstance(data, dict):
        report.fault((group,), "must be a section of `name: {…}` lines")
        return {}
    built = {name: _section(report, (group, name), body or {}, models) for name, body in data.items()}
    return {name: section for name, section in built.items() if section}


def _section(report: Report, path: tuple[str, str], data: Any, models: Models) -> dict[str, Any] | None:
    group, name = path
    if not _SECTION_NAME.fullmatch(name):
        report.fault(path, "a name here has up to 64 of a-z, 0-9, _ and -, and begins with a letter", at_key=True)
    if not isinstance(data, dict):
        report.fault(path, "must be a section of `key: value` lines")
        return None
    kind = data.get("kind", name)
    if not isinstance(kind, str) or kind not in models:
        where = (*path, "kind") if "kind" in data else path
        near = next(iter(get_close_matches(str(kind)[:80], list(models), 1)), "")
        there = ", ".join(models) or "none"
        report.fault(where, f"no kind of {group} that exists in this version; `kind` must be one of: {there}", near)
        return None
    fields: dict[str, Any] = {"kind": kind, "name": name}
    if group == "transports":
        fields["enabled"] = data.get("enabled", True)
        if not isinstance(fields["enabled"], bool):
            report.fault((*path, "enabled"), "must be true or false")
    own = {key: value for key, value in data.items() if key not in SECTION_KEYS[group]}
    settings = report.validated(models[kind], own, path, SECTION_KEYS[group])
    return {**fields, "settings": settings} if settings and isinstance(fields.get("enabled", True), bool) else None


def _unusable(report: Report, config: Config) -> None:
    """Notes what is switched on or named but lacks a secret."""
    for name, transport in config.transports.items():
        for field in empty(transport.settings) if transport.enabled else ():
            report.fault(("transports", name, field), "must not be empty while the transport is enabled")
    agent = config.agent
    named: list[tuple[yaml.Path, str | None]] = [
        (("agent", "provider"), agent.provider),
        (("agent", "compression", "provider"), agent.compression.provider),
        *((("agent", "fallback", index), name) for index, name in enumerate(agent.fallback)),
    ]
    for path, chosen in named:
        provider = config.providers.get(chosen or "")
        if provider and not provider.configured:
            report.fault(path, f"this provider's {' and '.join(empty(provider.settings))} is empty")
