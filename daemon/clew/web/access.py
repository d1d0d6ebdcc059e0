"""The API's people: who asks to be let in, who is known, and changes of both."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from clew import access
from clew.errors import NotFound, UsageError
from clew.service import Service
from clew.store import AccessEffect, AccessRequest, Known, Login, PersonRole
from clew.web.openapi import Call, Endpoint

_Name = Annotated[str, Field(max_length=40)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class AccessQuery(_Model):
    state: Literal["open", "approved", "denied"] | None = None


class AccessBody(_Model):
    """name: what they are called, where they are let in."""

    approve: bool
    role: PersonRole = "member"
    name: _Name = ""


class PersonBody(_Model):
    """role, name: what is to be different; an empty name takes theirs away."""

    role: PersonRole | None = None
    name: _Name | None = None


class IdentityBody(_Model):
    """identity: an account, transport:user."""

    identity: Annotated[str, Field(min_length=3, max_length=512)]


class Requests(BaseModel):
    requests: list[AccessRequest]


class People(BaseModel):
    people: list[Known]


class Logins(BaseModel):
    """logins: browsers that are logged in, the one seen last first; times in seconds since the epoch."""

    logins: list[Login]


class Link(BaseModel):
    """url: what logs its person in, once, until then (seconds since the epoch)."""

    person: str
    url: str
    until: float


class LogoutQuery(_Model):
    """person: whose logins end, by id, name or account; everybody's without one."""

    person: Annotated[str, Field(max_length=512)] | None = None


class Told(BaseModel):
    """told: what was done, in words."""

    told: list[str]


class Access:
    """The handlers, and the table of routes that they are described by."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._store = service.store
        self.endpoints = (
            Endpoint("GET", "/access", self.requests, "Who asked to be let in", Requests, AccessQuery),
            Endpoint("POST", "/access/{code}", self.answer, "Let somebody in, or not", AccessRequest, body=AccessBody),
            Endpoint("GET", "/people", self.people, "Who may talk to clew, with their accounts", People),
            Endpoint("PATCH", "/people/{id}", self.change, "Give somebody another role or name", Told, body=PersonBody),
            Endpoint("DELETE", "/people/{id}", self.remove, "Take somebody's access away", Told),
            Endpoint("POST", "/people/{id}/identities", self.link, "Let an account be somebody's too", Told, body=IdentityBody),
            Endpoint("DELETE", "/people/{id}/identities/{identity}", self.unlink, "Take a linked account from somebody", Told),
            Endpoint("POST", "/people/{id}/login", self.login_link, "A link that logs a browser in as somebody, once", Link),
            Endpoint("GET", "/logins", self.logins, "Browsers that are logged in", Logins),
            Endpoint("DELETE", "/logins", self.log_out, "Log out all browsers, or those of a person", Told, LogoutQuery),
            Endpoint("DELETE", "/logins/{id}", self.end_login, "Log a browser out", Told),
        )

    async def requests(self, call: Call) -> Any:
        return {"requests": await self._store.access_requests(call.query.state, self._service.time.wall())}

    async def answer(self, call: Call) -> Any:
        body: AccessBody = call.body
        effect = AccessEffect("approve" if body.approve else "deny", call.path["code"], role=body.role, name=body.name)
        return (await self._service.change_access(effect)).answered

    async def people(self, call: Call) -> Any:
        return {"people": await self._store.people()}

    async def change(self, call: Call) -> Any:
        body: PersonBody = call.body
        key, effects = call.path["id"], []
        if body.role is not None:
            effects.append(AccessEffect("role", key, role=body.role))
        if body.name is not None:
            effects.append(AccessEffect("rename", key, name=body.name))
        return {"told": [access.told(await self._service.change_access(effect)) for effect in effects]}

    async def remove(self, call: Call) -> Any:
        return await self._changed(AccessEffect("remove", call.path["id"]))

    async def link(self, call: Call) -> Any:
        return await self._changed(AccessEffect("link", call.path["id"], identity=call.body.identity))

    async def unlink(self, call: Call) -> Any:
        known = await self._store.known(call.path["id"])
        return await self._changed(AccessEffect("unlink", call.path["identity"], by=known.id))

    async def login_link(self, call: Call) -> Any:
        page, now = self._service.page(), self._service.time.wall()
        if not page:
            raise UsageError(
                "Nobody logs in to the page here.", hint="It is off, or http.token is not set: it is this machine's alone then."
            )
        known = await self._store.known(call.path["id"])
        if known.role == "guest":
            raise UsageError(f"{known.called} is a guest, and guests have no page.", hint=f"clew access role {known.id} member")
        url, link = access.link_to(page, known.id, now)
        await self._store.offer_login(link, now)
        return {"person": known.called, "url": url, "until": link.expires}

    async def logins(self, call: Call) -> Any:
        return {"logins": await self._store.logins(self._service.time.wall())}

    async def log_out(self, call: Call) -> Any:
        known = await self._store.known(call.query.person) if call.query.person is not None else None
        count = await self._store.end_logins(person=known.id if known else None)
        return {"told": [access.logged_out(count, known.called if known else "")]}

    async def end_login(self, call: Call) -> Any:
        if not await self._store.end_logins(login=call.path["id"]):
            raise NotFound("No browser is logged in under this id.", hint="`clew access logins` lists those that are.")
        return {"told": [access.logged_out(1, "")]}

    async def _changed(self, effect: AccessEffect) -> Any:
        return {"told": [access.told(await self._service.change_access(effect))]}
