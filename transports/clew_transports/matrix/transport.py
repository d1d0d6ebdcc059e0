"""The Matrix transport: events by /sync, replies by events with a transaction id, over the client-server API."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import structlog

from clew.plugins import Fault, Plugin
from clew.transport import (
    Address,
    Capabilities,
    Delivery,
    Host,
    Inbound,
    Part,
    Preview,
    PreviewRef,
    Route,
    Sent,
    Typing,
)
from clew_transports.calls import ANSWER_S, Unanswered, Unreached
from clew_transports.matrix.api import Api, Refusal
from clew_transports.matrix.events import TIMELINE, Malformed, Place, Reader, Sync, Timeline, since_asked_in
from clew_transports.matrix.html import LIMIT, size
from clew_transports.matrix.invites import Invites
from clew_transports.matrix.outgoing import Outgoing, unreachable
from clew_transports.matrix.rooms import Rooms
from clew_transports.matrix.settings import Settings
from clew_transports.matrix.signing import placed, sign_in
from clew_transports.pace import Pauses
from clew_transports.text import parts

POLL_S = 30.0
"""Seconds that the homeserver holds a /sync open while there is nothing."""
GRACE_S = 30.0
"""Seconds beyond POLL_S after which a /sync without an answer is given up."""
LONGEST_PAUSE_S = 60.0
TYPING_S = 20.0
"""Seconds after which clew is shown as typing again; see `outgoing.TYPING_SHOWN_S`."""
EDIT_EVERY_S = 3.0
"""Seconds between two edits of a message that is being written. Each is an event, which stays in the room for ever."""
EVENTS, FEWER_EVENTS = 20, 1
"""Events of a room in one answer; fewer after an answer that did not come, which may have been longer than what is read of one. What is
left out is asked for by itself."""

BAD_TOKEN = "the homeserver does not know the session any more: make a new token, or give clew the password"
BAD_PASSWORD = "the homeserver does not take this user and password"

log = structlog.get_logger()


class MatrixTransport:
    """`name` is the section's name in the config and the first part of its addresses. All times in seconds."""

    capabilities = Capabilities(
        limit=LIMIT,
        unit="bytes",
        markup="markdown",
        stream="edit",
        edit_every_s=EDIT_EVERY_S,
        idempotent_send=True,
        merges=True,
        typing_s=TYPING_S,
        unreachable=unreachable,
    )

    def __init__(
        self, name: str, settings: Settings, *, first_pause: float = 1.0, poll_s: float = POLL_S, answer_s: float = ANSWER_S
    ) -> None:
        self._name = name
        self._settings = settings
        self._first_pause = first_pause
        self._poll_s = poll_s
        self._answer_s = answer_s
        self._api = Api(settings.base_url)
        self._place = Place()
        self._invites = Invites(name, self._api, settings.invites)
        self._hints: dict[Address, asyncio.Task[None]] = {}
        self._outgoing = Outgoing(name, self._api, answer_s)
        self._quiet = Pauses()
        self._events = EVENTS

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Raises what `host.accept` raises."""
        self._place = Place.load(await host.cursor())
        pause = self._first_pause
        async with self._api:
            try:
                while True:
                    try:
                        async for _ in self._syncs(host):
                            pause = self._first_pause
                    except (Refusal, Unreached, Unanswered, Malformed) as error:
                        host.report(False, _why(error))
                        self._events = FEWER_EVENTS if isinstance(error, Unanswered) else EVENTS
                        if isinstance(error, Refusal):
                            if error.code == 401:
                                self._api.token = ""
                            pause = max(pause, min(error.retry_after or 0.0, LONGEST_PAUSE_S))
                    await asyncio.sleep(pause * random.uniform(0.75, 1.0))  # noqa: S311 - it keeps clients apart, no secret
                    pause = min(2 * pause, LONGEST_PAUSE_S)
            finally:
                self._outgoing.rooms = None
                await self._invites.close()
                for task in self._hints.values():
                    task.cancel()
                await asyncio.gather(*self._hints.values(), return_exceptions=True)

    def parts(self, text: str) -> list[Part]:
        return parts(text, LIMIT, "bytes", size)

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`: one part. The homeserver drops repeats by their transaction id, for some time; each part is noted as sent
        before the next one leaves."""
        if hint := self._hints.get(delivery.address):
            await asyncio.wait((hint,))
        if not delivery.parts:
            await self._outgoing.take_back(delivery, delivery.preview_ref or "")
            return Sent()
        return Sent(await self._outgoing.say(delivery), delivery.sent + 1)

    async def find(self, delivery: Delivery) -> Sent | None:
        """Not needed: what is sent again under its transaction id is not sent twice."""
        return None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        """Typing is shown in the whole room: there is none in threads."""
        if isinstance(event, Preview):
            return await self._outgoing.show(to, event)
        if self._outgoing.rooms and to not in self._hints and not self._quiet.left(to, asyncio.get_running_loop().time()):
            task = self._hints[to] = asyncio.create_task(self._type(to), name=f"{self._name}.hint")
            task.add_done_callback(lambda _: self._hints.pop(to, None))
        return None

    def routes(self) -> Sequence[Route]:
        return ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        async for piece in self._api.download(ref):
            yield piece

    # Messages in -------------------------------------------------------------------------------------------------

    async def _syncs(self, host: Host) -> AsyncIterator[None]:
        """Sign in, and ask for ever. The first answer comes at once, so that a connection is told only when the homeserver gives events."""
        if (place := placed(self._place, self._settings)) != self._place:
            await host.accept([], str(place))
            self._place = place
        me, self._place = await sign_in(self._api, self._settings, self._place, self._answer_s)
        known = self._outgoing.rooms
        rooms = self._outgoing.rooms = known if known and known.me == me.id else Rooms(self._api, me.id)
        reader = Reader(self._name, me, self._settings.groups, self._settings.prefix)
        wait = 0.0
        while True:
            query: dict[str, str | int] = {"filter": _filter(self._events), "timeout": int(wait * 1000)}
            if self._place.since is not None:
                query["since"] = self._place.since
            answer = await self._api.call("GET", "sync", query=query, answer_s=wait + min(GRACE_S, self._answer_s))
            await self._take(host, reader, rooms, Sync.of(answer, me.id))
            host.report(True, me.id)
            self._events = EVENTS
            self._place = await self._invites.answered(host, self._place)
            yield
            wait = self._poll_s

    async def _take(self, host: Host, reader: Reader, rooms: Rooms, sync: Sync) -> None:
        """Store what is new, and with it how far that is. What was said before clew first signed in is not answered."""
        batch = []
        for room in sync.left:
            rooms.forget(room)
        if self._place.since is not None:
            for room, timeline in sync.joined.items():
                batch += await self._new(reader, rooms, room, timeline)
        place = self._place.behind(sync)
        if batch or not sync.is_empty or self._place.since is None:
            await host.accept(batch, str(place))
        self._place = place

    async def _new(self, reader: Reader, rooms: Rooms, room: str, timeline: Timeline) -> list[Inbound]:
        """The messages of a room. What is missing in front of them is fetched."""
        events = timeline.events
        if timeline.before:
            rooms.forget(room)
            since = None if room in self._place.invites else self._place.since
            events = [*await self._missed(rooms, room, timeline.before, since), *events]
        events, _ = since_asked_in(events, reader.me.id)
        found = []
        for event in events:
            rooms.note(room, event)
            try:
                # A reply that speaks to clew by its words too needs no look at what it answers.
                inbound = reader.read(event, room, await rooms.room(room))
                if inbound is None and await rooms.answers_me(room, event):
                    inbound = reader.read(event, room, await rooms.room(room), to_me=True)
            except Malformed as reason:
                log.warning("inbox.rejected", transport=self._name, reason=str(reason))
                continue
            if inbound:
                found.append(inbound)
        return found

    async def _missed(self, rooms: Rooms, room: str, before: str, since: str | None) -> list[Any]:
        try:
            return await rooms.missed(room, before, since)
        except Refusal as refusal:
            if refusal.code not in (403, 404):
                raise
            # clew is not in the room any more
            log.warning("inbox.rejected", transport=self._name, reason=f"events before the newest could not be had: {refusal}")
            return []

    async def _type(self, to: Address) -> None:
        if wait := await self._outgoing.type(to, self._place.user):
            self._quiet.pause(to, asyncio.get_running_loop().time() + wait)


