"""The database's file over the API."""

from typing import Any

from pydantic import BaseModel

from clew.service import Service
from clew.web.openapi import Call, Endpoint


class Vacuumed(BaseModel):
    """Bytes of the file."""

    before: int
    after: int


class Database:
    """The handlers, and their routes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.endpoints = (
            Endpoint("POST", "/database/vacuum", self.vacuum, "Give the room of deleted rows back; messages wait meanwhile", Vacuumed),
        )

    async def vacuum(self, call: Call) -> Any:
        before, after = await self._service.store.vacuum()
        return {"before": before, "after": after}
