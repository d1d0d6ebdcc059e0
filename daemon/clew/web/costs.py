"""Over the API: what was spent, and how budgets stand."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from clew import costs
from clew.errors import UsageError
from clew.service import Service
from clew.web.openapi import Call, Endpoint
from clew.whose import known


class CostQuery(BaseModel):
    """Of one of session (an id or its beginning), person and chat (an address), else of all. period: a day such as 2026-11-30 or a month
    such as 2026-11; both of now without one, and without one only for a session."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    session: Annotated[str, Field(max_length=64)] = ""
    person: Annotated[str, Field(max_length=512)] = ""
    chat: Annotated[str, Field(max_length=512)] = ""
    period: Annotated[str, Field(pattern=r"^([0-9]{4}-[0-9]{2}(-[0-9]{2})?)?$")] = ""


class Spent(BaseModel):
    """accounts: what was spent, in dollars and tokens. budgets: those that bind whoever was asked for. turns: of a session, newest first,
    with what the prompt cache did. parts: by person, model and purpose. lines: all of it in words."""

    accounts: list[dict[str, JsonValue]]
    budgets: list[dict[str, JsonValue]]
    turns: list[dict[str, JsonValue]]
    parts: dict[str, list[dict[str, JsonValue]]]
    timezone: str
    lines: list[str]


class Costs:
    """The handler, and its route."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.endpoints = (Endpoint("GET", "/cost", self.cost, "What calls of models cost, and how budgets stand", Spent, CostQuery),)

    async def cost(self, call: Call) -> Any:
        asked: CostQuery = call.query
        if bool(asked.session) + bool(asked.person) + bool(asked.chat) > 1 or (asked.session and asked.period):
            raise UsageError("Give one of session, person and chat, and no period with a session.")
        service = self._service
        person = asked.person and await known(service.config, service.store, asked.person)
        question = costs.Question(asked.session, person, asked.chat, asked.period)
        return costs.answer_values(await costs.answer(service.store, question, service.zone, service.purse.limits, service.time.wall()))
