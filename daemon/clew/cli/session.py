"""`clew session`: the sessions in the store."""

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import click

from clew.cli.client import connected
from clew.cli.compacting import compact, compactions, pin, redo, undo_compaction, unpin
from clew.cli.importing import import_
from clew.cli.options import asynchronous, config_option, json_option, limit_option, local, settings, zone
from clew.cli.output import harmless, nothing, plural, print_json, print_table
from clew.cli.reading import known_meaning, reading
from clew.cli.transcript import as_values, rendered, summary_values
from clew.config.units import duration_text
from clew.errors import ClewError, NotFound, UsageError
from clew.store import Compaction
from clew.why import snippet

EVERY = 2**31
"""A limit that no store reaches."""
SNIPPET = 160
"""Characters of a found message in the listing."""

session_argument = click.argument("session", metavar="ID")


@click.group()
def session() -> None:
    """List, show, search, export, compact and delete sessions. An ID may be shortened as long as it is clear."""


@session.command("list")
@click.option("--all", "every", is_flag=True, help="Those without a message too.")
@config_option
@json_option
@limit_option(1000, "sessions, the one used last first")
@asynchronous
async def list_(every: bool, path: Path | None, as_json: bool, limit: int) -> None:
    """Sessions that have messages, with their address, title, sizes and last activity."""
    config = settings(path)
    async with reading(config) as store:
        found = await store.sessions(limit=EVERY)
    rows = [row for row in found if every or row.messages][:limit]
    if as_json:
        print_json([asdict(row) for row in rows])
    elif not rows:
        nothing("There are no sessions yet.")
    headings = ("ID", "ADDRESS", "TITLE", "MESSAGES", "COMPACTIONS", "LAST ACTIVITY")
    values = ((r.id, r.address, r.title, r.messages, r.compactions, local(r.updated, zone(config))) for r in rows)
    print_table(headings, () if as_json else values)


@session.command()
@session_argument
@config_option
@json_option
@limit_option(1000, "messages, the newest")
@asynchronous
async def show(session: str, path: Path | None, as_json: bool, limit: int) -> None:
    """Print a transcript, with the summary that stands for its older part."""
    config = settings(path)
    async with reading(config) as store:
        row = await store.find_session(session)
        messages = (await store.transcript(row.id))[-limit:]
        summary = _newest(await store.compactions(row.id))
    if as_json:
        print_json({"session": asdict(row), "summary": summary_values(summary), "messages": [as_values(each) for each in messages]})
        return
    click.echo(
        f"session {row.id} · {harmless(row.address)} · {plural(row.messages, 'message')}" + (f" · {harmless(row.title)}" * bool(row.title))
    )
    for line in rendered(messages, summary, zone(config)):
        click.echo(line)


def _newest(compactions: list[Compaction]) -> Compaction | None:
    """The newest summary that stands."""
    return next((each for each in reversed(compactions) if each.undone_at is None and each.kind == "summary"), None)


def _scope_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for name, metavar, text in (
        ("--session", "ID", "What recall would find for this session."),
        ("--chat", "ADDRESS", "What recall would find at this address, such as mqtt:ada."),
        ("--person", "PERSON", "What recall would find for this person."),
    ):
        command = click.option(name, metavar=metavar, help=text)(command)
    return command


@session.command()
@click.argument("query")
@_scope_options
@config_option
@json_option
@limit_option(10, "messages, the best first")
@asynchronous
async def search(
    query: str, person: str | None, chat: str | None, session: str | None, path: Path | None, as_json: bool, limit: int
) -> None:
    """Find messages in all sessions, or in those that a person, a chat or a session may see."""
    from clew import recall

    if sum(each is not None for each in (person, chat, session)) > 1:
        raise UsageError("--person, --chat and --session exclude each other.")
    config = settings(path)
    async with reading(config) as store:
        whose = await recall.whose_words(store, person=person, chat=chat, session=session)
        if person is not None and not whose.scope.chats:
            from clew.whose import known  # only now: it brings the providers with it

            await known(config, store, person)
        where = ZoneInfo(whose.zone) if whose.zone else zone(config)
        today = local(time.time(), where).date()
        async with known_meaning(config, store) as meaning:
            found = await recall.search(store, whose.scope, query, limit=limit, today=today, meaning=meaning)
    if as_json:
        print_json([{**asdict(each.candidate), "score": each.score, "why": each.why} for each in found])
    for each in () if as_json else found:
        hit = each.candidate
        click.echo(f"{hit.session} #{hit.seq} {local(hit.at, zone(config)):%Y-%m-%d %H:%M} {harmless(hit.chat)} {harmless(hit.speaker)}")
        click.echo(f"    {snippet(harmless(hit.text), each.why, SNIPPET)}")
    if not found:
        raise NotFound(f"Nothing was found for {query!r}.")


