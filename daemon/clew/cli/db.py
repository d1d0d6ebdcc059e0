"""`clew db`: look after the database."""

import asyncio
import sys
from pathlib import Path

import click

from clew.cli.client import connected
from clew.cli.options import asynchronous, config_option, json_option, settings
from clew.cli.output import print_json
from clew.cli.reading import existing_store, reading, store_path
from clew.config import Config
from clew.store.backup import backup as copied
from clew.store.backup import copied_files, files_beside

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
    """Check the file, and the search index against the transcript. Exit code 1 if anything is wrong."""
    config = settings(path)
    problems = _problems(config)
    if as_json:
        print_json({"file": str(store_path(config)), "problems": problems})
    for line in () if as_json else problems or ["ok"]:
        click.echo(f"{store_path(config)}: {line}")
    if problems:
        ctx.exit(1)


@db.command()
@click.argument("target", metavar="PATH", type=click.Path(path_type=Path))
@config_option
def backup(target: Path, path: Path | None) -> None:
    """Copy the database to a new file, with a daemon running or not, and check the copy. Files of messages go to PATH.files beside it.
    Exit code 1 if that fails."""
    source = existing_store(settings(path))
    size = copied(source, target)
    click.echo(f"{target}: {size:,} bytes, checked")
    if files := copied_files(source, target):
        click.echo(f"{files_beside(target)}: {files:,} file{'s' if files > 1 else ''}, checked")


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


def _tell(done: int, total: int) -> None:
    """Say on a terminal how far it is."""
    if sys.stderr.isatty():
        click.echo(f"\r{done:,} of {total:,} messages", err=True, nl=done == total)


@asynchronous
async def _problems(config: Config) -> list[str]:
    async with reading(config) as store:
        return await store.check()
