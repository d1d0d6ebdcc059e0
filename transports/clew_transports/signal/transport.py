"""The Signal transport: signal-cli holds the account, clew speaks to it by JSON-RPC."""

import asyncio
import base64
import binascii
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any

import structlog
from pydantic import AfterValidator, Field

from clew.config import Needed
from clew.plugins import Fault as DoctorFault
from clew.plugins import Plugin
from clew.transport import (
    Address,
    Capabilities,
    Delivery,
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
from clew_transports.pace import kept_up
from clew_transports.reading import Malformed
from clew_transports.settings import Groups, Section
from clew_transports.signal.envelopes import NUMBER, UUID, Reader, receiver
from clew_transports.signal.rpc import ANSWER_S, Fault, Rpc, Unanswered, Unreached
from clew_transports.signal.setup import SETUP
from clew_transports.signal.styles import LIMIT, rendered, size
from clew_transports.text import parts

LOOK_S = 60.0
"""Seconds between two looks at whether signal-cli answers."""
LOOKED_S = 20.0
TYPING_S = 10.0
"""Signal shows that somebody types for 15 seconds."""
HINT_S = 5.0
LONGEST_PAUSE_S = 60.0

USER_ERROR, IO_ERROR, UNTRUSTED, RATE_LIMIT = -1, -3, -4, -5
"""signal-cli's codes (its man page, JSON-RPC): bad receiver or argument; Signal's servers; a key that changed; too many messages."""
RATE_S = 3600.0
"""Seconds to wait where signal-cli does not say for how long."""

log = structlog.get_logger()


def _is_account(number: str) -> str:
    if number and not NUMBER.fullmatch(number):
        raise ValueError("must be the account's number, like +15551234567")
    return number


class Settings(Section):
    """Where signal-cli listens, and the account. groups: which lines of a group are answered; those that begin with `prefix` always are."""

    host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=65535)] = 7583
    account: Annotated[str, Needed(), AfterValidator(_is_account)] = ""
    groups: Groups = "mention"
    prefix: Annotated[str, Field(min_length=1, max_length=50)] | None = None


def unreachable(to: Address) -> str:
    """Why nothing can be sent to `to`; empty where it may."""
    try:
        receiver(to.chat)
    except ValueError as why:
        return str(why)
    return "Signal has no threads" if to.thread else ""


