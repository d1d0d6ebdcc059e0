"""The console's page of replies that are not sent."""

from typing import Annotated, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from clew.clock import span
from clew.web.auth import Caller
from clew.web.console.frame import Frame, Paging, form, link, redirect
from clew.web.deliveries import Deliveries
from clew.web.openapi import Call
from clew.web.wire import checked

PATH = "/console/outbox"
SIZE = 50
"""Replies on one page."""
WORDS = 300
"""Characters of a reply that are shown."""
STATES = ("dead", "unknown", "pending", "sending", "draft")

State = Literal["dead", "unknown", "pending", "sending", "draft"]


class OutboxQuery(BaseModel):
    """state: only replies in this state."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: State | None = None
    page: Annotated[int, Field(ge=1, le=100_000)] = 1


class Press(BaseModel):
    """The button of a reply that was pressed, and the state and page that it stood on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(min_length=1, max_length=64)]
    do: Literal["retry", "discard"]
    state: State | Literal[""] = ""


class Outbox:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        deliveries = Deliveries(frame.service)
        self._buttons = {"retry": deliveries.retry_delivery, "discard": deliveries.discard_delivery}

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, PATH, self.outbox)
        self._frame.post(app, PATH, self.press)

    async def outbox(self, request: web.Request, caller: Caller) -> web.Response:
        asked, store, now = checked(OutboxQuery, request.query), self._frame.store, self._frame.now
        counts = await store.outbox_counts()
        states: tuple[str, ...] = (asked.state,) if asked.state else STATES
        paging = Paging(asked.page, SIZE, sum(counts.get(state, 0) for state in states))
        rows = await store.outbox(states, SIZE, paging.start)
        words = await store.outbox_words([row["id"] for row in rows])
        shown = [row | {"age": span(max(now - row["created"], 0)), "words": words.get(row["id"], "")} for row in rows]
        return await self._frame.drawn(
            request, "outbox.html", rows=shown, counts=counts, states=STATES, state=asked.state, paging=paging, now=now, most=WORDS
        )

    async def press(self, request: web.Request, caller: Caller) -> web.Response:
        """Do what a button says, through the API's own handlers."""
        pressed = await form(request, Press)
        await self._buttons[pressed.do](Call(caller, {"id": pressed.id}, None, None))
        return redirect(link(PATH, state=pressed.state))
