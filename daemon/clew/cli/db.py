"""`clew db`: look after the database."""

import asyncio
import sys
import time
from dataclasses import asdict
from pathlib import Path

import click

from clew import data_dir
from clew.cli.client import connected
from clew.cli.options import asynchronous, config_option, json_option, settings
from clew.cli.output import print_json
from clew.cli.reading import existing_store, place, reading
from clew.config import Config
from clew.config.database import is_shared
from clew.errors import ClewError, NotFound
from clew.store import backups, opening
from clew.store.sqlite.backup import files_beside

BETWEEN_LOOKS = 0.2
"""Seconds."""


@click.group()
def db() -> None:
    """Look after the database."""


@db.command()
@config_option
@json_option
@click.pass_context
def check(ctx: click.Context, path: Path | None, as_json: bool) -> None:
    """Check the database, and the search index against the transcript. Exit code 1 if anything is wrong."""
    config = settings(path)
    problems = _problems(config)
    if as_json:
        print_json({"file": place(config), "problems": problems})
    for line in () if as_json else problems or ["ok"]:
        click.echo(f"{place(config)}: {line}")
    if problems:
        ctx.exit(1)


@db.command()
@click.argument("target", metavar="PATH", type=click.Path(path_type=Path))
@click.option("--keep", type=click.IntRange(1, 10_000), help="With a folder: how many of its backups are kept, the newest ones.")
@config_option
@json_option
def backup(target: Path, keep: int | None, path: Path | None, as_json: bool) -> None:
    """Copy the database to a new file, with a daemon running or not, and check the copy. Files of messages go to PATH.files beside it.
    Where PATH is a folder, the copy gets a name by its time in it. Exit code 1 if that fails.

    Of a store in PostgreSQL nothing is copied: the pg_dump command that does it is printed.
    """
    config = settings(path)
    if is_shared(config.store):
        _tell_pg_dump(config, target, as_json)
        return
    source = existing_store(config)
    folder = target if target.is_dir() else None
    if keep and not folder:
        raise click.UsageError(f"--keep needs a folder that is there: {target} is none.")
    made = backups.make(source, target, time.time())
    try:
        backups.note(source.parent, made)
    except OSError as error:
        click.echo(f"{source.parent / backups.LIST}: {error.strerror}; the backup is good, `clew doctor` will not know of it", err=True)
    gone = _rotated(folder, keep, Path(made.path)) if folder and keep else []
    if as_json:
        print_json({**asdict(made), "removed": [str(each) for each in gone]})
        return
    click.echo(f"{made.path}: {made.size:,} bytes, checked")
    if made.files:
        click.echo(f"{files_beside(Path(made.path))}: {made.files:,} file{'s' if made.files > 1 else ''}, checked")
    for each in gone:
        click.echo(f"{each}: removed, {keep} newer ones are kept")


def _tell_pg_dump(config: Config, target: Path, as_json: bool) -> None:
    """Everything is in the database, files of messages too, and its own tools copy it while everything runs."""
    command = backups.by_hand(config.store, target / "clew.dump" if target.is_dir() else target)
    if as_json:
        print_json({"path": None, "command": command})
    else:
        click.echo(f"A store in PostgreSQL is for its own tools to copy, files of messages and all:\n  {command}")


def _rotated(folder: Path, keep: int, made: Path) -> list[Path]:
    try:
        return backups.rotate(folder, keep, made)
    except OSError as error:
        raise ClewError(f"{error.filename}: {error.strerror}.", hint="The backup is good; older ones are still there.") from None


@db.command()
@config_option
@json_option
@asynchronous
async def vacuum(path: Path | None, as_json: bool) -> None:
    """Give the room of deleted rows back to the disk. Messages that come meanwhile wait; it takes as much room again while it works.

    In PostgreSQL it is VACUUM: nobody waits, and the room is used again for what is written next.
    """
    async with connected(settings(path)) as client:
        done = await client.post("/api/v1/database/vacuum", {})
    if as_json:
        print_json(done)
    else:
        click.echo(f"{done['before']:,} bytes before, {done['after']:,} now")


@db.command()
@config_option
@json_option
@asynchronous
async def reindex(path: Path | None, as_json: bool) -> None:
    """Build the search index anew from the transcript. A daemon that runs goes on answering; one that is stopped goes on with it later."""
    async with connected(settings(path)) as client:
        now = await client.post("/api/v1/index/rebuild", {})
        total = now["total"]
        while now["rebuilding"]:
            _tell(now["done"], now["total"])
            total = now["total"]
            await asyncio.sleep(BETWEEN_LOOKS)
            now = await client.get("/api/v1/index")
    _tell(total, total)
    if as_json:
        print_json({"messages": total})
    else:
        click.echo(f"the search index was built anew from {total:,} messages")


@db.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--again", is_flag=True, help="Begin anew, and overwrite what TO holds.")
@config_option
@json_option
def copy(source: str, target: str, again: bool, path: Path | None, as_json: bool) -> None:
    """Copy the whole store from an SQLite file into a PostgreSQL database, or back, and compare every row.

    FROM and TO: `sqlite` for the file in the data directory, `config` for what `store` of the config names, a path, or
    postgresql://…. No clew may run meanwhile. Interrupted, it goes on where it was. Exit code 1 if the copy is not whole.
    """
    config = settings(path)
    folder = data_dir.made(config.data_dir)
    with data_dir.locked(folder):
        rows = asyncio.run(_copied(_named(source, config), _named(target, config), config, again))
    if as_json:
        print_json({"rows": rows})
    else:
        click.echo(f"{rows:,} rows copied and compared")


def _named(given: str, config: Config) -> str | Path:
    """The address of a PostgreSQL database, or the path of a file."""
    where = config.store if given == "config" else given
    if is_shared(where):
        return where
    return config.data_dir / opening.FILE if where == "sqlite" else Path(where)


async def _copied(source: str | Path, target: str | Path, config: Config, again: bool) -> int:
    if isinstance(source, str) == isinstance(target, str):
        raise click.UsageError("One of FROM and TO is a file, the other one a PostgreSQL database. `clew db backup` copies a file.")
    if isinstance(source, Path) and not source.exists():
        raise NotFound(f"There is no {source}.")
    return await opening.copied(source, target, time.time(), config.secrets(), Progress().tell, again=again)


class Progress:
    """Says on a terminal how far a copy is, a line for each table."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._last = ""

    def tell(self, what: str, done: int, total: int) -> None:
        if self._shown and total:
            click.echo(("" if what == self._last else "\n" if self._last else "") + f"\r{what}: {done:,} of {total:,}", err=True, nl=False)
            self._last = what


def _tell(done: int, total: int) -> None:
    """Say on a terminal how far it is."""
    if sys.stderr.isatty():
        click.echo(f"\r{done:,} of {total:,} messages", err=True, nl=done == total)


@asynchronous
async def _problems(config: Config) -> list[str]:
    async with reading(config) as store:
        return await store.check()
