"""The console's page of questions that wait for a yes, and of tools to which somebody said always."""

from typing import Annotated, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from clew.web.approvals import AnswerBody, WithdrawQuery
from clew.web.approvals import Approvals as Handlers
from clew.web.auth import Caller
from clew.web.console.frame import Frame, form, redirect
from clew.web.openapi import Call

PATH = "/console/approvals"
_Words = Annotated[str, Field(max_length=512)]


class Press(BaseModel):
    """yes, no: to the question `code`. withdraw: ask again before `tool` is called at `address` on behalf of `person`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    do: Literal["yes", "no", "withdraw"]
    code: Annotated[str, Field(max_length=64)] = ""
    address: _Words = ""
    tool: _Words = ""
    person: _Words = ""


class Approvals:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._handlers = Handlers(frame.service)

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, PATH, self.approvals)
        self._frame.post(app, PATH, self.press)

    async def approvals(self, request: web.Request, caller: Caller) -> web.Response:
        questions, standing = await self._frame.store.open_questions(), await self._frame.store.standing()
        return await self._frame.drawn(request, "approvals.html", questions=questions, standing=standing)

    async def press(self, request: web.Request, caller: Caller) -> web.Response:
        """Do what a button says, through the API's own handlers."""
        pressed = await form(request, Press)
        if pressed.do == "withdraw":
            asked = WithdrawQuery(address=pressed.address, tool=pressed.tool, person=pressed.person)
            await self._handlers.withdraw(Call(caller, {}, asked, None))
        else:
            await self._handlers.answer_approval(Call(caller, {"code": pressed.code}, None, AnswerBody(yes=pressed.do == "yes")))
        return redirect(PATH)
