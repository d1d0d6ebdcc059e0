"""The first page of the console: how clew is."""

from typing import Any

from aiohttp import web

from clew.web.auth import Caller
from clew.web.console.frame import Frame

TROUBLES = 8
"""Errors that are named, the newest."""
LONGEST = 300
"""Characters of each."""


class Overview:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, "/console", self.overview)

    async def overview(self, request: web.Request, caller: Caller) -> web.Response:
        status: dict[str, Any] = await self._frame.service.status()
        store = self._frame.store
        return await self._frame.drawn(
            request,
            "overview.html",
            clew=status,
            now=self._frame.now,
            rebuilding=await store.rebuilding(),
            questions=len(await store.open_questions()),
            works=[each for each in self._frame.service.progress.works if each.state != "done"],
            troubles=await store.troubles(TROUBLES),
            failing=await store.failing_compactions(limit=TROUBLES),
            most=LONGEST,
        )
