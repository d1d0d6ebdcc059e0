"""`clew cron`: scheduled prompts."""

import time
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote
from zoneinfo import ZoneInfo

import click
from pydantic import ValidationError

from clew.booking import CONFIRMED, SHOWN, Described, described, iso
from clew.cli.client import connected, no_daemon, running
from clew.cli.options import asynchronous, config_option, json_option, limit_option, local, settings, zone, zone_name
from clew.cli.output import nothing, print_json, print_table
from clew.cli.reading import reading, reading_any
from clew.config import FIRST_YEAR, LAST_YEAR, Config, Job
from clew.errors import NotFound, UsageError
from clew.store import Job as StoredJob
from clew.timetable import upcoming


@click.group()
def cron() -> None:
    """Scheduled prompts: list, make, switch and run them, see when they are due and what became of them."""


@cron.command("list")
@config_option
@json_option
@asynchronous
async def list_(path: Path | None, as_json: bool) -> None:
    """Jobs with where they come from, their schedule, zone, next five runs and last outcome."""
    config = settings(path)
    jobs = await _jobs(config)
    if as_json:
        print_json([_plain(job, last) for job, last in jobs])
    elif not jobs:
        nothing("Nothing is scheduled.")
    else:
        headings = ("NAME", "FROM", "SCHEDULE", "ZONE", "NEXT", "LAST", "TO")
        print_table(headings, (row for job, last in jobs for row in _rows(job, last)))


async def _jobs(config: Config) -> list[tuple[Described, dict[str, Any] | None]]:
    """The jobs of the store, and of the config those that it does not have yet, each with its last run."""
    where = zone_name(config)
    stored, runs = [], {}
    async with reading_any(config) as store:
        if store is not None:
            stored = [job for job in await store.jobs() if job.origin != "config" or job.name in {each.name for each in config.schedule}]
            runs = {job.name: await store.job_history(job.name, 1) for job in stored}
    known, now = {job.name for job in stored}, time.time()
    new = [
        StoredJob(entry.name, entry.model_dump_json(), True, next(upcoming(entry, now, where), None))
        for entry in config.schedule
        if entry.name not in known
    ]
    jobs = sorted([*stored, *new], key=lambda job: job.name)
    return [(described(job, where, SHOWN), next(iter(runs.get(job.name, ())), None)) for job in jobs]


def _rows(job: Described, last: dict[str, Any] | None) -> list[tuple[object, ...]]:
    """A job in the table: one line, and one for each further run that is coming."""
    stamp = "%Y-%m-%d %H:%M:%S" if _often(job.entry) else "%Y-%m-%d %H:%M"
    coming: list[object] = [local(at, ZoneInfo(job.zone)).strftime(stamp) for at in job.coming] or [
        "off" if not job.enabled else "never again"
    ]
    first = (job.name, _origin(job), job.schedule, job.zone, coming[0], last["outcome"] if last else None, job.entry.deliver_to)
    return [first, *(("", "", "", "", at, "", "") for at in coming[1:])]


def _origin(job: Described) -> str:
    return f"{job.origin} ({job.person})" if job.person else job.origin


def _plain(job: Described, last: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "name": job.name,
        "origin": job.origin,
        "person": job.person,
        "schedule": job.schedule,
        "timezone": job.zone,
        "enabled": job.enabled,
        "next": job.times(),
        "failures": job.failures,
        "last": last["outcome"] if last else None,
        "last_at": last["at"] if last else None,
        "deliver_to": job.entry.deliver_to,
        "session": job.entry.session,
        "misfire": job.entry.misfire,
    }


_WHERE = "Where the answers go: transport:chat[/thread], such as mqtt:ada."
_CLOCK = (
    click.option("--cron", "expression", metavar="EXPR", help="Five fields, such as '30 8 * * 1-5', or @daily."),
    click.option("--every", metavar="DURATION", help="An interval, such as 6h."),
    click.option("--at", metavar="TIME", help="Once, such as 2027-03-01T08:30, or the next 08:30; in the zone unless it has an offset."),
    click.option("--timezone", metavar="ZONE", help="An IANA name such as Europe/Berlin; the agent's if left out."),
)
_REST = (
    click.option("--session", metavar="chat|isolated|NAME", help="Where it runs."),
    click.option("--misfire", type=click.Choice(["skip", "once", "all"]), help="Which runs that were missed are made up for."),
    click.option("--grace", metavar="DURATION", help="How late they may be."),
    click.option("--overlap", type=click.Choice(["skip", "queue"]), help="What becomes of a run while the one before goes on."),
    click.option("--jitter", metavar="DURATION", help="Put each run off by up to so much."),
    click.option("--timeout", metavar="DURATION", help="How long a run may take."),
)
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _with(options: Iterable[Callable[[_Command], _Command]]) -> Callable[[_Command], _Command]:
    """A command with these options, in this order."""

    def decorated(command: _Command) -> _Command:
        for option in reversed(tuple(options)):
            command = option(command)
        return command

    return decorated


@cron.command()
@click.argument("prompt")
@click.option("--to", "deliver_to", metavar="ADDRESS", required=True, help=_WHERE)
@_with(_CLOCK)
@click.option("--name", metavar="NAME", help="What it is called; made of the prompt if left out.")
@_with(_REST)
@config_option
@json_option
@asynchronous
async def add(path: Path | None, as_json: bool, expression: str | None, **fields: str | None) -> None:
    """Make a job, beside those of the config. It has exactly one of --cron, --every and --at."""
    async with connected(settings(path)) as client:
        made = await client.post("/api/v1/jobs", {**fields, "cron": expression})
    _tell(made, as_json)


