"""The Discord transport: events by the gateway, and what was missed by the HTTP API; replies by the HTTP API."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from clew.plugins import Fault, Mistake, Plugin
from clew.transport import Address, Capabilities, Delivery, Host, Part, Preview, PreviewRef, Route, Sent, Typing
from clew_transports.buttons import Presses
from clew_transports.calls import ANSWER_S, Unanswered, Unreached
from clew_transports.discord import account
from clew_transports.discord.api import Api, Refusal
from clew_transports.discord.events import Reader, files
from clew_transports.discord.markdown import LIMIT, size
from clew_transports.discord.place import Place
from clew_transports.discord.receiving import FATAL_PAUSE_S, Receiver
from clew_transports.discord.sending import Sender, unreachable
from clew_transports.discord.setup import SETUP
from clew_transports.pace import Pauses
from clew_transports.settings import BaseUrl, Groups, Section, plain_http
from clew_transports.text import parts

TYPING_S = 8.0
"""Typing is shown for 10 seconds."""
EDIT_EVERY_S = 1.25
"""Seconds between two edits in one channel, which takes about five in five seconds; what it takes at the time its answers say."""
PER_SECOND = 40.0
"""Messages and edits in all, below the 50 calls that Discord allows a bot, for there are others."""


def _is_token(token: SecretStr) -> SecretStr:
    if not re.fullmatch(r"([A-Za-z0-9_-]{10,100}\.[A-Za-z0-9_-]{1,50}\.[A-Za-z0-9_-]{10,200})?", token.get_secret_value()):
        raise ValueError("must be the bot's token from the Developer Portal: three words with dots between them")
    return token


class Settings(Section):
    """The bot's `token`. groups: which lines of servers are answered; those that begin with `prefix` always are."""

    token: Annotated[SecretStr, AfterValidator(_is_token)] = SecretStr("")
    base_url: BaseUrl = "https://discord.com/api/v10"
    groups: Groups = "mention"
    prefix: Annotated[str, Field(min_length=1, max_length=50)] | None = None


class DiscordTransport:
    """`name` is the section's name in the config and the first part of its addresses. All times in seconds."""

    capabilities = Capabilities(
        limit=LIMIT,
        markup="markdown",
        stream="edit",
        edit_every_s=EDIT_EVERY_S,
        per_second=PER_SECOND,
        can_find=True,
        merges=True,
        typing_s=TYPING_S,
        unreachable=unreachable,
    )

    def __init__(
        self, name: str, settings: Settings, *, first_pause: float = 1.0, fatal_pause: float = FATAL_PAUSE_S, answer_s: float = ANSWER_S
    ) -> None:
        self._name = name
        self._settings = settings
        self._pauses = first_pause, fatal_pause
        self._api = Api(settings.base_url, settings.token.get_secret_value(), answer_s)
        self._sender = Sender(self._api, name)
        self._receiver: Receiver | None = None
        self._typing: dict[Address, asyncio.Task[None]] = {}
        self._presses = Presses(name, self._sender.answer)
        self._quiet = Pauses()

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Raises what `host.accept` raises."""
        place, token = Place.load(await host.cursor()), self._settings.token.get_secret_value()
        async with self._api:
            reader = Reader(self._name, "", self._settings.groups, self._settings.prefix)
            self._receiver = Receiver(self._api, token, host, place, reader, self._presses, *self._pauses)
            try:
                await self._receiver.run()
            finally:
                self._receiver = None
                await self._presses.stop()
                for task in self._typing.values():
                    task.cancel()
                await asyncio.gather(*self._typing.values(), return_exceptions=True)

    def parts(self, text: str) -> list[Part]:
        return parts(text, LIMIT, "characters", size)

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`: one part. Discord drops a repeat for a few minutes only, so each is noted before the next one leaves."""
        return await self._sender.send(delivery)

    async def find(self, delivery: Delivery) -> Sent | None:
        return await self._sender.find(delivery, self._receiver.place.bot) if self._receiver else None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        """What is being said by editing a message; typing at most every TYPING_S seconds."""
        if isinstance(event, Preview):
            return await self._sender.preview(to, event) if self._receiver else None
        now = asyncio.get_running_loop().time()
        if self._receiver is None or to in self._typing or self._quiet.left(to, now) or unreachable(to):
            return None
        self._quiet.pause(to, now + TYPING_S - 1)
        task = self._typing[to] = asyncio.create_task(self._type(to), name=f"{self._name}.hint")
        task.add_done_callback(lambda _: self._typing.pop(to, None))
        return None

    def routes(self) -> Sequence[Route]:
        return ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        async for piece in self._api.download(await self._address_of(ref)):
            yield piece

    async def _type(self, to: Address) -> None:
        """Decoration: whatever goes wrong with it is let go."""
        with contextlib.suppress(Refusal, Unreached, Unanswered):
            await self._api.call("POST", "/channels/{}/typing", to.chat, patience_s=0.0)

    async def _address_of(self, ref: str) -> str:
        """Where a file is now. Raises LookupError where there is none, Refusal, Unreached or Unanswered where it may be had later."""
        channel, _, rest = ref.partition("/")
        message, _, file = rest.partition("/")
        try:
            told = await self._api.call("GET", "/channels/{}/messages/{}", channel, message)
            return next(str(each["url"]) for each in files(told) if str(each["id"]) == file)
        except Refusal as refusal:
            if refusal.status in (401, 429):
                raise
            raise LookupError(str(refusal)) from None
        except (KeyError, TypeError, AttributeError, StopIteration):
            raise LookupError("the file is not in its message any more") from None


async def _examine(name: str, settings: Settings) -> Sequence[Fault]:
    """For `clew doctor`."""
    async with Api(settings.base_url, settings.token.get_secret_value()) as api:
        return await account.faults(api, name)


def _mistakes(name: str, settings: Settings) -> Sequence[Mistake]:
    return plain_http(settings.base_url)


def _sender(settings: Settings, text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise ValueError("must stand the number that Discord has for the person (Copy User ID), and not their name")
    return str(int(text))


def _account(settings: Settings) -> tuple[str, str]:
    return "token", settings.token.get_secret_value()


def _build(name: str, settings: Settings) -> DiscordTransport:
    return DiscordTransport(name, settings)


plugin = Plugin("discord", Settings, _build, _examine, _mistakes, _sender, _account, setup=SETUP)
