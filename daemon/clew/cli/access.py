"""`clew access`: who asked to talk to clew, who may, and who is who."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import click

from clew.cli.client import Client, connected
from clew.cli.options import asynchronous, config_option, json_option, local, settings, zone
from clew.cli.output import nothing, print_json, print_table
from clew.cli.reading import reading
from clew.clock import Time

key_argument = click.argument("key", metavar="CODE_OR_IDENTITY")
person_argument = click.argument("person")
role_choice = click.Choice(["owner", "member", "guest"])


@click.group()
def access() -> None:
    """Who asked to talk to clew, who may, and who is who."""


@access.command("list")
@click.option("--all", "everyone", is_flag=True, help="Those that were answered too.")
@config_option
@json_option
@asynchronous
async def list_(everyone: bool, path: Path | None, as_json: bool) -> None:
    """Requests that wait for an answer."""
    config = settings(path)
    async with reading(config) as store:
        requests = await store.access_requests(None if everyone else "open", Time().wall())
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
@config_option
@json_option
@asynchronous
async def people(path: Path | None, as_json: bool) -> None:
    """Who may talk to clew: their role, where they come from, their accounts, and when they wrote last (to the hour)."""
    config = settings(path)
    async with reading(config) as store:
        known = await store.people()
    if as_json:
        print_json([asdict(each) for each in known])
    elif not known:
        nothing("Nobody is known yet: clew takes people over from the config when it runs.")
    else:
        headings = ("PERSON", "NAME", "ROLE", "FROM", "IDENTITIES", "LAST SEEN")
        rows = (
            (
                each.id,
                each.name,
                each.role,
                each.origin,
                ", ".join(account.identity for account in each.identities),
                local(each.seen, zone(config)) if each.seen else "never",
            )
            for each in known
        )
        print_table(headings, rows)


@access.command()
@key_argument
@click.option("--role", type=role_choice, default="member", show_default=True, help="What they may do.")
@click.option("--as", "name", metavar="NAME", default="", help="What they are called from now on.")
@config_option
@asynchronous
async def approve(key: str, role: str, name: str, path: Path | None) -> None:
    """Let somebody in, by the code that they were told or by their identity, such as mqtt:ada."""
    async with connected(settings(path)) as client:
        request = await client.post(f"/api/v1/access/{quote(key, safe='')}", {"approve": True, "role": role, "name": name})
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


@access.command()
@person_argument
@click.argument("role", type=role_choice, metavar="ROLE")
@config_option
@asynchronous
async def role(person: str, role: str, path: Path | None) -> None:
    """Give somebody another role: owner, member or guest. PERSON: an id, a name or an identity."""
    async with connected(settings(path)) as client:
        _tell(await client.patch(_at(person), {"role": role}))


@access.command()
@person_argument
@click.argument("name", default="")
@config_option
@asynchronous
async def rename(person: str, name: str, path: Path | None) -> None:
    """Call somebody NAME, or by their id again without one."""
    async with connected(settings(path)) as client:
        _tell(await client.patch(_at(person), {"name": name}))


@access.command()
@person_argument
@config_option
@asynchronous
async def remove(person: str, path: Path | None) -> None:
    """Take somebody's access away at once. What they wrote is kept."""
    async with connected(settings(path)) as client:
        _tell(await client.delete(_at(person)))


@access.command()
@person_argument
@click.argument("identity")
@config_option
@asynchronous
async def link(person: str, identity: str, path: Path | None) -> None:
    """Let an account be PERSON too, with the chats it has here. IDENTITY: transport:user."""
    async with connected(settings(path)) as client:
        _tell(await client.post(f"{_at(person)}/identities", {"identity": identity}))


@access.command()
@click.argument("identity")
@config_option
@asynchronous
async def unlink(identity: str, path: Path | None) -> None:
    """Take a linked account from its person; clew does not know it any more."""
    async with connected(settings(path)) as client:
        _tell(await _unlinked(client, identity))


async def _unlinked(client: Client, identity: str) -> Any:
    return await client.delete(f"{_at(identity)}/identities/{quote(identity, safe='')}")


def _at(person: str) -> str:
    return f"/api/v1/people/{quote(person, safe='')}"


def _tell(answer: Any) -> None:
    for line in answer["told"]:
        click.echo(line)


@access.command()
@click.argument("person", default="")
@config_option
@json_option
@asynchronous
async def web(person: str, path: Path | None, as_json: bool) -> None:
    """Print a link that logs a browser in to the page, once and within ten minutes: as PERSON, or as the owner."""
    from clew.assembly import owner_of

    config = settings(path)
    async with connected(config) as client:
        link = await client.post(f"{_at(person or owner_of(config))}/login")
    if as_json:
        print_json(link)
    else:
        click.echo(link["url"])
        click.echo(f"It logs a browser in as {link['person']}, once, until {local(link['until'], zone(config)):%Y-%m-%d %H:%M}.", err=True)


@access.command()
@config_option
@json_option
@asynchronous
async def logins(path: Path | None, as_json: bool) -> None:
    """Browsers that are logged in to the page, the one seen last first."""
    config = settings(path)
    async with reading(config) as store:
        found = await store.logins(Time().wall())
    if as_json:
        print_json([asdict(each) for each in found])
    elif not found:
        nothing("No browser is logged in.")
    else:
        when = partial(local, where=zone(config))
        rows = ((each.id, each.called, each.how, when(each.created), when(each.seen), when(each.expires), each.agent) for each in found)
        print_table(("ID", "PERSON", "BY", "SINCE", "LAST SEEN", "UNTIL", "BROWSER"), rows)


@access.command()
@click.argument("login", default="", metavar="[ID]")
@click.option("--person", metavar="PERSON", help="All browsers of somebody.")
@click.option("--all", "everybody", is_flag=True, help="All browsers.")
@config_option
@asynchronous
async def logout(login: str, person: str | None, everybody: bool, path: Path | None) -> None:
    """Log a browser out, all of a person's, or all."""
    if (bool(login), person is not None, everybody).count(True) != 1:
        raise click.UsageError("Name one: the ID of a login, --person, or --all.")
    query = f"?{urlencode({'person': person})}" if person is not None else ""
    async with connected(settings(path)) as client:
        _tell(await client.delete(f"/api/v1/logins/{quote(login, safe='')}" if login else f"/api/v1/logins{query}"))
