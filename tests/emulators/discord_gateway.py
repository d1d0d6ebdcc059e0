"""Discord's gateway as its documentation describes it: greeting, heartbeats, sessions that are begun and gone on with, close codes."""

import asyncio
import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.emulators.server import JsonObject

KNOWN_INTENTS = (1 << 26) - 1
PRIVILEGED = 1 << 1 | 1 << 8 | 1 << 15
CONTENT = 1 << 15
_INTENTS = {
    "MESSAGE": (1 << 9, 1 << 12),
    "REACTION": (1 << 10, 1 << 13),
    "GUILD": (1, 1),
    "TYPING": (1 << 11, 1 << 14),
    "INTERACTION": (0, 0),
}
"""The intents that an event needs: in servers, and in private chats."""
LONGEST = 4096
"""Bytes of what a client says."""
MOST = 120
"""Events that a client may send in a minute: those of one connection are counted, for no test lasts longer, and heartbeats are not, for
tests have them come fast."""


@dataclass(slots=True)
class Session:
    """What a client goes on with: all its events, by number."""

    id: str
    intents: int
    log: list[JsonObject] = field(default_factory=list)


class Connection:
    """A client that is connected. `session` is None until it identifies itself."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        self.socket = socket
        self.path = request.path
        self.transport = request.transport
        self.session: Session | None = None
        self.out: asyncio.Queue[JsonObject | int | str] = asyncio.Queue()

    def say(self, op: int, data: Any = None, **more: Any) -> None:
        self.out.put_nowait({"op": op, "d": data, **more})

    def close(self, code: int) -> None:
        """Behind what was said before."""
        self.out.put_nowait(code)

    async def write(self) -> None:
        while True:
            frame = await self.out.get()
            if isinstance(frame, int):
                await self.socket.close(code=frame)
                return
            await self.socket.send_str(frame if isinstance(frame, str) else json.dumps(frame))


class GatewayEmulator:
    """greeting: what READY tells beside the session, and the servers that follow it.

    beat_s: seconds between heartbeats. allowed: privileged intents that the application has. identified, resumed: what clients said, with
    the path that they came by. beats: numbers in heartbeats. codes: that clients closed with, None for connections that ended otherwise.
    deaf: heartbeats get no answer.
    """

    def __init__(self, token: str, tell: Callable[[], None], greeting: Callable[[], tuple[JsonObject, list[JsonObject]]]) -> None:
        self.token = token
        self.beat_s = 41.25
        self.allowed = CONTENT
        self.deaf = False
        self.identified: list[JsonObject] = []
        self.resumed: list[JsonObject] = []
        self.beats: list[int | None] = []
        self.codes: list[int | None] = []
        self.url = ""
        self.connections: list[Connection] = []
        self._sessions: dict[str, Session] = {}
        self._tell = tell
        self._greeting = greeting

    # What happens ------------------------------------------------------------------------------------------------

    def dispatch(self, kind: str, told: JsonObject) -> None:
        """Tell each session whose intents are for it, connected or not."""
        direct = "guild_id" not in told
        for session in self._sessions.values():
            # Interactions are told to every session.
            if (
                kind == "INTERACTION_CREATE"
                or session.intents & _INTENTS["REACTION" if "REACTION" in kind else kind.partition("_")[0]][direct]
            ):
                self._log(session, kind, told)

    def reconnect(self) -> None:
        """Ask all clients to connect anew."""
        for each in self.connections:
            each.say(7)

    def invalidate(self, *, resumable: bool) -> None:
        """Take the sessions back, or only say so."""
        if not resumable:
            self._sessions.clear()
        for each in self.connections:
            each.say(9, resumable)

    def forget(self) -> None:
        """As after some minutes: no session can be gone on with."""
        self._sessions.clear()

    def close(self, code: int) -> None:
        for each in self.connections:
            each.close(code)

    def drop(self) -> None:
        """Break all connections without a word."""
        for each in self.connections:
            if each.transport is not None:
                each.transport.abort()

    def ask_for_beat(self) -> None:
        for each in self.connections:
            each.say(1)

    def say(self, text: str) -> None:
        """Send these characters to all clients, whatever they are."""
        for each in self.connections:
            each.out.put_nowait(text)

    @property
    def ready(self) -> bool:
        """Whether somebody listens whose heartbeats say that its greeting is stored."""
        return any(each.session for each in self.connections) and any(self.beats)

    # What clients say --------------------------------------------------------------------------------------------

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        connection = Connection(socket, request)
        if (request.query.get("v"), request.query.get("encoding")) != ("10", "json"):
            await socket.close(code=4012)
            return socket
        self.connections.append(connection)
        connection.say(10, {"heartbeat_interval": self.beat_s * 1000})
        writer = asyncio.create_task(connection.write())
        code = None
        try:
            code = await self._listen(connection)
            await asyncio.wait((writer,), timeout=1.0 if code is None else 0.0)
        finally:
            self.connections.remove(connection)
            writer.cancel()
            self.codes.append(code)
            if code in (1000, 1001) and connection.session:
                self._sessions.pop(connection.session.id, None)
            self._tell()
        return socket

    async def _listen(self, connection: Connection) -> int | None:
        """Until the end. Returns the code that the client closes with, None where it is not the client."""
        said = 0
        while True:
            try:
                message = await connection.socket.receive(timeout=2.5 * self.beat_s + 1)
            except TimeoutError:
                await connection.socket.close(code=4000)
                return None
            if message.type is not WSMsgType.TEXT:
                return int(message.data) if message.type is WSMsgType.CLOSE else None
            said += '"op": 1,' not in message.data
            if code := 4008 if said > MOST else self._said(connection, message.data):
                connection.close(code)
            self._tell()

    def _said(self, connection: Connection, text: str) -> int:
        """The code to close with, 0 to go on."""
        if len(text.encode()) > LONGEST:
            return 4002
        try:
            frame = json.loads(text)
            op, data = frame["op"], frame["d"]
        except (ValueError, KeyError, TypeError):
            return 4002
        if op == 1:
            self.beats.append(data)
            if not self.deaf:
                connection.say(11)
            return 0
        if op not in (2, 6):
            return 4001 if op not in (3, 4, 8) else 0
        if data.get("token") != self.token:
            return 4004
        return self._identify(connection, data) if op == 2 else self._resume(connection, data)

    def _identify(self, connection: Connection, data: JsonObject) -> int:
        self.identified.append({**data, "path": connection.path})
        if connection.session:
            return 4005
        if not isinstance(data["intents"], int) or data["intents"] & ~KNOWN_INTENTS:
            return 4013
        if data["intents"] & PRIVILEGED & ~self.allowed:
            return 4014
        assert {"os", "browser", "device"} <= set(data["properties"])
        session = connection.session = Session(f"session{len(self.identified)}", data["intents"])
        self._sessions[session.id] = session
        ready, servers = self._greeting()
        self._log(session, "READY", {**ready, "v": 10, "session_id": session.id, "resume_gateway_url": f"{self.url}/resume"})
        for server in servers:
            self._log(session, "GUILD_CREATE", server)
        return 0

    def _resume(self, connection: Connection, data: JsonObject) -> int:
        self.resumed.append({**data, "path": connection.path})
        session = self._sessions.get(data["session_id"])
        if session is None:
            connection.say(9, False)
            return 0
        if not isinstance(data["seq"], int) or data["seq"] > len(session.log):
            return 4007
        connection.session = session
        for event in session.log[data["seq"] :]:
            self._send(connection, event)
        self._log(session, "RESUMED", {})
        return 0

    def _log(self, session: Session, kind: str, told: JsonObject) -> None:
        event = {"op": 0, "s": len(session.log) + 1, "t": kind, "d": deepcopy(told)}
        session.log.append(event)
        for each in self.connections:
            if each.session is session:
                self._send(each, event)

    def _send(self, connection: Connection, event: JsonObject) -> None:
        assert connection.session is not None
        connection.out.put_nowait(event if connection.session.intents & CONTENT else _without_content(event))


def _without_content(event: JsonObject) -> JsonObject:
    """An event for a bot that may not read what is said in servers, but where it is mentioned."""
    told = event["d"]
    if not event["t"].startswith("MESSAGE_") or "content" not in told or "guild_id" not in told or told.get("mentions"):
        return event
    return {**event, "d": {**told, "content": "", "attachments": []}}
