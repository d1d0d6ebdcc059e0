"""From answers of /sync to messages: what is missing is fetched, what is encrypted is read, as soon as its key is there."""

import asyncio
from typing import TYPE_CHECKING, Any

import structlog

from clew.transport import Inbound
from clew_transports.matrix.api import Api, Refusal
from clew_transports.matrix.events import Place, Reader, Sync, Timeline, since_asked_in
from clew_transports.matrix.outgoing import ENCRYPTED
from clew_transports.matrix.rooms import Rooms
from clew_transports.reading import Malformed

if TYPE_CHECKING:  # it needs an extra
    from clew_transports.matrix.encryption import Encryption

log = structlog.get_logger()

STORED_EVERY_S = 60.0
"""Seconds after which the place is stored where nothing was said to clew: after a restart what lies behind it is read once more."""
NO_KEY = "a message cannot be read before its key comes; it is kept in mind"


class Sealed(Exception):
    """An encrypted event whose key is not there."""


class Arrivals:
    """Of one connection. encryption: None where there is none."""

    def __init__(self, name: str, api: Api, reader: Reader, rooms: Rooms, encryption: "Encryption | None") -> None:
        self._name = name
        self._api = api
        self._reader = reader
        self._rooms = rooms
        self._encryption = encryption
        self._begun = False
        self._due = 0.0
        self._told: set[str] = set()

    async def taken(self, place: Place, answer: dict[str, Any]) -> tuple[list[Inbound], Place, bool]:
        """The messages in an answer of /sync, the place behind them, and whether that has to be stored now: what others say to one another
        is a reason only now and then, so that a busy room costs no commit for each line.

        What was said before clew first signed in is no message. Raises Refusal, Unreached, Unanswered or Malformed.
        """
        sync = Sync.of(answer, self._reader.me.id)
        keys = await self._keys(answer)
        for room in sync.left:
            self._rooms.forget(room)
        if place.since is None:
            return [], place.behind(sync), True
        batch, unread = await self._late(place, keys)
        for room, timeline in sync.joined.items():
            batch += await self._new(place, room, timeline, unread)
        behind = place.behind(sync, unread)
        now = asyncio.get_running_loop().time()
        changed = (behind.invites, behind.unread) != (place.invites, place.unread)
        needed = bool(batch or keys or changed or (now >= self._due and not sync.is_empty))
        if needed:
            self._due = now + STORED_EVERY_S
        return batch, behind, needed

    async def _keys(self, answer: dict[str, Any]) -> frozenset[str]:
        """Rooms for which keys came."""
        if self._encryption is None:
            return frozenset()
        rooms = self._encryption.take(answer)
        try:
            await self._encryption.keep_up(self._api)
        except Refusal as refusal:
            if not refusal.lasts:
                raise
            log.warning("transport.limited", transport=self._name, reason=f"keys cannot be exchanged: {refusal}")
        return rooms

    async def _late(self, place: Place, keys: frozenset[str]) -> tuple[list[Inbound], list[tuple[str, str]]]:
        """The messages of events that could not be read so far, and those that still cannot be."""
        batch, unread = [], []
        for room, event in place.unread:
            if self._encryption is None or (self._begun and room not in keys):
                unread.append((room, event))
                continue
            try:
                inbound = await self._message(room, await self._api.call("GET", "rooms", room, "event", event))
            except Sealed:
                unread.append((room, event))
                continue
            except Refusal as refusal:
                if refusal.code not in (403, 404):
                    raise
                continue
            if inbound:
                batch.append(inbound)
        self._begun = True
        return batch, unread

    async def _new(self, place: Place, room: str, timeline: Timeline, unread: list[tuple[str, str]]) -> list[Inbound]:
        """The messages of a room. What is missing in front of them is fetched; what cannot be read yet goes to `unread`."""
        events = timeline.events
        if timeline.before:
            self._rooms.forget(room)
            since = None if room in place.invites else place.since
            events = [*await self._missed(room, timeline.before, since), *events]
        events, _ = since_asked_in(events, self._reader.me.id)
        found = []
        for event in events:
            self._rooms.note(room, event)
            try:
                inbound = await self._message(room, event)
            except Sealed:
                unread.append((room, str(event["event_id"])))
                continue
            if inbound:
                found.append(inbound)
        return found

    async def _message(self, room: str, event: Any) -> Inbound | None:
        """Raises Sealed, and what calls raise."""
        if isinstance(event, dict) and event.get("type") == "m.room.encrypted" and (event := await self._opened(room, event)) is None:
            return None
        try:
            # A reply that speaks to clew by its words too needs no look at what it answers.
            inbound = self._reader.read(event, room, await self._rooms.room(room))
            if (inbound is None or inbound.kind == "context") and await self._rooms.answers_me(room, event):
                inbound = self._reader.read(event, room, await self._rooms.room(room), to_me=True)
        except Malformed as reason:
            log.warning("inbox.rejected", transport=self._name, reason=str(reason))
            return None
        return inbound

    async def _opened(self, room: str, event: dict[str, Any]) -> dict[str, Any] | None:
        """What stands in an encrypted event; None where it is not for clew. Raises Sealed, and what calls raise."""
        sender, identifier = event.get("sender"), event.get("event_id")
        if not isinstance(sender, str) or not isinstance(identifier, str) or sender == self._reader.me.id:
            return None
        if "redacted_because" in (event.get("unsigned") or {}):
            return None
        if self._encryption is None:
            if room not in self._told and len(self._told) < 1000:
                self._told.add(room)
                log.warning("inbox.rejected", transport=self._name, address=f"{self._name}:{room}", reason=ENCRYPTED)
            return None
        await self._encryption.meet(self._api, {sender})
        if (opened := self._encryption.decrypted(room, event)) is None:
            log.warning("inbox.rejected", transport=self._name, address=f"{self._name}:{room}", reason=NO_KEY)
            raise Sealed
        return opened

    async def _missed(self, room: str, before: str, since: str | None) -> list[Any]:
        try:
            return await self._rooms.missed(room, before, since)
        except Refusal as refusal:
            if refusal.code not in (403, 404):
                raise
            # clew is not in the room any more
            log.warning("inbox.rejected", transport=self._name, reason=f"events before the newest could not be had: {refusal}")
            return []
