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
STEADY_S = 10.0
"""Seconds that a socket must have lasted for the next one to be opened without a pause."""
LONGEST_PAUSE_S = 60.0

Handle = Callable[[dict[str, Any]], Awaitable[None]]
Report = Callable[[bool, str], None]

log = structlog.get_logger()


class _Link:
    """One socket. over: it has ended, or is to be replaced. why: it ended. failure: what `handle` raised on it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.greeted = asyncio.Event()
        self.over = asyncio.Event()
        self.ended = False
        self.why = "Slack closed the socket"
        self.failure: Exception | None = None


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
        self._reading: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until cancelled. Raises what `handle` raises, and Refusal for tokens that are wrong."""
        pause = self._first_pause
        try:
            while True:
                began = asyncio.get_running_loop().time()
                try:
                    link = await self._greeted()
                    await link.over.wait()
                    reason = link.why
                    if asyncio.get_running_loop().time() - began > STEADY_S:
                        pause = self._first_pause
                        if not link.ended:
                            continue  # it is to be replaced, and goes on until then
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
            for task in self._reading:
                task.cancel()
            await asyncio.gather(*self._reading, return_exceptions=True)

    async def _greeted(self) -> _Link:
        """A socket that Slack has said hello on. Raises Refusal, Unreached or Unanswered."""
        link = _Link(await self._api.socket(HEARTBEAT_S))
        task = asyncio.create_task(self._read(link), name="slack.socket")
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)
        greeting = asyncio.create_task(link.greeted.wait())
        await asyncio.wait((greeting, task), timeout=HELLO_S, return_when=asyncio.FIRST_COMPLETED)
        greeting.cancel()
        if not link.greeted.is_set():
            task.cancel()
            raise Unreached(f"Slack did not greet the socket: {link.why}")
        self._prune()
        self._report(True, "Socket Mode")
        return link

    def _prune(self) -> None:
        """Forget sockets that ended. Raises what `handle` raised on them."""
        ended = [link for link in self._links if link.ended]
        self._links = [link for link in self._links if not link.ended]
        for link in ended:
            if link.failure:
                raise link.failure

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
        except Exception as error:
            link.failure = error
        finally:
            link.ended = True
            link.over.set()
            with contextlib.suppress(aiohttp.ClientError, OSError):
                await link.socket.close()

    async def _take(self, link: _Link, frame: dict[str, Any]) -> None:
        match frame.get("type"):
            case "hello":
                if all(other.ended for other in self._links):
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
