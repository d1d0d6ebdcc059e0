"""Replies out: parts that are said once, what shows them while they are written, and how they are looked for."""

import asyncio
import contextlib
import hashlib
import re
from collections import deque
from collections.abc import Iterator
from typing import Any

from clew.transport import Address, Delivery, Gone, Inbound, Preview, PreviewRef, Refused, Retry, Sent, Unknown
from clew_transports.buttons import BUTTONS, CLOSED, PRESSED, has_buttons
from clew_transports.calls import Unanswered, Unreached
from clew_transports.discord.api import NO_HISTORY, UNEDITABLE, Api, Refusal
from clew_transports.discord.catching_up import missed
from clew_transports.discord.events import SERVER
from clew_transports.discord.markdown import rendered
from clew_transports.discord.place import MARGIN_MS, snowflake

CONFIRMED = 1000
"""Messages of its own that clew remembers, so that it takes none of them for another one with the same words."""
SUPPRESS_EMBEDS = 1 << 2
NO_MENTIONS: dict[str, list[str]] = {"parse": []}
_MESSAGES, _MESSAGE = "/channels/{}/messages", "/channels/{}/messages/{}"
_PRESS = "/interactions/{}/{}/callback"
_UPDATE, _REPLY, _FOR_THEM_ALONE = 7, 4, 1 << 6
"""Ways to answer a press: by changing its message, or by a message that nobody else sees."""


class Sender:
    """Says what `transport` has to say. Its public methods raise Retry, Refused or Unknown; `send` Gone, too."""

    def __init__(self, api: Api, transport: str) -> None:
        self._api = api
        self._transport = transport
        self._confirmed: deque[str] = deque(maxlen=CONFIRMED)

    async def send(self, delivery: Delivery) -> Sent:
        """Its next part, the first in the place of what showed it; or, without parts, only take that away."""
        channel = channel_of(delivery.address)
        with _told():
            if not delivery.parts:
                await self._take_away(channel, delivery.preview_ref or "")
                return Sent()
            content = await asyncio.to_thread(rendered, delivery.parts[delivery.sent].text)
            number = await self._shown(channel, delivery, content) if content.strip() else ""
        self._confirmed.append(number)
        return Sent(number, delivery.sent + 1)

    async def preview(self, to: Address, event: Preview) -> PreviewRef | None:
        """The message that shows this now: posted, as a reply to the question, or edited."""
        content = await asyncio.to_thread(rendered, event.text)
        if not content.strip():
            return event.ref
        shown = Delivery(event.id, to, event.text, (), 0.0, event.in_reply_to, context=event.context, preview_ref=event.ref)
        try:
            with _told():
                return await self._shown(channel_of(to), shown, content)
        except Gone as why:
            raise Refused(str(why)) from None

    async def find(self, delivery: Delivery, bot: str) -> Sent | None:
        """Whether its next part is among the words of `bot` in its channel."""
        if not delivery.parts:
            return None
        channel, since = channel_of(delivery.address), snowflake(delivery.ts * 1000 - MARGIN_MS)
        content = await asyncio.to_thread(rendered, delivery.parts[delivery.sent].text)
        with _told():
            async for page in missed(self._api, self._transport, channel, since):
                for message in page:
                    if self._is_that(message, bot, _nonce(delivery), content):
                        return Sent(str(message["id"]), delivery.sent + 1)
        return None

    async def answer(self, pressed: Inbound, taken: bool) -> None:
        """See `buttons.Answer`. Discord waits three seconds for it."""
        number, _, token = pressed.context[PRESSED].partition("/")
        said = {"content": CLOSED, "flags": _FOR_THEM_ALONE}
        answer = {"type": _UPDATE, "data": {"components": []}} if taken else {"type": _REPLY, "data": said}
        with contextlib.suppress(Refusal, Unreached, Unanswered):
            try:
                await self._api.call("POST", _PRESS, number, token, json=answer, patience_s=0.0)
            except Refusal:  # it came too late
                if taken:
                    await self._api.call("PATCH", _MESSAGE, pressed.address.chat, pressed.reply_to or "", json={"components": []})

    async def _shown(self, channel: str, delivery: Delivery, content: str) -> str:
        """The number of the message that says `content`: the one that is there already, or a new one."""
        below = {"components": _buttons()} if has_buttons(delivery) else {}
        if delivery.preview_ref and delivery.sent == 0:
            return await self._edited(channel, delivery.preview_ref, content, below)
        message = await self._posted(channel, delivery, content, _nonce(delivery), below)
        number = str(message.get("id", ""))
        if not number or str(message.get("content", "")).strip() == content.strip():
            return number
        try:  # by its nonce, the message whose posting nobody noted; or one that was deleted since
            return await self._edited(channel, number, content, below)
        except Gone:
            message = await self._posted(channel, delivery, content, _nonce(delivery, "anew"), below)
            return str(message.get("id", ""))

    async def _posted(self, channel: str, delivery: Delivery, content: str, nonce: str, below: dict[str, Any]) -> dict[str, Any]:
        """In a server as a reply to the question, where Discord lets it be one. below: buttons, where it has some."""
        body: dict[str, Any] = {"content": content, "nonce": nonce, "enforce_nonce": True, **below}
        body |= {"allowed_mentions": NO_MENTIONS, "flags": SUPPRESS_EMBEDS}
        asked = delivery.in_reply_to
        if delivery.sent == 0 and SERVER in delivery.context and re.fullmatch(r"[0-9]{1,20}", asked):
            body["message_reference"] = {"message_id": asked, "fail_if_not_exists": False}
        try:
            message = await self._api.call("POST", _MESSAGES, channel, json=body)
        except Refusal as refusal:
            if refusal.code != NO_HISTORY or body.pop("message_reference", None) is None:
                raise
            message = await self._api.call("POST", _MESSAGES, channel, json=body)
        return message if isinstance(message, dict) else {}

    async def _edited(self, channel: str, number: str, content: str, below: dict[str, Any]) -> str:
        """Raises Gone where there is no such message (any more)."""
        changed = {"content": content, "allowed_mentions": NO_MENTIONS, **below}
        try:
            await self._api.call("PATCH", _MESSAGE, channel, number, json=changed)
        except Refusal as refusal:
            if refusal.code not in UNEDITABLE:
                raise
            raise Gone(str(refusal)) from None
        return number

    async def _take_away(self, channel: str, number: str) -> None:
        try:
            await self._api.call("DELETE", _MESSAGE, channel, number)
        except Refusal as refusal:
            if refusal.code not in UNEDITABLE:
                raise

    def _is_that(self, message: dict[str, Any], bot: str, nonce: str, content: str) -> bool:
        """By its nonce, as long as Discord remembers it, else by its words."""
        author = message.get("author")
        if not isinstance(author, dict) or str(author.get("id")) != bot:
            return False
        if "nonce" in message:
            return str(message["nonce"]) == nonce
        return str(message.get("content", "")).strip() == content.strip() and str(message["id"]) not in self._confirmed


