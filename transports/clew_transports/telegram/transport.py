"""The Telegram transport: updates by long polling or by webhook, replies by sendMessage, over the Bot API."""

import asyncio
import contextlib
import hashlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import structlog

from clew.plugins import Plugin
from clew.transport import (
    Address,
    Capabilities,
    Delivery,
    Gone,
    Host,
    Inbound,
    Part,
    Preview,
    PreviewRef,
    Refused,
    Retry,
    Route,
    Sent,
    Typing,
    Unknown,
)
from clew_transports.buttons import BUTTONS, CLOSED, PRESSED, Presses, has_buttons
from clew_transports.calls import ANSWER_S, Unanswered, Unreached
from clew_transports.pace import Pauses
from clew_transports.reading import Malformed
from clew_transports.telegram.api import Api, Refusal
from clew_transports.telegram.doctor import examine, why
from clew_transports.telegram.html import LIMIT, rendered, size, visible
from clew_transports.telegram.settings import Settings, account, mistakes, sender, streams, unreachable
from clew_transports.telegram.setup import SETUP
from clew_transports.telegram.updates import CHAT, Bot, Place, Reader
from clew_transports.telegram.webhook import LOOK_S, Unreachable, Webhook
from clew_transports.text import parts

POLL_S = 50.0
"""Seconds that Telegram holds a getUpdates open while there is nothing."""
GRACE_S = 15.0
"""Seconds beyond POLL_S after which a poll without an answer is given up."""
LONGEST_PAUSE_S = 60.0
TYPING_S = 4.0
"""A chat action is shown for 5 seconds or less."""
DRAFT_EVERY_S = 1.0
"""Seconds between two drafts in one chat; about one message per second and chat is what Telegram allows."""
HINT_S = 5.0
EDIT_EVERY_S = 3.0
"""Seconds between two edits in one group: a bot may send no more than 20 messages a minute there (Bots FAQ)."""
PER_SECOND = 30.0
"""Messages that a bot may send in all (Bots FAQ)."""
UNEDITABLE = ("message to edit not found", "message can't be edited", "MESSAGE_ID_INVALID")
"""What Telegram says of a message that was deleted meanwhile, or is none of the bot's."""
UPDATES = ("message", "edited_message", "message_reaction", "callback_query")

log = structlog.get_logger()


