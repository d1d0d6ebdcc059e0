"""What emulators of platforms share: a server on loopback that can be away for a while, and ways to fail."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Self

from aiohttp import web

from tests.emulators.server import JsonObject

Fault = Callable[[web.Request, Callable[[], JsonObject]], Awaitable[web.StreamResponse]]
"""What becomes of one request. The second argument does what was asked and gives the answer."""


class Listening(ABC):
    """A platform at `url`, on a port that it keeps. Use as an async context manager."""

    def __init__(self) -> None:
        self.url = ""
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._port = 0

    @abstractmethod
    def _routes(self) -> Sequence[web.RouteDef]:
        """What it answers."""

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.down()

    async def up(self) -> None:
        app = web.Application(client_max_size=2**24)
        app.add_routes(self._routes())
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True).start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"

    async def down(self) -> None:
        """Nobody listens at its port until `up`; what it has stays."""
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def until(self, condition: Callable[[], bool], deadline: float = 60.0) -> None:
        """Wait until `condition` holds; it is looked at whenever something has happened here."""
        async with asyncio.timeout(deadline):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


async def drops(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
    """Breaks the connection, nothing done."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def does_and_drops(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
    """Does what it was asked, and breaks the connection before the answer."""
    carry_out()
    return await drops(request, carry_out)


async def hangs(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
    """Never answers."""
    await asyncio.Event().wait()
    return web.Response()


def after(gate: asyncio.Event) -> Fault:
    """Does it once `gate` is open."""

    async def behave(request: web.Request, carry_out: Callable[[], JsonObject]) -> web.StreamResponse:
        await gate.wait()
        return web.json_response(carry_out())

    return behave
