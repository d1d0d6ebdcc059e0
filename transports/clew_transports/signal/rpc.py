"""JSON-RPC 2.0 with signal-cli: one object a line over TCP, answers matched by id, notifications in between."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from itertools import count
from typing import Any

CONNECT_S = 15.0
ANSWER_S = 60.0
"""Seconds for a connection and for an answer; a send waits for Signal's servers."""
MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest line: an attachment in base64."""


class Unreached(Exception):
    """The request did not reach signal-cli: nothing was done."""


class Unanswered(Exception):
    """The request left, and no answer came: it may or may not have been done."""


class Fault(Exception):
    """signal-cli answered with an error. after: seconds that Signal asks to wait."""

    def __init__(self, code: int, why: str, after: float | None = None) -> None:
        super().__init__(f"signal-cli answered {code}: {why[:200]}")
        self.code, self.after = code, after


class Rpc:
    """One connection."""

    def __init__(self, answer_s: float = ANSWER_S) -> None:
        self._answer_s = answer_s
        self._writer: asyncio.StreamWriter | None = None
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._ids = count(1)

    @contextlib.asynccontextmanager
    async def connected(self, host: str, port: int) -> AsyncIterator[AsyncIterator[Mapping[str, Any]]]:
        """What signal-cli notifies, for as long as the connection lasts; it has to be read for answers to come. Raises Unreached.

        Each notification is taken from the connection only when the one before it is done with: signal-cli forgets what it has
        written, and what lies in the connection is lost with this process.
        """
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(host, port, limit=MAX_LINE_BYTES)
        except (OSError, TimeoutError) as error:
            raise Unreached(f"no connection to signal-cli ({getattr(error, 'strerror', None) or type(error).__name__})") from None
        self._writer = writer
        try:
            yield self._notifications(reader)
        finally:
            self._writer = None
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(Unanswered("the connection to signal-cli broke before the answer"))
            self._waiting.clear()
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def call(self, method: str, answer_s: float | None = None, **params: Any) -> Any:
        """The result of a method. Raises Unreached, Unanswered or Fault."""
        if self._writer is None:
            raise Unreached("there is no connection to signal-cli")
        number = str(next(self._ids))
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(answer_s or self._answer_s):
                self._writer.write(json.dumps(request).encode() + b"\n")
                await self._writer.drain()
                return await future
        except TimeoutError:
            raise Unanswered("no answer from signal-cli") from None
        except OSError:
            raise Unanswered("the connection to signal-cli broke before the answer") from None
        finally:
            self._waiting.pop(number, None)

    async def _notifications(self, reader: asyncio.StreamReader) -> AsyncIterator[Mapping[str, Any]]:
        """Ends when signal-cli closes the connection."""
        while True:
            try:
                line = await reader.readline()
            except (OSError, ValueError):
                return
            if not line.endswith(b"\n"):
                return
            said = _object(line)
            if "id" in said:
                self._answered(said)
            elif said.get("method") == "receive" and isinstance(said.get("params"), dict):
                yield said["params"]

    def _answered(self, said: Mapping[str, Any]) -> None:
        future = self._waiting.get(str(said["id"]))
        if future is None or future.done():
            return
        error = said.get("error")
        if error is None:
            future.set_result(said.get("result"))
        else:
            future.set_exception(_fault(error if isinstance(error, dict) else {}))


def _object(line: bytes) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _fault(error: Mapping[str, Any]) -> Fault:
    code, data = error.get("code"), error.get("data")
    waits = [each.get("retryAfterSeconds") for each in _results(data)]
    stated = [float(wait) for wait in waits if isinstance(wait, int | float) and wait > 0]
    return Fault(code if isinstance(code, int) else 0, str(error.get("message", "")), max(stated, default=None))


def _results(data: Any) -> list[Mapping[str, Any]]:
    """What became of each receiver: part of an error, and of a result."""
    found = data.get("response", data) if isinstance(data, dict) else {}
    results = found.get("results") if isinstance(found, dict) else None
    return [each for each in results if isinstance(each, dict)] if isinstance(results, list) else []
