"""The command line's way to a daemon: HTTP over `data_dir/clew.sock`. Where none runs, one is started in this process, without
remote transports, and asked through the same socket: one path.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from clew.cli.options import log_to_stderr
from clew.config import Config
from clew.errors import ClewError, NotFound, UsageError

BASE = "http://localhost"
ANSWER_TIMEOUT = 300.0
"""Seconds a request may take: a compaction waits for a model."""
CONNECT_TIMEOUT = 5.0
LONGEST_FRAME = 16 * 2**20
"""Bytes of a WebSocket frame."""
LONGEST_ANSWER = 64 * 2**20
"""Bytes of a response."""

_WRONG_USAGE = {400, 409, 413}
_UNREACHABLE = (aiohttp.ClientConnectionError, ConnectionError, asyncio.TimeoutError, FileNotFoundError)


class Client:
    """Talks to the daemon behind a socket. `own`: the daemon is part of this process and ends with it."""

    def __init__(self, session: aiohttp.ClientSession, own: bool) -> None:
        self._session = session
        self.own = own

    async def get(self, path: str) -> Any:
        return await self.request("GET", path)

    async def post(self, path: str, body: object = None) -> Any:
        return await self.request("POST", path, body)

    async def patch(self, path: str, body: object) -> Any:
        return await self.request("PATCH", path, body)

    async def delete(self, path: str) -> Any:
        return await self.request("DELETE", path)

    async def request(self, method: str, path: str, body: object = None) -> Any:
        """The JSON that the daemon answers. Raises NotFound, UsageError or ClewError with the daemon's own words."""
        try:
            async with self._session.request(method, BASE + path, json=body) as response:
                answer = await _json(response)
        except _UNREACHABLE as error:
            raise ClewError(
                f"the daemon does not answer ({_reason(error)}).", hint="Is it being stopped? `clew status` says how it is."
            ) from None
        if response.status >= 400:
            raise _refusal(response.status, answer)
        return answer

    async def socket(self, path: str) -> aiohttp.ClientWebSocketResponse:
        """A WebSocket. Raises ClewError where the daemon refuses it, ConnectionError where none answers."""
        try:
            return await self._session.ws_connect(BASE + path, heartbeat=30.0, max_msg_size=LONGEST_FRAME)
        except aiohttp.WSServerHandshakeError as error:
            raise ClewError(f"the daemon refused the chat ({error.status} {error.message}).") from None
        except _UNREACHABLE as error:
            raise ConnectionError(_reason(error)) from None


async def _json(response: aiohttp.ClientResponse) -> Any:
    body = bytearray()
    async for piece in response.content.iter_chunked(2**16):
        body += piece
        if len(body) > LONGEST_ANSWER:
            raise ClewError(f"the daemon's answer is longer than {LONGEST_ANSWER // 2**20} MiB.")
    try:
        return json.loads(body) if body else None
    except ValueError:
        return {"error": body.decode("utf-8", "replace")[:500]}


def _refusal(status: int, answer: Any) -> ClewError:
    said = answer if isinstance(answer, dict) else {}
    text, hint = str(said.get("error") or f"the daemon answered with status {status}."), str(said.get("hint") or "")
    kind = NotFound if status == 404 else UsageError if status in _WRONG_USAGE else ClewError
    return kind(text, hint=hint)


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


def socket_path(config: Config) -> Path:
    return config.data_dir / "clew.sock"


@asynccontextmanager
async def running(config: Config) -> AsyncIterator[Client | None]:
    """A client of the daemon that runs, None if none does."""
    path = socket_path(config)
    if not await answers(path):
        yield None
        return
    async with _session(path) as session:
        yield Client(session, own=False)


def no_daemon(config: Config) -> ClewError:
    return ClewError(f"no daemon runs on {config.data_dir}.", hint="`clew run` starts one.")


@asynccontextmanager
async def connected(config: Config, *, level: str = "warning") -> AsyncIterator[Client]:
    """A client of the daemon that runs, or of one that is started here for as long as this lasts. level: what that one logs."""
    path = socket_path(config)
    async with AsyncExitStack() as stack:
        own = not await answers(path)
        if own:
            path = await stack.enter_async_context(_started(config, level))
        yield Client(await stack.enter_async_context(_session(path)), own)


async def answers(path: Path) -> bool:
    """Whether somebody takes connections at this socket."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            _, writer = await asyncio.open_unix_connection(path)
    except PermissionError as error:
        raise ClewError(f"{path}: {error.strerror}", hint="Run this as the user that runs clew.") from None
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def _session(path: Path) -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(total=ANSWER_TIMEOUT, sock_connect=CONNECT_TIMEOUT)
    return aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path)), timeout=timeout)


@asynccontextmanager
async def _started(config: Config, level: str) -> AsyncIterator[Path]:
    from clew.service import Service
    from clew.web.server import serve

    log_to_stderr(config, level)
    async with Service.open(config, remote=False) as service, serve(service, tcp=False) as server:
        yield Path(server.socket)
