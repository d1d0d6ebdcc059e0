"""The console's search: the engine and the scopes of `clew session search`, each hit linked to its place."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from clew.context.ranking import Candidate
from clew.web import search
from clew.web.auth import Caller
from clew.web.console.frame import Frame
from clew.web.wire import checked
from clew.why import snippet

HITS = 20
"""Hits that a page has at first, and gets more of."""
MOST = 200
SNIPPET = 320
"""Characters of a message that is found."""


class SearchQuery(BaseModel):
    """person, chat, session: whose words recall would find; empty for everything. more: how many hits."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    q: Annotated[str, Field(max_length=10_000)] = ""
    person: Annotated[str, Field(max_length=512)] = ""
    chat: Annotated[str, Field(max_length=512)] = ""
    session: Annotated[str, Field(max_length=64)] = ""
    more: Annotated[int, Field(ge=1, le=MOST)] = HITS


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found. pieces: (words, whether they are what was asked for) of the line that shows it."""

    message: Candidate
    score: float
    why: tuple[str, ...]
    pieces: tuple[tuple[str, bool], ...]


class Search:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def mount(self, app: web.Application) -> None:
        self._frame.get(app, "/console/search", self.search)

    async def search(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        asked = checked(SearchQuery, request.query)
        hits: list[Hit] = []
        if asked.q.strip():
            named = {name: value for name in ("person", "chat", "session") if (value := getattr(asked, name).strip())}
            query = search.SearchQuery(query=asked.q, limit=asked.more + 1, **named)
            found = await search.found(self._frame.service, query)
            hits = [self._hit(each.candidate, each.score, each.why) for each in found]
        further = len(hits) > asked.more and asked.more < MOST
        return await self._frame.drawn(
            request, "search.html", asked=asked, hits=hits[: asked.more], further=min(MOST, asked.more + HITS) if further else 0
        )

    def _hit(self, message: Candidate, score: float, why: tuple[str, ...]) -> Hit:
        line = snippet(self._frame.told(message.text), why, SNIPPET)
        return Hit(message, score, why, tuple(marked(line, why)))


def marked(line: str, terms: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """`line` in pieces, those that begin like one of `terms` marked."""
    words = [re.escape(word) for term in terms for word in term.split()]
    if not words:
        yield line, False
        return
    for number, piece in enumerate(re.split(rf"(?<!\w)((?:{'|'.join(words)})\w*)", line, flags=re.IGNORECASE)):
        if piece:
            yield piece, number % 2 == 1
