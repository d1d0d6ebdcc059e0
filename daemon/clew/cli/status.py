"""`clew status`."""

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any

import click

from clew.cli.client import no_daemon, running
from clew.cli.options import asynchronous, config_option, json_option, local, settings, zone
from clew.cli.output import harmless, print_json
from clew.clock import span
from clew.config import Config
from clew.progress import Work

TIMES = ("since",)
"""Values that are seconds since the epoch."""
SPANS = ("uptime",)
"""Values that are seconds."""


@click.command()
@config_option
@json_option
def status(path: Path | None, as_json: bool) -> None:
    """Say how the running daemon is doing. Exit code 1 if none runs."""
    config = settings(path)
    answer = _ask(config)
    if as_json:
        print_json({"running": answer is not None, **(answer or {})})
    if answer is None:
        raise no_daemon(config)
    for line in () if as_json else _lines(answer, zone(config)):
        click.echo(line)


@asynchronous
async def _ask(config: Config) -> dict[str, Any] | None:
    async with running(config) as client:
        answer: dict[str, Any] | None = await client.get("/api/v1/status") if client else None
    return answer


def _lines(values: Mapping[str, Any], where: tzinfo | None, indent: str = "") -> Iterator[str]:
    for name, value in values.items():
        if value in ("", {}, []):
            continue
        if name == "work":
            yield "work:"
            yield from (_work(Work(each, **of), where) for each, of in value.items())
        elif isinstance(value, Mapping):
            yield f"{indent}{harmless(name)}:"
            yield from _lines(value, where, indent + "  ")
        elif name in TIMES:
            yield f"{indent}{name}: {local(value, where):%Y-%m-%d %H:%M:%S}"
        elif name in SPANS:
            yield f"{indent}{name}: {span(value)}"
        else:
            yield f"{indent}{name.replace('_', ' ')}: {_said(value)}"


def _work(work: Work, where: tzinfo | None) -> str:
    at = work.since if work.ended is None else work.ended
    when = "since" if work.ended is None else "at"
    why = f" ({harmless(work.why)})" if work.why else ""
    return f"  {harmless(work.name)}: {work.state}, {work.told}, {when} {local(at, where):%Y-%m-%d %H:%M:%S}{why}"


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(_said(each) for each in value) or "none"
    return "none" if value is None else harmless(str(value))
