"""`clew cost`."""

import time
from datetime import datetime
from pathlib import Path

import click

from clew import costs
from clew.cli.options import asynchronous, config_option, json_option, settings, zone_name
from clew.cli.output import harmless, print_json
from clew.cli.reading import reading
from clew.errors import UsageError
from clew.purse import limits_of
from clew.whose import known


@click.command()
@click.option("--session", default="", metavar="ID", help="Of a session: its turns, and why their prompt cache fell short.")
@click.option("--person", default="", metavar="P", help="Of a person, by the name in the config or the identity they paired with.")
@click.option("--chat", default="", metavar="ADDRESS", help="Of a chat.")
@click.option("--day", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="On a day, such as 2026-11-30.")
@click.option("--month", type=click.DateTime(["%Y-%m"]), metavar="MONTH", help="In a month, such as 2026-11.")
@config_option
@json_option
@asynchronous
async def cost(
    session: str, person: str, chat: str, day: datetime | None, month: datetime | None, path: Path | None, as_json: bool
) -> None:
    """Say what calls of models cost, today and this month, and how budgets stand."""
    if bool(session) + bool(person) + bool(chat) > 1:
        raise UsageError("--session, --person and --chat exclude each other.")
    if (day and month) or (session and (day or month)):
        raise UsageError("Give one of --day and --month, and neither with --session.")
    config = settings(path)
    when = f"{day:%Y-%m-%d}" if day else f"{month:%Y-%m}" if month else ""
    async with reading(config) as store:
        asked = costs.Question(session, person and await known(config, store, person), chat, when)
        told = await costs.answer(store, asked, zone_name(config), limits_of(config.budgets), time.time())
    if as_json:
        print_json(costs.answer_values(told))
        return
    for line in costs.answer_lines(told):
        click.echo(harmless(line))
