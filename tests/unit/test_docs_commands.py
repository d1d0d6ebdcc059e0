"""Every call of clew that README and docs name is one that clew understands."""

import re

import click
import pytest

from clew.cli import clew
from tests.docs_commands import Line, named, words

CALLS = sorted(set(named()), key=str)


def test_there_are_many() -> None:
    assert len(CALLS) > 150


@pytest.mark.parametrize("line", CALLS, ids=str)
def test_clew_understands_it(line: Line) -> None:
    command: click.Command = clew
    ctx = click.Context(clew, info_name="clew")
    rest = [word for word in words(line.command)[1:] if word not in ("…", "...")]
    while isinstance(command, click.Group):
        while rest and rest[0].startswith("--"):  # of clew itself, before the command
            rest = rest[2:] if rest[0] == "--config" else rest[1:]
        if not rest or not re.fullmatch(r"[a-z][a-z-]*", rest[0]):
            return  # a group by its name, as in `clew cron`
        name, *rest = re.split(r"[|/]", rest[0])[:1] + rest[1:]
        found = command.get_command(ctx, name)
        assert found is not None, f"{name} is no command of {ctx.command_path}"
        command, ctx = found, click.Context(found, info_name=name, parent=ctx)
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
    unknown = [word for word in rest if word.startswith("--") and word.partition("=")[0] not in known]
    assert not unknown, f"{ctx.command_path} has no {unknown[0]}"
