"""Invitations to rooms: whose are accepted, and joining."""

import asyncio
from dataclasses import replace
from typing import Literal

import structlog

from clew.transport import Host
from clew_transports.calls import Unanswered, Unreached
from clew_transports.matrix.api import Api, Refusal
from clew_transports.matrix.events import Place
from clew_transports.pace import Pauses

JOIN_S = 120.0
"""Seconds that joining may take: a room of another homeserver is fetched from there."""
AGAIN_S = 60.0
"""Seconds between two attempts to join."""

log = structlog.get_logger()


class Invites:
    """Rooms are joined beside the reading of events, which does not wait for them."""

    def __init__(self, name: str, api: Api, accepted: Literal["known", "anyone", "nobody"]) -> None:
        self._name = name
        self._api = api
        self._accepted = accepted
        self._joining: dict[str, asyncio.Task[bool]] = {}
        self._told: set[str] = set()
        self._waits = Pauses()

    async def answered(self, host: Host, place: Place) -> Place:
        """Begin to join where it is due. Returns the place without invitations that turned out to be none any more, stored."""
        gone = {room for room, task in self._joining.items() if task.done() and not task.result()}
        self._joining = {room: task for room, task in self._joining.items() if not task.done()}
        for room, sender in place.invites.items():
            if room in gone or room in self._joining or self._waits.left(room, self._now):
                continue
            if await self._is_welcome(host, room, sender):
                self._waits.pause(room, self._now + AGAIN_S)
                self._joining[room] = asyncio.create_task(self._join(room), name=f"{self._name}.join")
        if not gone.intersection(place.invites):
            return place
        place = replace(place, invites={room: sender for room, sender in place.invites.items() if room not in gone})
        await host.accept([], str(place))
        return place

    async def close(self) -> None:
        for task in self._joining.values():
            task.cancel()
        await asyncio.gather(*self._joining.values(), return_exceptions=True)
        self._joining.clear()

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _is_welcome(self, host: Host, room: str, sender: str) -> bool:
        if self._accepted == "anyone" or (self._accepted == "known" and await host.known(sender)):
            return True
        if room not in self._told and len(self._told) < 1000:
            self._told.add(room)
            log.warning("access.denied", transport=self._name, identity=f"{self._name}:{sender}", reason="an invitation is left unanswered")
        return False

    async def _join(self, room: str) -> bool:
        """Whether the invitation still stands or is accepted."""
        try:
            await self._api.call("POST", "rooms", room, "join", body={}, answer_s=JOIN_S)
        except Refusal as refusal:
            return refusal.code not in (400, 403, 404)
        except (Unreached, Unanswered):
            return True
        return True
