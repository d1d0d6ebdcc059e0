"""The XMPP transport: a client with an account on a server, in rooms too."""

import asyncio
import importlib.util
import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from clew.config import Needed
from clew.plugins import Fault, Mistake, Plugin
from clew.transport import (
    Address,
    Capabilities,
    Delivery,
    Host,
    Part,
    Preview,
    PreviewRef,
    Refused,
    Retry,
    Route,
    Sent,
    Typing,
    Unknown,
)
from clew_transports.pace import kept_up
from clew_transports.settings import Groups, Section, readable
from clew_transports.text import parts
from clew_transports.xmpp.connection import Account, Connection, Offline, Silent, connected
from clew_transports.xmpp.setup import SETUP
from clew_transports.xmpp.stanzas import JID, Reader, Stanza, bare, moved
from clew_transports.xmpp.styling import rendered

PART_BYTES = 16 * 1024
"""A stanza of prosody's has at most 256 KiB; people read no bubbles that long."""
LOOK_S = 60.0
"""Seconds between two looks at whether the server answers."""
ANSWER_S = 30.0
LONGEST_PAUSE_S = 300.0
LATER = frozenset({"remote-server-timeout", "remote-server-not-found", "resource-constraint", "recipient-unavailable", "not-acceptable"})
"""Conditions that pass, though servers call them final."""

MISSING = "slixmpp is not installed: pip install 'clew[xmpp]'"


def _is_jid(jid: str) -> str:
    if jid and not ("@" in jid and JID.fullmatch(jid)):
        raise ValueError("must be a JID like clew@example.org")
    return jid.lower()


def _are_rooms(rooms: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_is_jid, rooms))


class Settings(Section):
    """The account. host, port: where its server is, if the DNS does not say. rooms: that clew is in, under `nick`."""

    jid: Annotated[str, Needed(), AfterValidator(_is_jid)] = ""
    password: SecretStr = SecretStr("")
    host: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    port: Annotated[int, Field(ge=1, le=65535)] = 5222
    tls: bool = True
    rooms: Annotated[tuple[str, ...], AfterValidator(_are_rooms), Field(max_length=100)] = ()
    nick: Annotated[str, Field(pattern=r"^[^\s/]{1,60}$")] = "clew"
    groups: Groups = "mention"
    prefix: Annotated[str, Field(min_length=1, max_length=50)] | None = None


def unreachable(to: Address) -> str:
    """Why nothing can be sent to `to`; empty where it may."""
    return "" if JID.fullmatch(to.chat) and to.thread is None else "the chat must be a JID like ada@example.org"


