"""`clew init`: a config to begin with, from a few answers, each of them tried."""

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from clew.assembly import unix_user, zone_name
from clew.cli.init.asking import Asker
from clew.cli.init.models import WAYS, found
from clew.cli.init.staging import staging
from clew.cli.init.talking import Conversation, Given, first_messages
from clew.cli.options import settings
from clew.cli.output import harmless, plural
from clew.config import Config
from clew.errors import ClewError, UsageError

LONGEST_SECRET = 64 * 1024
"""Bytes of a file that `--set …=@FILE` names."""


@click.command()
@click.option("--config", "path", type=click.Path(path_type=Path, dir_okay=False), default=Path("clew.yaml"), help="The file to write.")
@click.option("--provider", type=click.Choice(WAYS), help="The model to answer with.")
@click.option("--transport", "transports", metavar="KIND", multiple=True, help="A platform to talk on, such as telegram; again for others.")
@click.option("--owner", help="Your name.")
@click.option("--timezone", help="Your time zone, such as Europe/Berlin.")
@click.option("--identity", "identities", metavar="KIND:SENDER", multiple=True, help="Who you are on a platform; again for others.")
@click.option("--set", "pairs", metavar="SECTION.KEY=VALUE", multiple=True, help="A setting; @FILE is what stands in FILE.")
@click.option("--yes", is_flag=True, help="Ask nothing: take the defaults for what is not said.")
def init(
    path: Path,
    provider: str | None,
    transports: tuple[str, ...],
    owner: str | None,
    timezone: str | None,
    identities: tuple[str, ...],
    pairs: tuple[str, ...],
    yes: bool,
) -> None:
    """Write a commented config file (./clew.yaml) from a few answers, and try them: the model, the platforms, who you are.

    Secrets go into files of their own in clew.secrets, which only you can read. Nothing is written before the end.
    """
    asker = Asker(yes)
    given = Given(provider, transports, owner, timezone, identities, _settings(pairs))
    if path.exists():
        _may_replace(path, asker)
    with staging(path) as staged:
        talk = Conversation(asker, staged, given, os.environ)
        ways = found(os.environ)
        talk.refuse_unchosen(ways)
        talk.choose_model(ways)
        talk.name_owner(unix_user(), zone_name(Config()))
        talk.choose_transports()
        talk.look_at_port()
        held = len(talk.draft.secrets())
        secret = f", and {plural(held, 'secret')} to {staged.secrets}" if held else ""
        if not asker.confirm(f"Write {path}{secret}?", True):
            raise ClewError("nothing was written.")
        staged.take_place()
    _say_what_is_next(path, talk.is_well)


def _may_replace(path: Path, asker: Asker) -> None:
    """Raises UsageError unless somebody says that the config that is there may make room."""
    if asker.silent or not asker.on_terminal:
        raise UsageError(f"{path} is there already.", hint="Name another file with --config, or move that one away.")
    if not asker.confirm(f"{path} is there already. Make a new one, and keep that as {path.name}.old?", False):
        raise UsageError(f"{path} is there already, and stays.", hint="Name another file with --config.")


def _settings(pairs: Iterable[str]) -> dict[tuple[str, str], str]:
    """The settings of `--set`. Raises UsageError."""
    made: dict[tuple[str, str], str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        section, dot, key = name.partition(".")
        if not (equals and dot and section and key):
            raise UsageError(f"--set {name}: must be SECTION.KEY=VALUE, such as telegram.token=@FILE.")
        made[section, key] = _text(Path(value[1:])) if value.startswith("@") else value
    return made


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(LONGEST_SECRET + 1)
        if len(raw) > LONGEST_SECRET:
            raise UsageError(f"{path}: is larger than {LONGEST_SECRET // 1024} KiB.")
        return raw.decode().strip("\r\n")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not UTF-8 text.") from None


def _say_what_is_next(path: Path, well: bool) -> None:
    config, option = settings(path), "" if path == Path("clew.yaml") else f" --config {path}"
    http = config.http
    click.echo(f"{path} is written and loads." + ("" if well else " What was found wrong is told again by `clew doctor`.") + " Next:")
    program = _program()
    commands = [
        (f"{program} chat{option}", "talk to it here: say Good morning!"),
        (f"{program} run{option}", f"the daemon, with its page at {http.public_url or f'http://{http.host}:{http.port}/'}"),
        (f"{program} doctor{option}", "looks whether all is well, at any time"),
    ]
    widest = max(len(command) for command, _ in commands)
    for command, text in commands:
        click.echo(f"  {command:<{widest}}  {text}")
    for name, how in first_messages(config):
        click.echo(f"Then, on {name}: {harmless(how)}")
        if not any(each.startswith(f"{name}:") for person in config.people.values() for each in person.identities):
            click.echo(f"  It does not know you there yet: write /link in `{program} chat{option}`, and send it the code from there")


def _program() -> str:
    """How this program is called from here."""
    called = sys.argv[0]
    return called if shutil.which("clew") is None and Path(called).name == "clew" else "clew"
