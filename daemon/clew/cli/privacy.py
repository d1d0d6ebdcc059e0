"""`clew privacy`: what belongs to a person, written out, or erased for good."""

import asyncio
import json
import os
import re
import sys
import time
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from clew import __version__
from clew.cli.client import Client, connected
from clew.cli.options import asynchronous, config_option, json_option, settings
from clew.cli.output import harmless, print_json
from clew.cli.reading import reading
from clew.errors import ClewError, UsageError
from clew.store.belongings import PAGE, PARTS
from clew.store.sql import SqlStore

WAIT = 60.0
"""Seconds that one request waits for an erasure."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")

person_argument = click.argument("person")


@click.group()
def privacy() -> None:
    """What belongs to a person: write it out, or erase it for good."""


@privacy.command()
@person_argument
@click.option("--output", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The zip file to write: a new one.")
@config_option
@json_option
@asynchronous
async def export(person: str, output: Path, path: Path | None, as_json: bool) -> None:
    """Write all that belongs to a person to a zip file: their own chats, their lines in groups, notes, jobs, approvals, usage, files."""
    async with reading(settings(path)) as store:
        counts = await store.belongings(person)
        unfinished = output.with_name(f".{output.name}.{os.getpid()}")
        try:
            if output.exists():
                raise UsageError(f"{output} is there already.", hint="Nothing is overwritten: name a file that is not there yet.")
            if not output.parent.is_dir():
                raise UsageError(f"{output}: No such file or directory.", hint="Make its folder first.")
            handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                manifest = await _written(archive, store, person, counts)
            unfinished.replace(output)
        finally:
            unfinished.unlink(missing_ok=True)
    if as_json:
        print_json(manifest)
    else:
        click.echo(f"{output}: {_told(counts)}, of {harmless(person)}")


async def _written(archive: zipfile.ZipFile, store: SqlStore, person: str, counts: dict[str, int]) -> dict[str, Any]:
    """Write every part, the files, then the manifest. Returns it."""
    lost = 0
    for part in PARTS:
        if part not in counts:
            continue
        with archive.open(f"{part}.jsonl", "w", force_zip64=True) as out:
            async for row in _rows(store, person, part):
                if part == "files":
                    row["path"] = f"files/{row['hash'][:16]}-{_UNSAFE.sub('_', row['name'])[-80:] or 'file'}"
                out.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))
    written: set[str] = set()
    async for row in _rows(store, person, "files"):
        name = f"files/{row['hash'][:16]}-{_UNSAFE.sub('_', row['name'])[-80:] or 'file'}"
        body = await store.files.read(row["hash"]) if name not in written else b""
        if body is None:
            lost += 1
        elif name not in written:
            archive.writestr(name, body)
        written.add(name)
    manifest = {
        "clew": __version__,
        "person": person,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "counts": counts,
        "files_missing": lost,
        "times": "seconds since 1970-01-01 UTC",
    }
    archive.writestr("manifest.json", json.dumps(manifest, ensure_ascii=False, indent=1) + "\n")
    return manifest


async def _rows(store: SqlStore, person: str, part: str) -> Any:
    offset = 0
    while rows := await store.belonging(person, part, offset):
        for row in rows:
            yield row
        offset += PAGE


@privacy.command()
@person_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--preview", is_flag=True, help="Say what would go, and erase nothing.")
@config_option
@json_option
@asynchronous
async def erase(person: str, yes: bool, preview: bool, path: Path | None, as_json: bool) -> None:
    """Erase all that belongs to a person for good: chats, lines in groups, what was made of them, notes, files, jobs, and who they are.
    Goes on by itself if it is interrupted."""
    config = settings(path)
    async with reading(config) as store:
        counts = await store.belongings(person)
    if preview:
        _say(counts, f"Of {harmless(person)} there are: {_told(counts)}. Nothing was erased.", as_json)
        return
    if not yes:
        _confirm(person, counts)
    async with connected(config) as client:
        done = await _erased(client, person)
    named = any(person == each for each in config.people)
    hint = f" The config still names {harmless(person)}: take the entry out, or they are known as soon as they write." if named else ""
    _say(done["counts"], f"Erased: {_told(done['counts']) or 'nothing was left'}. Backups made before still have it.{hint}", as_json)


async def _erased(client: Client, person: str) -> Any:
    """Begin it, and wait until it is done."""
    told = await client.post(f"/api/v1/people/{quote(person, safe='')}/erase", {"wait": WAIT})
    while told["done"] is None:
        if sys.stderr.isatty():
            click.echo(f"\r{sum(told['counts'].values()):,} rows so far", err=True, nl=False)
        await asyncio.sleep(1.0)
        told = await client.get(f"/api/v1/erasures/{told['id']}")
    return told


def _confirm(person: str, counts: dict[str, int]) -> None:
    if not sys.stdin.isatty():
        raise UsageError("There is nobody to ask.", hint="Say --yes if you mean it.")
    click.echo(f"This erases for good, of {harmless(person)}: {_told(counts)}.", err=True)
    if click.prompt(f"Write {harmless(person)} to go on", default="", show_default=False, err=True) != person:
        raise ClewError(f"nothing was erased, since that is not {person}.")


def _told(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)


def _say(counts: dict[str, int], text: str, as_json: bool) -> None:
    if as_json:
        print_json(counts)
    else:
        click.echo(text)
