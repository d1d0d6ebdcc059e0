"""`clew outbox`: replies on their way."""

from pathlib import Path

import click

from clew.cli.options import asynchronous, config_option, json_option, local, settings, zone
from clew.cli.output import nothing, print_json, print_table
from clew.cli.reading import reading

STATES = ("draft", "pending", "sending", "unknown", "dead")


@click.group()
def outbox() -> None:
    """Replies that wait to be sent or could not be."""


@outbox.command("list")
@click.option("--state", type=click.Choice([*STATES, "sent"]), multiple=True, help="Only in this state; may be given more than once.")
@config_option
@json_option
@asynchronous
async def list_(state: tuple[str, ...], path: Path | None, as_json: bool) -> None:
    """Replies that are not sent, the oldest first, with the reason."""
    config = settings(path)
    async with reading(config) as store:
        rows = await store.outbox(state or STATES)
    if as_json:
        print_json(rows)
    elif not rows:
        nothing("Nothing waits to be sent.")
    else:
        headings = ("ID", "STATE", "ADDRESS", "SESSION", "TRIES", "WRITTEN", "REASON")
        where = zone(config)
        print_table(
            headings,
            ((r["id"], r["state"], r["address"], r["session"], r["attempts"], local(r["created"], where), r["reason"]) for r in rows),
        )
