"""Notes over the API."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from clew.context.notes import Entity, Preference, ScopeKind
from clew.errors import NotFound, UsageError
from clew.prompting import given_notes
from clew.service import Service
from clew.store.notes import By, Change, DropAll, DropEntity, DropPreference, Edit, Noted, PutPreference, Where
from clew.web.openapi import Call, Endpoint
from clew.web.wire import Problem, plain
from clew.whose import whose


class _Whose(BaseModel):
    """person: the owner if none is named. session: an id or its beginning, for what is known in its chat."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scope: ScopeKind = "user"
    person: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    project: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    session: Annotated[str, Field(min_length=1, max_length=64)] | None = None


class NotesQuery(_Whose):
    pass


class ChangesQuery(_Whose):
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class NotesBody(_Whose):
    """set: `key` gets `value`. clear: the preference or the entity called `key`, everything without one. undo: change `key`, or the
    newest."""

    action: Literal["set", "clear", "undo"]
    key: Annotated[str, Field(max_length=1000)] | None = None
    value: Annotated[str, Field(max_length=10_000)] | None = None


class Listed(BaseModel):
    preferences: list[Preference]
    entities: list[Entity]


class Given(BaseModel):
    """text: byte for byte what a model would be given."""

    text: str


class Changes(BaseModel):
    changes: list[Change]


class Memory:
    """The handlers, and their routes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._notes = service.store.notes
        self.endpoints = (
            Endpoint("GET", "/memory", self.memory, "Notes of one scope", Listed, NotesQuery),
            Endpoint("POST", "/memory", self.change_memory, "Set, clear, or undo a change", body=NotesBody),
            Endpoint("GET", "/memory/context", self.memory_context, "What a model would be given of the notes", Given, NotesQuery),
            Endpoint("GET", "/memory/changes", self.memory_changes, "What was changed, the newest first", Changes, ChangesQuery),
        )

    async def _where(self, asked: _Whose) -> Where:
        config, store = self._service.config, self._service.store
        return await whose(config, store, asked.scope, person=asked.person, project=asked.project, session=asked.session)

    async def memory(self, call: Call) -> Any:
        return await self._notes.listing(await self._where(call.query), call.query.scope, self._service.time.wall())

    async def memory_changes(self, call: Call) -> Any:
        return {"changes": await self._notes.changes(await self._where(call.query), call.query.scope, call.query.limit)}

    async def memory_context(self, call: Call) -> Any:
        service = self._service
        where = await self._where(call.query)
        session = (await service.store.find_session(call.query.session)).id if call.query.session else None
        now = service.time.wall()
        text = await given_notes(service.store, service.config.agent, where, session, service.providers[0], service.zone, now)
        return {"text": text}

    async def change_memory(self, call: Call) -> Any:
        body: NotesBody = call.body
        where, now, by = await self._where(body), self._service.time.wall(), By(hand=True)
        if body.action == "undo":
            return plain(await self._notes.undo(where, body.scope, _number(body.key), by, now))
        done = await self._notes.change(where, body.scope, _edits(body), by, now)
        return plain(_settled(body, done))


def _number(key: str | None) -> int | None:
    if key is not None and not (key.isascii() and key.isdecimal() and len(key) < 16):
        raise UsageError(f"{key!r} is not the number of a change.")
    return int(key) if key else None


def _edits(body: NotesBody) -> list[Edit]:
    if body.action == "set":
        if body.key is None or body.value is None:
            raise UsageError("To set something, give its key and its value.")
        return [PutPreference(body.key, body.value)]
    return [DropAll()] if body.key is None else [DropPreference(body.key), DropEntity(body.key)]


def _settled(body: NotesBody, done: list[Noted]) -> Noted:
    """The one outcome of what was asked for. Raises NotFound, or Problem where it was refused."""
    noted = next((each for each in done if each.state != "missing"), done[0])
    if noted.state == "refused":
        raise Problem(400, f"{noted.what} was not noted: {noted.why}.")
    if noted.state == "missing":
        raise NotFound("Nothing is noted there." if body.key is None else f"Nothing is noted as {body.key!r}.")
    return noted
