"""Socket Mode: envelopes over a WebSocket, each acknowledged once it is stored, and the next socket opened before the last one goes."""

import asyncio
import contextlib
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import structlog

from clew_transports.calls import Unanswered, Unreached
from clew_transports.slack.api import Api, Refusal
from clew_transports.slack.doctor import DISABLED, why

HELLO_S = 15.0
"""Seconds that Slack has to greet a new socket."""
HEARTBEAT_S = 20.0
"""Seconds between two pings; without an answer within half of that the socket is given up."""
OVERLAP_S = 60.0
"""Seconds that a socket which is to be replaced is still read. Slack closes it some ten seconds after it warned."""
LONGEST_PAUSE_S = 60.0

Handle = Callable[[dict[str, Any]], Awaitable[None]]
Report = Callable[[bool, str], None]

log = structlog.get_logger()


class _Link:
    """One socket. over: it has ended, or is to be replaced. why: it ended."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.greeted = asyncio.Event()
        self.over = asyncio.Event()
        self.why = "Slack closed the socket"
        self.task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self.task is not None and not self.task.done()


class Sockets:
    """handle: stores what is in an envelope before it returns. report: the connection's state. fresh: called when a socket was greeted
    and nothing had been listening before it. first_pause: seconds."""

    def __init__(self, api: Api, handle: Handle, report: Report, fresh: Callable[[], None], first_pause: float) -> None:
        self._api = api
        self._handle = handle
        self._report = report
        self._fresh = fresh
        self._first_pause = first_pause
        self._links: list[_Link] = []

    async def run(self) -> None:
        """Until cancelled. Raises what `handle` raises, and Refusal for tokens that are wrong."""
        pause = self._first_pause
        try:
            while True:
                try:
                    link = await self._greeted()
                    pause = self._first_pause
                    await link.over.wait()
                    if link.is_open:
                        continue  # it is to be replaced, and goes on until then
                    reason = link.why
                except (Refusal, Unreached, Unanswered) as error:
                    reason = why(error)
                    if isinstance(error, Refusal) and error.retry_after:
                        pause = max(pause, min(error.retry_after, LONGEST_PAUSE_S))
                self._prune()
                if not self._links:
                    self._report(False, reason)
                await asyncio.sleep(pause * random.uniform(0.75, 1.0))  # noqa: S311 - it keeps clients apart, no secret
                pause = min(2 * pause, LONGEST_PAUSE_S)
        finally:
            for link in self._links:
                if link.task:
                    link.task.cancel()
            await asyncio.gather(*(link.task for link in self._links if link.task), return_exceptions=True)

    async def _greeted(self) -> _Link:
        """A socket that Slack has said hello on. Raises Refusal, Unreached or Unanswered."""
        link = _Link(await self._api.socket(HEARTBEAT_S))
        link.task = asyncio.create_task(self._read(link), name="slack.socket")
        greeting = asyncio.create_task(link.greeted.wait())
        await asyncio.wait((greeting, link.task), timeout=HELLO_S, return_when=asyncio.FIRST_COMPLETED)
        greeting.cancel()
        if not link.greeted.is_set():
            link.task.cancel()
            await asyncio.gather(link.task, return_exceptions=True)
            raise Unreached(f"Slack did not greet the socket: {link.why}")
        self._prune()
        self._report(True, "Socket Mode")
        return link

    def _prune(self) -> None:
        """Forget sockets that ended. Raises what `handle` raised on them."""
        ended = [link for link in self._links if not link.is_open]
        self._links = [link for link in self._links if link.is_open]
        for link in ended:
            if link.task and not link.task.cancelled():
                link.task.result()

    async def _read(self, link: _Link) -> None:
        until = None
        try:
            async with asyncio.timeout(None) as bound:
                async for message in link.socket:
                    if message.type is not aiohttp.WSMsgType.TEXT:
                        continue
                    await self._take(link, _frame(message.data))
                    if link.over.is_set() and until is None:
                        until = asyncio.get_running_loop().time() + OVERLAP_S
                        bound.reschedule(until)
        except TimeoutError:
            pass
        except (aiohttp.ClientError, OSError) as error:
            link.why = f"the socket broke ({type(error).__name__})"
        finally:
            link.over.set()
            with contextlib.suppress(Exception):
                await asyncio.shield(link.socket.close())

    async def _take(self, link: _Link, frame: dict[str, Any]) -> None:
        match frame.get("type"):
            case "hello":
                if not any(other.is_open for other in self._links):
                    self._fresh()  # before what comes next is read
                self._links.append(link)
                link.greeted.set()
            case "disconnect":
                reason = str(frame.get("reason"))
                link.why = DISABLED if reason == "link_disabled" else f"Slack ended the socket ({reason[:50]})"
                log.debug("transport.disconnected", transport="slack", detail=link.why)
                if reason not in ("warning", "refresh_requested"):
                    await link.socket.close()
                link.over.set()
            case _ if isinstance(envelope := frame.get("envelope_id"), str):
                await self._handle(frame)
                await link.socket.send_json({"envelope_id": envelope})


def _frame(text: str) -> dict[str, Any]:
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return frame if isinstance(frame, dict) else {}
