"""What clew says on Matrix: messages, their edits, typing; and what a failure of each means."""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import structlog

from clew.transport import Address, Delivery, Gone, Preview, Refused, Retry, Unknown
from clew_transports.calls import Unanswered, Unreached
from clew_transports.matrix.api import Api, Refusal
from clew_transports.matrix.content import Content, edited, posted
from clew_transports.matrix.events import is_event, is_room
from clew_transports.matrix.html import unformatted, words
from clew_transports.matrix.rooms import Rooms

TYPING_SHOWN_S = 30.0
"""Seconds for which clew is shown as typing, unless it is told again or the reply comes."""
HINT_S = 5.0

ENCRYPTED = "the room is encrypted, and this clew cannot say anything there: pip install 'clew[matrix]', or use a room without encryption"

if TYPE_CHECKING:  # it needs an extra
    from clew_transports.matrix.encryption import Encryption

log = structlog.get_logger()


def unreachable(to: Address) -> str:
    """Why no event can ever be sent to `to`; empty where it may."""
    if not is_room(to.chat):
        return "the chat must be the id of a room, such as !abc:example.org"
    return "" if to.thread is None or is_event(to.thread) else "the thread must be the id of the event that it begins with, such as $abc"


class Outgoing:
    """Calls for the transport `name`; `rooms` is None until clew has signed in, `encryption` where there is none. answer_s: seconds for an
    answer."""

    def __init__(self, name: str, api: Api, answer_s: float) -> None:
        self._name = name
        self._api = api
        self._answer_s = answer_s
        self.rooms: Rooms | None = None
        self.encryption: Encryption | None = None

    async def say(self, delivery: Delivery) -> str:
        """The id of the event that says the delivery's next part; a preview becomes the first. Raises Retry, Refused, Unknown or Gone."""
        to, number = delivery.address, delivery.sent + 1
        with _explained():
            rooms = await self._open(to)
            text = delivery.parts[delivery.sent].text
            if not text.strip():
                return ""
            if number == 1 and (shown := delivery.preview_ref):
                if rooms.is_gone(shown):
                    raise Gone("the message was deleted")
                await self._formatted(rooms, to, f"{delivery.id}.{number}", text, lambda said: edited(said, shown))
                return shown
            replies = number == 1 and not (await rooms.room(to.chat)).direct
            event = await self._formatted(
                rooms,
                to,
                f"{delivery.id}.{number}",
                text,
                lambda said: posted(said, to, delivery.in_reply_to, delivery.context, replies=replies),
            )
            return event

    async def show(self, to: Address, preview: Preview) -> str:
        """The id of the event that shows a preview. Raises Retry, Refused or Unknown."""
        with _explained():
            rooms = await self._open(to)
            said = await asyncio.to_thread(words, preview.text)
            if shown := preview.ref:
                if rooms.is_gone(shown):
                    raise Refused("the message was deleted")
                once = hashlib.sha256(preview.text.encode()).hexdigest()[:16]
                await self._put(rooms, to, f"{preview.id}.{once}", edited(said, shown))
                return shown
            replies = not (await rooms.room(to.chat)).direct
            event = await self._put(rooms, to, f"{preview.id}.0", posted(said, to, preview.in_reply_to, preview.context, replies=replies))
            return event

    async def take_back(self, delivery: Delivery, event: str) -> None:
        """Delete an event of clew's. Raises Retry, Refused or Unknown."""
        with _explained():
            path = ("rooms", delivery.address.chat, "redact", event, f"{delivery.id}.gone")
            await self._api.call("PUT", *path, body={}, answer_s=self._answer_s)

    async def type(self, to: Address, me: str) -> float | None:
        """Decoration: whatever goes wrong with it is let go. Returns the seconds that the homeserver asks to wait."""
        with contextlib.suppress(Unreached, Unanswered):
            try:
                body = {"typing": True, "timeout": int(TYPING_SHOWN_S * 1000)}
                await self._api.call("PUT", "rooms", to.chat, "typing", me, body=body, answer_s=HINT_S)
            except Refusal as refusal:
                return refusal.retry_after
        return None

    async def _open(self, to: Address) -> Rooms:
        """What is known of rooms, if something may be said in this one. Raises Retry, Refused and what calls raise."""
        if reason := unreachable(to):
            raise Refused(f"{to} is no room: {reason}")
        if self.rooms is None or not self._api.token:
            raise Retry("clew is not signed in to the homeserver")
        if self.encryption is None and await self.rooms.is_encrypted(to.chat):
            raise Refused(ENCRYPTED)
        return self.rooms

    async def _formatted(self, rooms: Rooms, to: Address, transaction: str, text: str, content: Callable[[Content], Content]) -> str:
        """Send `text` with its HTML, or as it is if the homeserver does not take that. content: makes the event's of what is said."""
        try:
            return await self._put(rooms, to, transaction, content(await asyncio.to_thread(words, text)))
        except Refusal as refusal:
            if refusal.code not in (400, 413):
                raise
            log.warning("outbox.retry", transport=self._name, id=transaction, reason=f"sent without markup: {refusal}")
            return await self._put(rooms, to, transaction, content(unformatted(text)))

    async def _put(self, rooms: Rooms, to: Address, transaction: str, content: Content) -> str:
        kind = "m.room.message"
        if self.encryption and await rooms.is_encrypted(to.chat):
            members = (await rooms.room(to.chat)).members
            if members is None:
                raise Refused("it is not known who is in the room, and so for whom to encrypt")
            content = await self.encryption.encrypted(self._api, to.chat, members, kind, content)
            kind = "m.room.encrypted"
        path = ("rooms", to.chat, "send", kind, transaction)
        answer = await self._api.call("PUT", *path, body=content, answer_s=self._answer_s)
        event = str(answer.get("event_id", ""))
        rooms.note_own(event)
        return event


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Failures of calls as the host knows them."""
    try:
        yield
    except Refusal as refusal:
        if refusal.code in (401, 429, 502, 503):
            raise Retry(str(refusal), refusal.retry_after) from None
        if refusal.code >= 500:
            raise Unknown(str(refusal)) from None
        raise Refused(str(refusal)) from None
    except Unreached as why:
        raise Retry(str(why)) from None
    except Unanswered as why:
        raise Unknown(str(why)) from None
