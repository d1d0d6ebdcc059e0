"""`clew approvals`: tools to which somebody said always, questions that wait for an answer."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import click

from clew.cli.client import connected
from clew.cli.options import asynchronous, config_option, json_option, local, settings, zone
from clew.cli.output import nothing, print_json, print_table
from clew.cli.reading import reading


@click.group()
def approvals() -> None:
    """Tools to which somebody said always, and questions that wait: list them, take a yes back."""


@approvals.command("list")
@click.option("--open", "waiting", is_flag=True, help="The questions that wait for an answer instead.")
@config_option
@json_option
@asynchronous
async def list_(waiting: bool, path: Path | None, as_json: bool) -> None:
    """Tools that are called without a question, since somebody said always: where, on whose behalf, who said so and when."""
    config = settings(path)
    async with reading(config) as store:
        standing = [] if waiting else await store.standing()
        questions = await store.open_questions() if waiting else []
    when = partial(local, where=zone(config))
    if as_json:
        print_json([asdict(each) for each in (questions if waiting else standing)])
    elif questions:
        headings: tuple[str, ...] = ("CODE", "TOOLS", "ASKED", "AT", "SINCE", "UNTIL")
        print_table(headings, ((q.code, ", ".join(q.tools), q.person, q.address, when(q.asked), when(q.until)) for q in questions))
    elif standing:
        headings = ("TOOL", "AT", "FOR", "SAID BY", "SINCE")
        print_table(headings, ((s.tool, s.address, s.person or "scheduled prompts", s.by, when(s.at)) for s in standing))
    else:
        nothing("No question waits." if waiting else "Nobody said always to a tool.")


@approvals.command()
@click.argument("tool")
@click.argument("address")
@click.option("--person", metavar="PERSON", help="On whose behalf; everybody's if left out.")
@config_option
@asynchronous
async def remove(tool: str, address: str, person: str | None, path: Path | None) -> None:
    """Have clew ask again before a tool is called at an address, such as mqtt:ada."""
    asked = {"tool": tool, "address": address} | ({"person": person} if person is not None else {})
    async with connected(settings(path)) as client:
        await client.delete(f"/api/v1/approvals?{urlencode(asked)}")
    click.echo(f"clew asks again before {tool} is called at {address}")