@session.command()
@session_argument
@config_option
@json_option
@asynchronous
async def context(session: str, path: Path | None, as_json: bool) -> None:
    """What a session's model sees, by part with tokens, and when it is compacted next."""
    async with connected(settings(path)) as client:
        answer = await client.get(f"/api/v1/sessions/{quote(session)}/context")
    if as_json:
        print_json(answer["context"])
    else:
        click.echo(answer["told"])


@session.command()
@session_argument
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead of stdout.")
@config_option
@asynchronous
async def export(session: str, output: Path | None, path: Path | None) -> None:
    """Write a session as JSON; `import` brings it back."""
    async with reading(settings(path)) as store:
        row = await store.find_session(session)
        text = json.dumps(await store.export_session(row.id), ensure_ascii=False, indent=1) + "\n"
    if output is None:
        click.echo(text, nl=False)
        return
    _write(output, text)
    click.echo(f"session {row.id} is in {output}", err=True)


def _write(path: Path, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        unfinished.replace(path)
    except OSError as error:
        error.filename = str(path)  # the file that was asked for
        raise
    finally:
        unfinished.unlink(missing_ok=True)


session.add_command(import_)


@session.command()
@config_option
@json_option
@asynchronous
async def retention(path: Path | None, as_json: bool) -> None:
    """How long what was said in each chat is kept, which rule says so, and how many messages are due to be forgotten now."""
    config = settings(path)
    async with reading(config) as store:
        found = await store.kept(config.sessions, time.time())
    if as_json:
        print_json([asdict(each) for each in found])
    elif not found:
        nothing("There are no chats yet.")
    headings = ("ADDRESS", "PERSON", "KEPT", "RULE", "DUE", "PINNED")
    rows = ((each.address, each.person or "", _kept(each.seconds), each.rule, each.due, each.pinned) for each in found)
    print_table(headings, () if as_json else rows)


def _kept(seconds: float | None) -> str:
    return "forever" if seconds is None else duration_text(seconds)


@session.command()
@session_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
@asynchronous
async def delete(session: str, yes: bool, path: Path | None) -> None:
    """Delete a session and its messages, for good."""
    config = settings(path)
    async with reading(config) as store:
        row = await store.find_session(session)
    if not yes:
        _confirm(f"Delete session {row.id} at {harmless(row.address)} with {plural(row.messages, 'message')} for good?")
    async with connected(config) as client:
        await client.delete(f"/api/v1/sessions/{quote(row.id)}")
    click.echo(f"session {row.id} is deleted")


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError("There is nobody to ask.", hint="Say --yes if you mean it.")
    if not click.confirm(question):
        raise ClewError("nothing was deleted.")


@session.command()
@click.argument("session", metavar="[ID]", required=False)
@config_option
@json_option
@click.pass_context
def verify(ctx: click.Context, session: str | None, path: Path | None, as_json: bool) -> None:
    """Prove that each message is in exactly one of window, summary and taken back. All sessions without an ID."""
    problems = _problems(path, session)
    if as_json:
        print_json(problems)
    for identifier, said in problems.items() if not as_json else ():
        for text in said or ["ok"]:
            click.echo(f"{identifier}: {text}")
    if any(problems.values()):
        ctx.exit(1)


@asynchronous
async def _problems(path: Path | None, session: str | None) -> dict[str, list[str]]:
    async with reading(settings(path)) as store:
        rows = [await store.find_session(session)] if session else await store.sessions(limit=EVERY)
        return {row.id: await store.verify_session(row.id) for row in rows}


for each in (compact, compactions, undo_compaction, redo, pin, unpin):
    session.add_command(each)
