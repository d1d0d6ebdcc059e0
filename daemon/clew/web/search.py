"""Over the API: finding what was said, and what was recalled for a turn."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from clew import recall
from clew.context.ranking import Scored
from clew.errors import NotFound
from clew.service import Service
from clew.web.openapi import Call, Endpoint
from clew.web.wire import plain
from clew.whose import known


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SearchQuery(_Model):
    """person, chat (an address), session: narrow it to what recall would find for one of them; everything without."""

    query: Annotated[str, Field(min_length=1, max_length=10_000)]
    person: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    chat: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    session: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 10


class RecalledQuery(_Model):
    """message: a message of the turn, by its id, the beginning of it, or `#7`; without it the newest turn is meant."""

    message: Annotated[str, Field(min_length=1, max_length=64)] | None = None


async def found(service: Service, asked: SearchQuery) -> Sequence[Scored]:
    """What answers a query, the best first: what `clew session search` finds. Raises NotFound or UsageError for a scope of nobody."""
    whose = await recall.whose_words(service.store, person=asked.person, chat=asked.chat, session=asked.session)
    if asked.person is not None and not whose.scope.chats:
        await known(service.config, service.store, asked.person)
    today = datetime.fromtimestamp(service.time.wall(), ZoneInfo(whose.zone or service.zone)).date()
    return await recall.search(service.store, whose.scope, asked.query, limit=asked.limit, today=today, meaning=service.meaning)


class FoundMessages(BaseModel):
    """Each with the terms that it holds (`why`) and its score, a share of the weight of all that was asked for."""

    messages: list[dict[str, JsonValue]]


class RecalledExcerpts(BaseModel):
    """asked: what was said, at the time `at`. excerpts: each by its best message, with the age (seconds) that this had then, the terms that
    it holds (`why`), its score, and whether it stood in the prompt (`shown`)."""

    turn: str
    asked: str
    at: float
    excerpts: list[dict[str, JsonValue]]


class Search:
    """The handlers, and their routes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._store = service.store
        self.endpoints = (
            Endpoint("GET", "/search", self.search, "Find messages, the best first", FoundMessages, SearchQuery),
            Endpoint("GET", "/sessions/{id}/recalled", self.recalled, "What recall gave a turn", RecalledExcerpts, RecalledQuery),
        )

    async def search(self, call: Call) -> Any:
        return {
            "messages": [plain(each.candidate) | {"score": each.score, "why": each.why} for each in await found(self._service, call.query)]
        }

    async def recalled(self, call: Call) -> Any:
        session = await self._store.find_session(call.path["id"])
        message = await self._service.threads.meant(session.id, call.query.message or "")
        given = await self._store.recalled_for(await self._store.scope_for(operator=True), session.id, message.turn if message else None)
        if given is None:
            raise NotFound("That is no message of a turn." if message else "Nothing was asked in this session yet.")
        excerpts = [
            plain(each.message) | {"age": given.at - each.message.at, "score": each.score, "why": each.why, "shown": each.shown}
            for each in given.quotes
        ]
        return {"turn": given.turn, "asked": given.asked, "at": given.at, "excerpts": excerpts}
