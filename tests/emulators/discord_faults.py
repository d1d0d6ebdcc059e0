"""What can go wrong with a call of Discord's HTTP API."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.emulators.discord import No, TooMany
from tests.emulators.listening import Fault


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
