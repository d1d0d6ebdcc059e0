"""One connection to an IRC server: registered, logged in, kept alive; questions answered in their order."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import count

from clew_transports.irc.lines import MAX_LINE_BYTES, Line, folded, written

CONNECT_S = 30.0
"""Seconds until the server has to have taken the nickname."""
ANSWER_S = 30.0
SILENT_S = 60.0
"""Seconds of silence after which the server is asked whether it is there."""
WANTED = ("message-tags", "account-tag", "server-time", "batch")
NICKS = 5
"""Names that are tried: the one that is wished, and others with _ behind it."""


class Unreached(Exception):
    """The server was not told."""


class Unanswered(Exception):
    """The server was told, and did not answer."""


class Denied(Exception):
    """The server does not let clew in."""


@dataclass(frozen=True, slots=True)
class Login:
    """Who clew is. account, password: for SASL; empty for none."""

    nick: str
    account: str = ""
    password: str = ""


class Connection:
    """Use `opened` as an async context manager, and read `lines` all the while: answers come only then."""

    def __init__(self, login: Login, answer_s: float = ANSWER_S, silent_s: float = SILENT_S) -> None:
        self.nick = login.nick
        self._login = login
        self._answer_s = answer_s
        self._silent_s = silent_s
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._questions: dict[str, tuple[asyncio.Future[list[Line]], list[Line]]] = {}
        self._numbers = count(1)

    @contextlib.asynccontextmanager
    async def opened(self, host: str, port: int, tls: ssl.SSLContext | None) -> AsyncIterator[None]:
        """Connected and registered. Raises Unreached or Denied."""
        try:
            async with asyncio.timeout(CONNECT_S):
                self._reader, self._writer = await asyncio.open_connection(host, port, ssl=tls, limit=4 * MAX_LINE_BYTES)
                await self._register()
        except (OSError, TimeoutError, Unanswered) as error:
            self._close()
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Unreached(f"no connection to {host}:{port} ({reason})") from None
        except BaseException:
            self._close()
            raise
        try:
            yield
        finally:
            with contextlib.suppress(OSError, Unreached):
                self.write(written("QUIT", "clew stops"))
            self._close()

    async def lines(self) -> AsyncIterator[Line]:
        """What the server says, until it closes. Raises Unanswered when it is silent for too long."""
        asked = False
        while True:
            try:
                async with asyncio.timeout(self._answer_s if asked else self._silent_s):
                    line = await self._line()
                asked = False
            except TimeoutError:
                if asked:
                    raise Unanswered("the server is silent") from None
                self.write(written("PING", "still-there"))
                asked = True
                continue
            if line.command == "PING":
                self.write(written("PONG", *line.params[-1:]))
            elif line.command == "PONG":
                self._answered(line.params[-1] if line.params else "")
            else:
                if line.command == "NICK" and folded(line.nick) == folded(self.nick) and line.params:
                    self.nick = line.params[0]
                for _, heard in self._questions.values():
                    heard.append(line)
                yield line

    async def ask(self, *lines: bytes) -> list[Line]:
        """What the server says until it has dealt with `lines`. Raises Unreached or Unanswered."""
        token = f"clew-{next(self._numbers)}"
        future: asyncio.Future[list[Line]] = asyncio.get_running_loop().create_future()
        self._questions[token] = (future, [])
        try:
            self.write(b"".join(lines) + written("PING", token))
            async with asyncio.timeout(self._answer_s):
                return await future
        except TimeoutError:
            raise Unanswered("no answer from the server") from None
        finally:
            self._questions.pop(token, None)

    def write(self, raw: bytes) -> None:
        """Raises Unreached."""
        if self._writer is None or self._writer.is_closing():
            raise Unreached("there is no connection to the server")
        self._writer.write(raw)

    def _answered(self, token: str) -> None:
        if found := self._questions.get(token):
            future, heard = found
            if not future.done():
                future.set_result(heard)

    def _close(self) -> None:
        if self._writer:
            self._writer.close()
        self._reader = self._writer = None
        for future, _ in self._questions.values():
            if not future.done():
                future.set_exception(Unanswered("the connection broke before the answer"))

    async def _line(self) -> Line:
        if self._reader is None:
            raise Unanswered("there is no connection to the server")
        while True:
            try:
                raw = await self._reader.readline()
            except (OSError, ValueError):
                raw = b""
            if not raw:
                raise Unanswered("the server closed the connection")
            with contextlib.suppress(ValueError):
                return Line.parse(raw)

    # Letting in --------------------------------------------------------------------------------------------------

    async def _register(self) -> None:
        """Raises Denied or Unanswered."""
        self.nick = self._login.nick
        self.write(written("CAP", "LS", "302") + written("NICK", self.nick) + written("USER", "clew", "0", "*", "clew"))
        offered: set[str] = set()
        while True:
            line = await self._line()
            match line.command:
                case "PING":
                    self.write(written("PONG", *line.params[-1:]))
                case "CAP" if line.params[1:2] == ("LS",):
                    offered |= {each.partition("=")[0] for each in line.params[-1].split()}
                    if line.params[2] != "*":
                        self._want(offered)
                case "CAP" if line.params[1:2] == ("ACK",) and "sasl" in line.params[-1].split():
                    self.write(written("AUTHENTICATE", "PLAIN"))
                case "CAP" if line.params[1:2] in (("ACK",), ("NAK",)):
                    self.write(written("CAP", "END"))
                case "AUTHENTICATE":
                    self._authenticate()
                case "903":
                    self.write(written("CAP", "END"))
                case "902" | "904" | "905" | "906" | "908":
                    raise Denied("the server does not know the account or its password")
                case "432":
                    raise Denied(f"the server takes no nickname like {self.nick}")
                case "433" | "436":
                    self._another()
                case "464" | "465" | "ERROR":
                    raise Denied(f"the server does not let clew in: {line.params[-1][:200] if line.params else ''}")
                case "001":
                    self.nick = line.params[0]
                    return

    def _want(self, offered: set[str]) -> None:
        wanted = [each for each in WANTED if each in offered]
        if self._login.account:
            if "sasl" not in offered:
                raise Denied("the server has no SASL: leave out account and password")
            wanted.append("sasl")
        self.write(written("CAP", "REQ", " ".join(wanted)) if wanted else written("CAP", "END"))

    def _authenticate(self) -> None:
        secret = f"\0{self._login.account}\0{self._login.password}".encode()
        text = base64.b64encode(secret).decode()
        pieces = [text[start : start + 400] for start in range(0, len(text), 400)]
        if len(pieces[-1]) == 400:
            pieces.append("+")
        self.write(b"".join(f"AUTHENTICATE {piece}\r\n".encode() for piece in pieces))

    def _another(self) -> None:
        if len(self.nick) >= len(self._login.nick) + NICKS:
            raise Denied(f"the nickname {self._login.nick} is in use, and so are others like it")
        self.nick += "_"
        self.write(written("NICK", self.nick))
