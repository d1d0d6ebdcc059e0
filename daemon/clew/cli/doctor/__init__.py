"""`clew doctor`: checks of what clew stands on, each with the command that mends it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from clew.cli.doctor import doors, folders, machine, models, platforms, postgresql
from clew.cli.doctor.findings import Bounded, Finding, examined
from clew.cli.options import NO_FILE, asynchronous, config_option, json_option, settings
from clew.cli.output import harmless
from clew.config import Config, find_config
from clew.errors import ClewError

CHECKS: Mapping[str, Bounded] = {
    **folders.CHECKS,
    **postgresql.CHECKS,
    **machine.CHECKS,
    **models.CHECKS,
    **platforms.CHECKS,
    **doors.CHECKS,
}
"""In the order in which they are told of."""


@click.command()
@click.option("--fix", is_flag=True, help="Mend what is safe to mend: permissions, a missing data folder, a left socket.")
@config_option
@json_option
@click.pass_context
def doctor(ctx: click.Context, fix: bool, path: Path | None, as_json: bool) -> None:
    """Look for what is wrong, and say what mends it. Exit code 1 if there is a problem, 78 if it is in the config file."""
    code = 0
    try:
        config = settings(path)
    except ClewError as error:
        findings: Mapping[str, Sequence[Finding]] = {"config": [Finding("problem", str(error), error.hint or "clew config check")]}
        code = error.exit_code
    else:
        findings = _examined(config, find_config(path), fix)
    every = [(name, each) for name, some in findings.items() for each in some]
    if as_json:
        click.echo(json.dumps([_values(name, each) for name, each in every], ensure_ascii=False, indent=2))
    for name, each in every if not as_json else ():
        click.echo(line(name, each))
    if problems := any(each.level == "problem" for _, each in every):
        code = code or 1
    ctx.exit(code if problems else 0)


def line(name: str, finding: Finding) -> str:
    """A finding as it is printed, with what mends it below."""
    what = f"{name} {finding.of}".strip()
    mends = f"\n         → {harmless(finding.command)}" if finding.command else ""
    return f"{finding.level:<8} {what}: {harmless(finding.text)}{mends}"


def _values(name: str, finding: Finding) -> dict[str, str]:
    return {"check": name, "of": finding.of, "level": finding.level, "text": finding.text, "command": finding.command}


@asynchronous
async def _examined(config: Config, file: Path | None, fix: bool) -> dict[str, Sequence[Finding]]:
    return {"config": [_loaded(config, file)], **await examined(config, {**folders.of_config(file), **CHECKS}, fix)}


def _loaded(config: Config, file: Path | None) -> Finding:
    if config.warnings:
        return Finding("warning", "; ".join(map(str, config.warnings)), "clew config check")
    return Finding("ok", f"{file} loads" if file else NO_FILE)
