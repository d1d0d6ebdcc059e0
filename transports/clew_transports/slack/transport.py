"""The Slack transport: events by Socket Mode or to a webhook, replies by chat.postMessage."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from clew.plugins import Plugin
from clew.transport import (
    Address,
    Capabilities,
    Delivery,
    Gone,
    Host,
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
from clew_transports.buttons import Presses, has_buttons
from clew_transports.calls import ANSWER_S, Unanswered, Unreached
from clew_transports.pace import Pauses
from clew_transports.reading import Malformed
from clew_transports.slack import presses
from clew_transports.slack.api import ACCOUNT, DELETE, GONE, HALF_DONE, LATER, POST, UPDATE, Api, Refusal
from clew_transports.slack.callbacks import Callbacks
from clew_transports.slack.doctor import examine, why
from clew_transports.slack.events import Bot, Reader
from clew_transports.slack.history import patient
from clew_transports.slack.inlet import Inlet
from clew_transports.slack.mrkdwn import LIMIT, rendered, size
from clew_transports.slack.place import Place
from clew_transports.slack.settings import REQUIRED, Settings, account, mistakes, secret, sender, unreachable
from clew_transports.slack.setup import SETUP
from clew_transports.slack.sockets import Sockets
from clew_transports.text import parts

CHECK_S = 300.0
"""Seconds between two looks whether the token still holds."""
APART_S = 1.0
"""Seconds between two messages in one channel: one per second is what Slack takes."""
LONGEST_WAIT_S = 10.0
"""Seconds that a message waits for the channel's next second; beyond it the host is asked to come again."""
EDIT_EVERY_S, UPDATES_APART_S = 1.5, 1.2
"""Seconds between two edits of a message, and of any: fifty a minute and workspace are what Slack takes."""
LONGEST_PAUSE_S = 60.0
SKEW_S = 300.0
"""Seconds by which this machine's clock may differ from Slack's, where an unknown delivery is looked for."""
PAGES = 5
"""Pages of a channel's messages that are looked through for it."""
REPLY, PREVIEW = "clew_reply", "clew_preview"
"""Types of the metadata by which a reply, and what is shown before it is complete, are known again."""
RESUMED_S, LONGEST_TURN_S = 600.0, 3600.0
"""Seconds after the start in which a reply may go on that an earlier process began to show, and for which one may have been written."""


