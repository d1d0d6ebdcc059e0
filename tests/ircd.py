"""Real IRC servers on loopback for tests: ngircd, which is strict, and inspircd, which has IRCv3. Nothing here imports clew."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal, Self

from tests.servers import HOST, Server, find_program

Kind = Literal["ngircd", "inspircd"]

NGIRCD = """[Global]
Name = irc.test
Info = test
Listen = {host}
Ports = {port}
ServerUID = {uid}
ServerGID = {gid}
[Limits]
MaxConnectionsIP = 0
MaxPenaltyTime = 0
MaxNickLength = 30
[Options]
DNS = no
Ident = no
PAM = no
"""
INSPIRCD = """<server name="irc.test" description="test" network="test">
<admin name="t" nick="t" email="t@example.org">
<bind address="{host}" port="{port}" type="clients">
<connect allow="*" timeout="20" pingfreq="60" commandrate="100000" threshold="1000" localmax="100" globalmax="100"
 resolvehostnames="no" fakelag="no" useident="no">
<module name="cap"><module name="ircv3"><module name="ircv3_msgid"><module name="ircv3_servertime"><module name="ircv3_ctctags">
<module name="ircv3_batch"><module name="ircv3_echomessage"><module name="ircv3_labeledresponse">
<files motd=""><dns timeout="1"><pid file="{folder}/inspircd.pid"><log method="file" type="*" level="default" target="{folder}/log">
"""


def missing(kind: Kind) -> str:
    """Why tests with that server are skipped; empty where it is installed."""
    return "" if find_program(kind) else f"{kind} is not installed (apt-get install {kind}): tests that need it are skipped"


class Ircd(Server):
    """One server with a folder and a port of its own."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        super().__init__(folder)
        self._kind = kind
        text = NGIRCD if kind == "ngircd" else INSPIRCD
        # inspircd does not run as root: the folder is readable for whom it runs as.
        folder.chmod(0o777)
        config = folder / "config"
        config.write_text(text.format(host=HOST, port=self.port, folder=folder, uid=os.getuid(), gid=os.getgid()))

    def _command(self) -> list[str]:
        arguments = ["-n", "-f"] if self._kind == "ngircd" else ["--nofork", "--nopid", "--config"]
        command = [find_program(self._kind) or self._kind, *arguments, str(self.folder / "config")]
        if self._kind == "inspircd" and os.getuid() == 0:
            return [shutil.which("setpriv") or "setpriv", "--reuid=irc", "--regid=irc", "--clear-groups", *command]
        return command


class Person:
    """Somebody with a client: says things, and remembers what is said to her or where she is."""

    def __init__(self, nick: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.nick = nick
        self.heard: list[tuple[str, str, str]] = []
        self.notices: list[str] = []
        self.raw: list[str] = []
        self._reader, self._writer = reader, writer
        self._changed = asyncio.Event()

    @classmethod
    @contextlib.asynccontextmanager
    async def here(cls, port: int, nick: str, *channels: str) -> AsyncIterator[Self]:
        """heard: sender, target, words of each PRIVMSG."""
        reader, writer = await asyncio.open_connection(HOST, port, limit=2**20)
        person = cls(nick, reader, writer)
        person.write(f"NICK {nick}\r\nUSER {nick} 0 * :{nick}")
        task = asyncio.create_task(person._read())
        try:
            await person.until(lambda: any(f" 001 {nick} " in line for line in person.raw))
            for channel in channels:
                person.write(f"JOIN {channel}")
                await person.until(lambda channel=channel: any(f" 366 {nick} {channel} " in line for line in person.raw))
            yield person
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            writer.close()

    def write(self, line: str) -> None:
        self._writer.write(line.encode() + b"\r\n")

    def say(self, target: str, text: str) -> None:
        self.write(f"PRIVMSG {target} :{text}")

    def texts(self, target: str | None = None) -> list[str]:
        return [words for _, to, words in self.heard if to == (target or self.nick)]

    async def until(self, condition: object, deadline: float = 60.0) -> None:
        assert callable(condition)
        async with asyncio.timeout(deadline):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def _read(self) -> None:
        while raw := await self._reader.readline():
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            self.raw.append(line)
            if line.startswith("PING"):
                self.write("PONG" + line[4:])
            source, _, rest = line.removeprefix(":").partition(" ")
            command, _, rest = rest.partition(" ")
            target, _, words = rest.partition(" :")
            if command == "PRIVMSG":
                self.heard.append((source.partition("!")[0], target, words))
            elif command == "NOTICE":
                self.notices.append(words)
            self._changed.set()
        self._changed.set()
