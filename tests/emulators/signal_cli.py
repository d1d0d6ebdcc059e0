"""signal-cli's daemon as its man page describes its JSON-RPC: one object a line, messages to who has subscribed, forgotten once written.

What it can be told to do wrong: `next`, a queue of faults, each for one `send`.
"""

import asyncio
import base64
import contextlib
import json
from collections import deque
from collections.abc import Callable
from typing import Any, Self

from tests.emulators.server import JsonObject

ACCOUNT, UUID = "+15550001111", "00000000-0000-4000-8000-000000000001"
STYLES = ("BOLD", "ITALIC", "STRIKETHROUGH", "MONOSPACE", "SPOILER")

Fault = Callable[["SignalCliEmulator", Callable[[], JsonObject], asyncio.StreamWriter], JsonObject | None]
"""Returns the rest of the answer, None for no answer."""


class SignalCliEmulator:
    """Use as an async context manager.

    messages: what was sent, in order, with its `timestamp`. typings: to whom typing was shown. waiting: what nobody has got yet.
    names: what people call themselves. subscribed: connections that get what comes.
    """

    def __init__(self) -> None:
        self.next: deque[Fault] = deque()
        self.messages: list[JsonObject] = []
        self.typings: list[JsonObject] = []
        self.waiting: deque[JsonObject] = deque()
        self.files: dict[str, bytes] = {}
        self.names: dict[str, str] = {}
        self.silent = False
        self.port = 0
        self._timestamp = 1_800_000_000_000
        self.subscribed: set[asyncio.StreamWriter] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.down()

    async def up(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**26)
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Nobody listens at its port until `up`; what nobody has got stays."""
        if self._server:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            self._server = None

    # What people do ----------------------------------------------------------------------------------------------

    def say(self, text: str, sender: str, group: str | None = None, **data: Any) -> JsonObject:
        """A message; `data` is more of its dataMessage. Returns the envelope, which can be given again."""
        timestamp = self._tick()
        message: JsonObject = {"timestamp": timestamp, "message": text, **data}
        if group:
            message["groupInfo"] = {"groupId": group, "type": "DELIVER"}
        envelope = self.envelope(sender, timestamp, dataMessage=message)
        self.give(envelope)
        return envelope

    def envelope(self, sender: str, timestamp: int | None = None, **more: Any) -> JsonObject:
        known = {"source": sender, "sourceNumber": None, "sourceUuid": sender, "sourceName": self.names.get(sender, "")}
        return {**known, "timestamp": timestamp or self._tick(), **more}

    def give(self, envelope: JsonObject) -> None:
        self.waiting.append(envelope)
        self._deliver()

    def texts(self, to: str) -> list[str]:
        return [each["message"] for each in self.messages if to in (each.get("groupId"), *each.get("recipient", ()))]

    async def until(self, condition: Callable[[], bool], deadline: float = 60.0) -> None:
        async with asyncio.timeout(deadline):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    # What clew asks ----------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while line := await reader.readline():
                asked = json.loads(line)
                if self.silent:
                    continue
                answer = self._answer(asked["method"], asked.get("params", {}), writer)
                if answer is not None:
                    self._write(writer, {"jsonrpc": "2.0", "id": asked["id"], **answer})
                if asked["method"] == "subscribeReceive":
                    self.subscribed.add(writer)
                    self._deliver()
        except ConnectionError:
            pass
        finally:
            self.subscribed.discard(writer)
            self._writers.discard(writer)
            writer.close()
            self._changed.set()

    def _deliver(self) -> None:
        while self.waiting and self.subscribed:
            params = {"subscription": 0, "result": {"account": ACCOUNT, "envelope": self.waiting.popleft()}}
            for writer in self.subscribed:
                self._write(writer, {"jsonrpc": "2.0", "method": "receive", "params": params})
        self._changed.set()

    def _answer(self, method: str, params: JsonObject, writer: asyncio.StreamWriter) -> JsonObject | None:
        if method == "listAccounts":
            return {"result": [{"number": ACCOUNT}]}
        if method == "version":
            return {"result": {"version": "0.14.6"}}
        if params.get("account") != ACCOUNT:
            return error(-1, "Specified account does not exist")
        match method:
            case "subscribeReceive":
                return {"result": 0}
            case "getUserStatus":
                return {"result": [{"recipient": ACCOUNT, "number": ACCOUNT, "uuid": UUID, "isRegistered": True}]}
            case "sendTyping":
                self.typings.append(params)
                self._changed.set()
                return {"result": {}}
            case "getAttachment":
                if params["id"] not in self.files:
                    return error(-1, "Could not find attachment")
                return {"result": {"data": base64.b64encode(self.files[params["id"]]).decode()}}
            case "send":
                return self._send(params, writer)
        return error(-32601, "Method not implemented")

    def _send(self, params: JsonObject, writer: asyncio.StreamWriter) -> JsonObject | None:
        length = len(params["message"].encode("utf-16-le")) // 2
        for style in params.get("textStyle", ()):
            start, count, name = style.split(":")
            if (
                name not in ("BOLD", "ITALIC", "STRIKETHROUGH", "MONOSPACE", "SPOILER")
                or int(start) + int(count) > length
                or int(count) < 1
            ):
                return error(-1, f"Invalid style: {style}")

        def carried_out() -> JsonObject:
            self.messages.append({**params, "timestamp": self._tick()})
            self._changed.set()
            return {"result": {"timestamp": self.messages[-1]["timestamp"], "results": [{"type": "SUCCESS"}]}}

        if self.next:
            return self.next.popleft()(self, carried_out, writer)
        return carried_out()

    def _write(self, writer: asyncio.StreamWriter, said: JsonObject) -> None:
        with contextlib.suppress(ConnectionError):
            writer.write(json.dumps(said).encode() + b"\n")

    def _tick(self) -> int:
        self._timestamp += 1000
        return self._timestamp


def error(code: int, why: str, after: int | None = None) -> JsonObject:
    """An error; after: seconds that Signal asks to wait."""
    data = {"response": {"results": [{"type": "RATE_LIMIT_FAILURE", "retryAfterSeconds": after}]}} if after else None
    return {"error": {"code": code, "message": why, "data": data}}


# Faults ----------------------------------------------------------------------------------------------------------


def refuses(code: int, why: str, after: int | None = None) -> Fault:
    return lambda emulator, carry_out, writer: error(code, why, after)


def drops(emulator: SignalCliEmulator, carry_out: Callable[[], JsonObject], writer: asyncio.StreamWriter) -> None:
    """Breaks the connection, nothing done."""
    writer.transport.abort()


def does_and_drops(emulator: SignalCliEmulator, carry_out: Callable[[], JsonObject], writer: asyncio.StreamWriter) -> None:
    """Does what it was asked, and breaks the connection before the answer."""
    carry_out()
    writer.transport.abort()
