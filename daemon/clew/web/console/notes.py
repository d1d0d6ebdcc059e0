"""The console's pages of notes: what is known beyond conversations, its history, and what a model is given of it."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from clew.assembly import owner_of
from clew.context.notes import Entity, Fact, Preference, ScopeKind, told
from clew.errors import NotFound, UsageError
from clew.prompting import given_notes
from clew.store.notes import By, DropEntity, DropFact, DropPreference, DropRelation, Edit, Kept, Noted, PutFact, PutPreference, Where
from clew.web.auth import Caller
from clew.web.console.frame import Frame, Paging, form, link, redirect
from clew.web.wire import checked
from clew.whose import whose

PATH = "/console/notes"
SIZE = 40
"""Entities on one page."""
FOUND = 40
"""Entities that a search gives."""
CHANGES = 100
"""Changes that the history shows, the newest."""

_Of = Annotated[str, Field(max_length=512)]
_Item = Annotated[str, Field(max_length=64)]


class _Scope(BaseModel):
    """of: a person, or a project's name or the address of its chat; empty: the owner."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scope: ScopeKind = "user"
    of: _Of = ""


class ListQuery(_Scope):
    page: Annotated[int, Field(ge=1, le=10_000)] = 1
    find: Annotated[str, Field(max_length=1000)] = ""


class GivenQuery(_Scope):
    """session: an id or its beginning, for what that session's prompt has."""

    session: Annotated[str, Field(max_length=64)] = ""


class Press(_Scope):
    """What a form asks for.

    set: `key` gets `value`. add: `value` is noted of the entity `item`. edit: the fact `item` holds no longer, `value` does. drop: `item`
    goes, whatever it is. undo: the change number `item`. Items are named by `digest`, so that one which was changed meanwhile is none.
    """

    do: Literal["set", "add", "edit", "drop", "undo"]
    item: _Item = ""
    key: Annotated[str, Field(max_length=1000)] = ""
    value: Annotated[str, Field(max_length=10_000)] = ""


@dataclass(frozen=True, slots=True)
class ShownFact:
    """A fact as it is told. text: it alone, empty where it is a relation. holds: it is still so."""

    item: str
    told: str
    text: str
    holds: bool
    source: str
    speaker: str


@dataclass(frozen=True, slots=True)
class ShownEntity:
    item: str
    name: str
    type: str
    facts: Sequence[ShownFact]


