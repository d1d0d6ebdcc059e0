"""`clew chat` on a terminal: a prompt that stays while replies are written above it."""

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, get_app
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from clew.cli.conversation import Conversation
from clew.cli.output import Filter, harmless, width
from clew.cli.transcript import speaker
from clew.messages import Message

HISTORY_BYTES = 256 * 2**10
"""The history of inputs is cut to its newest half where it is longer than this."""
STORED_TIMEOUT = 5.0
"""Seconds that the end of a chat waits for the daemon to store what was sent."""
TAIL_ROWS = 8
"""Rows of the unfinished line of a reply that are shown above the prompt; finished lines stand in the scroll-back."""
KEYS = "Enter sends · Alt+Enter: new line · Ctrl-C: stop the turn · Ctrl-D: end · /help: commands"


class Terminal:
    """The screen and the keyboard. history: file of earlier inputs, made if it is not there, readable by its owner only."""

    def __init__(self, history: Path) -> None:
        self._history = history
        self._conversation: Conversation | None = None
        self._app: Application[str] | None = None
        self._turn = ""
        self._shown = ""
        self._tail = ""
        self._filter = Filter()

    def begin(self, session: str, title: str, last: Sequence[Message]) -> None:
        """Say where we are, and show the last exchange."""
        lines = [f"session {session}" + (f" · {harmless(title)}" if title else ""), KEYS]
        for message in last:
            lines += ["", f"{harmless(speaker(message))}:", harmless(message.text)]
        self._write("\n".join([*lines, "", ""]))

    async def talk(self, conversation: Conversation) -> None:
        """Send what is typed until Ctrl-D, and see to it that the last of it is stored."""
        self._conversation = conversation
        session: PromptSession[str] = PromptSession(
            message=self._prompt,
            multiline=True,
            history=FileHistory(str(opened(self._history))),
            key_bindings=self._keys(conversation),
            prompt_continuation="  ",
        )
        self._app = session.app
        with session.app.input.raw_mode():  # between two prompts as well, where a Ctrl-D would else be lost
            await self._prompted(session, conversation)
        try:
            await asyncio.wait_for(conversation.stored(), STORED_TIMEOUT)
        except TimeoutError:
            self._write("The last of what you wrote did not reach the daemon; it is in the history (key up).\n")

    async def _prompted(self, session: PromptSession[str], conversation: Conversation) -> None:
        while True:
            try:
                text = await session.prompt_async()
            except EOFError:
                return
            if text.strip():
                conversation.say(text)

    def _keys(self, conversation: Conversation) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.validate_and_handle()

        @keys.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("<sigint>")
        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            if conversation.busy or self._turn:
                conversation.say("/stop")
            elif event.current_buffer.text:
                event.current_buffer.reset()
            else:
                self._write("(Ctrl-D ends the chat)\n")

        @keys.add("c-d")
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.document.cursor_position < len(buffer.text):
                buffer.delete()
                return
            if buffer.text:
                buffer.append_to_history()  # an unsent text is one key (up) away the next time
            event.app.exit(exception=EOFError)

        return keys

    def _prompt(self) -> StyleAndTextTuples:
        columns = max(20, get_app().output.get_size().columns)
        above = list(wrapped(self._tail, columns))[-TAIL_ROWS:]
        if not above and self._conversation and self._conversation.busy:
            above = ["…"]
        return [("", "".join(line + "\n" for line in above)), ("bold", "> ")]

    # The screen ------------------------------------------------------------------------------------------------------

    def delta(self, turn: str, text: str, restart: bool) -> None:
        if restart or turn != self._turn:
            self._break()
            self._turn, self._shown, self._filter = turn, "", Filter()
        new = self._filter.feed(text)
        self._shown += new
        self._add(new)

    def reply(self, frame: Mapping[str, Any]) -> None:
        text = harmless(frame["text"]).strip("\n")
        shown = self._shown.lstrip("\n")
        if shown.strip() and text.startswith(shown.rstrip()):
            self._add(text[len(shown) :])
            self._end()
        elif shown.strip() and shown.rstrip().endswith(text):
            self._end()
        else:
            self._break()
            self._write(text + "\n\n")
            if not (self._conversation and self._conversation.busy):
                self._turn, self._shown = "", ""

    def elsewhere(self, frame: Mapping[str, Any]) -> None:
        self._break()
        self._write("\n".join(f"| {line}" for line in harmless(frame["text"]).splitlines()) + "\n")

    def error(self, text: str, message: str | None) -> None:
        self._break()
        self._write(f"clew: {harmless(text)}\n")

    def connection(self, up: bool) -> None:
        self._break()
        self._write("(the daemon is back)\n" if up else "(the daemon went away; waiting for it)\n")

    def _add(self, text: str) -> None:
        lines, end, self._tail = (self._tail + text).rpartition("\n")
        if end:
            self._write(lines + end)
        self._redraw()

    def _end(self) -> None:
        self._break()
        self._write("\n")
        self._turn, self._shown = "", ""

    def _break(self) -> None:
        """Put the unfinished line into the scroll-back."""
        if self._tail:
            self._write(self._tail + "\n")
        self._tail = ""
        self._redraw()

    def _write(self, text: str) -> None:
        """Write above the prompt. (`run_in_terminal` would leave raw mode for it, and keys pressed in that moment would be lost.)"""
        app = self._app
        if app is None or not app.is_running:
            sys.stdout.write(folded(text, shutil.get_terminal_size().columns))
            sys.stdout.flush()
            return
        app.renderer.erase()
        app.output.write(folded(text, app.output.get_size().columns))
        app.output.flush()
        app.invalidate()

    def _redraw(self) -> None:
        if self._app is not None:
            self._app.invalidate()


def folded(text: str, columns: int) -> str:
    """`text` with its lines cut into rows of at most `columns` columns (at least 20)."""
    return "\n".join(row for line in text.split("\n") for row in [*wrapped(line, max(20, columns))] or [""])


def wrapped(text: str, columns: int) -> Iterator[str]:
    """`text`, which has no line ends, in rows of at most `columns` columns.

    A row is cut between words where it has several, and the spaces at the cut go; a longer word is cut anywhere.
    """
    row, used = "", 0
    for char in text.expandtabs(4):
        wide = width(char)
        if used + wide > columns and char != " ":  # a space may stand behind the last column: it goes
            whole, space, rest = row.rpartition(" ")
            if not (space and whole.strip()):
                whole, rest = row, ""
            yield whole.rstrip(" ")
            row, used = rest, width(rest)
        row, used = row + char, used + wide
    if row:
        yield row.rstrip(" ")


def opened(path: Path) -> Path:
    """The history file, there and cut to its bound."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    raw = path.read_bytes()
    if len(raw) > HISTORY_BYTES:
        half = raw[-HISTORY_BYTES // 2 :]
        path.write_bytes(half[max(0, half.find(b"\n# ")) :])  # an entry begins with its time
    return path
