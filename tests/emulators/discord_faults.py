"""What can go wrong with a call of Discord's HTTP API."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.emulators.discord import Fault, No, TooMany


def refuses(status: int, code: int, why: str) -> Fault:
    """Answers with an error of the API and does nothing."""

    async def behave(request: web.Request, carry_out: Callable[[], Any]) -> web.StreamResponse:
        return No(status, code, why).response

    return behave


def too_many(seconds: float, *, everywhere: bool = False) -> Fault:
    async def behave(request: web.Request, carry_out: Callable[[], Any]) -> web.StreamResponse:
        return TooMany(seconds, everywhere=everywhere).response

    return behave


def answers(status: int, body: str = "<html>Bad Gateway</html>", **headers: str) -> Fault:
    """What something in front of the API says."""

    async def behave(request: web.Request, carry_out: Callable[[], Any]) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=body, content_type="text/html", headers=named)

    return behave


async def drops(request: web.Request, carry_out: Callable[[], Any]) -> web.StreamResponse:
    """Breaks the connection, nothing done."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def does_and_drops(request: web.Request, carry_out: Callable[[], Any]) -> web.StreamResponse:
    """Does what it was asked, and breaks the connection before the answer."""
    carry_out()
    return await drops(request, carry_out)


async def hangs(request: web.Request, carry_out: Callable[[], Any]) -> web.StreamResponse:
    await asyncio.Event().wait()
    return web.Response()


def after(gate: asyncio.Event) -> Fault:
    """Does it once `gate` is open."""

    async def behave(request: web.Request, carry_out: Callable[[], Any]) -> web.StreamResponse:
        await gate.wait()
        return web.Response(text=json.dumps(carry_out()), content_type="application/json")

    return behave
