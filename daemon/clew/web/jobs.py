"""The API's jobs: listed, made, switched, run, removed, and what became of their runs."""

import asyncio
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from clew import booking
from clew.errors import UsageError
from clew.service import Service
from clew.store import Job, JobEffect
from clew.transport import Address
from clew.web.openapi import Call, Endpoint
from clew.web.wire import plain

_Words = Annotated[str, Field(max_length=200)]


class NewJob(BaseModel):
    """An entry of `schedule`, but for programs, which the config alone can name. Without `name` it gets one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prompt: Annotated[str, Field(max_length=booking.PROMPT_CHARS)]
    deliver_to: Annotated[str, Field(max_length=512)]
    name: _Words | None = None
    cron: _Words | None = None
    every: _Words | None = None
    at: _Words | None = None
    timezone: _Words | None = None
    session: _Words | None = None
    misfire: Literal["skip", "once", "all"] | None = None
    overlap: Literal["skip", "queue"] | None = None
    grace: _Words | None = None
    jitter: _Words | None = None
    timeout: _Words | None = None


class Change(BaseModel):
    """What is to be changed of a job: only what is given. null takes a setting back to its default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prompt: Annotated[str, Field(max_length=booking.PROMPT_CHARS)] | None = None
    deliver_to: Annotated[str, Field(max_length=512)] | None = None
    cron: _Words | None = None
    every: _Words | None = None
    at: _Words | None = None
    timezone: _Words | None = None
    session: _Words | None = None
    misfire: Literal["skip", "once", "all"] | None = None
    overlap: Literal["skip", "queue"] | None = None
    grace: _Words | None = None
    jitter: _Words | None = None
    timeout: _Words | None = None
    enabled: bool | None = None


class HistoryQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: Annotated[int, Field(ge=1, le=1000)] = 20


class Listing(BaseModel):
    """coming: the next five instants of each, with offset. spec: its entry as it would stand in the config."""

    jobs: list[dict[str, JsonValue]]


class History(BaseModel):
    """The newest first. outcome: how the run ended; delivery: the state of what it said."""

    runs: list[dict[str, JsonValue]]


class Jobs:
    """The handlers, and the table of routes that they are described by."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._store = service.store
        self.endpoints = (
            Endpoint("GET", "/jobs", self.jobs, "Jobs, with their next instants", Listing),
            Endpoint("POST", "/jobs", self.add_job, "Make a job", body=NewJob),
            Endpoint("PATCH", "/jobs/{name}", self.change_job, "Change a job in one step; its history stays", body=Change),
            Endpoint("DELETE", "/jobs/{name}", self.remove_job, "Remove a job that is not in the config"),
            Endpoint("POST", "/jobs/{name}/enable", self.enable_job, "Turn a job on; its clock begins anew"),
            Endpoint("POST", "/jobs/{name}/disable", self.disable_job, "Turn a job off"),
            Endpoint("POST", "/jobs/{name}/run", self.run_job, "Run a job now, beside its clock"),
            Endpoint("GET", "/jobs/{name}/history", self.job_history, "What became of its runs", History, HistoryQuery),
        )

    @property
    def _now(self) -> float:
        return self._service.time.wall()

    async def jobs(self, call: Call) -> Any:
        jobs, zone = await self._store.jobs(), self._service.zone
        return {"jobs": await asyncio.to_thread(lambda: [_shown(job, zone) for job in jobs])}  # a thousand clocks take their time

    async def add_job(self, call: Call) -> Any:
        body: NewJob = call.body
        self._check(body.deliver_to, body.prompt)
        effect, made = booking.booked(
            body.model_dump(),
            taken={job.name for job in await self._store.jobs()},
            origin="api" if call.caller.user is None else "cli",
            person=None,
            now=self._now,
            zone=self._service.zone,
        )
        await self._store.change_job(effect, self._now)
        return _told(made)

    async def change_job(self, call: Call) -> Any:
        given = call.body.model_dump(exclude_unset=True)
        enabled = given.pop("enabled", None)
        self._check(given.get("deliver_to"), given.get("prompt"))
        job = await self._store.job(call.path["name"])
        effect, changed = booking.rebooked(job, given, self._now, self._service.zone, enabled=enabled)
        await self._store.change_job(effect, self._now)
        return _told(changed)

    def _check(self, deliver_to: str | None, prompt: str | None) -> None:
        """What depends on the config of the daemon, as far as it is given. Raises UsageError."""
        if deliver_to is not None:
            self._check_address(deliver_to)
        most = self._service.config.limits.message_bytes
        if (size := len((prompt or "").encode("utf-8", "surrogatepass"))) > most:
            raise UsageError(f"prompt: it has {size:,} bytes, and {most:,} are the most that a message may have (limits.message_bytes).")

    def _check_address(self, deliver_to: str) -> None:
        transports = self._service.transports
        try:
            to = Address.parse(deliver_to)
        except ValueError as error:
            raise UsageError(f"deliver_to: {error}.") from None
        if to.transport not in transports:
            there = ", ".join(sorted(transports))
            raise UsageError(f"deliver_to: there is no transport {to.transport!r} that is enabled; there are: {there}.")
        if fault := transports[to.transport].transport.capabilities.unreachable(to):
            raise UsageError(f"deliver_to: nothing can be sent to {deliver_to!r}: {fault}.")

    async def remove_job(self, call: Call) -> Any:
        await self._store.change_job(JobEffect("remove", call.path["name"]), self._now)
        return {"job": call.path["name"]}

    async def enable_job(self, call: Call) -> Any:
        return await self._switched(call.path["name"], enabled=True)

    async def disable_job(self, call: Call) -> Any:
        return await self._switched(call.path["name"], enabled=False)

    async def _switched(self, name: str, *, enabled: bool) -> Any:
        job = await self._store.job(name)
        await self._store.change_job(booking.switch(job, enabled=enabled, now=self._now, zone=self._service.zone), self._now)
        return {"job": name, "enabled": enabled}

    async def run_job(self, call: Call) -> Any:
        await self._service.scheduler.run_now(call.path["name"])
        return {"job": call.path["name"]}

    async def job_history(self, call: Call) -> Any:
        runs = await self._store.job_history(call.path["name"], call.query.limit)
        if not runs:
            await self._store.job(call.path["name"])
        return {"runs": runs}


def _told(job: booking.Described) -> dict[str, Any]:
    return {"job": job.name, "schedule": job.schedule, "timezone": job.zone, "enabled": job.enabled, "coming": job.times()}


def _shown(job: Job, zone: str) -> dict[str, Any]:
    shown: dict[str, Any] = plain(job)
    return shown | {"spec": json.loads(job.spec), "coming": booking.described(job, zone).times()}
