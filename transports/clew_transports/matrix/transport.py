"""The Matrix transport: events by /sync, replies by events with a transaction id, over the client-server API."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence

import structlog

from clew.plugins import Plugin
from clew.transport import (
    Address,
    Capabilities,
    Delivery,
    Host,
    Part,
    Preview,
    PreviewRef,
    Route,
    Sent,
    Typing,
)
from clew_transports.calls import ANSWER_S, Unanswered, Unreached
from clew_transports.matrix.api import Api, Refusal
from clew_transports.matrix.arrivals import Arrivals
from clew_transports.matrix.doctor import examine
from clew_transports.matrix.events import TIMELINE, Me, Place, Reader
from clew_transports.matrix.html import LIMIT, size
from clew_transports.matrix.invites import Invites
from clew_transports.matrix.outgoing import ENCRYPTED, Outgoing, unreachable
from clew_transports.matrix.rooms import Rooms
from clew_transports.matrix.settings import Settings, account, mistakes, sender
from clew_transports.matrix.setup import SETUP
from clew_transports.matrix.signing import encrypts, placed, sign_in, why
from clew_transports.pace import Pauses
from clew_transports.reading import Malformed
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

MAX_SEALED_BYTES = 32 * 1024 * 1024
"""The longest encrypted file that is fetched: it is in memory until it is known to be what was sent."""
FOREIGN = "encrypted rooms are left out: the token is of a session whose keys another client has; give clew the password instead"
UNCONFIRMED = "clew's session is not confirmed: do it in the client that has the account's identity, or some clients give it no keys"

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
                        host.report(False, why(error))
                        self._events = FEWER_EVENTS if isinstance(error, Unanswered) else EVENTS
                        if isinstance(error, Refusal):
                            if error.code == 401:
                                self._api.token = ""
                            pause = max(pause, min(error.retry_after or 0.0, LONGEST_PAUSE_S))
                    await asyncio.sleep(pause * random.uniform(0.75, 1.0))  # noqa: S311 - it keeps clients apart, no secret
                    pause = min(2 * pause, LONGEST_PAUSE_S)
            finally:
                self._outgoing.rooms = None
                self._close_keys()
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
        if not ref.startswith("{"):
            async for piece in self._api.download(ref):
                yield piece
            return
        if self._outgoing.encryption is None:
            raise LookupError(ENCRYPTED)
        from clew_transports.matrix.encryption import opened  # it needs an extra

        held, data = json.loads(ref), bytearray()
        async for piece in self._api.download(str(held.get("url"))):
            data += piece
            if len(data) > MAX_SEALED_BYTES:
                raise LookupError(f"an encrypted file has more than {MAX_SEALED_BYTES:,} bytes")
        yield await asyncio.to_thread(opened, held, bytes(data))

    # Messages in -------------------------------------------------------------------------------------------------

    async def _syncs(self, host: Host) -> AsyncIterator[None]:
        """Sign in, and ask for ever. The first answer comes at once, so that a connection is told only when the homeserver gives events."""
        if (place := placed(self._place, self._settings, host.folder() if encrypts() else None)) != self._place:
            await host.accept([], str(place))
            self._place = place
        me, self._place = await sign_in(self._api, self._settings, self._place, self._answer_s)
        known = self._outgoing.rooms
        rooms = self._outgoing.rooms = known if known and known.me == me.id else Rooms(self._api, me.id)
        shown = await self._prepare(host, me) if encrypts() else me.id
        reader = Reader(self._name, me, self._settings.groups, self._settings.prefix)
        arrivals = Arrivals(self._name, self._api, reader, rooms, self._outgoing.encryption)
        wait = 0.0
        while True:
            query: dict[str, str | int] = {"filter": _filter(self._events), "timeout": int(wait * 1000)}
            if self._place.since is not None:
                query["since"] = self._place.since
            answer = await self._api.call("GET", "sync", query=query, answer_s=wait + min(GRACE_S, self._answer_s))
            batch, place, news = await arrivals.taken(self._place, answer)
            if news:
                await host.accept(batch, str(place))
            self._place = place
            host.report(True, shown)
            self._events = EVENTS
            self._place = await self._invites.answered(host, self._place)
            yield
            wait = self._poll_s

    async def _prepare(self, host: Host, me: Me) -> str:
        """Have the keys of this session, and a word for people about it. Raises Refusal, Unreached or Unanswered."""
        from clew_transports.matrix.encryption import Encryption, ForeignSession  # it needs an extra
        from clew_transports.matrix.identity import OtherIdentity, confirm

        held = self._outgoing.encryption
        if held is None or (held.user, held.device) != (me.id, me.device):
            self._close_keys()
            held = Encryption(self._name, host.folder(), me.id, me.device)
            self._outgoing.encryption = held
        try:
            await held.check(self._api)
            await held.keep_up(self._api)
        except ForeignSession:
            self._close_keys()
            log.warning("transport.limited", transport=self._name, reason=FOREIGN)
            return me.id
        except Refusal as refusal:
            if not refusal.lasts:
                raise
            log.warning("transport.limited", transport=self._name, reason=f"keys cannot be exchanged: {refusal}")
        try:
            await confirm(self._api, held, host.folder(), self._settings.secret("password"))
        except OtherIdentity:
            log.warning("transport.limited", transport=self._name, reason=UNCONFIRMED)
        except Refusal as refusal:
            if not (refusal.lasts or refusal.session):
                raise
            log.warning("transport.limited", transport=self._name, reason=f"{UNCONFIRMED} ({refusal})")
        return f"{me.id}, session {me.device}, key {held.fingerprint}"

    def _close_keys(self) -> None:
        if self._outgoing.encryption:
            self._outgoing.encryption.close()
        self._outgoing.encryption = None

    async def _type(self, to: Address) -> None:
        if wait := await self._outgoing.type(to, self._place.user):
            self._quiet.pause(to, asyncio.get_running_loop().time() + wait)


def _filter(events: int) -> str:
    """What is asked of /sync, as JSON: messages and who is in the rooms, in the order in which it happened."""
    nothing = {"not_types": ["*"]}
    timeline = {"types": list(TIMELINE), "limit": events}
    room = {"timeline": timeline, "state": nothing, "ephemeral": nothing, "account_data": nothing}
    return json.dumps({"room": room, "presence": nothing, "account_data": nothing}, separators=(",", ":"))


def _build(name: str, settings: Settings) -> MatrixTransport:
    return MatrixTransport(name, settings)


plugin = Plugin("matrix", Settings, _build, examine, mistakes, sender, account, setup=SETUP)
