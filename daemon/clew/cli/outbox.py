"""`clew outbox`: replies on their way."""

from pathlib import Path
from urllib.parse import quote

import click

from clew.cli.client import connected
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


@outbox.command()
@click.argument("delivery", metavar="ID")
@config_option
@asynchronous
async def retry(delivery: str, path: Path | None) -> None:
    """Send a dead or unknown reply once more. One whose outcome is unknown may arrive twice."""
    async with connected(settings(path)) as client:
        await client.post(f"/api/v1/outbox/{quote(delivery, safe='')}/retry")
    click.echo(f"{delivery} is sent again")


@outbox.command()
@click.argument("delivery", metavar="ID")
@config_option
@asynchronous
async def discard(delivery: str, path: Path | None) -> None:
    """Give up a reply that waits, is dead or unknown. Its words stay in the transcript."""
    async with connected(settings(path)) as client:
        await client.delete(f"/api/v1/outbox/{quote(delivery, safe='')}")
    click.echo(f"{delivery} is given up")
