"""An IRC server with services as IRCv3 describes it, which no server that is easily installed has: SASL PLAIN, account tags, WHOIS 330.

For clew and people in one channel; floods, modes and the like are left to the real servers.
"""

import asyncio
import base64
from itertools import count
from typing import Self

ACCOUNTS = {"clew": "the secret", "ada": "a", "bob": "b"}
CAPS = "message-tags account-tag server-time batch sasl"


class _Client:
    def __init__(self, writer: asyncio.StreamWriter | None) -> None:
        self.writer = writer
        self.nick = ""
        self.account = ""
        self.caps: set[str] = set()

    def write(self, line: str) -> None:
        if self.writer:
            self.writer.write(line.encode() + b"\r\n")


class IrcEmulator:
    """Use as an async context manager. lines: all that clients wrote. silent: nothing is answered any more."""

    def __init__(self) -> None:
        self.port = 0
        self.lines: list[str] = []
        self.silent = False
        self._clients: set[_Client] = set()
        self._ids = count(1)
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._server is not None
        self._server.close()
        for client in list(self._clients):
            if client.writer:
                client.writer.transport.abort()

    def speak(self, nick: str, target: str, text: str, *, account: str = "", tags: str = "") -> None:
        """Somebody who is nowhere else says something."""
        self._pass_on(nick, account, "PRIVMSG", target, text, tags)

    def named(self, nick: str, account: str) -> None:
        """Somebody is there under this name, logged in to that account."""
        client = _Client(None)
        client.nick, client.account = nick, account
        self._clients.add(client)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(writer)
        self._clients.add(client)
        try:
            while raw := await reader.readline():
                assert len(raw) <= 512, "a line that is longer than IRC allows"
                line = raw.decode().rstrip("\r\n")
                self.lines.append(line)
                if not self.silent:
                    self._said(client, line)
        except ConnectionError:
            pass
        finally:
            self._clients.discard(client)
            writer.close()

    def _said(self, client: _Client, line: str) -> None:
        front, _, trailing = line.partition(" :")
        command, *params = front.split()
        params += [trailing] if " :" in line else []
        match command, params:
            case "CAP", ["LS", *_]:
                client.write(f":irc.test CAP * LS * :{CAPS.split()[0]}")
                client.write(f":irc.test CAP * LS :{' '.join(CAPS.split()[1:])}")
            case "CAP", ["REQ", wanted]:
                client.caps |= set(wanted.split())
                client.write(f":irc.test CAP * ACK :{wanted}")
            case "NICK", [nick]:
                taken = any(each.nick.lower() == nick.lower() for each in self._clients)
                if taken:
                    client.write(f":irc.test 433 * {nick} :Nickname is already in use")
                else:
                    client.nick = nick
            case "AUTHENTICATE", ["PLAIN"]:
                client.write("AUTHENTICATE +")
            case "AUTHENTICATE", [secret]:
                _, account, password = base64.b64decode(secret).decode().split("\0")
                if ACCOUNTS.get(account) == password:
                    client.account = account
                    client.write(f":irc.test 903 {client.nick} :SASL authentication successful")
                else:
                    client.write(f":irc.test 904 {client.nick} :SASL authentication failed")
            case "CAP", ["END"]:
                client.write(f":irc.test 001 {client.nick} :Welcome")
            case "PING", [token]:
                client.write(f":irc.test PONG irc.test :{token}")
            case "WHOIS", [nick]:
                for each in self._clients:
                    if each.nick.lower() == nick.lower():
                        client.write(f":irc.test 311 {client.nick} {each.nick} u h * :r")
                        if each.account:
                            client.write(f":irc.test 330 {client.nick} {each.nick} {each.account} :is logged in as")
                client.write(f":irc.test 318 {client.nick} {nick} :End of /WHOIS list")
            case ("PRIVMSG" | "NOTICE") as how, [target, text]:
                if not target.startswith("#") and not any(each.nick.lower() == target.lower() for each in self._clients):
                    client.write(f":irc.test 401 {client.nick} {target} :No such nick")
                self._pass_on(client.nick, client.account, how, target, text)

    def _pass_on(self, nick: str, account: str, how: str, target: str, text: str, tags: str = "") -> None:
        for each in self._clients:
            if each.nick != nick and (target.startswith("#") or each.nick.lower() == target.lower()):
                known = ([f"account={account}"] if account else []) + [f"msgid=m{next(self._ids)}", "time=2026-11-30T10:00:00.000Z"]
                prefix = "@" + ";".join([*known, *filter(None, [tags])]) + " " if "message-tags" in each.caps else ""
                each.write(f"{prefix}:{nick}!u@h {how} {target} :{text}")