def _tell(job: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(job)
        return
    click.echo(
        f"{job['job']}: {job['schedule']} {job['timezone']}, {'next' if job['coming'] else 'not due again' if job['enabled'] else 'off'}"
    )
    for each in job["coming"][:CONFIRMED]:
        click.echo(f"  {each}")


@cron.command()
@click.argument("name")
@click.option("--prompt", metavar="TEXT", help="What is asked.")
@click.option("--to", "deliver_to", metavar="ADDRESS", help=_WHERE)
@_with(_CLOCK)
@_with(_REST)
@config_option
@json_option
@asynchronous
async def edit(path: Path | None, as_json: bool, name: str, expression: str | None, **fields: str | None) -> None:
    """Change a job that is not in the config, in one step: only what is named. An empty text takes a setting back to its default.

    Its name and its history stay; its clock begins anew only where --cron, --every, --at or --timezone change it.
    """
    given = {key: value or None for key, value in {**fields, "cron": expression}.items() if value is not None}
    async with connected(settings(path)) as client:
        changed = await client.patch(f"/api/v1/jobs/{quote(name, safe='')}", given)
    _tell(changed, as_json)


@cron.command()
@click.argument("name")
@config_option
@asynchronous
async def remove(name: str, path: Path | None) -> None:
    """Remove a job that is not in the config; its history stays."""
    async with connected(settings(path)) as client:
        await client.delete(f"/api/v1/jobs/{quote(name, safe='')}")
    click.echo(f"{name} is removed")


@cron.command()
@click.argument("name")
@config_option
@asynchronous
async def enable(name: str, path: Path | None) -> None:
    """Turn a job on. Its clock begins anew: what it missed while it was off is not made up for."""
    async with connected(settings(path)) as client:
        await client.post(f"/api/v1/jobs/{quote(name, safe='')}/enable")
    click.echo(f"{name} is on")


@cron.command()
@click.argument("name")
@config_option
@asynchronous
async def disable(name: str, path: Path | None) -> None:
    """Turn a job off, one of the config too; it stays off over restarts."""
    async with connected(settings(path)) as client:
        await client.post(f"/api/v1/jobs/{quote(name, safe='')}/disable")
    click.echo(f"{name} is off")


@cron.command("next")
@click.argument("expression", metavar="EXPR")
@click.option("--timezone", metavar="ZONE", required=True, help="An IANA name such as Europe/Berlin.")
@click.option(
    "--from", "start", metavar="TIME", help="Begin behind this time, such as 2027-03-01T08:30; in the zone unless it has an offset."
)
@click.option("--count", type=click.IntRange(1, 1000), default=SHOWN, show_default=True, help="So many.")
@json_option
def next_(expression: str, timezone: str, start: str | None, count: int, as_json: bool) -> None:
    """Print when a cron expression is due, without a daemon or a config."""
    job = _job(expression, timezone)
    instants = [iso(at, timezone) for at in islice(upcoming(job, _instant(start, timezone), timezone), count)]
    if as_json:
        print_json(instants)
    for each in () if as_json else instants:
        click.echo(each)
    if not instants:
        raise NotFound(f"{expression!r} is not due again.")


def _job(expression: str, timezone: str) -> Job:
    """A job with this clock. Raises UsageError where the expression or the zone is none."""
    try:
        return Job(name="next", cron=expression, timezone=timezone, prompt="none", deliver_to="web:local")
    except ValidationError as error:
        first = error.errors()[0]
        given = expression if first["loc"][0] == "cron" else timezone
        raise UsageError(f"{given!r} {first['msg']}.") from None


def _instant(text: str | None, timezone: str) -> float:
    if text is None:
        return time.time()
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--from {text!r} is no time such as 2027-03-01T08:30.") from None
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise UsageError(f"--from {text!r} lies outside of the years {FIRST_YEAR} to {LAST_YEAR}.")
    return (at if at.tzinfo else at.replace(tzinfo=ZoneInfo(timezone))).timestamp()


@cron.command("run")
@click.argument("name")
@config_option
@asynchronous
async def run_(name: str, path: Path | None) -> None:
    """Run a job now, beside its schedule. Exit code 1 if no daemon runs, which has to deliver what comes of it."""
    config = settings(path)
    async with running(config) as client:
        if client is None:
            raise no_daemon(config)
        await client.post(f"/api/v1/jobs/{quote(name, safe='')}/run")
    click.echo(f"{name} runs; `clew cron history {name}` shows what becomes of it")


@cron.command()
@click.argument("name")
@config_option
@json_option
@limit_option(20, "runs, the newest first")
@asynchronous
async def history(name: str, path: Path | None, as_json: bool, limit: int) -> None:
    """Runs of a job: when each was due, what came of it, and whether what it said has arrived."""
    config = settings(path)
    async with reading(config) as store:
        runs = await store.job_history(name, limit)
        known = {job.name: job for job in await store.jobs()}
    if not runs and name not in known:
        raise NotFound(f"There is no job {name!r}.", hint="`clew cron list` shows those that are.")
    if as_json:
        print_json(runs)
    elif not runs:
        nothing(f"{name} has not run yet.")
    else:
        where = zone(config)
        stamp = "%Y-%m-%d %H:%M:%S" if name in known and _often(Job.model_validate_json(known[name].spec)) else "%Y-%m-%d %H:%M"
        headings = ("DUE", "OUTCOME", "SENT", "BEGAN", "SESSION", "NOTE")
        times = ((local(run["instant"], where).strftime(stamp), local(run["at"], where).strftime(stamp)) for run in runs)
        print_table(
            headings,
            ((due, r["outcome"], r["delivery"], began, r["session"], r["note"]) for r, (due, began) in zip(runs, times, strict=True)),
        )


def _often(entry: Job) -> bool:
    """Whether several runs may fall into one minute."""
    return (entry.every or 60.0) < 60.0
