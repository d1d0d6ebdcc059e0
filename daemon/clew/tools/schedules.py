"""Tools with which a model makes jobs for the person it talks with: theirs alone, and spoken where they were asked for."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from clew import booking
from clew.errors import NotFound, UsageError
from clew.request import ToolSpec
from clew.store import JobEffect
from clew.store.sql import SqlStore
from clew.tools import Tool, ToolContext, ToolError, schema

_Cron = Annotated[str, Field(description="Five fields, such as 30 8 * * 1-5, or @daily.", max_length=200)]
_Every = Annotated[str, Field(description="An interval: 90m, 6h, 2d.", max_length=20)]
_At = Annotated[str, Field(description="Once: 2027-03-01T17:30, in the zone; 17:30 is the next one.", max_length=40)]
_Zone = Annotated[str, Field(description="An IANA name; the person's if left out.", max_length=64)]
_Prompt = Annotated[str, Field(description="What you are asked then, in full: nobody explains it.", max_length=booking.PROMPT_CHARS)]
_Named = Annotated[str, Field(max_length=64)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Create(_Arguments):
    prompt: _Prompt
    cron: _Cron | None = None
    every: _Every | None = None
    at: _At | None = None
    timezone: _Zone | None = None
    name: Annotated[str, Field(description="Its first part; characters are put behind it.", max_length=64)] | None = None


class Nothing(_Arguments):
    pass


class Update(_Arguments):
    name: _Named
    prompt: _Prompt | None = None
    cron: _Cron | None = None
    every: _Every | None = None
    at: _At | None = None
    timezone: _Zone | None = None
    enabled: bool | None = None


class Delete(_Arguments):
    name: _Named


_Run = Callable[[ToolContext, BaseModel], Awaitable[str]]
_Declared = tuple[str, str, type[BaseModel]]
_CREATE: _Declared = (
    "schedule_create",
    "Make a job: a reminder or a recurring prompt. You are asked `prompt` then, and your answer is sent to this conversation. Give one of"
    " cron, every, at.",
    Create,
)
_LIST: _Declared = ("schedule_list", "The person's jobs, and the others that speak here.", Nothing)
_UPDATE: _Declared = ("schedule_update", "Change a job of the person's: only what is given.", Update)
_DELETE: _Declared = ("schedule_delete", "Delete a job of the person's.", Delete)


def tools(store: SqlStore) -> list[Tool]:
    """schedule_create, schedule_list, schedule_update and schedule_delete."""

    async def create(context: ToolContext, arguments: BaseModel) -> str:
        asked = Create.model_validate(arguments.model_dump())
        person = _asker(context)
        taken = {job.name for job in await store.jobs()}
        fields = {**asked.model_dump(), "deliver_to": context.address}
        effect, job = booking.booked(fields, taken=taken, origin="chat", person=person, now=context.now, zone=context.zone_name)
        await store.change_job(effect, context.now)
        return f"{booking.line(job, person)}\nIts answers come to this conversation."

    async def listing(context: ToolContext, arguments: BaseModel) -> str:
        person = context.person.id if context.person else None
        shown = booking.seen(await store.jobs(), person, context.address, context.zone_name, direct=context.direct)
        return "\n".join(booking.lines(shown, person)) or "There are no jobs."

    async def update(context: ToolContext, arguments: BaseModel) -> str:
        asked = Update.model_validate(arguments.model_dump())
        person = _asker(context)
        fields = asked.model_dump(exclude={"name", "enabled"}, exclude_none=True)
        job = await booking.own(store, asked.name, person, context.address, direct=context.direct)
        effect, changed = booking.rebooked(job, fields, context.now, context.zone_name, enabled=asked.enabled)
        await store.change_job(effect, context.now)
        return booking.line(changed, person)

    async def delete(context: ToolContext, arguments: BaseModel) -> str:
        name = Delete.model_validate(arguments.model_dump()).name
        person = _asker(context)
        await booking.own(store, name, person, context.address, direct=context.direct)
        await store.change_job(JobEffect("remove", name, person), context.now)
        return f"Deleted {name}."

    return [
        Tool(*_CREATE, _guarded(create)),
        Tool(*_LIST, _guarded(listing), idempotent=True),
        Tool(*_UPDATE, _guarded(update)),
        Tool(*_DELETE, _guarded(delete)),
    ]


def specs() -> list[ToolSpec]:
    """What a model is told of these tools."""
    return [ToolSpec(name, description, schema(arguments)) for name, description, arguments in (_CREATE, _LIST, _UPDATE, _DELETE)]


def _guarded(run: _Run) -> _Run:
    """What stands against a change is for the model."""

    async def call(context: ToolContext, arguments: BaseModel) -> str:
        try:
            return await run(context, arguments)
        except (NotFound, UsageError) as error:
            raise ToolError(error.told) from None

    return call


def _asker(context: ToolContext) -> str:
    """Whose jobs may be changed. Raises ToolError where nobody's may."""
    if context.scheduled:
        raise ToolError("A job may not make or change jobs. Say in your answer what the person might ask for.")
    if context.person is None or context.person.role == "guest":
        raise ToolError("Only members and owners may have jobs.")
    return context.person.id
