"""What every provider emulator shares: replies, faults, holds, records, a loopback server, a writer of events."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

from aiohttp import web

JsonObject = dict[str, Any]
Tok = Callable[[str], int]
Clock = Callable[[], float]

PIECE_CHARS = 7
"""Length of one streamed piece of text or JSON: odd and short, so that words, keys and escapes are cut."""

SHUTDOWN_SECONDS = 0.05
"""How long `stop` waits for requests in flight before it cancels them."""


def words(text: str) -> int:
    """Count whitespace-separated words: the default tokenizer, so that a test can write exact sizes."""
    return len(text.split())


class Reply(NamedTuple):
    """What the model says: Anthropic content blocks, an Anthropic stop reason, and for refusals the details."""

    content: list[JsonObject]
    stop_reason: str = "end_turn"
    stop_details: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """Answer with an HTTP error instead of a reply."""

    status: int
    type: str
    message: str
    headers: dict[str, str] = field(default_factory=dict)
    details: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class StreamError:
    """Status 200, then an error event: after the first block start, or after `after` events."""

    type: str = "overloaded_error"
    message: str = "Overloaded"
    after: int | None = None


@dataclass(frozen=True, slots=True)
class DropAfter:
    """Abort the connection after that many events (before any byte when 0 or when the reply is not streamed)."""

    events: int = 0


@dataclass(frozen=True, slots=True)
class Stall:
    """Go silent after that many events (before any byte when 0) until `until` is set; `reached` tells when."""

    after: int = 0
    until: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        self.reached.set()
        await self.until.wait()


@dataclass(frozen=True, slots=True)
class Malformed:
    """Status 200 with a body, or one event of the stream, that is not JSON."""

    body: str = '{"type": "message", "content": [{"ty'


@dataclass(frozen=True, slots=True)
class Empty:
    """A reply with no content at all and an ordinary stop reason."""


AnyFault = Fault | StreamError | DropAfter | Stall | Malformed | Empty
Answer = Reply | tuple[list[JsonObject], str] | AnyFault
Script = Callable[[JsonObject], Answer | Awaitable[Answer]]


class Hold:
    """Keeps one request in flight: it is accounted for, but not one byte of its answer has been sent."""

    def __init__(self, when: Callable[[JsonObject], bool] | None = None) -> None:
        self.reached = asyncio.Event()
        self._when = when
        self._released = asyncio.Event()

    def wants(self, body: JsonObject) -> bool:
        return self._when is None or self._when(body)

    def release(self) -> None:
        self._released.set()

    async def wait(self) -> None:
        self.reached.set()
        await self._released.wait()


@dataclass(slots=True)
class Record:
    """One request as it came in, and what became of it.

    `started` is in seconds of the emulator's clock. `status` is the HTTP status, None while nothing was sent.
    `outcome` is one of open, answered, rejected, dropped, disconnected, failed. `finished` is set at the end.
    """

    request_id: str
    path: str
    headers: dict[str, str]
    started: float
    raw: bytes = b""
    body: JsonObject = field(default_factory=dict)
    status: int | None = None
    outcome: str = "open"
    finished: asyncio.Event = field(default_factory=asyncio.Event)


class Rejected(Exception):
    """A request that the server refuses; `fields` are merged into the error object."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "invalid_request_error",
        headers: dict[str, str] | None = None,
        fields: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type
        self.headers = headers or {}
        self.fields = fields or {}


class Dropped(Exception):
    """The emulator has aborted the connection on purpose."""


