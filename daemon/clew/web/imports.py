"""Conversations of other programs, brought in over the API."""

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from clew.assembly import owner_of
from clew.errors import UsageError
from clew.imports import Format
from clew.imports.conversation import LATEST, LONGEST_KEY, LONGEST_NAME, LONGEST_TITLE
from clew.imports.dividing import MOST
from clew.messages import blocks_from_json
from clew.service import Service
from clew.store.foreign import ForeignMessage, Outcome
from clew.web.openapi import Call, Endpoint
from clew.whose import known

BODY_BYTES = 64 * 2**20
"""The longest conversation that is taken at once; `imports.dividing` makes them shorter."""
Key = Annotated[str, Field(min_length=1, max_length=LONGEST_KEY)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ImportedMessage(_Model):
    """key: names it in its conversation, for ever. at: seconds since the epoch. name: of somebody else who wrote it."""

    key: Key
    role: Literal["user", "assistant", "tool"]
    blocks: Annotated[list[dict[str, JsonValue]], Field(min_length=1)]
    at: Annotated[float, Field(ge=0, lt=LATEST)]
    name: Annotated[str, Field(max_length=LONGEST_NAME)] = ""


class ConversationBody(_Model):
    """source: the program. key: names the conversation there, for ever. person: whose it is; the owner if nobody is named."""

    source: Format
    key: Key
    title: Annotated[str, Field(max_length=LONGEST_TITLE)] = ""
    person: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    messages: Annotated[list[ImportedMessage], Field(min_length=1, max_length=MOST)]


class BroughtIn(BaseModel):
    """outcome: new; grown, some was here already; here, all was; changed, what is here is no beginning of it and was left. messages: how
    many were written."""

    session: str
    outcome: Outcome
    messages: int


class Imports:
    """The handlers, and their routes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.endpoints = (
            Endpoint("POST", "/imports", self.bring_in, "Bring in a conversation", BroughtIn, body=ConversationBody, body_bytes=BODY_BYTES),
        )

    async def bring_in(self, call: Call) -> Any:
        body: ConversationBody = call.body
        config, store = self._service.config, self._service.store
        person = await known(config, store, body.person) if body.person else owner_of(config)
        try:
            messages = [
                ForeignMessage(each.key, each.role, blocks_from_json(json.dumps(each.blocks)), each.at, each.name) for each in body.messages
            ]
        except ValueError as error:
            raise UsageError(f"A message has blocks that are none ({error}).") from None
        session, outcome, count = await store.bring_in(body.source, person, body.key, body.title, messages, self._service.time.wall())
        return {"session": session, "outcome": outcome, "messages": count}