class SlackTransport:
    """`name` is the section's name in the config and the first part of its addresses. clock: seconds since the epoch."""

    capabilities = Capabilities(
        limit=LIMIT,
        unit="utf16",
        markup="markdown",
        stream="edit",
        edit_every_s=EDIT_EVERY_S,
        can_find=True,
        merges=True,
        unreachable=unreachable,
    )

    def __init__(
        self, name: str, settings: Settings, *, clock: Callable[[], float] = time.time, first_pause: float = 1.0, answer_s: float = ANSWER_S
    ) -> None:
        self._name = name
        self._settings = settings
        self._clock = clock
        self._first_pause = first_pause
        self._answer_s = answer_s
        self._api = Api(settings.base_url, settings.bot_token.get_secret_value(), secret(settings.app_token))
        self._inlet: Inlet | None = None
        self._pace = Pauses()
        self._began = -RESUMED_S
        self._presses = Presses(name, partial(presses.answer, self._api))
        self._callbacks = Callbacks(name, secret(settings.signing_secret), clock, lambda: self._inlet)

    @property
    def called(self) -> bool:
        return bool(secret(self._settings.signing_secret)) and not secret(self._settings.app_token)

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Raises what `host.accept` raises."""
        await self._kept_up(host, self._receive)

    async def attend(self, host: Host) -> None:
        """See `Called.attend`. Raises what `host.accept` raises."""
        await self._kept_up(host, self._attended)

    async def _kept_up(self, host: Host, receive: Callable[[Host, Bot], Awaitable[None]]) -> None:
        pause, self._began = self._first_pause, asyncio.get_running_loop().time()
        async with self._api:
            while True:
                try:
                    # Asked before anything is read: without it clew could not tell its own words from other people's.
                    bot = Bot.of(await self._api.call("auth.test", answer_s=self._answer_s))
                    pause = self._first_pause
                    await receive(host, bot)
                except (Refusal, Unreached, Unanswered, Malformed) as error:
                    host.report(False, why(error))
                    if isinstance(error, Refusal) and error.retry_after:
                        pause = max(pause, min(error.retry_after, LONGEST_PAUSE_S))
                finally:
                    self._inlet = None
                    await self._callbacks.stop()
                    await self._presses.stop()
                await asyncio.sleep(pause * random.uniform(0.75, 1.0))  # noqa: S311 - it keeps clients apart, no secret
                pause = min(2 * pause, LONGEST_PAUSE_S)

    def parts(self, text: str) -> list[Part]:
        return parts(text, LIMIT, "utf16", size)

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`: one part. Each part is noted as sent before the next one leaves."""
        if wrong := unreachable(delivery.address):
            raise Refused(f"{delivery.address} is no place in Slack: {wrong}")
        try:
            shown = delivery.preview_ref or ""
            if delivery.preview_ref == "" and not delivery.sent:  # there may be one
                shown = await self._preview_of(delivery)
            if not delivery.parts:
                return await self._withdrawn(delivery, shown)
            text, upto = delivery.parts[delivery.sent].text, delivery.sent + 1
            if shown and not delivery.sent:
                try:
                    return Sent(await self._edit(delivery, shown, text, REPLY), upto)
                except Refusal as refusal:
                    if refusal.error not in GONE or delivery.preview_ref:
                        raise
            if not text.strip():
                return Sent("", upto)
            await self._turn(delivery.address.chat)
            return Sent(await self._post(delivery, text, REPLY), upto)
        except Refusal as refusal:
            return await self._refused(delivery, refusal)
        except Unreached as reason:
            raise Retry(str(reason)) from None
        except Unanswered as reason:
            raise Unknown(str(reason)) from None

    async def find(self, delivery: Delivery) -> Sent | None:
        """Look for the part that may have been sent, by its metadata, among what was said since the reply was written."""
        found, upto, ref = await self._known(delivery, REPLY), delivery.sent, ""
        while upto + 1 in found:
            upto, ref = upto + 1, found[upto + 1]
        return Sent(ref, upto) if upto > delivery.sent else None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        """What is being said, by editing; Slack shows no typing of bots. A frame that would come too soon is left out."""
        if self._inlet is None or isinstance(event, Typing):
            return None
        shown = Delivery(event.id, to, event.text, (Part(event.text),), self._clock(), preview_ref=event.ref)
        try:
            return await self._previewed(shown)
        except Unreached:
            return event.ref
        except Unanswered as reason:
            raise Unknown(str(reason)) from None
        except Refusal as refusal:
            if refusal.error in HALF_DONE:
                raise Unknown(str(refusal)) from None
            if refusal.error in LATER:
                raise Retry(str(refusal), refusal.retry_after) from None
            raise Refused(str(refusal)) from None

    def routes(self) -> Sequence[Route]:
        return (Route("POST", "/", self._callbacks.posted),)

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        async for piece in self._api.download(ref):
            yield piece

    # Messages in -------------------------------------------------------------------------------------------------

    async def _receive(self, host: Host, bot: Bot) -> None:
        """Take what Slack tells `bot`. Raises Refusal for a token that no longer holds, and what `host.accept` raises."""
        inlet, who = await self._let_in(host, bot, leads=True), f"@{bot.name} in {bot.workspace}"
        jobs: list[Coroutine[Any, Any, None]] = [inlet.run()]
        if secret(self._settings.app_token):
            report = lambda up, detail: host.report(up, who if up else detail)  # noqa: E731 - one line
            handle = lambda frame: inlet.payload(frame.get("payload"))  # noqa: E731
            jobs += [Sockets(self._api, handle, report, inlet.missed_some, self._first_pause).run(), self._watch(lambda up, detail: None)]
        elif secret(self._settings.signing_secret):
            host.report(True, who)
            inlet.missed_some()
            jobs += [self._watch(lambda up, detail: host.report(up, detail or who))]
        else:
            host.report(False, REQUIRED)
        await _together(jobs)

    async def _attended(self, host: Host, bot: Bot) -> None:
        """Take what Slack calls with. What was missed is read by whoever runs the transport, but where only this one hears of it."""
        inlet, who = await self._let_in(host, bot, leads=False), f"@{bot.name} in {bot.workspace}"
        host.report(True, who)
        await _together([inlet.run(), self._watch(lambda up, detail: host.report(up, detail or who))])

    async def _let_in(self, host: Host, bot: Bot, *, leads: bool) -> Inlet:
        reader = Reader(self._name, bot, self._settings.groups, self._settings.prefix)
        now, place = f"{int(self._clock())}.000000", Place.load(await host.cursor())
        inlet = Inlet(host, self._api, reader, place, now, self._first_pause, self._presses, shared=self.called, leads=leads)
        await inlet.begin()
        self._inlet = inlet
        return inlet

    async def _watch(self, report: Callable[[bool, str], None]) -> None:
        """Ask every now and then whether the token still holds, and tell whether there was an answer. Raises what says that it does not."""
        while True:
            await asyncio.sleep(CHECK_S)
            try:
                await self._api.call("auth.test", answer_s=self._answer_s)
                report(True, "")
            except Refusal as refusal:
                if refusal.error in ACCOUNT:
                    raise
            except (Unreached, Unanswered) as reason:
                report(False, str(reason))

    # Replies out -------------------------------------------------------------------------------------------------

    async def _post(self, delivery: Delivery, text: str, kind: str) -> str:
        """Returns the message's ts. Raises what `Api.call` raises."""
        arguments = {"channel": delivery.address.chat, "link_names": False, "unfurl_links": False, "unfurl_media": False}
        thread = {"thread_ts": delivery.address.thread} if delivery.address.thread else {}
        answer = await self._api.call(POST, arguments | thread | await _content(delivery, text, kind), self._answer_s)
        return str(answer.get("ts") or "")

    async def _edit(self, delivery: Delivery, shown: str, text: str, kind: str) -> str:
        """Edit the message `shown`. To do so twice changes nothing, so what became of it need not be known. Raises Refusal or Unreached."""
        self._pace.pause(UPDATE, asyncio.get_running_loop().time() + UPDATES_APART_S)
        arguments = {"channel": delivery.address.chat, "ts": shown, "link_names": False}
        try:
            await self._api.call(UPDATE, arguments | await _content(delivery, text, kind), self._answer_s)
        except Unanswered as reason:
            raise Unreached(str(reason)) from None
        return shown

    async def _withdrawn(self, delivery: Delivery, shown: str) -> Sent:
        """There is no reply: what was shown goes away."""
        if shown:
            try:
                await self._api.call(DELETE, {"channel": delivery.address.chat, "ts": shown}, self._answer_s)
            except Refusal as refusal:
                if refusal.error not in GONE:
                    raise
        return Sent()

    async def _previewed(self, shown: Delivery) -> str | None:
        """The message that shows this now, None for none yet. Raises what `Api.call` raises."""
        channel, now = shown.address.chat, asyncio.get_running_loop().time()
        ref = shown.preview_ref
        if not ref and now - self._began < RESUMED_S:  # a turn that goes on after a crash may have one
            ref = await self._preview_of(shown)
        if ref:
            if not self._pace.left(UPDATE, now):
                await self._edit(shown, ref, shown.text, PREVIEW)
            return ref
        if self._pace.left(channel, now):
            return None
        self._pace.pause(channel, now + APART_S)
        return await self._post(shown, shown.text, PREVIEW)

    async def _preview_of(self, delivery: Delivery) -> str:
        """Look for the message that shows a reply before it is complete; empty for none, or where clew may not look. Raises Unreached."""
        try:
            return (await self._known(replace(delivery, ts=delivery.ts - LONGEST_TURN_S), PREVIEW)).get(1, "")
        except Unanswered as reason:
            raise Unreached(str(reason)) from None
        except Refusal as refusal:
            if refusal.error in LATER | HALF_DONE:
                raise Unreached(str(refusal)) from None
            return ""

    async def _known(self, delivery: Delivery, kind: str) -> dict[int, str]:
        """The ts of each part of a delivery that Slack has. Raises Refusal, Unreached or Unanswered where it cannot be asked."""
        thread, cursor = delivery.address.thread, ""
        asked = {"channel": delivery.address.chat, "limit": 200, "include_all_metadata": True}
        asked["oldest"] = f"{max(delivery.ts - SKEW_S, 0):.6f}"
        found: dict[int, str] = {}
        for _ in range(PAGES):
            method = "conversations.replies" if thread else "conversations.history"
            answer = await patient(self._api, method, **asked, ts=thread or "", cursor=cursor)
            for message in answer.get("messages") or ():
                if (part := _part_of(message, delivery.id, kind)) is not None:
                    found[part] = str(message["ts"])
            cursor = str((answer.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                break
        return found

    async def _refused(self, delivery: Delivery, refusal: Refusal) -> Sent:
        """What a refusal means for the reply. Of what Slack may have done half, it is asked what it did."""
        if refusal.error in GONE:
            raise Gone(str(refusal)) from None
        if refusal.retry_after is not None:
            self._pace.pause(delivery.address.chat, asyncio.get_running_loop().time() + refusal.retry_after)
        if refusal.error in HALF_DONE:
            try:
                found = await self.find(delivery)
            except (Refusal, Unreached, Unanswered):
                raise Unknown(str(refusal)) from None
            if found is not None:
                return found
            raise Retry(str(refusal)) from None
        if refusal.error in LATER | ACCOUNT:
            raise Retry(why(refusal), refusal.retry_after) from None
        raise Refused(str(refusal)) from None

    async def _turn(self, channel: str) -> None:
        """Wait for the channel's next second. Raises Retry where Slack asked for a longer wait."""
        now = asyncio.get_running_loop().time()
        wait = self._pace.left(channel, now)
        if wait > LONGEST_WAIT_S:
            raise Retry("Slack asked to wait", wait)
        self._pace.pause(channel, now + wait + APART_S)
        await asyncio.sleep(wait)


async def _content(delivery: Delivery, text: str, kind: str) -> dict[str, Any]:
    """A part as Slack is to show it, and what it is known by."""
    known_by = {"event_type": kind, "event_payload": {"delivery": delivery.id, "part": delivery.sent + 1}}
    below = {"attachments": presses.buttons()} if has_buttons(delivery) else {}
    return {"text": await asyncio.to_thread(rendered, text), "metadata": known_by, **below}


def _part_of(message: Any, delivery: str, kind: str) -> int | None:
    """Which part of a delivery a message is; None if it is none."""
    metadata = message.get("metadata") if isinstance(message, dict) else None
    payload = metadata.get("event_payload") if isinstance(metadata, dict) and metadata.get("event_type") == kind else None
    if not isinstance(payload, dict) or payload.get("delivery") != delivery or not isinstance(payload.get("part"), int):
        return None
    return int(payload["part"])


async def _together(jobs: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run what runs for ever. Raises what the first of them raises, once all have ended."""
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for each in ended:
        if isinstance(each, Exception):
            raise each


def _build(name: str, settings: Settings) -> SlackTransport:
    return SlackTransport(name, settings)


plugin = Plugin("slack", Settings, _build, examine, mistakes, sender, account, setup=SETUP)
