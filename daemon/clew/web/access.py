"""The API's people: who asks to be let in, who is known, and changes of both."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from clew import access
from clew.service import Service
from clew.store import AccessEffect, AccessRequest, Known, PersonRole
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

    async def _changed(self, effect: AccessEffect) -> Any:
        return {"told": [access.told(await self._service.change_access(effect))]}