class Notes:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._service = frame.service
        self._notes = frame.store.notes

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, PATH, self.listing)
        self._frame.get(app, f"{PATH}/history", self.history)
        self._frame.get(app, f"{PATH}/given", self.given)
        self._frame.post(app, PATH, self.press)

    async def _meant(self, asked: _Scope) -> tuple[Where, str, list[Kept]]:
        """(whose notes are meant, their name, every scope there is). Raises NotFound or UsageError."""
        config, kept = self._service.config, await self._notes.kept()
        of = asked.of or (owner_of(config) if asked.scope != "project" else "")
        person, project = (None, of) if asked.scope == "project" else (of, None)
        if any((each.kind, each.of) == (asked.scope, of) for each in kept):
            return Where(person=person, project=project), of, kept
        return await whose(config, self._frame.store, asked.scope, person=person, project=project or None, session=None), of, kept

    async def listing(self, request: web.Request, caller: Caller) -> web.Response:
        asked = checked(ListQuery, request.query)
        where, of, kept = await self._meant(asked)
        notes = await self._notes.listing(where, asked.scope, self._frame.now)
        entities: Sequence[Entity] = notes.entities
        if find := asked.find.strip():
            found = await self._notes.search(where, find, FOUND, self._frame.now)
            entities = [each for each in found if each.scope == asked.scope]
        paging = Paging(asked.page, SIZE, len(entities))
        zone = ZoneInfo(await self._notes.zone(where) or self._service.zone)
        return await self._frame.drawn(
            request,
            "notes.html",
            asked=asked,
            of=of,
            kept=kept,
            find=find,
            preferences=[(digest(each), each) for each in notes.preferences],
            entities=[_shown(each, zone) for each in entities[paging.start : paging.start + SIZE]],
            paging=paging,
        )

    async def history(self, request: web.Request, caller: Caller) -> web.Response:
        asked = checked(_Scope, request.query)
        where, of, _ = await self._meant(asked)
        changes = await self._notes.changes(where, asked.scope, CHANGES)
        return await self._frame.drawn(request, "notes_history.html", asked=asked, of=of, changes=changes, most=CHANGES)

    async def given(self, request: web.Request, caller: Caller) -> web.Response:
        """What a model is given: of these notes in a new session, or in one that is there."""
        asked = checked(GivenQuery, request.query)
        service, store = self._service, self._frame.store
        where, of, _ = await self._meant(asked)
        session = None
        if wanted := asked.session.strip():
            found = await store.find_session(wanted)
            session, where = found.id, Where(address=found.address)
        text = await given_notes(store, service.config.agent, where, session, service.providers[0], service.zone, self._frame.now)
        return await self._frame.drawn(request, "notes_given.html", asked=asked, of=of, session=session or "", text=text)

    async def press(self, request: web.Request, caller: Caller) -> web.Response:
        pressed = await form(request, Press)
        where, of, _ = await self._meant(pressed)
        now, by = self._frame.now, By(hand=True)
        if pressed.do == "undo":
            if not (pressed.item.isascii() and pressed.item.isdecimal() and len(pressed.item) < 16):
                raise UsageError("That is not the number of a change.")
            await self._notes.undo(where, pressed.scope, int(pressed.item), by, now)
            return redirect(link(f"{PATH}/history", scope=pressed.scope, of=of))
        done = await self._notes.change(where, pressed.scope, [await self._edit(where, pressed)], by, now)
        _check(done)
        return redirect(link(PATH, scope=pressed.scope, of=of))

    async def _edit(self, where: Where, pressed: Press) -> Edit:
        """Raises NotFound where the item is no more what the page showed."""
        if pressed.do == "set":
            return PutPreference(pressed.key, pressed.value)
        notes = await self._notes.listing(where, pressed.scope, self._frame.now)
        for preference in notes.preferences:
            if digest(preference) == pressed.item and pressed.do == "drop":
                return DropPreference(preference.key)
        for entity in notes.entities:
            if found := _edit_of(entity, pressed):
                return found
        raise NotFound("It is no more as the page showed it.", hint="Look at the notes again.")


def _edit_of(entity: Entity, pressed: Press) -> Edit | None:
    """The edit, where it is about an entity or one of its facts."""
    if digest(entity) == pressed.item:
        edits: dict[str, Edit] = {"add": PutFact(entity.name, pressed.value), "drop": DropEntity(entity.name)}
        return edits.get(pressed.do)
    fact = next((each for each in entity.facts if digest(entity, each) == pressed.item), None)
    if fact is None:
        return None
    if pressed.do == "drop":
        return DropRelation(fact.entity, fact.target, fact.text) if fact.target else DropFact(entity.name, fact.text)
    if pressed.do == "edit" and not fact.target:
        return PutFact(entity.name, pressed.value, fact.expires, replaces=(fact.text,))
    return None


def _check(done: Sequence[Noted]) -> None:
    """Raises UsageError where nothing came of what was asked for."""
    for each in done:
        if each.state == "refused" or (each.state == "known" and each.why):
            raise UsageError(f"{each.what} was not noted: {each.why}.")


def digest(noted: Preference | Entity, fact: Fact | None = None) -> str:
    """Names a preference, an entity or a fact of it as it is, without its words."""
    if isinstance(noted, Preference):
        parts: list[object] = ["preference", noted.key, noted.value]
    elif fact is None:
        parts = ["entity", noted.name]
    else:
        parts = ["fact", noted.name, fact.entity, fact.text, fact.target, fact.since, fact.until]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _shown(entity: Entity, zone: ZoneInfo) -> ShownEntity:
    facts = []
    for fact in entity.facts:
        words = f"{fact.entity} {told(fact, zone)}" if fact.target else told(fact, zone)
        text = "" if fact.target else fact.text
        facts.append(ShownFact(digest(entity, fact), words, text, fact.until is None, fact.source, fact.speaker))
    return ShownEntity(digest(entity), entity.name, entity.type, facts)
