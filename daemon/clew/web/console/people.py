"""The console's pages of people: who asks to be let in, who may, and which browsers are logged in."""

from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from clew import access
from clew.errors import NotFound
from clew.store import AccessEffect, PersonRole
from clew.store.access import LONGEST_NAME
from clew.web.access import Access
from clew.web.auth import Caller
from clew.web.console.frame import Frame, Paging, form, redirect
from clew.web.openapi import Call
from clew.web.wire import checked

PATH, LOGINS = "/console/people", "/console/people/logins"
SIZE = 50
"""People, and browsers, on one page."""

_Key = Annotated[str, Field(min_length=1, max_length=512)]


class PeopleQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    page: Annotated[int, Field(ge=1, le=10_000)] = 1


class Press(BaseModel):
    """A button of a request or of somebody: `key` is a code, an account or a person, see `AccessEffect`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    do: Literal["approve", "deny", "role", "rename", "remove", "link", "unlink"]
    key: _Key
    role: PersonRole = "member"
    name: Annotated[str, Field(max_length=LONGEST_NAME)] = ""
    identity: Annotated[str, Field(max_length=512)] = ""


class LoginPress(BaseModel):
    """`out`: the browser `key` is logged out. `all`: all of the person `key`, of everybody without one. `link`: a link for the person."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    do: Literal["out", "all", "link"]
    key: Annotated[str, Field(max_length=512)] = ""


class People:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._api = Access(frame.service)

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, PATH, self.people)
        self._frame.post(app, PATH, self.press)
        self._frame.get(app, LOGINS, self.logins)
        self._frame.post(app, LOGINS, self.press_login)

    async def people(self, request: web.Request, caller: Caller) -> web.Response:
        asked, store = checked(PeopleQuery, request.query), self._frame.store
        people = await store.people()
        paging = Paging(asked.page, SIZE, len(people))
        return await self._frame.drawn(
            request,
            "people.html",
            requests=await store.access_requests("open", self._frame.now),
            people=people[paging.start : paging.start + SIZE],
            paging=paging,
            roles=access.ROLES,
            unknown=self._frame.service.config.access.unknown,
            longest=LONGEST_NAME,
        )

    async def press(self, request: web.Request, caller: Caller) -> web.Response:
        """Do what a button says, as `/access` does it."""
        pressed = await form(request, Press)
        effect = AccessEffect(pressed.do, pressed.key, role=pressed.role, name=pressed.name.strip(), identity=pressed.identity.strip())
        await self._frame.service.change_access(effect)
        return redirect(PATH)

    async def logins(self, request: web.Request, caller: Caller) -> web.Response:
        return await self._drawn(request, checked(PeopleQuery, request.query).page)

    async def _drawn(self, request: web.Request, page: int, link: Any = None) -> web.Response:
        store, service = self._frame.store, self._frame.service
        logins = await store.logins(self._frame.now)
        people = [each for each in await store.people() if each.role != "guest"]
        paging = Paging(page, SIZE, len(logins))
        shown = logins[paging.start : paging.start + SIZE]
        return await self._frame.drawn(
            request, "logins.html", logins=shown, paging=paging, people=people, link=link, opens=bool(service.page())
        )

    async def press_login(self, request: web.Request, caller: Caller) -> web.Response:
        pressed = await form(request, LoginPress)
        if pressed.do == "link":
            return await self._drawn(request, 1, await self._api.login_link(Call(caller, {"id": pressed.key}, None, None)))
        if pressed.do == "out":
            await self._api.end_login(Call(caller, {"id": pressed.key}, None, None))
            return redirect(LOGINS)
        person = (await self._frame.store.known(pressed.key)).id if pressed.key else None
        if not await self._frame.store.end_logins(person=person):
            raise NotFound("No browser was logged in.")
        return redirect(LOGINS)
