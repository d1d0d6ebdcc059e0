"""The database's file over the API."""

from typing import Any

from pydantic import BaseModel

from clew.service import Service
from clew.store.backups import Backup
from clew.web.openapi import Call, Endpoint


class Vacuumed(BaseModel):
    """Bytes of the file."""

    before: int
    after: int


class Listed(BaseModel):
    """backups: also those that are gone from where they were put."""

    backups: list[Backup]


class Begun(BaseModel):
    """folder: where the backup goes."""

    folder: str


class Database:
    """The handlers, and their routes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.endpoints = (
            Endpoint("GET", "/database/backups", self.backups, "Backups that clew made of it, the newest first", Listed),
            Endpoint("POST", "/database/backups", self.back_up, "Make one beside everything else; the status says how far it is", Begun),
            Endpoint("POST", "/database/vacuum", self.vacuum, "Give the room of deleted rows back; messages wait meanwhile", Vacuumed),
        )

    async def backups(self, call: Call) -> Any:
        return {"backups": await self._service.backing_up.listed()}

    async def back_up(self, call: Call) -> Any:
        self._service.backing_up.begin()
        return {"folder": str(self._service.backing_up.folder)}

    async def vacuum(self, call: Call) -> Any:
        before, after = await self._service.store.vacuum()
        return {"before": before, "after": after}
