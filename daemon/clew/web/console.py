"""The console: pages that show how clew is and switch its jobs. Drawn here, complete without a script."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, quote, urlencode
from zoneinfo import ZoneInfo

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel, ConfigDict, Field

from clew import booking
from clew.context.redact import redact
from clew.errors import ClewError
from clew.service import Service
from clew.store import Job
from clew.timetable import words
from clew.web.auth import Caller, Door, from_own_page
from clew.web.jobs import Jobs
from clew.web.openapi import Call
from clew.web.wire import BODY_BYTES, Problem, checked, problem_of, read_body

TEMPLATES = Path(__file__).parent / "templates"
JOBS = 50
"""Jobs on one page of the schedule."""
LAST = 3
"""Runs of each that the schedule shows."""
HISTORY = 100
"""Runs that the page of a job shows."""
FORM = "application/x-www-form-urlencoded"
FORM_FIELDS = 8

_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Draw = Callable[[web.Request, Caller], Awaitable[web.Response]]


class ScheduleQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    page: Annotated[int, Field(ge=1, le=10_000)] = 1


class JobQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: _Name


class Press(BaseModel):
    """The button of a job that was pressed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: _Name
    do: Literal["enable", "disable", "run"]


@dataclass(frozen=True, slots=True)
class Shown:
    """A job on a page. clock: in words. rests_until: seconds since the epoch, None where it does not rest. runs: the newest first."""

    job: booking.Described
    clock: str
    rests_until: float | None
    runs: list[dict[str, Any]]

    @property
    def state(self) -> str:
        if not self.job.enabled:
            return "off"
        return "on" if self.job.coming else "not due again"


class Console:
    """The pages below `/console`, for the owner alone."""

    def __init__(self, service: Service, door: Door) -> None:
        self._service = service
        self._store = service.store
        self._door = door
        jobs = Jobs(service)
        self._buttons = {"enable": jobs.enable_job, "disable": jobs.disable_job, "run": jobs.run_job}
        self._templates = Environment(
            loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._templates.globals |= {"iso": booking.iso, "moment": moment, "job_url": job_url}

    def mount(self, app: web.Application) -> None:
        app.router.add_get("/console", self._page(self.overview))
        app.router.add_get("/console/schedule", self._page(self.schedule))
        app.router.add_get("/console/job", self._page(self.job))
        app.router.add_post("/console/job", self._page(self.press))

    def _page(self, draw: _Draw) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            try:
                return await draw(request, self._door.owner(request))
            except (Problem, ClewError) as error:
                problem = error if isinstance(error, Problem) else problem_of(error)
                return await self._drawn("problem.html", problem.status, problem=problem)

        return handle

    async def _drawn(self, template: str, status: int = 200, **values: Any) -> web.Response:
        told = partial(redact, known=self._service.config.secrets())
        drawing = partial(self._templates.get_template(template).render, values, told=told, zone=self._service.zone)
        text = await asyncio.to_thread(drawing)
        # A lone surrogate, which nothing can show, becomes a question mark.
        return web.Response(body=text.encode("utf-8", "replace"), status=status, content_type="text/html", charset="utf-8")

    async def overview(self, request: web.Request, caller: Caller) -> web.Response:
        status: dict[str, Any] = await self._service.status()
        now = self._service.time.wall()
        rebuilding = await self._store.rebuilding()
        return await self._drawn("overview.html", clew=status, now=now, rebuilding=rebuilding)

    async def schedule(self, request: web.Request, caller: Caller) -> web.Response:
        page = checked(ScheduleQuery, request.query).page
        stored = await self._store.jobs()
        jobs = [await self._shown(job, LAST) for job in stored[(page - 1) * JOBS : page * JOBS]]
        return await self._drawn("schedule.html", jobs=jobs, page=page, total=len(stored), pages=max(1, -(-len(stored) // JOBS)))

    async def job(self, request: web.Request, caller: Caller) -> web.Response:
        """A job with its history, which stays when the job goes."""
        name = checked(JobQuery, request.query).name
        found = next((job for job in await self._store.jobs() if job.name == name), None)
        runs = await self._store.job_history(name, HISTORY)
        if found is None and not runs:
            await self._store.job(name)  # raises
        shown = await self._shown(found, HISTORY) if found else None
        return await self._drawn("job.html", name=name, shown=shown, runs=runs, most=HISTORY)

    async def _shown(self, job: Job, runs: int) -> Shown:
        described = await asyncio.to_thread(booking.described, job, self._service.zone)
        rests = job.rests_until if (job.rests_until or 0) > self._service.time.wall() else None
        return Shown(described, words(described.entry), rests, await self._store.job_history(job.name, runs))

    async def press(self, request: web.Request, caller: Caller) -> web.Response:
        """Do what a button of a job says, through the API's own handlers."""
        from_own_page(request)
        pressed = checked(Press, await _fields(request))
        await self._buttons[pressed.do](Call(caller, {"name": pressed.name}, None, None))
        return web.Response(status=303, headers={"Location": job_url(pressed.name)})


async def _fields(request: web.Request) -> dict[str, str]:
    """The fields of a form. Raises Problem."""
    if request.content_type != FORM:
        raise Problem(400, f"The body's type must be {FORM}.")
    body = await read_body(request, BODY_BYTES)
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=FORM_FIELDS))
    except ValueError:
        raise Problem(400, "The form has too many fields.") from None


def job_url(name: str) -> str:
    """The page of a job. Its name is no part of the path, since a name may be `..`."""
    return "/console/job?" + urlencode({"name": name}, errors="replace", quote_via=quote)


def moment(at: float, zone: str) -> str:
    """A time for people, in its zone: Tue 1 Dec 2026, 08:30 +01:00; with seconds where it has some."""
    there = datetime.fromtimestamp(int(at), ZoneInfo(zone))
    clock = f"{there:%H:%M:%S}" if there.second else f"{there:%H:%M}"
    return f"{there:%a} {there.day} {there:%b} {there.year}, {clock} {there.isoformat()[-6:]}"
