"""The command line. Every command lives in a module of its own that is imported when it is called: `clew version` stays fast."""

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from clew.errors import ClewError

COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("run", "Run the daemon until it is told to stop."),
    "chat": ("chat", "Talk to clew in the terminal."),
    "init": ("init", "Write a config file to begin with."),
    "status": ("status", "Say how the running daemon is doing."),
    "cost": ("cost", "Say what calls of models cost, and how budgets stand."),
    "doctor": ("doctor", "Look for what is wrong, and say what mends it."),
    "config": ("config", "Check, show and describe the configuration."),
    "session": ("session", "List, show, search, export, compact and delete sessions."),
    "memory": ("memory", "Show and change what is known beyond conversations."),
    "docs": ("docs", "Documents that answers can rest on: add, list, remove and search them."),
    "cron": ("cron", "Scheduled prompts: list them, run one, see when they run and what became of it."),
    "access": ("access", "Who asked to talk to clew: list, approve, deny."),
    "privacy": ("privacy", "What belongs to a person: write it out, or erase it for good."),
    "approvals": ("approvals", "Tools to which somebody said always, and questions that wait."),
    "outbox": ("outbox", "Replies that wait to be sent or could not be."),
    "db": ("db", "Look after the database."),
    "eval": ("evaluate", "Measure how well clew keeps what matters."),
    "mcp": ("mcp", "Serve one person's conversations, notes and jobs to programs that speak MCP."),
    "version": ("version", "Print the version."),
}
"""Name of each command → (its module, what it does)."""
ALIASES = {"sessions": "session"}

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and the number of SIGINT, as shells have it."""


class LazyGroup(click.Group):
    """The commands of `COMMANDS`, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module = import_module(f"clew.cli.{COMMANDS[name][0]}")
        command: click.Command = getattr(module, name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return (command.name if command else name), command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


class _Everywhere(dict[str, Any]):
    """Defaults that hold for the options of every command below."""

    def get(self, key: str, default: Any = None) -> Any:
        return self


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--config", "path", type=click.Path(path_type=Path), help="The config file to read.")
@click.version_option(package_name="clew", message="clew %(version)s")
@click.pass_context
def clew(ctx: click.Context, path: Path | None) -> None:
    """clew: a daemon between chat platforms and a language model."""
    if path is not None:
        ctx.default_map = _Everywhere(path=path)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code: 0 done, 1 failed, 2 wrong usage, 3 nothing found, 78 bad config."""
    try:
        result = clew.main(args, prog_name="clew", standalone_mode=False)
        sys.stdout.flush()
        code = result if isinstance(result, int) else 0
    except click.ClickException as error:
        code = _told(error.format_message(), _usage(error), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except ClewError as error:
        code = _told(error.message or str(error), error.hint, error.exit_code)
    except OSError as error:
        code = _closed() if error.errno == errno.EPIPE else _told(_of_the_system(error), "", 1)
    sys.exit(code)


def _told(message: str, hint: str, code: int) -> int:
    click.echo(f"clew: {message}" + (f"\n{hint}" if hint else ""), err=True)
    return code


def _usage(error: click.ClickException) -> str:
    """How the command is written, where it was not written so."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    return f"{ctx.get_usage()}\n`{ctx.command_path} --help` says more." if ctx else ""


def _of_the_system(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def _closed() -> int:
    """Whoever read our output is gone: end quietly, and let nothing be written at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1
