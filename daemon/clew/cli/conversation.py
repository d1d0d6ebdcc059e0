"""One chat with the daemon: what was sent and is not answered yet, what comes back, and coming back after the daemon did.

The protocol's state is plain code (`Conversation.frame`); `converse` is the shell that talks to the socket.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import aiohttp

from clew.cli.client import Client
from clew.clock import new_id
from clew.errors import ClewError

FIRST_WAIT = 0.2
LONGEST_WAIT = 5.0
"""Seconds between two tries to reach a daemon that went away."""


class Screen(Protocol):
    """Where a conversation is shown. Texts come as they were written, control sequences included."""

    def delta(self, turn: str, text: str, restart: bool) -> None:
        """The model goes on with a reply. `restart`: what was shown of it is void, `text` begins it anew."""

    def reply(self, frame: Mapping[str, Any]) -> None:
        """A whole reply, or a notice."""

    def elsewhere(self, frame: Mapping[str, Any]) -> None:
        """A message of the same person from another window."""

    def error(self, text: str, message: str | None) -> None:
        """Something was not taken: the message with this id, if it is known which."""

    def connection(self, up: bool) -> None:
        """The daemon went away, or is back."""


class Conversation:
    """What is known of a chat. `after`: place in its timeline up to which everything was shown."""

    def __init__(self, screen: Screen, after: int) -> None:
        self.after = after
        self._screen = screen
        self._unstored: dict[str, str] = {}
        self._unanswered: dict[str, None] = {}
        self._sent: set[str] = set()
        self._settled = asyncio.Event()
        self._settled.set()
        self._stored = asyncio.Event()
        self._stored.set()
        self._wake = asyncio.Event()

    @property
    def busy(self) -> bool:
        """Whether something waits for its reply."""
        return bool(self._unanswered)

    async def settled(self) -> None:
        """Wait until nothing waits for its reply."""
        await self._settled.wait()

    async def stored(self) -> None:
        """Wait until the daemon has stored, or refused, all that was said."""
        await self._stored.wait()

    def say(self, text: str) -> str:
        """Send a message as soon as there is a connection. Returns its id."""
        identifier = new_id()
        self._sent.add(identifier)
        self._unstored[identifier] = text
        self._unanswered[identifier] = None
        self._settled.clear()
        self._stored.clear()
        self._wake.set()
        return identifier

    def frame(self, frame: Mapping[str, Any]) -> None:
        """Take what the daemon sent."""
        kind = frame.get("type")
        if kind == "ack":
            self._taken(frame["id"])
        elif kind == "delta":
            self._screen.delta(str(frame["turn"]), str(frame["text"]), bool(frame.get("restart")))
        elif kind == "message":
            self._message(frame)
        elif kind == "error":
            identifier = frame.get("id")
            self._done([identifier] if identifier else [])
            self._screen.error(str(frame["text"]), identifier)

    def _message(self, frame: Mapping[str, Any]) -> None:
        if frame["seq"] <= self.after:
            return
        self.after = frame["seq"]
        if frame["role"] == "user":
            if frame["id"] not in self._sent:
                self._screen.elsewhere(frame)
            return
        self._done([frame.get("in_reply_to"), *frame.get("answers", ())])
        self._screen.reply(frame)

    def _done(self, identifiers: Iterable[str | None]) -> None:
        for identifier in identifiers:
            self._taken(identifier)
            self._unanswered.pop(identifier or "", None)
        if not self._unanswered:
            self._settled.set()

    def _taken(self, identifier: str | None) -> None:
        self._unstored.pop(identifier or "", None)
        if not self._unstored:
            self._stored.set()

    async def _speak(self, send: Callable[[str], Any]) -> None:
        """Send what is not stored yet, now and whenever something is added; the same id twice is stored once."""
        begun: set[str] = set()
        while True:
            self._wake.clear()
            for identifier, text in [(key, text) for key, text in self._unstored.items() if key not in begun]:
                begun.add(identifier)
                await send(json.dumps({"type": "message", "id": identifier, "text": text}))
            await self._wake.wait()

    async def serve(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Talk over one connection until it ends."""
        speaking = asyncio.create_task(self._speak(socket.send_str), name="speak")
        try:
            async for message in socket:
                if message.type is aiohttp.WSMsgType.TEXT:
                    self.frame(json.loads(message.data))
        finally:
            speaking.cancel()
            await asyncio.gather(speaking, return_exceptions=True)


async def converse(client: Client, conversation: Conversation, screen: Screen) -> None:
    """Keep a conversation connected until cancelled. Raises ClewError where the daemon refuses it."""
    up, wait = True, FIRST_WAIT
    while True:
        try:
            socket = await client.socket(f"/chat/ws?transport=terminal&after={conversation.after}")
        except ConnectionError:
            if client.own:
                raise ClewError("the daemon in this process ended.") from None
        else:
            if not up:
                screen.connection(True)
            up, wait = True, FIRST_WAIT
            async with socket:
                await conversation.serve(socket)
        if up:
            screen.connection(False)
        up = False
        await asyncio.sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT)