def _filter(events: int) -> str:
    """What is asked of /sync, as JSON: messages and who is in the rooms, in the order in which it happened."""
    nothing = {"not_types": ["*"]}
    timeline = {"types": list(TIMELINE), "limit": events}
    room = {"timeline": timeline, "state": nothing, "ephemeral": nothing, "account_data": nothing}
    return json.dumps({"room": room, "presence": nothing, "account_data": nothing}, separators=(",", ":"))


def _why(error: Exception) -> str:
    """What is wrong and what mends it."""
    if isinstance(error, Refusal):
        if error.kind in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN"):
            return BAD_TOKEN
        if error.kind in ("M_FORBIDDEN", "M_USER_DEACTIVATED"):
            return BAD_PASSWORD
    return str(error)


async def _examine(name: str, settings: Settings) -> list[Fault]:
    """For `clew doctor`: whether the homeserver knows the account. Signing in with a password would make a session, so it is not tried."""
    api = Api(settings.base_url, settings.secret("token"))
    faults = []
    try:
        async with api:
            await api.call("GET", "login")
            if api.token:
                await sign_in(api, settings, Place(), ANSWER_S)
    except (Refusal, Unreached, Unanswered, Malformed) as error:
        faults.append(Fault(_why(error), "check transports." + name))
    return faults


def _build(name: str, settings: Settings) -> MatrixTransport:
    return MatrixTransport(name, settings)


plugin = Plugin("matrix", Settings, _build, _examine)
