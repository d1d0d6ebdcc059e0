"""Questions to a person, on a terminal or by lines that come through a pipe."""

import getpass
import sys
from collections.abc import Callable, Sequence

import click

from clew.cli.output import harmless
from clew.errors import UsageError

LONGEST_LINE = 64 * 1024
"""Characters of an answer."""

Fault = Callable[[str], str]
"""Why an answer cannot be; empty where it can."""


def anything(answer: str) -> str:
    return ""


class Asker:
    """silent: nobody is asked, and every answer is its default."""

    def __init__(self, silent: bool) -> None:
        self.silent = silent

    def ask(
        self, question: str, default: str = "", *, hint: str = "", shown: str = "", secret: bool = False, fault: Fault = anything, flag: str
    ) -> str:
        """The answer, which `fault` finds nothing wrong with; `default` where it is empty.

        shown: what stands for the default where that is not to be seen. flag: how the same is said on the command line. Raises UsageError
        where nobody answers, or what comes through a pipe cannot be.
        """
        if self.silent:
            if why := fault(default):
                raise UsageError(f"{question}: {why}.", hint=f"Say it with {flag}.")
            return default
        told = f"{question}{f' ({hint})' if hint else ''}{f' [{shown or default}]' if default else ''}: "
        while True:
            answer = self._line(harmless(told), secret).strip() or default
            why = fault(answer) if answer.isprintable() else "has a character that cannot be written"
            if not why:
                return answer
            if not self.on_terminal:
                raise UsageError(f"{question}: {why}.", hint="Nothing was written.")
            click.echo(f"  {why}")

    def confirm(self, question: str, default: bool) -> bool:
        """Yes or no."""
        if self.silent:
            return default
        fault: Fault = lambda answer: "" if answer.lower() in ("y", "yes", "n", "no") else "must be y or n"  # noqa: E731 - one line
        answer = self.ask(f"{question} (y/n)", "y" if default else "n", fault=fault, flag="--yes")
        return answer.lower().startswith("y")

    def choose(self, question: str, choices: Sequence[str], default: int = 0) -> int:
        """The index of one of `choices`, which are listed with numbers from 1."""
        if self.silent:
            return default
        for number, each in enumerate(choices, 1):
            click.echo(f"  {number:>2}  {harmless(each)}")
        fault: Fault = lambda answer: "" if number_of(answer, len(choices)) else f"must be a number from 1 to {len(choices)}"  # noqa: E731
        return number_of(self.ask(question, str(default + 1), fault=fault, flag="a flag")) - 1

    @property
    def on_terminal(self) -> bool:
        return sys.stdin is not None and sys.stdin.isatty()

    def _line(self, prompt: str, secret: bool) -> str:
        try:
            if secret and self.on_terminal:
                return getpass.getpass(prompt)
            click.echo(prompt, nl=False)
            line = sys.stdin.readline(LONGEST_LINE) if sys.stdin else ""
        except (EOFError, ValueError):  # the end, a closed stream, or bytes that are no text
            line = ""
        if not self.on_terminal:
            click.echo()
        if not line.endswith("\n") and not line:
            raise UsageError("nobody answers, so nothing was written.", hint="`clew init --yes` takes the defaults; flags say the rest.")
        return line


def number_of(text: str, most: int = sys.maxsize) -> int:
    """The number from 1 to `most` that `text` is, 0 for none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most else 0
