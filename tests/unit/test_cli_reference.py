"""docs/cli.md says what the program says."""

from collections.abc import Iterator
from pathlib import Path

import click

from clew.cli import ALIASES, COMMANDS, clew

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
COMMON = {"path", "help"}


def lines(command: click.Command, words: tuple[str, ...]) -> Iterator[str]:
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from lines(found, (*words, name))
        return
    usage = " ".join([*words, *(piece for each in command.params if each.name not in COMMON for piece in pieces(each))])
    yield f"- `{usage}`: {' '.join((command.help or '').split(chr(10) * 2)[0].split())}"


def pieces(parameter: click.Parameter) -> Iterator[str]:
    if isinstance(parameter, click.Argument):
        name = (parameter.metavar or str(parameter.name).upper()).strip("[]")
        yield name if parameter.required else f"[{name}]"
        return
    assert isinstance(parameter, click.Option)
    name = " | ".join(parameter.opts)
    value = (
        "" if parameter.is_flag else " " + (parameter.metavar or ("N" if isinstance(parameter.type, click.IntRange) else kind(parameter)))
    )
    yield f"{name}{value}" if parameter.required else f"[{name}{value}]"


def kind(option: click.Option) -> str:
    return "|".join(option.type.choices) if isinstance(option.type, click.Choice) else str(option.name).upper()


def test_the_page_lists_every_command_as_it_is() -> None:
    unfolded = PAGE.read_text().replace("\n  ", " ")
    listed = [line for line in unfolded.splitlines() if line.startswith("- `clew ")]
    assert listed == list(lines(clew, ("clew",)))


def test_every_command_has_the_name_it_is_listed_by_and_what_it_does() -> None:
    ctx = click.Context(clew)
    for name, (_, text) in COMMANDS.items():
        command = clew.get_command(ctx, name)
        assert command is not None
        assert command.name == name
        assert text.endswith(".")
    assert set(ALIASES.values()) <= set(COMMANDS)


def test_every_listing_takes_json() -> None:
    """Every listing has --json."""
    ctx = click.Context(clew)
    for group in ("session", "cron", "access", "outbox"):
        found = clew.get_command(ctx, group)
        assert isinstance(found, click.Group)
        assert "as_json" in {each.name for each in found.commands["list"].params}
