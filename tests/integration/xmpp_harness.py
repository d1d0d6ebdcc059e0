"""People with an XMPP client, for tests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

import slixmpp
from slixmpp.xmlstream import ET

from tests.prosody import PASSWORD, Prosody

ROOM = "club@rooms.localhost"


class Person:
    """Somebody at her client. heard: sender's bare JID, type and words of each message."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.heard: list[tuple[str, str, str]] = []
        self.states: list[str] = []
        self._changed = asyncio.Event()

    @classmethod
    @contextlib.asynccontextmanager
    async def here(cls, server: Prosody, name: str, *rooms: str) -> AsyncIterator[Self]:
        client = slixmpp.ClientXMPP(f"{name}@localhost/phone", PASSWORD)
        for plugin in ("xep_0045", "xep_0085", "xep_0308", "xep_0359"):
            client.register_plugin(plugin)
        client.enable_direct_tls = client.enable_starttls = False
        client.enable_plaintext = True
        client.plugin["feature_mechanisms"].unencrypted_scram = True
        person = cls(client)
        client.add_event_handler("message", person._heard)
        client.add_event_handler("chatstate_composing", person._state)
        started = asyncio.Event()
        client.add_event_handler("session_start", lambda _: started.set())
        client.connect("127.0.0.1", server.port)
        try:
            async with asyncio.timeout(60):
                await started.wait()
                client.send_presence()
                for room in rooms:
                    await client.plugin["xep_0045"].join_muc_wait(slixmpp.JID(room), name, maxstanzas=0)
            yield person
        finally:
            await client.disconnect(wait=1.0)
            if filters := client._run_out_filters:  # what slixmpp leaves running
                filters.cancel()
                await asyncio.gather(filters, return_exceptions=True)

    def say(self, to: str, text: str, *more: str, id: str | None = None) -> None:
        """A message to somebody, or to a room. more: elements beside the body, in XML."""
        message = self.client.make_message(mto=to, mbody=text or None, mtype="groupchat" if to == ROOM else "chat")
        message["id"] = id or self.client.new_id()
        for each in more:
            message.xml.append(ET.fromstring(each))
        message.send()

    def texts(self, sender: str) -> list[str]:
        return [words for who, _, words in self.heard if who == sender]

    async def until(self, condition: Callable[[], bool], deadline: float = 60.0) -> None:
        async with asyncio.timeout(deadline):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def _heard(self, message: Any) -> None:
        if message["body"]:
            sender = message["from"]
            self.heard.append((str(sender) if message["type"] == "groupchat" else sender.bare, message["type"], message["body"]))
            self._changed.set()

    def _state(self, message: Any) -> None:
        self.states.append(message["from"].bare)
        self._changed.set()