def channel_of(address: Address) -> str:
    """Raises Refused for an address that can be no channel of Discord."""
    if why := unreachable(address):
        raise Refused(f"{address}: {why}")
    return address.chat


def unreachable(to: Address) -> str:
    """Why Discord takes no message for `to`; empty where it may."""
    return "" if re.fullmatch(r"[0-9]{1,20}", to.chat) and to.thread is None else "the chat must be the number of a channel or a thread"


def _buttons() -> list[dict[str, Any]]:
    """A row of components, in Discord's words."""
    styles = (3, 4, 2)  # green, red, grey
    row = [{"type": 2, "style": style, "label": text, "custom_id": data} for (text, data), style in zip(BUTTONS, styles, strict=True)]
    return [{"type": 1, "components": row}]


def _nonce(delivery: Delivery, more: str = "") -> str:
    """The same for each try of one part, and for what showed it while it was written; Discord takes 25 characters."""
    return hashlib.sha256(f"{delivery.id}/{delivery.sent}{more}".encode()).hexdigest()[:25]


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What the failures of calls are for whoever sends."""
    try:
        yield
    except Unreached as why:
        raise Retry(str(why)) from None
    except Unanswered as why:
        raise Unknown(str(why)) from None
    except Refusal as refusal:
        if refusal.status in (401, 429):
            raise Retry(str(refusal), refusal.retry_after, everywhere=refusal.everywhere) from None
        raise Refused(str(refusal)) from None