class SignalTransport:
    """`name` is the section's name in the config and the first part of its addresses. All times in seconds."""

    capabilities = Capabilities(limit=LIMIT, unit="bytes", markup="markdown", merges=True, typing_s=TYPING_S, unreachable=unreachable)

    def __init__(
        self, name: str, settings: Settings, *, first_pause: float = 1.0, look_s: float = LOOK_S, answer_s: float = ANSWER_S
    ) -> None:
        self._name = name
        self._settings = settings
        self._first_pause = first_pause
        self._look_s = look_s
        self._rpc = Rpc(answer_s)
        self._storing = False
        self._hints: dict[Address, asyncio.Task[None]] = {}

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Raises what `host.accept` raises."""
        errors = (Unreached, Unanswered, Fault)
        await kept_up(host, lambda: self._connection(host), errors, self._first_pause, LONGEST_PAUSE_S)

    def parts(self, text: str) -> list[Part]:
        return parts(text, LIMIT, "bytes", size)

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`: one part."""
        try:
            to = receiver(delivery.address.chat)
        except ValueError as why:
            raise Refused(f"{delivery.address}: {why}") from None
        text, styles = rendered(delivery.parts[delivery.sent].text)
        if not text.strip():
            return Sent(upto=delivery.sent + 1)
        result = await self._sent({**to, "message": text, "textStyle": list(styles), **_quote(delivery)})
        timestamp = result.get("timestamp") if isinstance(result, dict) else None
        return Sent("" if timestamp is None else str(timestamp), delivery.sent + 1)

    async def find(self, delivery: Delivery) -> Sent | None:
        """signal-cli cannot be asked what was said."""
        return None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        if isinstance(event, Typing) and to not in self._hints:
            task = self._hints[to] = asyncio.create_task(self._typing(to), name=f"{self._name}.hint")
            task.add_done_callback(lambda _: self._hints.pop(to, None))
        return None

    def routes(self) -> Sequence[Route]:
        return ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        chat, _, number = ref.partition(" ")
        try:
            result = await self._call("getAttachment", id=number, **_one(receiver(chat)))
            yield base64.b64decode(result["data"], validate=True)
        except (Fault, ValueError, KeyError, TypeError, binascii.Error) as why:
            raise LookupError(f"signal-cli does not have the file: {why}") from None

    # Messages in -------------------------------------------------------------------------------------------------

    async def _connection(self, host: Host) -> AsyncIterator[None]:
        """One connection, until it ends. Says so each time that signal-cli has answered."""
        reader = Reader(self._name, self._settings.account, groups=self._settings.groups, prefix=self._settings.prefix)
        async with self._rpc.connected(self._settings.host, self._settings.port) as notifications:
            taking = asyncio.create_task(self._take(host, notifications, reader), name=f"{self._name}.take")
            try:
                reader.own = await self._before(taking, self._own())
                await self._before(taking, self._call("subscribeReceive"))
                while not taking.done():
                    await self._look(taking)
                    host.report(True, self._settings.account)
                    yield
                    await asyncio.wait((taking,), timeout=self._look_s)
                taking.result()
                raise Unanswered("signal-cli closed the connection")
            finally:
                taking.cancel()
                for hint in self._hints.values():
                    hint.cancel()
                await asyncio.gather(taking, *self._hints.values(), return_exceptions=True)

    async def _look(self, taking: asyncio.Task[None]) -> None:
        """Raises Unanswered if signal-cli says nothing; while a message waits to be stored its answers wait behind it."""
        try:
            await self._before(taking, self._rpc.call("version", LOOKED_S))
        except Unanswered:
            if taking.done() or not self._storing:
                raise

    async def _before(self, taking: asyncio.Task[None], call: Any) -> Any:
        """The result of `call`; what ends the reading meanwhile is raised."""
        asked = asyncio.ensure_future(call)
        await asyncio.wait((taking, asked), return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            return asked.result()
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        taking.result()
        raise Unanswered("signal-cli closed the connection")

    async def _own(self) -> str:
        """The account's id, by which it is mentioned where its number is hidden."""
        status = await self._call("getUserStatus", recipient=[self._settings.account])
        found = status[0] if isinstance(status, list) and status and isinstance(status[0], dict) else {}
        return str(found.get("uuid") or "")

    async def _take(self, host: Host, notifications: AsyncIterator[Mapping[str, Any]], reader: Reader) -> None:
        async for params in notifications:
            try:
                inbound = reader.read(params)
            except Malformed as reason:
                log.warning("inbox.rejected", transport=self._name, reason=str(reason))
                continue
            if inbound:
                self._storing = True
                await host.accept([inbound])
                self._storing = False

    # Replies out -------------------------------------------------------------------------------------------------

    async def _sent(self, message: Mapping[str, Any]) -> Any:
        """Raises Retry, Refused or Unknown."""
        try:
            return await self._call("send", **message)
        except Unreached as why:
            raise Retry(str(why)) from None
        except Unanswered as why:
            raise Unknown(str(why)) from None
        except Fault as fault:
            if fault.code == RATE_LIMIT:
                raise Retry(str(fault), fault.after or RATE_S, everywhere=True) from None
            if fault.code in (USER_ERROR, UNTRUSTED):
                raise Refused(str(fault)) from None
            raise Retry(str(fault)) from None

    async def _typing(self, to: Address) -> None:
        with contextlib.suppress(Unreached, Unanswered, Fault, ValueError):
            await self._rpc.call("sendTyping", HINT_S, account=self._settings.account, **receiver(to.chat))

    async def _call(self, method: str, **params: Any) -> Any:
        return await self._rpc.call(method, account=self._settings.account, **params)


def _quote(delivery: Delivery) -> dict[str, Any]:
    """In groups the first part shows which line it answers."""
    author, asked = delivery.context.get("author"), delivery.in_reply_to
    if author and author != delivery.address.chat and delivery.sent == 0 and asked.isdecimal():
        return {"quoteTimestamp": int(asked), "quoteAuthor": author}
    return {}


def _one(to: Mapping[str, Any]) -> dict[str, Any]:
    """As getAttachment wants it: one receiver, and no list."""
    return {key: value[0] if isinstance(value, list) else value for key, value in to.items()}


async def _examine(name: str, settings: Settings) -> list[DoctorFault]:
    """For `clew doctor`: whether signal-cli is there and has the account."""
    here = f"check transports.{name}"
    rpc = Rpc(LOOKED_S)

    async def read(notifications: AsyncIterator[Mapping[str, Any]]) -> None:
        async for _ in notifications:
            pass

    try:
        async with rpc.connected(settings.host, settings.port) as notifications:
            reading = asyncio.create_task(read(notifications))
            try:
                accounts = await rpc.call("listAccounts")
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
    except Unreached as error:
        command = f"signal-cli -a {settings.account} daemon --tcp {settings.host}:{settings.port} --receive-mode=manual"
        return [DoctorFault(str(error), command)]
    except (Unanswered, Fault) as error:
        return [DoctorFault(str(error), here)]
    known = [each.get("number") for each in accounts if isinstance(each, dict)] if isinstance(accounts, list) else []
    if settings.account not in known:
        return [DoctorFault(f"signal-cli has no account {settings.account}", 'signal-cli link -n "clew"')]
    return []


def _sender(settings: Settings, text: str) -> str:
    if not UUID.fullmatch(text.lower()):
        raise ValueError("must stand the account's id, which `clew access list` shows once they have written: Signal hides numbers")
    return text.lower()


def _account(settings: Settings) -> tuple[str, str]:
    return "account", settings.account


def _build(name: str, settings: Settings) -> SignalTransport:
    return SignalTransport(name, settings)


plugin = Plugin("signal", Settings, _build, _examine, None, _sender, _account, setup=SETUP)
