"""`clew session compact` and its kin: what was compacted, undone, written anew, pinned."""

import json
from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from clew.cli.client import connected
from clew.cli.options import asynchronous, config_option, json_option, local, settings, zone
from clew.cli.output import WIDEST_COLUMN, harmless, nothing, plural, print_json, print_table
from clew.cli.reading import reading
from clew.cli.transcript import summary_values
from clew.compacted import Told, difference, entry_line, outcome_words, preview_words, short, told, undone_words
from clew.config import Config
from clew.errors import ClewError, NotFound
from clew.store import Compaction

WHOLE = 2**31
"""Characters that no entry has: nothing of it is cut."""

session_argument = click.argument("session", metavar="ID")


@click.command()
@session_argument
@click.option("--preview", is_flag=True, help="Show what would be done, without a model call.")
@click.option("--focus", metavar="TEXT", help="What the summary must keep.")
@config_option
@json_option
@asynchronous
async def compact(session: str, preview: bool, focus: str | None, path: Path | None, as_json: bool) -> None:
    """Compact a session now: its older messages become a summary in the model's window. The transcript stays."""
    config = settings(path)
    async with reading(config) as store:
        row = await store.find_session(session)
    asked = f"/api/v1/sessions/{quote(row.id)}/compact"
    async with connected(config) as client:
        answer = await client.post(f"{asked}?preview=true") if preview else await client.post(asked, {"focus": focus})
    if as_json:
        print_json(answer)
    elif preview:
        click.echo(preview_words(**answer))
    if not preview:
        _tell_outcome(answer, quiet=as_json)


def _tell_outcome(outcome: dict[str, Any], *, quiet: bool) -> None:
    """Raises ClewError where the compaction came to nothing good."""
    if outcome["state"] not in ("done", "nothing"):
        raise ClewError(outcome_words(**outcome))
    if not quiet:
        click.echo(outcome_words(**outcome))


@click.command()
@session_argument
@click.argument("number", type=click.IntRange(min=1), required=False)
@click.option("--diff", is_flag=True, help="Show how the summary differs from the one before it; of the newest without a NUMBER.")
@config_option
@json_option
@asynchronous
async def compactions(session: str, number: int | None, diff: bool, path: Path | None, as_json: bool) -> None:
    """List a session's compactions, or show the one with this NUMBER: what it kept, changed and dropped, what of the summariser's
    changes was refused, and its summary."""
    config = settings(path)
    async with reading(config) as store:
        row = await store.find_session(session)
        done = await store.compactions(row.id)
    if diff and number is None:
        number = max((at for at, each in enumerate(done, 1) if each.undone_at is None and each.kind == "summary"), default=1)
    if number is not None:
        _show(done, number, zone(config), diff=diff, as_json=as_json)
    elif as_json:
        print_json([{"number": at, **_values(each)} for at, each in enumerate(done, 1)])
    elif not done:
        nothing(f"Session {row.id} was never compacted.")
    else:
        headings = ("NUMBER", "ID", "MADE", "KIND", "TRIGGER", "COVERED", "UP TO", "TOKENS", "STATE")
        print_table(headings, (_row(at, each, config) for at, each in enumerate(done, 1)))


def _row(number: int, each: Compaction, config: Config) -> tuple[object, ...]:
    state = "" if each.undone_at is None else "undone"
    made = local(each.created, zone(config))
    return number, each.id, made, each.kind, each.trigger, each.covered, each.to_seq, _tokens(told(each)), state


def _tokens(report: Told) -> str:
    return "" if report.tokens_before is None else f"{report.tokens_before:,} → {report.tokens_after or 0:,}"


def _values(each: Compaction) -> dict[str, Any]:
    """A compaction as plain values for JSON: its summary, and all that is known of how it was made."""
    return {
        **(summary_values(each) or {}),
        "kind": each.kind,
        "parent": each.parent,
        "from_seq": each.from_seq,
        "prompt_version": each.prompt_version,
        "held": list(each.held),
        "shortened": list(each.shortened),
        "report": json.loads(each.report),
    }


def _show(done: list[Compaction], number: int, where: tzinfo | None, *, diff: bool, as_json: bool) -> None:
    if number > len(done):
        raise NotFound(f"There is no compaction {number}; there are {len(done)}.")
    each = done[number - 1]
    changes = _diff(done, number) if diff else []
    if as_json:
        print_json({"number": number, **_values(each), **({"diff": changes} if diff else {})})
        return
    for line in (*_wished(told(each)), *changes) if diff else _described(each, number, len(done), where):
        click.echo(line)
    if diff and not changes:
        nothing("The summary is the same as the one before it.")


def _wished(report: Told) -> Iterator[str]:
    """What somebody asked of a compaction."""
    for name, text in (("focus", report.focus), ("instructions", report.instructions)):
        if text:
            yield f"{name}: {short(harmless(text), WHOLE)}"