R = TypeVar("R", bound=Record)
Handler = Callable[[web.Request, R], Awaitable[web.StreamResponse]]
WebHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Emulator(ABC, Generic[R]):
    """A loopback server on a free port, with queues of faults and holds and a list of records.

    Each model call pops one fault (None = no fault for that call). A script may also return a fault, so that a test
    can fail just the calls it means. `calls` are the records of model calls, `records` those of every request.
    A script that raises answers 500, and `stop` raises its error, so that no test passes over it.
    """

    def __init__(self, *, script: Script, tok: Tok = words, clock: Clock = time.time) -> None:
        self.script = script
        self.tok = tok
        self.clock = clock
        self.faults: deque[AnyFault | None] = deque()
        self.records: list[R] = []
        self.calls: list[R] = []
        self.max_body = 32 * 1024 * 1024
        self._holds: list[Hold] = []
        self._failures: list[Exception] = []
        self._runner: web.AppRunner | None = None
        self._origin = ""

    @abstractmethod
    def _routes(self) -> Sequence[web.RouteDef]: ...

    @abstractmethod
    def _new_record(self, request_id: str, path: str, headers: dict[str, str], started: float) -> R: ...

    @abstractmethod
    def _authenticate(self, record: R) -> None: ...

    @abstractmethod
    def _error_body(self, error: Rejected, record: R) -> JsonObject: ...

    @property
    def url(self) -> str:
        """The origin, e.g. `http://127.0.0.1:40123`, without a path."""
        return self._origin

    async def start(self) -> Self:
        app = web.Application(client_max_size=self.max_body)
        app.add_routes(self._routes())
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self._origin = f"http://{host}:{port}"
        return self

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        if self._failures:
            raise self._failures[0]

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()

    def hold(self, when: Callable[[JsonObject], bool] | None = None) -> Hold:
        """Hold the next model call (for which `when(body)` is true) until the returned hold is released."""
        hold = Hold(when)
        self._holds.append(hold)
        return hold

    async def _held(self, body: JsonObject) -> None:
        for hold in self._holds:
            if hold.wants(body):
                self._holds.remove(hold)
                await hold.wait()
                return

    def _next_fault(self) -> AnyFault | None:
        return self.faults.popleft() if self.faults else None

    async def _reply(self, body: JsonObject, fault: AnyFault | None) -> tuple[Reply, AnyFault | None]:
        """Ask the script; a fault that it returns comes with a short text, for the faults that cut a stream."""
        answer = self.script(body)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, tuple):
            return Reply(*answer), fault
        return Reply([{"type": "text", "text": "a reply that is cut"}]), answer

    def _opened(self, request: web.Request) -> R:
        headers = {name.lower(): value for name, value in request.headers.items()}
        record = self._new_record(f"req_{len(self.records) + 1:024d}", request.path, headers, self.clock())
        self.records.append(record)
        return record

    def _call(self, handler: Handler[R]) -> WebHandler:
        """The web handler of requests that count as model calls."""

        async def handle(request: web.Request) -> web.StreamResponse:
            record = self._opened(request)
            self.calls.append(record)
            return await self._answered(request, record, handler)

        return handle

    def _other(self, handler: Handler[R]) -> WebHandler:
        """The web handler of any other request."""

        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._answered(request, self._opened(request), handler)

        return handle

    async def _answered(self, request: web.Request, record: R, handler: Handler[R]) -> web.StreamResponse:
        try:
            self._authenticate(record)
            response = await handler(request, record)
            record.outcome = "answered"
        except Rejected as error:
            record.outcome = "rejected"
            response = self._error_response(error, record)
        except Dropped:
            return web.Response()
        except ConnectionError:
            record.outcome = "disconnected"
            return web.Response()
        except Exception as error:
            record.outcome = "failed"
            self._failures.append(error)
            response = self._error_response(Rejected(f"emulator: {error!r}", status=500, type="api_error"), record)
        finally:
            if record.outcome == "open":
                record.outcome = "disconnected"
            record.finished.set()
        record.status = response.status
        return response

    def _error_response(self, error: Rejected, record: R) -> web.Response:
        headers = {"request-id": record.request_id, **error.headers}
        return web.json_response(self._error_body(error, record), status=error.status, headers=headers)

    async def _read(self, request: web.Request, record: R) -> JsonObject:
        """Read the body, a JSON object, into the record."""
        try:
            record.raw = await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise Rejected("Request exceeds the maximum size", status=413, type="request_too_large") from None
        try:
            body = json.loads(record.raw)
        except ValueError as error:
            raise Rejected(f"The request body is not valid JSON: {error}") from None
        if not isinstance(body, dict):
            raise Rejected("Input should be a valid dictionary")
        record.body = body
        return body


def pieces(text: str, size: int = PIECE_CHARS) -> list[str]:
    """Cut a text into pieces of `size` characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def cut_inside_character(data: bytes) -> list[bytes]:
    """Cut bytes in two inside their first multi-byte UTF-8 character; whole when they are ASCII."""
    for index, byte in enumerate(data):
        if byte & 0xC0 == 0x80:
            return [data[:index], data[index:]]
    return [data]


def refuse(fault: AnyFault | None, *, streaming: bool) -> None:
    """Raise the HTTP error of a fault that is one; without a stream an error event is one, too."""
    if isinstance(fault, Fault):
        fields = {} if fault.details is None else {"details": fault.details}
        raise Rejected(fault.message, status=fault.status, type=fault.type, headers=fault.headers, fields=fields)
    if isinstance(fault, StreamError) and not streaming:
        raise Rejected(fault.message, status=529, type=fault.type)


async def before_first_byte(request: web.Request, record: Record, fault: AnyFault | None, *, streaming: bool) -> None:
    """Carry out the stall or drop that comes before the response begins; without a stream all of them do."""
    if isinstance(fault, Stall) and not (streaming and fault.after):
        await fault.wait()
    if isinstance(fault, DropAfter) and not (streaming and fault.events):
        drop(request, record)


async def send_events(
    request: web.Request, record: Record, headers: dict[str, str], events: Sequence[bytes], fault: AnyFault | None
) -> web.StreamResponse:
    """Stream the events, each in writes that cut a character, and carry out a drop or a stall on the way."""
    response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8", **headers})
    await response.prepare(request)
    record.status = 200
    for count, event in enumerate(events, start=1):
        for part in cut_inside_character(event):
            await response.write(part)
        if isinstance(fault, DropAfter) and count == fault.events:
            drop(request, record)
        if isinstance(fault, Stall) and count == fault.after:
            await fault.wait()
    await response.write_eof()
    return response


def drop(request: web.Request, record: Record) -> None:
    """Abort the connection: the client sees it reset or closed in the middle."""
    record.outcome = "dropped"
    if request.transport is not None:
        request.transport.abort()
    raise Dropped
