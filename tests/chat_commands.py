"""The table of chat commands in docs/chat-commands.md, made from the program: `python -m tests.chat_commands --write`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from clew.commands import COMMANDS
from clew.commands.command import EVERYBODY

PAGE = Path(__file__).parents[1] / "docs" / "chat-commands.md"
HEAD = "| command | who | |\n|---|---|---|\n"
ORDER = ("owner", "member", "guest")


def table() -> str:
    """A row for each command: how it is written, who may use it, what it does."""
    return "".join(
        f"| `{command.usage.replace('|', chr(92) + '|')}` | {_who(command.roles)} | {command.help} |\n" for command in COMMANDS.values()
    )


def _who(roles: frozenset[str]) -> str:
    return "everybody" if roles == EVERYBODY else ", ".join(role for role in ORDER if role in roles)


def updated(page: str) -> str:
    """The page with the table as the program has it."""
    before, _, rest = page.partition(HEAD)
    rows = rest.splitlines(keepends=True)
    behind = next((at for at, line in enumerate(rows) if not line.startswith("|")), len(rows))
    return before + HEAD + table() + "".join(rows[behind:])


def main(arguments: Sequence[str]) -> int:
    page = PAGE.read_text("utf-8")
    new = updated(page)
    if "--write" in arguments:
        PAGE.write_text(new, encoding="utf-8")
    elif new != page:
        print("docs/chat-commands.md is out of date: run `python -m tests.chat_commands --write`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
