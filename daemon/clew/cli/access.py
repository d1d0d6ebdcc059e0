"""`clew access`: who asked to talk to clew."""

from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

import click

from clew.cli.client import connected
from clew.cli.options import asynchronous, config_option, json_option, local, settings, zone
from clew.cli.output import nothing, print_json, print_table
from clew.cli.reading import reading

key_argument = click.argument("key", metavar="CODE_OR_IDENTITY")


@click.group()
def access() -> None:
    """Who asked to talk to clew: list, approve, deny."""


@access.command("list")
@click.option("--all", "everyone", is_flag=True, help="Those that were answered too.")
@config_option
@json_option
@asynchronous
async def list_(everyone: bool, path: Path | None, as_json: bool) -> None:
    """Requests that wait for an answer."""
    config = settings(path)
    async with reading(config) as store:
        requests = await store.access_requests(None if everyone else "open")
    if as_json:
        print_json([asdict(each) for each in requests])
    elif not requests:
        nothing("Nobody waits for an answer.")
    else:
        headings = ("CODE", "IDENTITY", "NAME", "STATE", "MESSAGES", "SINCE")
        print_table(
            headings,
            ((each.code, each.identity, each.name, each.state, each.messages, local(each.created, zone(config))) for each in requests),
        )


@access.command()
@key_argument
@click.option("--role", type=click.Choice(["owner", "member", "guest"]), default="member", show_default=True, help="What they may do.")
@config_option
@asynchronous
async def approve(key: str, role: str, path: Path | None) -> None:
    """Let somebody in, by the code that they were told or by their identity, such as mqtt:ada."""
    async with connected(settings(path)) as client:
        request = await client.post(f"/api/v1/access/{quote(key, safe='')}", {"approve": True, "role": role})
    click.echo(f"{request['identity']} may talk to clew now, as {role}")


@access.command()
@key_argument
@config_option
@asynchronous
async def deny(key: str, path: Path | None) -> None:
    """Turn somebody away."""
    async with connected(settings(path)) as client:
        request = await client.post(f"/api/v1/access/{quote(key, safe='')}", {"approve": False})
    click.echo(f"{request['identity']} may not talk to clew")
