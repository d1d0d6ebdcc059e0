"""`clew docs`: documents that answers can rest on."""

import asyncio
import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from clew.cli.client import Client, connected
from clew.cli.options import asynchronous, config_option, json_option, limit_option, local, settings, zone
from clew.cli.output import escaped, harmless, nothing, plural, print_json, print_table
from clew.cli.reading import known_meaning, reading
from clew.config import Config
from clew.documents import Refused, folders
from clew.errors import NotFound, UsageError
from clew.fetching import is_url
from clew.store.documents import Document
from clew.store.notes import Where
from clew.store.sql import SqlStore

SNIPPET = 400
"""Characters of a passage in the listing."""


@click.group()
def docs() -> None:
    """Documents that answers can rest on: add, list, remove and search them."""


def _whose_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for name, metavar, text in (
        ("--project", "NAME", "A project of the config, or the address of a chat: those who are in it."),
        ("--person", "PERSON", "Somebody's own documents."),
    ):
        command = click.option(name, metavar=metavar, help=text)(command)
    return command


def _named(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """What is named. Nothing at all would be the folder that one is in."""
    if not all(each.strip() for each in value):
        raise click.BadParameter("One of them is empty. Is a variable not set? `.` is the folder that you are in.", ctx, parameter)
    return value


@docs.command()
@click.argument("sources", metavar="PATH|URL...", nargs=-1, required=True, callback=_named)
@_whose_options
@config_option
@json_option
@click.pass_context
def add(ctx: click.Context, sources: tuple[str, ...], person: str | None, project: str | None, path: Path | None, as_json: bool) -> None:
    """Add files, all documents of folders, and pages of the web: Markdown, text, HTML, PDF and DOCX.

    They are the owner's unless a person or a project is named. What has not changed since it was added is left as it is. Exit code 1 if
    something could not be added.
    """
    if person is not None and project is not None:
        raise UsageError("--person and --project exclude each other.")
    done = _added(settings(path), sources, {"person": person, "project": project}, quiet=as_json)
    if as_json:
        print_json(done)
    if any(each["state"] == "refused" for each in done):
        ctx.exit(1)


@asynchronous
async def _added(config: Config, sources: Sequence[str], whose: dict[str, str | None], *, quiet: bool) -> list[dict[str, Any]]:
    done = []
    async with connected(config) as client:
        for source, root in _each(sources):
            done.append(result := await _add(client, config, source, root, whose))
            if not quiet:
                _tell(result)
    return done


def _each(sources: Sequence[str]) -> Iterator[tuple[str, Path | None]]:
    """(a file or URL, the folder that it was found in) of everything that is named."""
    for source in sources:
        path = Path(source)
        if is_url(source) or not path.is_dir():
            yield source, None
            continue
        found = folders.files(path)
        if not found:
            raise NotFound(f"{source} holds no documents.", hint="Those are .md, .txt, .html, .pdf, .docx and some more, not hidden.")
        yield from ((str(each.path), path) for each in found)


async def _add(client: Client, config: Config, source: str, root: Path | None, whose: dict[str, str | None]) -> dict[str, Any]:
    try:
        body: dict[str, Any] = {**whose, "source": source}
        if not is_url(source):
            path = Path(source).absolute()
            content, _ = await asyncio.to_thread(folders.content, path, config.limits.attachment_bytes, root)
            body |= {"source": str(path), "content": base64.b64encode(content).decode()}
        return {"source": body["source"], **await client.post("/api/v1/documents", body)}
    except (UsageError, Refused) as error:
        return _refused(source, error.message, error.hint)
    except OSError as error:
        return _refused(source, error.strerror or str(error), "")


def _refused(source: str, why: str, hint: str) -> dict[str, Any]:
    # A name that is not UTF-8 can be neither printed nor written as JSON.
    shown = source.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return {"source": shown, "state": "refused", "error": why, "hint": hint}


def _tell(result: dict[str, Any]) -> None:
    if result["state"] == "refused":
        click.echo(f"{escaped(result['source'])}: not added: {harmless(result['error'])} {result['hint']}".rstrip(), err=True)
        return
    document = result["document"]
    click.echo(f"{result['state']}: {escaped(document['name'])} ({plural(document['chunks'], 'passage')}) {document['id']}")


@docs.command("list")
@_whose_options
@config_option
@json_option
@limit_option(1000, "documents, by name")
@asynchronous
async def list_(person: str | None, project: str | None, path: Path | None, as_json: bool, limit: int) -> None:
    """Documents with whose they are, how many passages they have, and where they come from."""
    config = settings(path)
    async with reading(config) as store:
        found = await store.documents.listing(await _where(config, store, person=person, project=project), limit)
    if as_json:
        print_json([asdict(each) for each in found])
    elif not found:
        nothing("There are no documents.")
    headings = ("ID", "NAME", "WHOSE", "PASSAGES", "UPDATED", "SOURCE")
    rows = ((d.id, escaped(d.name), d.scope, d.chunks, local(d.updated, zone(config)), escaped(d.source)) for d in found)
    print_table(headings, () if as_json else rows)


@docs.command()
@click.argument("documents", metavar="ID|PATH|URL...", nargs=-1, required=True, callback=_named)
@config_option
@json_option
@asynchronous
async def remove(documents: tuple[str, ...], path: Path | None, as_json: bool) -> None:
    """Remove documents, and all documents of folders: nothing of them is found any more. The files themselves stay."""
    config = settings(path)
    async with reading(config) as store:
        found = {each.id: each for key in documents for each in await _meant(store, key)}
    async with connected(config) as client:
        removed = [await client.delete(f"/api/v1/documents/{quote(each)}") for each in found]
    if as_json:
        print_json(removed)
    for each in () if as_json else removed:
        click.echo(f"removed: {escaped(each['name'])}")
    if len(removed) > len(documents) and not as_json:
        click.echo(f"{plural(len(removed), 'document')} removed.")


async def _meant(store: SqlStore, key: str) -> Sequence[Document]:
    """The document that is named, or those of the folder that is, which may be gone. Raises NotFound or UsageError."""
    path = Path(key)
    there = not is_url(key) and path.exists()
    try:
        return [await store.documents.find(str(path.absolute()) if there else key)]
    except NotFound:
        found = [] if is_url(key) else await store.documents.below({str(path.absolute()), str(path.resolve())})
        if not found:
            raise
    if len(scopes := sorted({each.scope for each in found})) > 1:
        raise UsageError(f"{key} holds documents of several: {', '.join(scopes)}.", hint="Say which, by their ids: `clew docs list`.")
    # Those of watched folders are removed there; where there are no others, the daemon says so.
    return [each for each in found if each.origin == "hand"] or found


@docs.command()
@click.argument("query")
@click.option("--session", metavar="ID", help="What a turn of this session would find.")
@click.option("--chat", metavar="ADDRESS", help="What a turn at this address would find, such as mqtt:ada.")
@_whose_options
@config_option
@json_option
@limit_option(5, "passages, the best first")
@asynchronous
async def search(
    query: str,
    session: str | None,
    chat: str | None,
    person: str | None,
    project: str | None,
    path: Path | None,
    as_json: bool,
    limit: int,
) -> None:
    """Find passages in all documents, or in those that a person, a project, a chat or a session may see."""
    from clew.passages import Passages

    config = settings(path)
    async with reading(config) as store:
        where = await _where(config, store, person=person, project=project, session=session, address=chat)
        async with known_meaning(config, store) as meaning:
            found = await Passages(store, config.docs.budget_chars, meaning.nearest if meaning else None).search(where, query, limit)
    if not found:
        raise NotFound(f"Nothing was found for {query!r}.")
    if as_json:
        print_json([asdict(each) for each in found])
    for each in () if as_json else found:
        click.echo(harmless(each.passage.cited))
        text = " ".join(harmless(each.passage.text).split())
        click.echo(f"    {text if len(text) <= SNIPPET else text[: SNIPPET - 1] + '…'}")


async def _where(config: Config, store: SqlStore, **named: str | None) -> Where | None:
    from clew.whose import within  # only now: it brings the providers with it

    return await within(config, store, **{"person": None, "project": None, **named})
