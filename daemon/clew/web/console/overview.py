"""The first page of the console: how clew is."""

from typing import Any

from aiohttp import web

from clew.web.auth import Caller
from clew.web.console.frame import Frame


class Overview:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, "/console", self.overview)

    async def overview(self, request: web.Request, caller: Caller) -> web.Response:
        status: dict[str, Any] = await self._frame.service.status()
        rebuilding = await self._frame.store.rebuilding()
        return await self._frame.drawn(request, "overview.html", clew=status, now=self._frame.now, rebuilding=rebuilding)
