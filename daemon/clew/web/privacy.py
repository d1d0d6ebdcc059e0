"""What belongs to a person, and that it goes, over the API."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from clew.service import Service
from clew.store.erasing import Erasure
from clew.web.openapi import Call, Endpoint


class EraseBody(BaseModel):
    """wait: at most so many seconds until it is done; it goes on all the same."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    wait: Annotated[float, Field(ge=0, le=240, strict=True)] = 0


class Belongings(BaseModel):
    """counts: rows by kind."""

    person: str
    counts: dict[str, int]


class Told(BaseModel):
    """An erasure. counts: what went so far, by kind. begun, done: seconds since the epoch; done null while it goes on."""

    id: str
    what: str
    counts: dict[str, int]
    begun: float
    done: float | None


class Privacy:
    """The handlers, and their routes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.endpoints = (
            Endpoint("GET", "/people/{id}/belongings", self.belongings, "How much of each kind is a person's", Belongings),
            Endpoint("POST", "/people/{id}/erase", self.erase, "Erase all that is a person's, for good", Told, body=EraseBody),
            Endpoint("GET", "/erasures/{id}", self.erasure, "How far an erasure is", Told),
        )

    async def belongings(self, call: Call) -> Any:
        return {"person": call.path["id"], "counts": await self._service.store.belongings(call.path["id"])}

    async def erase(self, call: Call) -> Any:
        begun = await self._service.erasing.begin(call.path["id"])
        return told(await self._service.erasing.until_done(begun.id, call.body.wait))

    async def erasure(self, call: Call) -> Any:
        return told(await self._service.store.erasure(call.path["id"]))


def told(erasure: Erasure) -> dict[str, Any]:
    return {
        "id": erasure.id,
        "what": erasure.what,
        "counts": dict(erasure.counts),
        "begun": erasure.begun,
        "done": erasure.done,
    }