class XmppTransport:
    """`name` is the section's name in the config and the first part of its addresses. All times in seconds."""

    capabilities = Capabilities(
        limit=PART_BYTES, unit="bytes", markup="markdown", can_find=True, merges=True, typing_s=30.0, unreachable=unreachable
    )

    def __init__(
        self, name: str, settings: Settings, *, first_pause: float = 2.0, look_s: float = LOOK_S, answer_s: float = ANSWER_S
    ) -> None:
        self._name = name
        self._settings = settings
        self._first_pause = first_pause
        self._look_s = look_s
        self._answer_s = answer_s
        self._reader = Reader(name, settings.jid, settings.nick, settings.groups, settings.prefix, self._who)
        self._connection: Connection | None = None

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Raises what `host.accept` raises."""
        await kept_up(host, lambda: self._online(host), (Offline,), self._first_pause, LONGEST_PAUSE_S)

    def parts(self, text: str) -> list[Part]:
        return parts(text, PART_BYTES, "bytes", size)

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`: one part. The server's answer to what is asked behind it says that it has the part."""
        part, to = delivery.parts[delivery.sent], delivery.address
        if why := unreachable(to):
            raise Refused(f"{to}: {why}")
        if self._connection is None:
            raise Retry("there is no connection to the server")
        text, number = rendered(part.text), _number(delivery, part)
        if text.strip():
            kind: Literal["chat", "groupchat"] = "groupchat" if to.chat in self._settings.rooms else "chat"
            try:
                condition = await self._connection.say(to.chat, text, kind, number)
            except Offline as why:
                raise Retry(str(why)) from None
            except Silent as why:
                raise Unknown(str(why)) from None
            if condition:
                type_, _, what = condition.partition(" ")
                raise (Retry if type_ == "wait" or what in LATER else Refused)(f"the server says {what or type_}")
        return Sent(number, delivery.sent + 1)

    async def find(self, delivery: Delivery) -> Sent | None:
        """The first part that is not confirmed, if the archive has it."""
        if self._connection is None:
            return None
        number, chat = _number(delivery, delivery.parts[delivery.sent]), delivery.address.chat
        archive = chat if chat in self._settings.rooms else ""
        async for stanza in self._connection.archive(archive, since=delivery.ts - 60.0, with_jid="" if archive else chat):
            if stanza.element.get("id") == number:
                return Sent(number, delivery.sent + 1)
        return None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        if self._connection and isinstance(event, Typing) and not unreachable(to):
            self._connection.typing(to.chat, "groupchat" if to.chat in self._settings.rooms else "chat")
        return None

    def routes(self) -> Sequence[Route]:
        return ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        raise LookupError("files of XMPP are links in the words of a message")
        yield b""

    # Messages in -------------------------------------------------------------------------------------------------

    async def _online(self, host: Host) -> AsyncIterator[None]:
        """One connection: what the archives have behind the cursor first, then what comes. Says so when the server has answered."""
        async with connected(_account(self._settings), self._answer_s) as connection:
            cursor = _cursor(await host.cursor())
            for archive in ("", *self._settings.rooms):
                cursor = await self._caught_up(host, connection, archive, cursor)
            self._connection = connection
            try:
                host.report(True, self._settings.jid)
                yield
                while True:
                    try:
                        async with asyncio.timeout(self._look_s):
                            stanza = await connection.next()
                    except TimeoutError:
                        await connection.look()
                        host.report(True, self._settings.jid)
                        yield
                        continue
                    cursor = await self._take(host, [stanza], cursor)
            finally:
                self._connection = None

    async def _caught_up(self, host: Host, connection: Connection, archive: str, cursor: dict[str, str]) -> dict[str, str]:
        """Read what an archive has behind the cursor. At the very first start that is nothing: only where it ends is remembered."""
        owner = archive or self._settings.jid
        if owner not in cursor:
            last = await connection.last(archive)
            cursor = {**cursor, owner: last}
            await host.accept([], json.dumps(cursor))
            return cursor
        async for stanza in connection.archive(archive, after=cursor[owner]):
            cursor = await self._take(host, [stanza], cursor)
        return cursor

    async def _take(self, host: Host, stanzas: Sequence[Stanza], cursor: dict[str, str]) -> dict[str, str]:
        batch = []
        for stanza in stanzas:
            inbound = self._reader.read(stanza)
            if inbound:
                batch.append(inbound)
            cursor = moved(cursor, stanza)
        if batch:
            await host.accept(batch, json.dumps(cursor))
        return cursor

    def _who(self, room: str, nick: str) -> str:
        return self._connection.who(room, nick) if self._connection else ""


def size(markdown: str) -> int:
    """Bytes of what is sent."""
    return len(rendered(markdown).encode("utf-8", "replace"))


def _number(delivery: Delivery, part: Part) -> str:
    """The stanza's id: the same whenever the part is sent again."""
    return f"clew-{re.sub(r'[^A-Za-z0-9_-]', '', delivery.id)}-{part.index}"


def _cursor(stored: str | None) -> dict[str, str]:
    """Archive → the id of the last message that is stored."""
    try:
        found = json.loads(stored or "{}")
    except ValueError:
        found = {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _account(settings: Settings) -> Account:
    password = settings.password.get_secret_value()
    return Account(settings.jid, password, settings.host, settings.port, settings.tls, settings.rooms, settings.nick)


async def _examine(name: str, settings: Settings) -> list[Fault]:
    """For `clew doctor`: whether the server lets clew in, and keeps an archive."""
    if importlib.util.find_spec("slixmpp") is None:
        return [Fault(MISSING, "pip install 'clew[xmpp]'")]
    try:
        async with connected(_account(settings), ANSWER_S) as connection:
            if await connection.has_archive():
                return []
    except Offline as error:
        return [Fault(str(error), f"check transports.{name}")]
    return [
        Fault("the server keeps no archive (XEP-0313): what is said while clew is off may be lost", "turn on mod_mam at the server", False)
    ]


def _mistakes(name: str, settings: Settings) -> Sequence[Mistake]:
    server = settings.host or settings.jid.partition("@")[2]
    return () if settings.tls else readable(server, "tls", "password and messages go", "set tls: true")


def _sender(settings: Settings, text: str) -> str:
    if not JID.fullmatch(bare(text)):
        raise ValueError("must stand a JID, such as ada@example.org")
    return bare(text)


def _own(settings: Settings) -> tuple[str, str]:
    return "jid", settings.jid


def _build(name: str, settings: Settings) -> XmppTransport:
    return XmppTransport(name, settings)


plugin = Plugin("xmpp", Settings, _build, _examine, _mistakes, _sender, _own, setup=SETUP)
