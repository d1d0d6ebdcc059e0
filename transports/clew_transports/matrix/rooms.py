"""What is known of rooms: who is in them, whether they are encrypted, which events in them are clew's own."""

from collections.abc import Mapping
from typing import Any

from clew_transports.calls import Unanswered
from clew_transports.matrix.api import Api, Refusal
from clew_transports.matrix.events import TIMELINE, Room, has_joined, is_event, membership, redacted, replied_to, since_asked_in
from clew_transports.reading import Malformed

MAX_ROOMS = 1000
"""Rooms that are remembered; one that was forgotten is asked for again."""
MAX_EVENTS = 5000
"""Events of which it is remembered whether they are clew's."""
MAX_MISSED = 1000
"""Events of a room that are fetched because there were more than one answer of /sync holds."""
PAGE = 50
ASKED = 3
"""Times that a room's members are asked for without an answer; then it counts as a group of people unknown."""


class Rooms:
    """Rooms of `me`, asked for where something happens in them and kept up to date by events."""

    def __init__(self, api: Api, me: str) -> None:
        self._api = api
        self.me = me
        self._rooms: dict[str, Room] = {}
        self._encrypted: dict[str, bool] = {}
        self._own: dict[str, bool] = {}
        self._gone: dict[str, bool] = {}
        self._silent: dict[str, int] = {}

    async def room(self, room: str) -> Room:
        """Raises Refusal, Unreached or Unanswered; a room that clew may not look into has members unknown."""
        if room not in self._rooms:
            _remember(self._rooms, room, Room(await self._members(room)), MAX_ROOMS)
        return self._rooms[room]

    async def is_encrypted(self, room: str) -> bool:
        """Whether nothing may be said there in the clear. Raises Refusal, Unreached or Unanswered."""
        if room not in self._encrypted:
            try:
                await self._api.call("GET", "rooms", room, "state", "m.room.encryption")
                _remember(self._encrypted, room, True, MAX_ROOMS)
            except Refusal as refusal:
                if refusal.kind != "M_NOT_FOUND":
                    raise
                _remember(self._encrypted, room, False, MAX_ROOMS)
        return self._encrypted[room]

    async def is_own(self, room: str, event: str) -> bool:
        """Whether an event is clew's. Raises Refusal, Unreached or Unanswered."""
        if event not in self._own:
            try:
                found = await self._api.call("GET", "rooms", room, "event", event)
                self.note_own(event, found.get("sender") == self.me)
            except Refusal as refusal:
                if refusal.code not in (403, 404):
                    raise
                self.note_own(event, False)
        return self._own[event]

    def note_own(self, event: str, own: bool = True) -> None:
        _remember(self._own, event, own, MAX_EVENTS)

    def is_gone(self, event: str) -> bool:
        """Whether it was seen that an event of clew's was deleted."""
        return event in self._gone

    def note(self, room: str, event: Any) -> None:
        """Keep what an event says of its room."""
        if not isinstance(event, dict):
            return
        if (gone := redacted(event)) and self._own.get(gone):
            _remember(self._gone, gone, True, MAX_EVENTS)
        if event.get("sender") == self.me and isinstance(identifier := event.get("event_id"), str) and is_event(identifier):
            self.note_own(identifier)
        if event.get("type") == "m.room.encryption" and event.get("state_key") == "":
            _remember(self._encrypted, room, True, MAX_ROOMS)
        if event.get("type") == "m.room.member" and isinstance(user := event.get("state_key"), str) and room in self._rooms:
            self._note_member(room, user, event)

    def forget(self, room: str) -> None:
        """Ask anew: something happened there that clew did not see."""
        self._rooms.pop(room, None)
        if not self._encrypted.get(room):
            self._encrypted.pop(room, None)

    async def answers_me(self, room: str, event: Any) -> bool:
        """Whether an event is a reply to one of clew's. Raises Refusal, Unreached or Unanswered."""
        answered = replied_to(event)
        return bool(answered) and await self.is_own(room, answered)

    async def missed(self, room: str, before: str, since: str | None) -> list[Any]:
        """What lies between `since` and `before`, oldest first, the newest MAX_MISSED of it; where clew came into the room meanwhile, from
        the invitation on.

        Raises Refusal, Unreached, Unanswered or Malformed.
        """
        found: list[Any] = []
        new = since is None
        while len(found) < MAX_MISSED:
            query: dict[str, str | int] = {"dir": "b", "limit": PAGE, "from": before, "filter": PAGE_FILTER}
            if since is not None and not new:
                query["to"] = since
            page = await self._api.call("GET", "rooms", room, "messages", query=query)
            events, end = page.get("chunk"), page.get("end")
            if not isinstance(events, list):
                raise Malformed("the homeserver's answer to /messages is none")
            found += events
            new = new or has_joined(events, self.me)
            if since_asked_in(events[::-1], self.me)[1] or not isinstance(end, str) or end == before:
                break
            before = end
        return found[::-1]

    async def _members(self, room: str) -> Mapping[str, str] | None:
        try:
            answer = await self._api.call("GET", "rooms", room, "members", query={"not_membership": "leave"})
        except Refusal as refusal:
            if refusal.code not in (403, 404):
                raise
            return None
        except Unanswered:
            # It may be longer than what is read of an answer. All other rooms wait here.
            self._silent[room] = self._silent.get(room, 0) + 1
            if self._silent[room] < ASKED:
                raise
            del self._silent[room]
            return None
        self._silent.pop(room, None)
        return members(answer.get("chunk"))

    def _note_member(self, room: str, user: str, event: Mapping[str, Any]) -> None:
        known = self._rooms[room].members
        if known is None:
            return
        now, _ = membership(event, user)
        others = {each: name for each, name in known.items() if each != user}
        self._rooms[room] = Room({**others, user: _shown(event)} if now in ("join", "invite") else others)


PAGE_FILTER = '{"types":[' + ",".join(f'"{kind}"' for kind in TIMELINE) + "]}"


def members(events: Any) -> dict[str, str]:
    """User id → shown name of those who joined or are invited, from events. Pure."""
    found = {}
    for event in events if isinstance(events, list) else ():
        user = event.get("state_key") if isinstance(event, dict) else None
        if isinstance(user, str) and membership(event, user)[0] in ("join", "invite"):
            found[user] = _shown(event)
    return found


def _shown(event: Mapping[str, Any]) -> str:
    content = event.get("content")
    name = content.get("displayname") if isinstance(content, dict) else None
    return name[:200] if isinstance(name, str) else ""


def _remember(kept: dict[str, Any], key: str, value: Any, most: int) -> None:
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > most:
        del kept[next(iter(kept))]
