"""`clew doctor`: checks of what clew stands on, each with the command that mends it.

A check is a coroutine function marked with `@check`; it is asked in the order of this file.
"""

import asyncio
import fnmatch
import io
import json
import os
import shutil
import sqlite3
import stat
import time
import wave
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from clew.cli.client import running
from clew.cli.options import NO_FILE, asynchronous, config_option, json_option, settings
from clew.cli.output import harmless
from clew.cli.reading import reading, store_path
from clew.config import Config, ProviderSection, TransportSection, find_config
from clew.context.redact import redact
from clew.errors import ClewError
from clew.plugins import Fault

Level = Literal["ok", "warning", "problem"]

OLDEST_SQLITE = (3, 40, 0)
LITTLE_SPACE = 512 * 2**20
NO_SPACE = 64 * 2**20
"""Bytes free on the data folder's disk: below the first a warning, below the second a problem."""
BUILT = 1_767_225_600
"""2026-01-01, UTC: a clock that is before this is wrong."""
PROBE_TIMEOUT = 5.0
EXAMINED_S = 60.0
"""Seconds that a transport may take to look at its account."""
TRANSCRIBER_TIMEOUT = 60.0
"""Seconds for half a second of silence: a program loads its model first."""
ANSWERS, REFUSES, SILENT = "answers", "refuses the key", "does not answer"
SILENCES = {"ollama": "does not answer or lacks the model", "claude_cli": "is not installed or not signed in"}
"""What else it may mean that a kind does not answer."""
LISTINGS = {"anthropic": ("https://api.anthropic.com", "/v1/models?limit=1"), "openai": ("", "/models")}
"""Kinds that may refuse a key → (where they are without `base_url`, what is asked of them)."""
GET_A_MODEL = "export ANTHROPIC_API_KEY=… or start a model server"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. command: mends it, empty where nothing needs mending. mend: the same for `--fix`, None where a person must."""

    level: Level
    text: str
    command: str = ""
    mend: Callable[[], None] | None = None


Check = Callable[[Config], Awaitable[Finding]]
CHECKS: dict[str, Check] = {}


def check(name: str) -> Callable[[Check], Check]:
    """Add a check under this name."""

    def add(function: Check) -> Check:
        CHECKS[name] = function
        return function

    return add


@click.command()
@click.option("--fix", is_flag=True, help="Mend what can be mended.")
@config_option
@json_option
@click.pass_context
def doctor(ctx: click.Context, fix: bool, path: Path | None, as_json: bool) -> None:
    """Look for what is wrong, and say what mends it. Exit code 1 if there is a problem."""
    try:
        config = settings(path)
        loaded = _loaded(config, "the config loads" if find_config(path) else NO_FILE)
    except ClewError as error:
        findings = {"config": Finding("problem", str(error), error.hint or "clew config check")}
    else:
        findings = {"config": loaded, **_examined(config, fix)}
    if as_json:
        click.echo(json.dumps([_values(name, each) for name, each in findings.items()], ensure_ascii=False, indent=2))
    for name, each in findings.items() if not as_json else ():
        click.echo(f"{each.level:<8} {name}: {harmless(each.text)}" + (f"\n         → {each.command}" if each.command else ""))
    if any(each.level == "problem" for each in findings.values()):
        ctx.exit(1)


def _loaded(config: Config, text: str) -> Finding:
    if config.warnings:
        return Finding("warning", "; ".join(map(str, config.warnings)), "clew config check")
    return Finding("ok", text)


def _values(name: str, finding: Finding) -> dict[str, str]:
    return {"check": name, **{key: value for key, value in asdict(replace(finding, mend=None)).items() if key != "mend"}}


@asynchronous
async def _examined(config: Config, fix: bool) -> dict[str, Finding]:
    found: dict[str, Finding] = {}
    for name, examine in CHECKS.items():
        found[name] = await examine(config)
        mend = found[name].mend
        if fix and mend:
            mend()
            found[name] = await examine(config)
    return found


@check("data folder")
async def data_folder(config: Config) -> Finding:
    folder = config.data_dir
    if not folder.exists():
        return Finding("warning", f"{folder} is not there yet", f"mkdir -p -m 700 {folder}", lambda: _make(folder))
    if not (folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK)):
        return Finding("problem", f"{folder} is no folder that this user may write to", f"ls -ld {folder}")
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        return Finding("problem", f"{folder} is open to other users", f"chmod 700 {folder}", lambda: folder.chmod(0o700))
    return Finding("ok", f"{folder} is writable, and closed to others")


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)


@check("SQLite")
async def sqlite(config: Config) -> Finding:
    options = {row[0] for row in _query("PRAGMA compile_options")}
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        return Finding("problem", f"SQLite {version} is older than 3.40", "python3 -c 'import sqlite3; print(sqlite3.sqlite_version)'")
    if "ENABLE_FTS5" not in options:
        return Finding("problem", f"this Python's SQLite {version} has no FTS5", "use a Python whose sqlite3 module has FTS5")
    return Finding("ok", f"SQLite {version} with FTS5")


def _query(statement: str) -> list[tuple[str, ...]]:
    database = sqlite3.connect(":memory:")
    try:
        return database.execute(statement).fetchall()
    finally:
        database.close()


@check("store")
async def store(config: Config) -> Finding:
    if not store_path(config).exists():
        return Finding("ok", "nothing is stored yet")
    try:
        async with reading(config) as opened:
            await opened.probe()
            counts = await opened.counts(time.time())
    except ClewError as error:
        return Finding("problem", error.message, error.hint or "clew db check")
    if counts["outbox_dead"] or counts["outbox_unknown"]:
        lost = counts["outbox_dead"] + counts["outbox_unknown"]
        return Finding("warning", f"{lost} replies could not be sent", "clew outbox list")
    return Finding("ok", f"{counts['sessions']:,} sessions, {counts['messages']:,} messages; `clew db check` examines them all")


@check("disk")
async def disk(config: Config) -> Finding:
    folder = next(each for each in (config.data_dir.absolute(), *config.data_dir.absolute().parents) if each.exists())
    free = shutil.disk_usage(folder).free
    level: Level = "problem" if free < NO_SPACE else "warning" if free < LITTLE_SPACE else "ok"
    return Finding(level, f"{free / 2**30:,.1f} GiB are free at {folder}", f"df -h {folder}" if level != "ok" else "")


@check("time zones")
async def time_zones(config: Config) -> Finding:
    try:
        ZoneInfo("Europe/Berlin")
    except ZoneInfoNotFoundError:
        return Finding("problem", "there is no time zone data", "pip install tzdata")
    return Finding("ok", "time zone data is there")


@check("clock")
async def clock(config: Config) -> Finding:
    now = time.time()
    if now < BUILT:
        return Finding("problem", f"the clock says {time.strftime('%Y-%m-%d', time.gmtime(now))}", "timedatectl set-ntp true")
    return Finding("ok", time.strftime("the clock says %Y-%m-%d %H:%M UTC", time.gmtime(now)))


@check("provider")
async def provider(config: Config) -> Finding:
    wanted = config.agent.provider
    sections = [each for name, each in config.providers.items() if wanted in ("auto", name) and each.kind != "offline"]
    configured = [each for each in sections if each.configured]
    states = {section.name: await _state(section) for section in configured}
    if ANSWERS in states.values():
        used = next(name for name, state in states.items() if state == ANSWERS)
        return Finding("ok", f"{used} {ANSWERS}")
    if not sections and wanted != "auto":
        return Finding("warning", f"{wanted} is the one that is used: it says that no model is there", "set agent.provider in the config")
    if configured:
        text = "; ".join(f"{name} {state}" for name, state in states.items())
        refused = REFUSES in states.values()
        return Finding("problem" if wanted != "auto" or refused else "warning", text, "correct the key" if refused else GET_A_MODEL)
    return Finding("warning", "no way to reach a model is configured", GET_A_MODEL)


async def _state(section: ProviderSection) -> str:
    """How a provider is, in words that may stand behind its name."""
    from clew.plugins import registry
    from clew.providers.probe import status_of

    built = registry("clew.providers")[section.kind].build(section.name, section.settings)
    try:
        answers = await built.answers()
    finally:
        await built.close()
    if section.kind not in LISTINGS:
        return ANSWERS if answers else SILENCES.get(section.kind, SILENT)
    settings: Any = section.settings
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    headers = {"authorization": f"Bearer {key}", "x-api-key": key, "anthropic-version": "2023-06-01"} if key else {}
    origin, listing = LISTINGS[section.kind]
    status = await status_of((settings.base_url or origin).rstrip("/") + listing, headers, PROBE_TIMEOUT)
    if status in (401, 403):
        return REFUSES
    return ANSWERS if answers and status is not None else SILENT


@check("transcriber")
async def transcriber(config: Config) -> Finding:
    """Whether half a second of silence is heard as such."""
    from clew.assembly import transcriber_of
    from clew.transcribers import NotTranscribed, Recording

    made = transcriber_of(config)
    if made is None:
        return Finding("ok", "none: voice notes are answered with a line that says so")
    try:
        async with asyncio.timeout(TRANSCRIBER_TIMEOUT):
            await made.transcribe(Recording(_silence(), "audio/wav"))
    except TimeoutError:
        return Finding("problem", f"it does not answer within {TRANSCRIBER_TIMEOUT:.0f} s", "correct transcriber in the config")
    except NotTranscribed as error:
        return Finding("problem", str(error), "correct transcriber in the config")
    except Exception as error:
        return Finding("problem", f"it does not answer ({error})", "start its server, or correct transcriber in the config")
    return Finding("ok", "it hears")


def _silence() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16_000)
        sound.writeframes(bytes(16_000))
    return file.getvalue()


@check("tools")
async def tools(config: Config) -> Finding:
    """Whether the model's window can afford all tools: a request's tools and base prompt share a quarter of it."""
    from clew.assembly import build_provider, tool_specs, zone_name
    from clew.budget import numbers
    from clew.context.prompt import base_prompt
    from clew.context.shares import affordable

    wanted = config.agent.provider
    usable = [name for name, each in config.providers.items() if each.configured and each.kind != "offline"]
    name = wanted if wanted != "auto" else next(iter(usable), None)
    if name is None:
        return Finding("ok", "no model whose window could be too small for them is configured")
    provider = build_provider(config, name)
    try:
        limits = await provider.limits()
    finally:
        await provider.close()
    bounds, specs = numbers(provider, limits, config.agent.compression), tool_specs(config)
    kept = affordable(specs, base_prompt(config.agent.system_prompt, zone_name(config)), bounds.base_limit)
    if left := sorted({each.name for each in specs} - {each.name for each in kept}):
        text = f"a window of {limits.window:,} tokens cannot afford all tools beside the base prompt; left out: {', '.join(left)}"
        return Finding("warning", text, "raise context_window, or shorten agent.system_prompt")
    return Finding("ok", f"all tools fit a window of {limits.window:,} tokens")


@check("approver")
async def approver(config: Config) -> Finding:
    """Whether each rule names a tool that there is. Those of MCP servers are known when they are connected."""
    from clew.assembly import tool_specs

    known, settings = [spec.name for spec in tool_specs(config)], config.agent.approver
    servers = [f"{name}__" for name in config.mcp_servers]
    names = [rule.partition("(")[0] for rule in (*settings.allow, *settings.deny)]
    if lost := sorted({n for n in names if not fnmatch.filter(known, n) and not any(_may_be_of(n, server) for server in servers)}):
        return Finding("warning", f"agent.approver names tools that there are not: {', '.join(lost)}", "docs/tools.md has their names")
    return Finding("ok", f"mode {settings.mode}, {len(names)} rules")


def _may_be_of(rule: str, server: str) -> bool:
    """Whether tools of an MCP server may fit a rule."""
    return rule.startswith(server) or fnmatch.fnmatchcase(f"{server}x", rule)


@check("skills")
async def skills(config: Config) -> Finding:
    from clew.tools.skills import BUDGET_CHARS, read

    found = read(config.agent.skills_dir)
    if found.faults:
        return Finding("problem", "; ".join(f"{name}: {fault}" for name, fault in found.faults), "docs/tools.md has the format of SKILL.md")
    if found.unnamed:
        text = f"names and descriptions take more than {BUDGET_CHARS:,} characters; the model is not told of {', '.join(found.unnamed)}"
        return Finding("warning", text, "shorten descriptions, or take some out of agent.skills_dir")
    return Finding("ok", f"{len(found.found)} of them" if found.found else "none")


@check("transports")
async def transports(config: Config) -> Finding:
    enabled = [each for each in config.transports.values() if each.enabled]
    places = [(each.name, place) for each in enabled if (place := _place(each))]
    silent = [f"{name} at {host}:{port}" for name, (host, port) in places if not await _accepts(host, port)]
    if silent:
        return Finding(
            "problem",
            f"nobody answers: {', '.join(silent)}",
            "start it there, or correct host and port in the config",
        )
    found = await asyncio.gather(*map(_faults, enabled))
    if faults := [(each.name, fault) for each, some in zip(enabled, found, strict=True) for fault in some]:
        # A platform may say back what it was sent.
        text = redact("; ".join(f"{name}: {fault.text}" for name, fault in faults), known=config.secrets())
        level: Level = "problem" if any(fault.serious for _, fault in faults) else "warning"
        return Finding(level, text, "; ".join(fault.command for _, fault in faults))
    return Finding("ok", f"enabled: {', '.join(each.name for each in enabled) or 'none'}")


async def _faults(section: TransportSection) -> Sequence[Fault]:
    """What the transport itself finds wrong with its account."""
    from clew.plugins import registry

    examine = registry("clew.transports")[section.kind].examine
    if examine is None:
        return ()
    try:
        async with asyncio.timeout(EXAMINED_S):
            return await examine(section.name, section.settings)
    except TimeoutError:
        return (Fault(f"the platform has not answered everything within {EXAMINED_S:.0f} s", f"check transports.{section.name}"),)


def _place(section: TransportSection) -> tuple[str, int] | None:
    """The server that a transport connects to, where its settings name one by host and port."""
    host, port = getattr(section.settings, "host", None), getattr(section.settings, "port", None)
    return (host, port) if isinstance(host, str) and isinstance(port, int) else None


async def _accepts(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(PROBE_TIMEOUT):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


@check("daemon")
async def daemon(config: Config) -> Finding:
    try:
        async with running(config) as client:
            if client is None:
                return Finding("ok", "no daemon runs; `clew run` starts one")
            status = await client.get("/api/v1/status")
    except ClewError as error:
        return Finding("problem", error.message, error.hint or "clew status")
    if status["reasons"]:
        return Finding("problem", f"a daemon runs and is not ready: {'; '.join(status['reasons'])}", "its log says since when")
    return Finding("ok", "a daemon runs and is ready")
