"""Replies out: parts that are said once, and looked for where it is not known whether they were."""

import asyncio
import hashlib
import re
from collections import deque
from typing import Any

from clew.transport import Address, Delivery, Refused, Retry, Sent, Unknown
from clew_transports.calls import Unanswered, Unreached
from clew_transports.discord.api import NO_HISTORY, Api, Refusal
from clew_transports.discord.catching_up import missed
from clew_transports.discord.events import SERVER
from clew_transports.discord.markdown import rendered
from clew_transports.discord.place import MARGIN_MS, snowflake

CONFIRMED = 1000
"""Messages of its own that clew remembers, so that it takes none of them for another one with the same words."""
SUPPRESS_EMBEDS = 1 << 2
NO_MENTIONS: dict[str, list[str]] = {"parse": []}


class Sender:
    """Says what `transport` has to say. All of its methods raise Retry, Refused or Unknown."""

    def __init__(self, api: Api, transport: str) -> None:
        self._api = api
        self._transport = transport
        self._confirmed: deque[str] = deque(maxlen=CONFIRMED)

    async def send(self, delivery: Delivery) -> Sent:
        """Its next part."""
        channel = channel_of(delivery.address)
        content = await asyncio.to_thread(rendered, delivery.parts[delivery.sent].text)
        number = await self._said(channel, delivery, content) if content.strip() else ""
        self._confirmed.append(number)
        return Sent(number, delivery.sent + 1)

    async def find(self, delivery: Delivery, bot: str) -> Sent | None:
        """Whether its next part is among the words of `bot` in its channel."""
        channel, since = channel_of(delivery.address), snowflake(delivery.ts * 1000 - MARGIN_MS)
        content = await asyncio.to_thread(rendered, delivery.parts[delivery.sent].text)
        try:
            async for page in missed(self._api, self._transport, channel, since):
                for message in page:
                    if self._is_that(message, bot, _nonce(delivery), content):
                        return Sent(str(message["id"]), delivery.sent + 1)
        except (Refusal, Unreached, Unanswered) as error:
            raise outcome(error) from None
        return None

    async def _said(self, channel: str, delivery: Delivery, content: str) -> str:
        """Say it; returns the number of the message."""
        body: dict[str, Any] = {
            "content": content,
            "nonce": _nonce(delivery),
            "enforce_nonce": True,
            "allowed_mentions": NO_MENTIONS,
            "flags": SUPPRESS_EMBEDS,
        }
        asked = delivery.in_reply_to
        if delivery.sent == 0 and SERVER in delivery.context and re.fullmatch(r"[0-9]{1,20}", asked):
            body["message_reference"] = {"message_id": asked, "fail_if_not_exists": False}
        try:
            message = await self._api.call("POST", "/channels/{}/messages", channel, json=body)
        except Refusal as refusal:
            if refusal.code != NO_HISTORY or body.pop("message_reference", None) is None:
                raise outcome(refusal) from None
            message = await self._done("POST", "/channels/{}/messages", channel, json=body)
        except (Unreached, Unanswered) as error:
            raise outcome(error) from None
        number = str(message.get("id", "")) if isinstance(message, dict) else ""
        if number and str(message.get("content", "")).strip() != content.strip():  # by its nonce, a message that was there
            changed = {"content": content, "allowed_mentions": NO_MENTIONS}
            await self._done("PATCH", "/channels/{}/messages/{}", channel, number, json=changed)
        return number

    async def _done(self, method: str, path: str, *ids: str, json: Any = None) -> Any:
        """Raises Retry, Refused or Unknown."""
        try:
            return await self._api.call(method, path, *ids, json=json)
        except (Refusal, Unreached, Unanswered) as error:
            raise outcome(error) from None

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


def _nonce(delivery: Delivery) -> str:
    """The same for each try of one part; Discord takes 25 characters."""
    return hashlib.sha256(f"{delivery.id}/{delivery.sent}".encode()).hexdigest()[:25]


def outcome(error: Refusal | Unreached | Unanswered) -> Retry | Refused | Unknown:
    if isinstance(error, Unreached):
        return Retry(str(error))
    if isinstance(error, Unanswered):
        return Unknown(str(error))
    return Retry(str(error), error.retry_after) if error.status in (401, 429) else Refused(str(error))
