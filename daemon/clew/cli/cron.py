"""`clew cron`: scheduled prompts."""

import time
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import click
from pydantic import ValidationError

from clew.cli.client import no_daemon, running
from clew.cli.options import asynchronous, config_option, json_option, limit_option, local, settings, zone, zone_name
from clew.cli.output import nothing, print_json, print_table
from clew.cli.reading import reading, store_path
from clew.config import Config, Job
from clew.errors import NotFound, UsageError
from clew.store import Job as StoredJob
from clew.timetable import upcoming

SHOWN = 5
"""Coming runs in the listing."""


@click.group()
def cron() -> None:
    """Scheduled prompts: list them, run one, see when they run and what became of it."""


@cron.command("list")
@config_option
@json_option
@asynchronous
async def list_(path: Path | None, as_json: bool) -> None:
    """Jobs with their schedule, zone, next run and last outcome; with --json the next five runs."""
    config = settings(path)
    jobs = [_described(config, job, state, last) for job, state, last in await _jobs(config)]
    if as_json:
        print_json(jobs)
    elif not jobs:
        nothing("Nothing is scheduled.")
    else:
        headings = ("NAME", "SCHEDULE", "ZONE", "NEXT", "LAST", "TO")
        print_table(
            headings,
            (
                (j["name"], j["schedule"], j["timezone"], "off" if not j["enabled"] else (j["next"] or [""])[0], j["last"], j["deliver_to"])
                for j in jobs
            ),
        )


async def _jobs(config: Config) -> list[tuple[Job, StoredJob | None, dict[str, Any] | None]]:
    """The jobs of the config, with what the store knows of each: its state and its last run."""
    if not store_path(config).exists():
        return [(job, None, None) for job in config.schedule]
    async with reading(config) as store:
        stored = {job.name: job for job in await store.jobs()}
        runs = {job.name: await store.job_history(job.name, 1) for job in config.schedule}
    return [(job, stored.get(job.name), next(iter(runs[job.name]), None)) for job in config.schedule]


def _described(config: Config, job: Job, state: StoredJob | None, last: dict[str, Any] | None) -> dict[str, Any]:
    where = job.timezone or zone_name(config)
    after = time.time()
    coming = [*islice(upcoming(job, after, where), SHOWN)]
    if state and state.next_at and job.every:  # its clock runs from when the daemon learned of it
        coming = [state.next_at + job.every * n for n in range(SHOWN)]
    return {
        "name": job.name,
        "schedule": job.cron or (f"every {job.every:g}s" if job.every else f"at {job.at}"),
        "timezone": where,
        "enabled": state.enabled if state else True,
        "next": [_iso(at, where) for at in coming],
        "last": last["outcome"] if last else None,
        "last_at": last["at"] if last else None,
        "deliver_to": job.deliver_to,
        "session": job.session,
        "misfire": job.misfire,
    }


def _iso(at: float, where: str) -> str:
    return datetime.fromtimestamp(at, ZoneInfo(where)).isoformat(timespec="seconds")


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
    instants = [_iso(at, timezone) for at in islice(upcoming(job, _instant(start, timezone), timezone), count)]
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
        return (at if at.tzinfo else at.replace(tzinfo=ZoneInfo(timezone))).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"--from {text!r} is no time such as 2027-03-01T08:30.") from None


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
    """Runs of a job: when each was due, and what came of it."""
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
        stamp = "%Y-%m-%d %H:%M:%S" if name in known and _often(known[name]) else "%Y-%m-%d %H:%M"
        headings = ("DUE", "OUTCOME", "NOTED", "TURN", "NOTE")
        times = ((local(run["instant"], where).strftime(stamp), local(run["at"], where).strftime(stamp)) for run in runs)
        print_table(headings, ((due, r["outcome"], noted, r["turn"], r["note"]) for r, (due, noted) in zip(runs, times, strict=True)))


def _often(job: StoredJob) -> bool:
    """Whether several runs may fall into one minute."""
    return (Job.model_validate_json(job.spec).every or 60.0) < 60.0
