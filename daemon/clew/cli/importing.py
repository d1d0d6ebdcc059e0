"""`clew session import`: exports coming back, and conversations that were had with other programs."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import click

from clew.assembly import zone_name
from clew.cli.client import Client, connected
from clew.cli.options import asynchronous, config_option, json_option, settings
from clew.cli.output import harmless, plural, print_json
from clew.errors import ClewError, UsageError
from clew.imports import FORMATS, Format, conversations
from clew.imports.conversation import LONGEST_KEY, LONGEST_TITLE, Conversation, Unreadable
from clew.messages import blocks_to_json

LONGEST_EXPORT = 256 * 2**20
"""Bytes of a session's export that are read."""
TOLD_EVERY = 50
"""Conversations between two lines of progress."""
UNREADABLE = 20
"""Conversations that cannot be read, of which each is told."""


@dataclass(slots=True)
class _Tally:
    """What was found and what became of it. times: of the first and the last message, in seconds since the epoch."""

    found: int = 0
    messages: int = 0
    times: tuple[float, float] | None = None
    outcomes: Counter[str] = field(default_factory=Counter)
    written: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)

    def add(self, each: Conversation | Unreadable) -> None:
        if isinstance(each, Unreadable):
            self.unreadable.append(each)
            return
        self.found += 1
        self.messages += len(each.messages)
        at = [one.at for one in each.messages if one.at]
        if at:
            first, last = self.times or (at[0], at[0])
            self.times = (min(first, *at), max(last, *at))


@click.command("import")
@click.argument("file")
@click.option("--from", "kind", type=click.Choice(FORMATS), help="The program whose export it is; clew's own if none is named.")
@click.option("--person", metavar="P", help="Whose conversations these are; the owner's if nobody is named.")
@click.option("--me", metavar="NAME", help="What P is called in the file, where it does not say which of the names is theirs.")
@click.option("--timezone", metavar="ZONE", help="IANA zone of times that name none (WhatsApp); the agent's if none is named.")
@click.option("--dry-run", is_flag=True, help="Only say what is in the file.")
@json_option
@config_option
@asynchronous
async def import_(
    file: str,
    kind: Format | None,
    person: str | None,
    me: str | None,
    timezone: str | None,
    dry_run: bool,
    as_json: bool,
    path: Path | None,
) -> None:
    """Bring in FILE: an exported session (`-`: from stdin), or what another program exported (--from).

    What was brought in before is passed over; what was said since in a conversation is added to it.
    """
    config = settings(path)
    if kind is None:
        if person or me or timezone or dry_run:
            raise UsageError("--person, --me, --timezone and --dry-run are for exports of other programs: name one with --from.")
        export = _exported(_bytes_of(file))
        async with connected(config) as client:
            answer = await client.post("/api/v1/sessions/import", export)
        print_json(answer) if as_json else click.echo(answer["session"])
        return
    zone, tally = _zone(timezone or zone_name(config)), _Tally()
    found = conversations(kind, Path(file), me, zone)
    if dry_run:
        for each in found:
            tally.add(each)
    else:
        async with connected(config) as client:
            while (whole := await _next(found)) is not None:
                tally.add(whole)
                if isinstance(whole, Unreadable):
                    continue
                await _bring_in(client, body_of(kind, person, whole), tally)
                if not as_json and tally.found % TOLD_EVERY == 0:
                    click.echo(f"{tally.found:,} conversations, {tally.messages:,} messages …", err=True)
    _tell(tally, zone, dry_run=dry_run, as_json=as_json)
    if tally.unreadable:
        others = " The others were brought in." if tally.found and not dry_run else ""
        raise ClewError(f"{plural(len(tally.unreadable), 'conversation')} could not be read.{others}")


async def _next(found: Iterator[Conversation | Unreadable]) -> Conversation | Unreadable | None:
    """Read in a thread: a daemon of this process's own goes on meanwhile."""

    def read() -> Conversation | Unreadable | None:
        return next(found, None)

    return await asyncio.to_thread(read)


async def _bring_in(client: Client, body: dict[str, Any], tally: _Tally) -> None:
    answer = await client.post("/api/v1/imports", body)
    tally.outcomes[answer["outcome"]] += 1
    tally.written += answer["messages"]


def body_of(kind: Format, person: str | None, whole: Conversation) -> dict[str, Any]:
    """What the API takes. person: whose it is; None for the owner."""
    messages = [
        {
            "key": each.key,
            "role": each.role,
            "blocks": json.loads(blocks_to_json(each.blocks)),
            "at": each.at,
            "name": "" if each.mine else each.name or "somebody",
        }
        for each in whole.messages
    ]
    return {"source": kind, "key": whole.key[:LONGEST_KEY], "title": whole.title[:LONGEST_TITLE], "person": person, "messages": messages}


def _tell(tally: _Tally, zone: ZoneInfo, *, dry_run: bool, as_json: bool) -> None:
    first, last = (datetime.fromtimestamp(at, zone) for at in tally.times) if tally.times else (None, None)
    if as_json:
        outcomes = {} if dry_run else {each: tally.outcomes[each] for each in ("new", "grown", "here", "changed")}
        unreadable = [{"where": each.where, "why": each.why} for each in tally.unreadable]
        times = {"first": first and first.isoformat(), "last": last and last.isoformat()}
        counts = {"conversations": tally.found, "messages": tally.messages, **times}
        print_json(counts | ({} if dry_run else {"written": tally.written, "outcomes": outcomes}) | {"unreadable": unreadable})
        return
    for each in tally.unreadable[:UNREADABLE]:
        click.echo(harmless(f"{each.where}: {each.why}."), err=True)
    span = f", from {first:%Y-%m-%d} to {last:%Y-%m-%d}" if first and last else ""
    click.echo(f"{plural(tally.found, 'conversation')}, {plural(tally.messages, 'message')}{span}.")
    if not dry_run:
        outcomes = tally.outcomes
        says = {"new": "new", "grown": "gone on", "here": "here already", "changed": "here with another beginning, left as they are"}
        click.echo(", ".join(f"{outcomes[each]:,} {words}" for each, words in says.items() if outcomes[each]) or "nothing to bring in")
        click.echo(f"{plural(tally.written, 'message')} written.")


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise UsageError(f"{name!r} is no time zone.", hint="Name one as Europe/Berlin.") from None


def _bytes_of(file: str) -> bytes:
    if file == "-":
        return cast(bytes, sys.stdin.buffer.read(LONGEST_EXPORT + 1))
    try:
        with Path(file).open("rb") as opened:
            return opened.read(LONGEST_EXPORT + 1)
    except OSError as error:
        raise UsageError(f"{file} cannot be opened ({error.strerror}).") from None


def _exported(raw: bytes) -> dict[str, Any]:
    """The export in `raw`, as far as can be seen without the store. Raises ClewError where it is none."""
    if len(raw) > LONGEST_EXPORT:
        raise ClewError(f"this export is too large: at most {LONGEST_EXPORT // 2**20} MiB are read.")
    try:
        data = json.loads(raw)
    except json.JSONDecodeError as error:
        raise _no_export(f"it is not JSON (line {error.lineno}, column {error.colno}: {error.msg})") from None
    except (ValueError, RecursionError):
        raise _no_export("it is not JSON") from None
    if not (isinstance(data, dict) and isinstance(data.get("clew"), int) and isinstance(data.get("session"), dict)):
        raise _no_export("it is JSON, but has no `clew` number with a `session` beside it")
    return data


def _no_export(why: str) -> ClewError:
    return ClewError(f"not a clew export: {why}.", hint="`clew session export ID --output FILE` writes one.")
