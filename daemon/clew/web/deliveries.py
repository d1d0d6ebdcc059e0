"""Replies on their way, over the API."""

from typing import Any

from clew.errors import NotFound
from clew.service import Service
from clew.web.openapi import Call, Endpoint


class Deliveries:
    """The handlers, and their routes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._store = service.store
        self.endpoints = (
            Endpoint("POST", "/outbox/{id}/retry", self.retry_delivery, "Send a dead or unknown delivery once more"),
            Endpoint("DELETE", "/outbox/{id}", self.discard_delivery, "Give up a delivery"),
        )

    async def retry_delivery(self, call: Call) -> Any:
        if not await self._store.send_again(call.path["id"], self._service.time.wall()):
            raise NotFound("No dead or unknown delivery has this id.", hint="`clew outbox list` shows those that are.")
        return {"id": call.path["id"]}

    async def discard_delivery(self, call: Call) -> Any:
        if not await self._store.discard_delivery(call.path["id"]):
            raise NotFound("No delivery that could be given up has this id.", hint="`clew outbox list` shows those that are.")
        return {"id": call.path["id"]}
