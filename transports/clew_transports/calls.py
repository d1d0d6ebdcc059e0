"""HTTP calls to a platform: what came back, and whether a call without an answer may have been done all the same."""

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, Self

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

CONNECT_S = 15.0
ANSWER_S = 30.0
"""Seconds for a connection and for an answer."""
MAX_ANSWER_BYTES = 16 * 1024 * 1024
MAX_LINE_BYTES = 1024 * 1024
"""Bounds of an answer, and of a line of a stream."""
LONGEST_WAIT_S = 3600.0
"""The longest wait, in seconds, that a platform can ask for by Retry-After."""
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


class Unreached(Exception):
    """The request did not reach the platform: nothing was done."""


class Unanswered(Exception):
    """The request left, and no answer came: it may or may not have been done."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the platform said."""

    status: int
    body: bytes
    headers: CIMultiDictProxy[str] = field(default_factory=lambda: CIMultiDictProxy(CIMultiDict()))

    def json(self) -> Any:
        """The body's value, None if it is no JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def retry_after(self, now: float | None = None) -> float | None:
        """Seconds that a Retry-After asks to wait, as a number or a date; None if it says neither. now: seconds since the epoch."""
        return seconds(self.headers.get("Retry-After", ""), time.time() if now is None else now)


class Calls:
    """Calls to `platform`, as it is named in errors. Use as an async context manager.

    Errors never name an address: with some platforms the token is part of it.
    """

    def __init__(self, platform: str) -> None:
        self._platform = platform
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # A connection for each call: one that was kept could be closed under the next call, whose fate were then unknown.
        connector = aiohttp.TCPConnector(force_close=True)
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._session:
            await self._session.close()
        self._session = None

    async def call(self, method: str, url: URL, answer_s: float = ANSWER_S, *, read: bool = True, **request: Any) -> Answer:
        """`request` is what aiohttp takes: json, data, headers, … Redirects are answers. Raises Unreached or Unanswered.

        read: False where nothing but the status counts; the body is then left out.
        """
        timeout = aiohttp.ClientTimeout(total=CONNECT_S + answer_s, connect=CONNECT_S, sock_read=answer_s)
        with self._explained(answer_s):
            async with self._open.request(method, url, timeout=timeout, allow_redirects=False, **request) as response:
                return Answer(response.status, await _read(response) if read else b"", response.headers)

    @contextlib.asynccontextmanager
    async def stream(self, url: URL, silent_s: float, **request: Any) -> AsyncIterator[tuple[int, AsyncIterator[list[bytes]]]]:
        """The status of a GET and, as they come, the lines of an answer without end; those above MAX_LINE_BYTES are left out.

        Raises Unreached, and Unanswered when the stream breaks or says nothing for `silent_s` seconds, in the body of the context too.
        """
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_read=silent_s)
        with self._explained(silent_s):
            async with self._open.get(url, timeout=timeout, allow_redirects=False, **request) as response:
                yield response.status, _lines(response)

    async def download(self, url: URL, max_bytes: int, **request: Any) -> AsyncIterator[bytes]:
        """The bytes of a file. Raises LookupError where there is none, or one that is longer; Unreached or Unanswered where it may be had
        another time."""
        left = max_bytes
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_read=ANSWER_S)
        with self._explained(ANSWER_S):
            async with self._open.get(url, timeout=timeout, allow_redirects=False, **request) as response:
                if response.status == 429 or response.status >= 500:
                    raise Unreached(f"{self._platform} answered {response.status} for a file")
                if response.status != 200:
                    raise LookupError(f"{self._platform} answered {response.status} for a file")
                async for piece in response.content.iter_any():
                    left -= len(piece)
                    if left < 0:
                        raise LookupError(f"a file has more than {max_bytes:,} bytes")
                    yield piece

    async def websocket(self, url: URL, heartbeat_s: float | None = None, **request: Any) -> aiohttp.ClientWebSocketResponse:
        """An open WebSocket, to be closed by the caller. Raises Unreached."""
        try:
            async with asyncio.timeout(CONNECT_S):
                socket: aiohttp.ClientWebSocketResponse = await self._open.ws_connect(
                    url, heartbeat=heartbeat_s, max_msg_size=MAX_ANSWER_BYTES, **request
                )
                return socket
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unreached(f"no WebSocket to {self._platform} ({type(error).__name__})") from None

    @contextlib.contextmanager
    def _explained(self, answer_s: float) -> Iterator[None]:
        """aiohttp's errors as Unreached or Unanswered."""
        try:
            yield
        except aiohttp.ConnectionTimeoutError:
            raise Unreached(f"no connection to {self._platform} within {CONNECT_S:.0f} s") from None
        except aiohttp.ClientConnectorError as error:
            raise Unreached(f"no connection to {self._platform} ({error.strerror or type(error).__name__})") from None
        except TimeoutError:
            raise Unanswered(f"no answer from {self._platform} within {answer_s:.0f} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unanswered(f"the connection to {self._platform} broke before the answer ({type(error).__name__})") from None

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise Unreached("the transport is not running")
        return self._session


def seconds(retry_after: str, now: float) -> float | None:
    """Seconds from `now`, which is in seconds since the epoch, that a Retry-After asks to wait; None if it says neither number nor date."""
    try:
        wait = float(retry_after) if _NUMBER.fullmatch(retry_after) else parsedate_to_datetime(retry_after).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return min(max(wait, 0.0), LONGEST_WAIT_S)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise aiohttp.ClientPayloadError
    return bytes(body)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[list[bytes]]:
    """The whole lines, without their ends, that came since the last ones."""
    rest, lost = b"", False
    async for piece in response.content.iter_any():
        *lines, rest = (rest + piece).split(b"\n")
        if lines:
            yield lines[1:] if lost else lines
            lost = False
        if len(rest) > MAX_LINE_BYTES:
            rest, lost = b"", True
