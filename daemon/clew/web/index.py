"""The search index over the API."""

from typing import Any

from pydantic import BaseModel

from clew.service import Service
from clew.store.rebuilding import Rebuilding
from clew.web.openapi import Call, Endpoint


class Progress(BaseModel):
    """rebuilding: whether the index is being built anew. done, total: messages, near enough; both 0 while nothing is built."""

    rebuilding: bool
    done: int
    total: int


class Index:
    """The handlers, and their routes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.endpoints = (
            Endpoint("GET", "/index", self.index, "Whether the search index is being built anew, and how far it is", Progress),
            Endpoint("POST", "/index/rebuild", self.rebuild_index, "Build the search index anew, beside everything else", Progress),
        )

    async def index(self, call: Call) -> Any:
        return _progress(await self._service.store.rebuilding())

    async def rebuild_index(self, call: Call) -> Any:
        return _progress(await self._service.reindexing.begin())


def _progress(found: Rebuilding | None) -> dict[str, Any]:
    return {"rebuilding": found is not None, "done": found.done if found else 0, "total": found.total if found else 0}
