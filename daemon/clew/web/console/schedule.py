"""The console's pages of jobs."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from clew import booking
from clew.store import Job
from clew.timetable import words
from clew.web.auth import Caller
from clew.web.console.frame import Frame, Paging, form, link, redirect
from clew.web.jobs import Jobs
from clew.web.openapi import Call
from clew.web.wire import checked

JOBS = 50
"""Jobs on one page of the schedule."""
LAST = 3
"""Runs of each that the schedule shows."""
HISTORY = 100
"""Runs that the page of a job shows."""
JOB_PAGE = "/console/schedule/job"

_Name = Annotated[str, Field(min_length=1, max_length=200)]


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


class Schedule:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        jobs = Jobs(frame.service)
        self._buttons = {"enable": jobs.enable_job, "disable": jobs.disable_job, "run": jobs.run_job}

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, "/console/schedule", self.schedule)
        self._frame.get(app, JOB_PAGE, self.job)
        self._frame.post(app, JOB_PAGE, self.press)

    async def schedule(self, request: web.Request, caller: Caller) -> web.Response:
        stored = await self._frame.store.jobs()
        paging = Paging(checked(ScheduleQuery, request.query).page, JOBS, len(stored))
        jobs = [await self._shown(job, LAST) for job in stored[paging.start : paging.start + JOBS]]
        return await self._frame.drawn(request, "schedule.html", jobs=jobs, paging=paging)

    async def job(self, request: web.Request, caller: Caller) -> web.Response:
        """A job with its history, which stays when the job goes."""
        name = checked(JobQuery, request.query).name
        store = self._frame.store
        found = next((job for job in await store.jobs() if job.name == name), None)
        runs = await store.job_history(name, HISTORY)
        if found is None and not runs:
            await store.job(name)  # raises
        shown = await self._shown(found, HISTORY) if found else None
        return await self._frame.drawn(request, "job.html", name=name, shown=shown, runs=runs, most=HISTORY)

    async def _shown(self, job: Job, runs: int) -> Shown:
        described = await asyncio.to_thread(booking.described, job, self._frame.service.zone)
        rests = job.rests_until if (job.rests_until or 0) > self._frame.now else None
        return Shown(described, words(described.entry), rests, await self._frame.store.job_history(job.name, runs))

    async def press(self, request: web.Request, caller: Caller) -> web.Response:
        """Do what a button of a job says, through the API's own handlers."""
        pressed = await form(request, Press)
        await self._buttons[pressed.do](Call(caller, {"name": pressed.name}, None, None))
        return redirect(link(JOB_PAGE, name=pressed.name))
