"""The console's page of long work and backups."""

import asyncio
from pathlib import Path
from typing import Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict

from clew.backing_up import KEPT
from clew.web.auth import Caller
from clew.web.console.frame import Frame, form, redirect
from clew.web.database import Database
from clew.web.index import Index
from clew.web.openapi import Call

PATH = "/console/upkeep"
BACKUPS = 30
"""Backups that are named, the newest."""


class Press(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    do: Literal["back_up", "reindex"]


class Upkeep:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._buttons = {"back_up": Database(frame.service).back_up, "reindex": Index(frame.service).rebuild_index}

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, PATH, self.upkeep)
        self._frame.post(app, PATH, self.press)

    async def upkeep(self, request: web.Request, caller: Caller) -> web.Response:
        service = self._frame.service
        made = (await service.backing_up.listed())[:BACKUPS]
        there = await asyncio.to_thread(lambda: [Path(each.path).is_file() for each in made])
        return await self._frame.drawn(
            request,
            "upkeep.html",
            works=service.progress.works,
            backups=list(zip(made, there, strict=True)),
            folder=service.backing_up.folder,
            kept=KEPT,
        )

    async def press(self, request: web.Request, caller: Caller) -> web.Response:
        """Do what a button says, through the API's own handlers."""
        pressed = await form(request, Press)
        await self._buttons[pressed.do](Call(caller, {}, None, None))
        return redirect(PATH)