def _diff(done: list[Compaction], number: int) -> list[str]:
    """How a summary differs from its parent's, as a unified diff."""
    each = done[number - 1]
    before = next(((at, other.text) for at, other in enumerate(done, 1) if other.id == each.parent), (0, ""))
    names = (f"compaction {before[0] or '(none)'}", f"compaction {number}")
    return difference(harmless(before[1]), harmless(each.text), names)


def _described(each: Compaction, number: int, total: int, where: tzinfo | None) -> Iterator[str]:
    """What a compaction was, kept, changed and dropped, each entry with its sources, and its summary."""
    report = told(each)
    made = [f"{local(each.created, where):%Y-%m-%d %H:%M}", each.trigger, each.kind, *(["undone"] if each.undone_at is not None else [])]
    yield f"compaction {number} of {total} · {each.id} · {' · '.join(made)}"
    if each.kind == "summary":
        yield f"range: rows {each.from_seq}-{each.to_seq}, {plural(each.covered, 'message')}; the window had {each.messages} then"
    how = [_tokens(report) and f"tokens: {_tokens(report)}", report.model and f"model {report.model}"]
    how += [each.prompt_version and f"prompt {each.prompt_version}", f"{report.seconds:.1f} s" if report.seconds is not None else ""]
    yield " · ".join(filter(None, [*how, f"${report.cost:.4f}" if report.cost is not None else ""]))
    yield from _wished(report)
    for heading in ("dropped", "changed", "added", "kept", "refused"):
        if entries := getattr(report, heading):
            yield f"{heading}: {len(entries)}"
            yield from (f"    {harmless(entry_line(entry, WHOLE))}{_sources(entry)}" for entry in entries)
    if report.rows:
        yield f"shortened: {', '.join(report.rows)}"
    if each.text:
        yield ""
        yield harmless(each.text)


def _sources(entry: dict[str, Any]) -> str:
    return f" [{', '.join(map(str, entry['sources']))}]" if entry.get("sources") else ""


@click.command("undo-compaction")
@session_argument
@config_option
@json_option
@asynchronous
async def undo_compaction(session: str, path: Path | None, as_json: bool) -> None:
    """Undo a session's newest compaction: what it covered or shortened is in the window again as it was."""
    answer = await _asked(path, session, "undo-compaction")
    if as_json:
        print_json(answer)
        return
    click.echo(undone_words(answer["kind"], answer["covered"], len(json.loads(answer["report"]).get("rows", ()))))


@click.command()
@session_argument
@click.option("--focus", metavar="TEXT", help="What the summary must keep this time.")
@click.option(
    "--instructions", metavar="TEXT", default="", help="What the summariser is told this once, instead of the usual instructions."
)
@config_option
@json_option
@asynchronous
async def redo(session: str, focus: str | None, instructions: str, path: Path | None, as_json: bool) -> None:
    """Write a session's newest summary anew from the messages it was made of. The old one stands until the new one is there."""
    answer = await _asked(path, session, "redo", {"focus": focus, "instructions": instructions})
    if as_json:
        print_json(answer)
    elif answer["state"] == "nothing":
        raise NotFound("This session has no summary to write anew.", hint="`clew session compact` makes one.")
    _tell_outcome(answer, quiet=as_json)


@click.command()
@session_argument
@click.argument("message")
@config_option
@json_option
@asynchronous
async def pin(session: str, message: str, path: Path | None, as_json: bool) -> None:
    """Keep a message word for word, whatever is compacted. MESSAGE: its id, the beginning of it, or #7 for the seventh."""
    answer = await _asked(path, session, "pins", {"message": message})
    if as_json:
        print_json(answer)
        return
    said = "pinned" if answer["new"] else "was pinned already"
    _tell_pin(answer, f"{said}; the summary shows it from the next compaction on" if answer["behind"] else said)


@click.command()
@session_argument
@click.argument("message")
@config_option
@json_option
@asynchronous
async def unpin(session: str, message: str, path: Path | None, as_json: bool) -> None:
    """Let go of a pinned message. MESSAGE: its id, the beginning of it, or #7 for the seventh."""
    config = settings(path)
    async with reading(config) as store:
        row = await store.find_session(session)
    async with connected(config) as client:
        answer = await client.delete(f"/api/v1/sessions/{quote(row.id)}/pins/{quote(message, safe='')}")
    if as_json:
        print_json(answer)
        return
    _tell_pin(answer, "not pinned any more" if answer["new"] else "was not pinned")


def _tell_pin(answer: dict[str, Any], said: str) -> None:
    message = answer["message"]
    click.echo(f"#{message['seq']} {message['id']} {said}: {short(harmless(message['text']), WIDEST_COLUMN)}")


async def _asked(path: Path | None, session: str, what: str, body: object = None) -> Any:
    config = settings(path)
    async with reading(config) as store:
        row = await store.find_session(session)
    async with connected(config) as client:
        return await client.post(f"/api/v1/sessions/{quote(row.id)}/{what}", body)
