"""The console's page of the log: its newest lines, as they come."""

from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from clew.log_ring import LEVELS, LINES, Level, Wanted, recent
from clew.web.auth import Caller
from clew.web.console.frame import Frame, link
from clew.web.wire import checked

PATH = "/console/log"
SIZE = 100
"""Lines on one page."""


class LogQuery(BaseModel):
    """level: this one and graver ones. event: stands in the event's name. session: how its id begins. before: older than this line.

    seen: the newest line that a page which asks again knows of.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    level: Level = "debug"
    event: Annotated[str, Field(max_length=100)] = ""
    session: Annotated[str, Field(max_length=64)] = ""
    before: Annotated[int, Field(ge=0, lt=2**63)] = 0
    seen: Annotated[int, Field(ge=0, lt=2**63)] = 0


class Log:
    """Nothing is kept for whoever looks on: a page that stands open asks again, and gets what is newest then."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, PATH, self.log)

    async def log(self, request: web.Request, caller: Caller) -> web.Response:
        asked = checked(LogQuery, request.query)
        newest = recent.newest
        if asked.seen and asked.seen == newest:
            return web.Response(status=204)  # the page stays as it is
        wanted = Wanted(asked.level, asked.event.strip(), asked.session.strip(), before=asked.before)
        lines = recent.lines(wanted, SIZE + 1)
        kept = {"level": asked.level, "event": wanted.event, "session": wanted.session}
        older = link(PATH, **kept, before=lines[SIZE - 1].number) if len(lines) > SIZE else ""
        return await self._frame.drawn(
            request,
            "log.html",
            lines=lines[:SIZE],
            asked=wanted,
            levels=LEVELS,
            newest=link(PATH, **kept),
            again=link(PATH, **kept, seen=newest),
            older=older,
            written=self._frame.service.config.log.level,
            most=LINES,
        )
