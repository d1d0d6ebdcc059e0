"""The console's page of a turn: what the model saw, call by call, and what came of it."""

from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from clew import costs, why
from clew.context import cache_ledger
from clew.context.ledger import section
from clew.store import ModelCall, Past, PromptState
from clew.web.auth import Caller
from clew.web.console.compactions import entries
from clew.web.console.frame import Frame
from clew.web.wire import checked

TURN = "/console/threads/turn"
SHOWN = 100
"""Rows of the window that are listed, the newest."""
GLIMPSE = 160
"""Characters of each of them."""


class TurnQuery(BaseModel):
    """call: which of its model calls, from 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(min_length=1, max_length=64)]
    call: Annotated[int, Field(ge=1, le=10_000)] = 1


class Turns:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._store = frame.store

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, TURN, self.turn)

    async def turn(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        asked = checked(TurnQuery, request.query)
        past = await self._store.past(asked.id)
        number = min(asked.call, len(past.calls))
        call = past.calls[number - 1] if number else None
        operator = await self._store.scope_for(operator=True)
        return await self._frame.drawn(
            request,
            "turn.html",
            row=await self._store.find_session(past.turn.session),
            past=past,
            turn=past.turn,
            call=call,
            number=number,
            sight=await self._store.sight(past.turn.id, call.started, SHOWN) if call else None,
            glimpse=GLIMPSE,
            entries=entries,
            section=section,
            given=await self._store.recalled_for(operator, past.turn.session, past.turn.id),
            reason=why.reason,
            age=why.age,
            prompt=await self._prompt(past.turn.session, past.turn.id),
            estimated=estimated,
            told_of=await self._told_of(past),
        )

    async def _told_of(self, past: Past) -> dict[str, tuple[str, str]]:
        """By the id of each call: what it cost, and what the prompt cache did; empty for one that no cache is asked about."""
        if not past.calls:
            return {}
        until = max(call.started for call in past.calls)
        calls = await self._store.spending.calls(past.turn.session, costs.LEDGER_CALLS, until)
        known = {each.call.id: each.reading for each in costs.explained(calls)}
        readings = [(call, known.get(call.id)) for call in past.calls]
        return {call.id: (costs.price(costs.sums_of(call)), cache_ledger.told(reading) if reading else "") for call, reading in readings}

    async def _prompt(self, session: str, turn: str) -> PromptState | None:
        """What stood beside the messages, word for word: kept for the newest turn of a session alone."""
        state = await self._store.prompt_state(session)
        return state if state.recall_turn == turn else None


def estimated(call: ModelCall) -> int:
    """Estimated tokens of all parts of a call."""
    return sum(tokens for _, _, tokens in call.segments)