class TelegramTransport:
    """`name` is the section's name in the config and the first part of its addresses. All times in seconds."""

    capabilities = Capabilities(
        limit=LIMIT,
        unit="utf16",
        markup="markdown",
        stream="ephemeral",
        stream_at=streams,
        edit_every_s=EDIT_EVERY_S,
        per_second=PER_SECOND,
        merges=True,
        typing_s=TYPING_S,
        unreachable=unreachable,
    )

    def __init__(
        self,
        name: str,
        settings: Settings,
        *,
        first_pause: float = 1.0,
        poll_s: float = POLL_S,
        look_s: float = LOOK_S,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._name = name
        self._settings = settings
        self._first_pause = first_pause
        self._poll_s = poll_s
        self._look_s = look_s
        self._answer_s = answer_s
        self._api = Api(settings.base_url, settings.token.get_secret_value())
        self._taking: Callable[[Sequence[Any]], Awaitable[None]] | None = None
        self._alone = asyncio.Lock()
        self._webhook = Webhook(name, settings.token.get_secret_value(), lambda: self._taking)
        self._host: Host | None = None
        self._place = Place()
        self._hints: dict[Address, asyncio.Task[None]] = {}
        self._presses = Presses(name, self._answer)
        self._quiet = Pauses()
        self._waits = Pauses()
        self._drafts = True

    @property
    def called(self) -> bool:
        return self._settings.mode == "webhook"

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Raises what `host.accept` raises."""
        await self._kept_up(host, self._calls if self.called else self._polls)

    async def attend(self, host: Host) -> None:
        """See `Called.attend`. Raises what `host.accept` raises."""
        await self._kept_up(host, self._attended)

    async def _kept_up(self, host: Host, receive: Callable[[Host, Reader], AsyncIterator[None]]) -> None:
        self._host, self._place = host, Place.load(await host.cursor())
        pause = self._first_pause
        async with self._api:
            try:
                while True:
                    try:
                        reader = Reader(self._name, await self._who(), self._settings.groups, self._settings.prefix)
                        async for _ in receive(host, reader):
                            pause = self._first_pause
                    except (Refusal, Unreached, Unanswered, Malformed, Unreachable) as error:
                        host.report(False, why(error))
                        if isinstance(error, Refusal) and error.retry_after:
                            pause = max(pause, min(error.retry_after, LONGEST_PAUSE_S))
                    await asyncio.sleep(pause * random.uniform(0.75, 1.0))  # noqa: S311 - it keeps clients apart, no secret
                    pause = min(2 * pause, LONGEST_PAUSE_S)
            finally:
                self._host = self._taking = None
                await self._presses.stop()
                for task in self._hints.values():
                    task.cancel()
                await asyncio.gather(*self._hints.values(), return_exceptions=True)

    def parts(self, text: str) -> list[Part]:
        return parts(text, LIMIT, "utf16", size)

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`: one part. Telegram drops no repeats, so each part is noted as sent before the next one leaves."""
        if wait := self._waits.left(delivery.address, asyncio.get_running_loop().time()):
            raise Retry("Telegram asked to wait", wait)
        if hint := self._hints.get(delivery.address):
            await asyncio.wait((hint,))  # a draft that came behind the reply would stand there for half a minute
        if not delivery.parts:
            await self._told(delivery.address, lambda: self._delete(delivery))
            return Sent()
        text = delivery.parts[delivery.sent].text
        message = await self._said(delivery, text) if text.strip() else {}
        return Sent(str(message.get("message_id", "")), delivery.sent + 1)

    async def find(self, delivery: Delivery) -> Sent | None:
        """The Bot API cannot be asked what was said."""
        return None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        """Typing everywhere; what is being said as a draft in private chats, the only ones where Telegram has drafts, else by editing."""
        if isinstance(event, Preview) and streams(to) == "edit":
            return await self._previewed(to, event)
        now = asyncio.get_running_loop().time()
        if self._host is None or to in self._hints or self._quiet.left(to, now) or self._waits.left(to, now):
            return None
        if isinstance(event, Preview) and self._drafts and event.text.strip():
            self._quiet.pause(to, now + DRAFT_EVERY_S)
            call = self._draft(to, event)
        else:
            self._quiet.pause(to, now + (TYPING_S if isinstance(event, Preview) else 0.0))
            call = self._hint(to, "sendChatAction", {"action": "typing"})
        task = self._hints[to] = asyncio.create_task(call, name=f"{self._name}.hint")
        task.add_done_callback(lambda _: self._hints.pop(to, None))
        return None

    def routes(self) -> Sequence[Route]:
        return (Route("POST", "/", self._webhook.posted),) if self._settings.mode == "webhook" else ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        async for piece in self._api.download(ref):
            yield piece

    # Messages in -------------------------------------------------------------------------------------------------

    async def _who(self) -> Bot:
        """Asked before anything is read: without it clew could not tell its own words from other people's."""
        bot = Bot.of(await self._api.call("getMe", answer_s=self._answer_s))
        if self._place.bot != bot.id:
            self._place = Place(bot.id)
        return bot

    async def _polls(self, host: Host, reader: Reader) -> AsyncIterator[None]:
        """Poll for ever. The first poll returns at once, so that a connection is told only when Telegram gives messages."""
        wait = 0.0
        await self._unhook(host)
        while True:
            arguments = {"timeout": int(wait), "limit": 100, "allowed_updates": UPDATES}
            if self._place.next is not None:
                arguments["offset"] = self._place.next
            updates = await self._api.call("getUpdates", arguments, wait + min(GRACE_S, self._answer_s))
            if not isinstance(updates, list):
                raise Malformed("Telegram's answer to getUpdates is no list")
            await self._take(host, reader, updates)
            host.report(True, f"@{reader.bot.username}")
            yield
            wait = self._poll_s

    async def _calls(self, host: Host, reader: Reader) -> AsyncIterator[None]:
        """Have Telegram call, and look for ever whether its calls arrive. Raises Unreachable where they cannot."""
        url = host.webhook()
        if not url:
            raise Unreachable("mode is webhook, and http.public_url does not say where Telegram reaches clew")
        if self._place.hook != url:  # noted first: whatever happens then, it is known for clew's own
            self._place = replace(self._place, hook=url, next=None)
            await host.accept([], self._place.onto)
        self._taking = lambda updates: self._called(host, reader, updates)
        await self._webhook.set(self._api, url, UPDATES)
        while True:
            await self._webhook.look(self._api, url)
            host.report(True, f"@{reader.bot.username}")
            yield
            await asyncio.sleep(self._look_s)

    async def _attended(self, host: Host, reader: Reader) -> AsyncIterator[None]:
        """Take what Telegram calls with. Whether it does is looked after by the daemon that runs the transport."""
        self._taking = lambda updates: self._called(host, reader, updates)
        host.report(True, f"@{reader.bot.username}")
        yield
        await asyncio.Event().wait()

    async def _called(self, host: Host, reader: Reader, updates: Sequence[Any]) -> None:
        """Store what came by a call. Other daemons are called too, so that the place to go on from is the one that is stored."""
        async with self._alone:
            stored = Place.load(await host.cursor())
            if stored.bot == reader.bot.id:
                self._place = stored
            await self._take(host, reader, updates)

    async def _unhook(self, host: Host) -> None:
        """Take back the webhook that clew has set for this bot. Somebody else's stays."""
        if self._place.hook:
            if (await self._api.call("getWebhookInfo") or {}).get("url") == self._place.hook:
                await self._api.call("deleteWebhook")
            self._place = replace(self._place, hook="")
            await host.accept([], str(self._place))

    async def _take(self, host: Host, reader: Reader, updates: Sequence[Any]) -> None:
        """Store; the next poll, whose offset is behind them, acknowledges them.

        Calls overtake each other, so of them no offset is kept: what waits at Telegram when polls begin again is told from its first update
        on.
        """
        place, batch = self._place, []
        for update in updates:
            try:
                inbound, place = reader.read(update, place)
            except Malformed as reason:
                log.warning("inbox.rejected", transport=self._name, reason=str(reason))
                place = _behind(update, place)
                continue
            if inbound:
                batch.append(inbound)
        if self._taking is not None:
            place = replace(place, next=None)
        has_moved = place.moved != self._place.moved
        if batch or has_moved:
            cursor = str(place) if self._taking is None else place.onto if has_moved else None
            self._presses.answer(batch, await host.accept(batch, cursor))
        self._place = place

    async def _answer(self, pressed: Inbound, taken: bool) -> None:
        """See `buttons.Answer`."""
        said = {} if taken else {"text": CLOSED}
        with contextlib.suppress(Refusal, Unreached, Unanswered):
            await self._api.call("answerCallbackQuery", {"callback_query_id": pressed.context[PRESSED], **said}, HINT_S)
        if taken:
            await self._hint(pressed.address, "editMessageReplyMarkup", {"message_id": int(pressed.reply_to or 0)})

    # Replies out -------------------------------------------------------------------------------------------------

    async def _said(self, delivery: Delivery, text: str) -> dict[str, Any]:
        return await self._told(delivery.address, lambda: self._formatted(delivery, text))

    async def _told(self, to: Address, call: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """What Telegram says to a call that is for this chat. Raises Retry, Refused, Unknown or Gone."""
        try:
            return await call()
        except Refusal as refusal:
            self._heed(to, refusal)
            if refusal.code in (401, 404, 429) or refusal.code >= 500:
                raise Retry(str(refusal), refusal.retry_after) from None
            raise Refused(str(refusal)) from None
        except Unreached as why:
            raise Retry(str(why)) from None
        except Unanswered as why:
            raise Unknown(str(why)) from None

    async def _previewed(self, to: Address, event: Preview) -> PreviewRef | None:
        """The message that shows this now: posted, as a reply to the question, or edited."""
        if self._host is None:
            return None
        shown = Delivery(
            event.id, to, event.text, (Part(event.text),), 0.0, event.in_reply_to, context=event.context, preview_ref=event.ref
        )
        message = await self._said(shown, event.text)
        return str(message["message_id"]) if "message_id" in message else None

    async def _formatted(self, delivery: Delivery, text: str) -> dict[str, Any]:
        """Send `text` as HTML, or as it is if Telegram does not take the HTML. Raises what `Api.call` raises."""
        html = await asyncio.to_thread(rendered, text)
        if not visible(html).strip():
            return await self._moving(delivery, {"text": text})
        try:
            return await self._moving(delivery, {"text": html, "parse_mode": "HTML"})
        except Refusal as refusal:
            if refusal.code != 400 or "can't parse entities" not in refusal.why:
                raise
            log.warning("outbox.retry", transport=self._name, id=delivery.id, reason=f"sent without markup: {refusal}")
            return await self._moving(delivery, {"text": text})

    async def _moving(self, delivery: Delivery, words: dict[str, str]) -> dict[str, Any]:
        """Send to where the chat is now. A group that became a supergroup says so once; it is remembered with the cursor."""
        try:
            return await self._send(delivery, words)
        except Refusal as refusal:
            if refusal.moved_to is None or self._host is None:
                raise
            self._place = self._place.with_move(self._place.current(delivery.address.chat), refusal.moved_to)
            await self._host.accept([], self._place.onto)
            return await self._send(delivery, words)

    async def _send(self, delivery: Delivery, words: dict[str, str]) -> dict[str, Any]:
        arguments = self._to(delivery.address) | words | {"link_preview_options": {"is_disabled": True}}
        if has_buttons(delivery):
            arguments["reply_markup"] = {"inline_keyboard": [[{"text": text, "callback_data": data} for text, data in BUTTONS]]}
        if delivery.preview_ref and delivery.sent == 0:
            return await self._edited(delivery.preview_ref, arguments)
        in_group, asked = delivery.address.chat.startswith("-"), delivery.in_reply_to
        if in_group and asked.isdecimal() and delivery.sent == 0 and delivery.context.get(CHAT) == str(arguments["chat_id"]):
            arguments["reply_parameters"] = {"message_id": int(asked), "allow_sending_without_reply": True}
        message = await self._api.call("sendMessage", arguments, self._answer_s)
        return message if isinstance(message, dict) else {}

    async def _edited(self, ref: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The message `ref` with other words. Raises Gone where Telegram edits it no more."""
        arguments = {key: value for key, value in arguments.items() if key != "message_thread_id"} | {"message_id": int(ref)}
        try:
            await self._api.call("editMessageText", arguments, self._answer_s)
        except Refusal as refusal:
            if refusal.code == 400 and any(words in refusal.why for words in UNEDITABLE):
                raise Gone(str(refusal)) from None
            if refusal.code != 400 or "message is not modified" not in refusal.why:
                raise
        return {"message_id": int(ref)}

    async def _delete(self, delivery: Delivery) -> dict[str, Any]:
        """Take a preview away that comes to nothing. One that Telegram does not delete is not there any more, or stays."""
        chat = self._to(delivery.address)["chat_id"]
        try:
            await self._api.call("deleteMessage", {"chat_id": chat, "message_id": int(delivery.preview_ref or "")}, self._answer_s)
        except Refusal as refusal:
            if refusal.code != 400:
                raise
        return {}

    def _to(self, address: Address) -> dict[str, Any]:
        """Raises Refused for an address that can be no chat of Telegram."""
        try:
            where: dict[str, Any] = {"chat_id": int(self._place.current(address.chat))}
            return where | ({"message_thread_id": int(address.thread)} if address.thread else {})
        except ValueError:
            raise Refused(f"{address} is no chat of Telegram: chats and topics are numbers") from None

    async def _draft(self, to: Address, event: Preview) -> None:
        text = await asyncio.to_thread(rendered, self.parts(event.text)[-1].text)
        await self._hint(to, "sendMessageDraft", {"draft_id": _draft_id(event.turn), "text": text, "parse_mode": "HTML"})

    async def _hint(self, to: Address, method: str, arguments: dict[str, Any]) -> None:
        """Decoration: whatever goes wrong with it is let go, and a wait that Telegram asks for is kept."""
        with contextlib.suppress(Refused, Unreached, Unanswered):
            try:
                await self._api.call(method, self._to(to) | arguments, HINT_S)
            except Refusal as refusal:
                self._heed(to, refusal)
                if method == "sendMessageDraft" and refusal.code == 404:
                    self._drafts = False  # a server that is older than drafts

    def _heed(self, to: Address, refusal: Refusal) -> None:
        """Nothing more is sent to this chat for as long as Telegram asks."""
        if refusal.retry_after is not None:
            self._waits.pause(to, asyncio.get_running_loop().time() + refusal.retry_after)


def _behind(update: Any, place: Place) -> Place:
    """The place behind an update that cannot be read, if it has at least an id: it would come again for ever."""
    number = update.get("update_id") if isinstance(update, dict) else None
    return replace(place, next=number + 1) if isinstance(number, int) else place


def _draft_id(turn: str) -> int:
    """The same for all drafts of a turn, and not zero."""
    return int.from_bytes(hashlib.sha256(turn.encode()).digest()[:4]) >> 1 | 1


def _build(name: str, settings: Settings) -> TelegramTransport:
    return TelegramTransport(name, settings)


plugin = Plugin("telegram", Settings, _build, examine, mistakes, sender, account, setup=SETUP)
