"""The API's approvals: tools to which somebody said always, questions that wait for an answer."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from clew.errors import NotFound
from clew.service import Service
from clew.store import OpenQuestion, StandingYes, Withdrawn
from clew.web.openapi import Call, Endpoint

_Words = Annotated[str, Field(max_length=512)]


class Standing(BaseModel):
    """standing: tools that may be called at an address on behalf of a person, since somebody said always; person is empty for scheduled
    prompts of nobody. open: questions that wait, by their code; until: seconds since the epoch."""

    standing: list[StandingYes]
    open: list[OpenQuestion]


class WithdrawQuery(BaseModel):
    """person: on whose behalf; without one, for everybody there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: _Words
    tool: _Words
    person: _Words | None = None


class Approvals:
    """The handlers, and the table of routes that they are described by."""

    def __init__(self, service: Service) -> None:
        self._store = service.store
        self.endpoints = (
            Endpoint("GET", "/approvals", self.approvals, "Tools to which somebody said always, and questions that wait", Standing),
            Endpoint("DELETE", "/approvals", self.withdraw, "Ask again before a tool is called", query=WithdrawQuery),
        )

    async def approvals(self, call: Call) -> Any:
        return {"standing": await self._store.standing(), "open": await self._store.open_questions()}

    async def withdraw(self, call: Call) -> Any:
        asked: WithdrawQuery = call.query
        if not await self._store.withdraw(Withdrawn(asked.address, asked.tool, asked.person)):
            missing = f"Nobody said always to {asked.tool!r} at {asked.address}."
            raise NotFound(missing, hint="`clew approvals list` shows where somebody did.")
        return {"address": asked.address, "tool": asked.tool}
