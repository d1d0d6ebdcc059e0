"""`clew memory`: what is known beyond conversations."""

import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import tzinfo
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from clew.cli.client import connected, running
from clew.cli.options import asynchronous, config_option, json_option, local, log_to_stderr, settings, zone, zone_name
from clew.cli.output import harmless, nothing, print_json, print_table
from clew.cli.reading import reading, reading_any
from clew.clock import Time
from clew.config import Config
from clew.context.naming import name_key
from clew.context.notes import Entity, Notes, ScopeKind, told
from clew.errors import NotFound, UsageError
from clew.store.notes import Change, Where
from clew.store.sql import SqlStore

LISTED = 50
"""Changes in the listing of the history."""


@click.command()
@click.option("--scope", type=click.Choice(["user", "project", "cross"]), default="user", show_default=True, help="Whose notes.")
@click.option(
    "--action",
    type=click.Choice(["show", "set", "get", "clear", "context", "history", "undo"]),
    default="show",
    show_default=True,
    help="What to do. context: print what the model would be given.",
)
@click.option("--key", metavar="K", help="A preference, or for get and clear the name of an entity; for undo the number of a change.")
@click.option("--value", metavar="V", help="What the preference is set to.")
@click.option("--person", metavar="P", help="Whose notes; the owner's if nobody is named.")
@click.option("--project", metavar="NAME", help="A project of the config, or the address of a chat.")
@click.option("--session", metavar="ID", help="What is known in the chat of this session.")
@config_option
@json_option
@asynchronous
async def memory(
    scope: ScopeKind,
    action: str,
    key: str | None,
    value: str | None,
    person: str | None,
    project: str | None,
    session: str | None,
    path: Path | None,
    as_json: bool,
) -> None:
    """Show and change what is known about people and projects beyond conversations."""
    config = settings(path)
    whose = {"scope": scope, "person": person, "project": project, "session": session}
    if value is not None and action != "set":
        raise UsageError("--value goes with --action set.")
    if action in ("set", "clear", "undo"):
        await _change(config, whose, action, key, value, as_json)
    elif action == "context":
        await _context(config, whose, as_json)
    else:
        await _show(config, whose, action, key, as_json)


async def _change(config: Config, whose: dict[str, Any], action: str, key: str | None, value: str | None, as_json: bool) -> None:
    if action == "set" and (key is None or value is None):
        raise UsageError("--action set needs --key and --value.")
    async with connected(config) as client:
        answer = await client.post("/api/v1/memory", {**whose, "action": action, "key": key, "value": value})
    if as_json:
        print_json(answer)
    elif action == "undo":
        click.echo(f"undone: {harmless(answer['summary'])}")
    else:
        states = {"noted": "set", "known": "as it was", "removed": "cleared"}
        click.echo(f"{states[answer['state']]}: {harmless(answer['what'])}")


async def _context(config: Config, whose: dict[str, Any], as_json: bool) -> None:
    """The daemon that runs knows its model; without one the config's is asked for its window."""
    async with running(config) as client:
        if client is not None:
            asked = urlencode({name: each for name, each in whose.items() if each is not None})
            text = (await client.get(f"/api/v1/memory/context?{asked}"))["text"]
        else:
            text = await _given(config, whose)
    if as_json:
        print_json({"text": text})
    else:
        click.echo(text, nl=False)


async def _given(config: Config, whose: dict[str, Any]) -> str:
    from clew.lineup import Lineups  # only now: it brings the providers with it
    from clew.prompting import given_notes

    lineups = Lineups()
    async with reading_any(config) as store:
        if store is None:
            return ""
        log_to_stderr(config, "warning")
        where = await _where(config, store, whose)
        session = (await store.find_session(whose["session"])).id if whose["session"] else None
        try:
            provider = (await lineups.opened(config, Time())).own[0]
            return await given_notes(store, config.agent, where, session, provider, zone_name(config), time.time())
        finally:
            await lineups.close()


async def _show(config: Config, whose: dict[str, Any], action: str, key: str | None, as_json: bool) -> None:
    scope: ScopeKind = whose["scope"]
    if action == "get" and key is None:
        raise UsageError("--action get needs --key.")
    async with reading(config) as store:
        where = await _where(config, store, whose)
        if action == "history":
            _print_history(await store.notes.changes(where, scope, LISTED), zone(config), as_json)
            return
        notes = await store.notes.listing(where, scope, time.time())
    if action == "get":
        _print_one(notes, str(key), zone(config), as_json)
    elif as_json:
        print_json(asdict(notes))
    else:
        _print_all(notes, zone(config))


async def _where(config: Config, store: SqlStore, whose: dict[str, Any]) -> Where:
    from clew.whose import whose as found  # only now: it brings the providers with it

    return await found(config, store, whose["scope"], person=whose["person"], project=whose["project"], session=whose["session"])


def _print_one(notes: Notes, key: str, where: tzinfo | None, as_json: bool) -> None:
    """A preference's value, else what is known about the entity of this name."""
    preference = next((each for each in notes.preferences if each.key == key), None)
    entity = next((each for each in notes.entities if name_key(each.name) == name_key(key)), None)
    if preference is None and entity is None:
        raise NotFound(f"Nothing is noted as {key!r}.")
    if as_json:
        print_json(asdict(preference or entity))  # type: ignore[arg-type]  # one of them is there
    elif preference:
        click.echo(harmless(preference.value))
    elif entity:
        for line in _described(entity, where):
            click.echo(line)


def _print_all(notes: Notes, where: tzinfo | None) -> None:
    for each in notes.preferences:
        click.echo(f"{harmless(each.key)}: {harmless(each.value)}")
    for entity in notes.entities:
        for line in _described(entity, where):
            click.echo(line)
    if not notes.preferences and not notes.entities:
        nothing("Nothing is noted.")


def _described(entity: Entity, where: tzinfo | None) -> Iterator[str]:
    yield harmless(entity.heading)
    for fact in entity.facts:
        words = told(fact, where)
        yield f"- {harmless(f'{fact.entity} {words}' if fact.target else words)}"


def _print_history(changes: list[Change], where: tzinfo | None, as_json: bool) -> None:
    if as_json:
        print_json([asdict(each) for each in changes])
        return
    if not changes:
        nothing("Nothing was changed yet.")
    rows = ((each.number, local(each.at, where), each.by or "operator", _state(each), each.summary) for each in changes)
    print_table(("CHANGE", "AT", "BY", "STATE", "WHAT"), rows)


def _state(change: Change) -> str:
    return "damaged" if change.damaged else f"undone by {change.undone_by}" if change.undone_by is not None else ""
