"""The IRC transport: a client in channels, which answers people who are logged in to the network's services."""

import asyncio
import re
import ssl
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated

import structlog
from pydantic import AfterValidator, Field, SecretStr

from clew.config import Duration, Needed
from clew.plugins import Fault, Mistake, Plugin
from clew.transport import (
    Address,
    Capabilities,
    Delivery,
    Host,
    Inbound,
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
from clew_transports.irc.connection import ANSWER_S, SILENT_S, Connection, Denied, Login, Unanswered, Unreached
from clew_transports.irc.lines import LIMIT, Line, addressed, folded, plain, said, written
from clew_transports.irc.setup import SETUP
from clew_transports.markup import plain as without_marks
from clew_transports.markup import read
from clew_transports.pace import kept_up
from clew_transports.settings import Groups, Section, readable
from clew_transports.text import parts

BURST = 5
"""Lines that may be sent at once; with one in two seconds behind them that is what servers take (RFC 2813, 5.8)."""
LINE_BYTES = 35
LONGEST_PAUSE_S = 300.0
MAX_TOLD = 1000
"""Nicknames that are remembered as having been told to log in."""

NICK = re.compile(r"[A-Za-z\[\]\\`_^{|}][A-Za-z0-9\[\]\\`_^{|}-]{0,29}")
CHANNEL = re.compile(r"[#&][^\s,:/\x00-\x20]{1,63}")
LOG_IN = "I answer people who are logged in to this network's services: /msg NickServ HELP IDENTIFY"
NOWHERE = frozenset({"401", "402", "406"})
SHUT = frozenset({"403", "404", "442", "477", "531"})

log = structlog.get_logger()


def _is_nick(nick: str) -> str:
    if not NICK.fullmatch(nick):
        raise ValueError("must be a nickname")
    return nick


def _are_channels(channels: tuple[str, ...]) -> tuple[str, ...]:
    for channel in channels:
        if not CHANNEL.fullmatch(channel):
            raise ValueError(f"{channel[:80]!r} is no channel: # and letters")
    return channels


class Settings(Section):
    """The server, clew's nickname and account there, its channels.

    groups, prefix: which lines of channels are answered. trust_nicks: people without an account are known by their nicknames, which
    anybody can take. line_every: seconds between two lines behind a burst of BURST; a server calls more than it likes a flood.
    """

    host: Annotated[str, Needed()] = ""
    port: Annotated[int, Field(ge=1, le=65535)] = 6697
    tls: bool = True
    nick: Annotated[str, AfterValidator(_is_nick)] = "clew"
    account: str = ""
    password: SecretStr | None = None
    channels: Annotated[tuple[str, ...], AfterValidator(_are_channels), Field(max_length=100)] = ()
    groups: Groups = "mention"
    prefix: Annotated[str, Field(min_length=1, max_length=50)] | None = None
    trust_nicks: bool = False
    line_every: Annotated[Duration, Field(ge=0.0, le=60.0)] = 2.0


def unreachable(to: Address) -> str:
    """Why nothing can be said to `to`; empty where it may."""
    fits = (CHANNEL.fullmatch(to.chat) or NICK.fullmatch(to.chat)) and to.thread is None
    return "" if fits else "the chat must be a channel, such as #garden, or somebody's account"


class IrcTransport:
    """`name` is the section's name in the config and the first part of its addresses. All times in seconds."""

    capabilities = Capabilities(limit=LIMIT, unit="bytes", markup="plain", merges=True, unreachable=unreachable)

    def __init__(
        self,
        name: str,
        settings: Settings,
        *,
        first_pause: float = 2.0,
        answer_s: float = ANSWER_S,
        silent_s: float = SILENT_S,
    ) -> None:
        self._name = name
        self._settings = settings
        self._first_pause = first_pause
        password = settings.password.get_secret_value() if settings.password else ""
        self._connection = Connection(Login(settings.nick, settings.account, password), answer_s, silent_s)
        self._line_s = settings.line_every
        self._free_at = 0.0
        self._told: OrderedDict[str, None] = OrderedDict()

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Raises what `host.accept` raises."""
        errors = (Unreached, Unanswered, Denied)
        await kept_up(host, lambda: self._visit(host), errors, self._first_pause, LONGEST_PAUSE_S)

    def parts(self, text: str) -> list[Part]:
        return parts(text, LIMIT, "bytes", size)

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`: one part, line by line. The server's answer to what is asked behind them says that it has them."""
        if unreachable(delivery.address):
            raise Refused(f"{delivery.address}: {unreachable(delivery.address)}")
        lines = said(without_marks(read(delivery.parts[delivery.sent].text)))
        try:
            target = await self._target(delivery.address.chat, delivery.context.get("nick", ""))
            for line in lines:
                await self._turn()
                heard = await self._connection.ask(written("PRIVMSG", target, line))
                _complain(heard, target)
        except Unreached as why:
            raise Retry(str(why)) from None
        except Unanswered as why:
            raise Unknown(str(why)) from None
        return Sent(upto=delivery.sent + 1)

    async def find(self, delivery: Delivery) -> Sent | None:
        """IRC keeps nothing."""
        return None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        return None

    def routes(self) -> Sequence[Route]:
        return ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        raise LookupError("IRC has no files")
        yield b""

    # Messages in -------------------------------------------------------------------------------------------------

    async def _visit(self, host: Host) -> AsyncIterator[None]:
        """One connection, until it ends."""
        tls = ssl.create_default_context() if self._settings.tls else None
        async with self._connection.opened(self._settings.host, self._settings.port, tls):
            for channel in self._settings.channels:
                self._connection.write(written("JOIN", channel))
            host.report(True, self._connection.nick)
            yield
            async for line in self._connection.lines():
                await self._take(host, line)

    async def _take(self, host: Host, line: Line) -> None:
        if line.command == "INVITE" and line.params[-1:] and folded(line.params[-1]) in map(folded, self._settings.channels):
            self._connection.write(written("JOIN", line.params[-1]))
        elif line.command in ("471", "473", "474", "475", "477", "403") and len(line.params) > 1:
            log.warning("transport.disconnected", transport=self._name, channel=line.params[1], reason=line.params[-1][:200])
        elif line.command == "PRIVMSG" and len(line.params) == 2 and "!" in line.source and "bot" not in line.tags:
            inbound = self._message(line)
            if inbound:
                await host.accept([inbound])

    def _message(self, line: Line) -> Inbound | None:
        target, text = line.params
        direct = folded(target) == folded(self._connection.nick)
        if text.startswith("\x01"):
            if not text.startswith("\x01ACTION "):
                return None  # requests to the client, such as VERSION
            text = text.removeprefix("\x01ACTION ").rstrip("\x01")
        said = plain(text).strip()
        words = said if direct or not said else self._addressed(said)
        kept = self._settings.groups == "listen" and said
        if not (words or kept) or folded(line.nick) == folded(self._connection.nick):
            return None
        account = line.tags.get("account", "") or (line.nick if self._settings.trust_nicks else "")
        if not NICK.fullmatch(account):
            if words:
                self._log_in(line.nick)
            return None
        return Inbound(
            external_id=f"{self._name}/{line.tags.get('msgid') or uuid.uuid4()}",
            address=Address(self._name, folded(account) if direct else folded(target)),
            sender=folded(account),
            text=words or said,
            kind="message" if words else "context",
            sender_name=line.nick,
            direct=direct,
            sent_at=_time(line.tags.get("time", "")),
            context={"nick": line.nick},
        )

    def _addressed(self, words: str) -> str | None:
        """What a line of a channel says to clew, None if nothing."""
        prefix = self._settings.prefix
        if prefix and words.startswith(prefix):
            return words.removeprefix(prefix).strip() or words
        called = addressed(words, self._connection.nick)
        return called if called is not None else words if self._settings.groups == "all" else None

    def _log_in(self, nick: str) -> None:
        """Said once to each, by a notice, which no program answers."""
        if folded(nick) not in self._told:
            self._told[folded(nick)] = None
            while len(self._told) > MAX_TOLD:
                self._told.popitem(last=False)
            log.warning("inbox.rejected", transport=self._name, reason="the sender is not logged in")
            with suppress(Unreached):
                self._connection.write(written("NOTICE", nick, LOG_IN))

    # Replies out -------------------------------------------------------------------------------------------------

    async def _target(self, chat: str, nick: str) -> str:
        """The nickname under which an account is there now, most likely `nick`; a channel is itself. Raises Retry if nobody is."""
        if chat[0] in "#&" or self._settings.trust_nicks:
            return chat
        for name in dict.fromkeys(filter(NICK.fullmatch, (nick, chat))):
            for line in await self._connection.ask(written("WHOIS", name)):
                if line.command == "330" and len(line.params) > 2 and folded(line.params[2]) == chat:
                    return line.params[1]
        raise Retry(f"nobody who is logged in as {chat} is there under a nickname that clew knows")

    async def _turn(self) -> None:
        """Wait until one line more is no flood."""
        now = asyncio.get_running_loop().time()
        self._free_at = max(self._free_at, now - (BURST - 1) * self._line_s) + self._line_s
        await asyncio.sleep(max(self._free_at - now - self._line_s, 0.0))


def size(markdown: str) -> int:
    """Bytes of what is sent. A line counts LINE_BYTES at least, so that a part is soon sent."""
    return sum(max(len(line.encode("utf-8", "replace")), LINE_BYTES) for line in without_marks(read(markdown)).splitlines())


def _complain(heard: Sequence[Line], target: str) -> None:
    """Raises Retry or Refused if the server did not take a line."""
    for line in heard:
        if len(line.params) > 1 and folded(line.params[1]) == folded(target):
            if line.command in NOWHERE:
                raise Retry(f"{target} is not there")
            if line.command in SHUT:
                raise Retry(f"{target} takes nothing from clew: {line.params[-1][:200]}")


def _time(stated: str) -> float | None:
    try:
        return datetime.fromisoformat(stated).timestamp()
    except (ValueError, OverflowError):
        return None


async def _examine(name: str, settings: Settings) -> list[Fault]:
    """For `clew doctor`: whether the server is there and lets clew in, by another nickname than the one that may be in use."""
    password = settings.password.get_secret_value() if settings.password else ""
    tls = ssl.create_default_context() if settings.tls else None
    try:
        async with Connection(Login(f"{settings.nick}-doctor"[:30], settings.account, password)).opened(settings.host, settings.port, tls):
            pass
    except (Unreached, Denied) as error:
        return [Fault(str(error), f"check transports.{name}")]
    if settings.trust_nicks:
        return [Fault("trust_nicks is on: whoever takes a nickname is its person", f"check transports.{name}.trust_nicks", False)]
    return []


def _mistakes(name: str, settings: Settings) -> Sequence[Mistake]:
    return () if settings.tls else readable(settings.host, "tls", "what is said goes", "set tls: true and the port for it")


def _sender(settings: Settings, text: str) -> str:
    if not re.fullmatch(r"[^\s,:!@#&][^\s,:!@]{0,63}", text):
        raise ValueError("must stand an account's name alone, such as ada")
    return folded(text)


def _account(settings: Settings) -> tuple[str, str]:
    return "nick", f"{settings.host.lower()}:{settings.port} {folded(settings.nick)}" if settings.host else ""


def _build(name: str, settings: Settings) -> IrcTransport:
    return IrcTransport(name, settings)


plugin = Plugin("irc", Settings, _build, _examine, _mistakes, _sender, _account, setup=SETUP)
