"""`clew chat` without a terminal: each line of stdin is a message, replies go to stdout as plain text or JSON."""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

import click

from clew.cli.conversation import Conversation
from clew.cli.output import harmless

CONTROL = "/stop"
"""The one line that does not wait for the reply to the line before it."""


class LineScreen:
    """Prints whole replies only. Errors and the state of the connection go to stderr.

    `failed`: something was refused, or a reply says that there is none.
    """

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self.failed = False

    def begin(self, session: str, title: str) -> None:
        if self._as_json:
            self._object({"type": "session", "session": session, "title": title})
        else:
            click.echo(f"session {session}" + (f" · {harmless(title)}" if title else ""), err=True)

    def delta(self, turn: str, text: str, restart: bool) -> None:
        pass

    def reply(self, frame: Mapping[str, Any]) -> None:
        self.failed = self.failed or bool(frame.get("failed"))
        if self._as_json:
            self._object(dict(frame))
        else:
            click.echo(harmless(frame["text"]))

    def elsewhere(self, frame: Mapping[str, Any]) -> None:
        if self._as_json:
            self._object(dict(frame))

    def error(self, text: str, message: str | None) -> None:
        self.failed = True
        if self._as_json:
            self._object({"type": "error", "id": message, "text": text})
        else:
            click.echo(f"clew: {harmless(text)}", err=True)

    def connection(self, up: bool) -> None:
        click.echo("clew: the daemon is back." if up else "clew: the daemon went away; waiting for it.", err=True)

    def _object(self, value: Mapping[str, Any]) -> None:
        click.echo(json.dumps(value, ensure_ascii=False))


async def talk(conversation: Conversation, screen: LineScreen, longest: int) -> None:
    """Send the lines of stdin, each after the reply to the one before it, until stdin ends and all are answered.

    longest: bytes of a line; a longer one is refused.
    """
    async for line in _lines(sys.stdin.buffer, longest):
        if line is None:
            screen.error(f"A line is longer than {longest:,} bytes and was left out.", None)
            continue
        if line.strip() != CONTROL:
            await conversation.settled()
        if line.strip():
            conversation.say(line)
    await conversation.settled()


async def _lines(stdin: BinaryIO, longest: int) -> AsyncIterator[str | None]:
    """Lines without their ends; None for one that is too long. Read one at a time, in a thread that may be left behind."""
    loop = asyncio.get_running_loop()
    while True:
        read: asyncio.Future[bytes] = loop.create_future()
        threading.Thread(target=_read, args=(stdin, longest, loop, read), daemon=True, name="stdin").start()
        raw = await read
        if not raw:
            return
        text = raw.rstrip(b"\r\n")
        yield None if len(text) > longest else text.decode("utf-8", "replace")


def _read(stdin: BinaryIO, longest: int, loop: asyncio.AbstractEventLoop, read: "asyncio.Future[bytes]") -> None:
    try:
        line = stdin.readline(longest + 2)
        rest = line
        while len(rest) == longest + 2 and not rest.endswith(b"\n"):
            rest = stdin.readline(longest + 2)
    except (OSError, ValueError):
        line = b""
    with suppress(RuntimeError):  # the loop ended meanwhile: nobody waits
        loop.call_soon_threadsafe(_deliver, read, line)


def _deliver(read: "asyncio.Future[bytes]", line: bytes) -> None:
    if not read.done():
        read.set_result(line)
