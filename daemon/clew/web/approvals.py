"""The API's approvals: tools to which somebody said always, questions that wait for an answer."""

from typing import Annotated, Any

import structlog
from pydantic import BaseModel, ConfigDict, Field

from clew.errors import NotFound
from clew.service import Service
from clew.store import OpenQuestion, StandingYes, Withdrawn
from clew.web.openapi import Call, Endpoint

log = structlog.get_logger()

_Words = Annotated[str, Field(max_length=512)]


class Standing(BaseModel):
    """standing: tools that may be called at an address on behalf of a person, since somebody said always; person is empty for scheduled
    prompts of nobody. open: questions that wait, by their code; until: seconds since the epoch."""

    standing: list[StandingYes]
    open: list[OpenQuestion]


class AnswerBody(BaseModel):
    """yes: the tools may be called, this once."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    yes: bool


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
        self._time = service.time
        self.endpoints = (
            Endpoint("GET", "/approvals", self.approvals, "Tools to which somebody said always, and questions that wait", Standing),
            Endpoint("POST", "/approvals/{code}", self.answer_approval, "Answer a question that an owner was asked", body=AnswerBody),
            Endpoint("DELETE", "/approvals", self.withdraw, "Ask again before a tool is called", query=WithdrawQuery),
        )

    async def approvals(self, call: Call) -> Any:
        return {"standing": await self._store.standing(), "open": await self._store.open_questions()}

    async def answer_approval(self, call: Call) -> Any:
        given = await self._store.answer_question(call.path["code"], call.body.yes, self._time.wall())
        answer = "yes" if given.yes else "no"
        log.info("approval.answered", answer=answer, how=given.how, turn=given.turn)
        return {"code": call.path["code"], "answer": answer}

    async def withdraw(self, call: Call) -> Any:
        asked: WithdrawQuery = call.query
        if not await self._store.withdraw(Withdrawn(asked.address, asked.tool, asked.person)):
            missing = f"Nobody said always to {asked.tool!r} at {asked.address}."
            raise NotFound(missing, hint="`clew approvals list` shows where somebody did.")
        return {"address": asked.address, "tool": asked.tool}
