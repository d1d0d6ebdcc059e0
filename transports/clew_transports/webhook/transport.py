"""The generic webhook: signed JSON comes in by POST, replies go out by POST to the address that the message names."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from io import BytesIO
from typing import Annotated

import structlog
from aiohttp import web
from pydantic import AfterValidator, Field, SecretStr
from yarl import URL

from clew.plugins import Mistake, Plugin
from clew.transport import (
    Address,
    Capabilities,
    Delivery,
    Host,
    Inbound,
    Part,
    Preview,
    PreviewRef,
    Receipt,
    Refused,
    Retry,
    Route,
    Sent,
    Typing,
    Unknown,
)
from clew_transports.calls import ANSWER_S, Calls, Unanswered, Unreached
from clew_transports.incoming import Answered, body
from clew_transports.mqtt import payload as mqtt_payload
from clew_transports.reading import Malformed
from clew_transports.settings import Section
from clew_transports.signature import Forged
from clew_transports.text import parts
from clew_transports.webhook.message import REPLY_URL, read
from clew_transports.webhook.origin import Origin, origin, origins
from clew_transports.webhook.setup import SETUP
from clew_transports.webhook.signature import CLEW

PART_BYTES = 256 * 1024
"""The longest text of one reply, in bytes: with its quotes and line ends escaped it stays below 1 MiB, a usual limit for a body."""

NOT_TAKEN = frozenset({408, 425, 429})
"""Answers below 500 after which the same request is right later."""

STRANGER = "unknown sender"
"""The reason of a receipt by which the access policy turns somebody away."""

SHORTEST_SECRET = 16
"""Characters: fewer can be tried through by whoever has seen one signed request."""

log = structlog.get_logger()


def _is_entry(entry: str) -> str:
    origins(entry)
    return entry


class Settings(Section):
    """`secret` signs both ways; `old_secrets` are still taken from callers. Replies go to `reply_hosts` only."""

    secret: SecretStr = SecretStr("")
    old_secrets: Annotated[tuple[SecretStr, ...], Field(max_length=10)] = ()
    reply_hosts: Annotated[tuple[Annotated[str, AfterValidator(_is_entry)], ...], Field(max_length=1000)] = ()


def unreachable(to: Address) -> str:
    """Why nothing can be sent to `to` of its own accord."""
    return "a webhook answers where a message asks for it, and can be sent nothing else"


def _is_weak(secret: SecretStr) -> bool:
    text = secret.get_secret_value()
    return bool(text) and (len(text) < SHORTEST_SECRET or len(set(text)) < SHORTEST_SECRET // 2)


def _mistakes(name: str, settings: Settings) -> Sequence[Mistake]:
    text = f"can be guessed: use {SHORTEST_SECRET} characters or more, and many different ones, as from `openssl rand -hex 32`"
    old = any(map(_is_weak, settings.old_secrets))
    return [Mistake(key, text) for key, weak in (("secret", _is_weak(settings.secret)), ("old_secrets", old)) if weak]


class WebhookTransport:
    """`name` is the section's name in the config, the path below `/webhooks/` and the first part of its addresses.

    clock: seconds since the epoch. answer_s: seconds that a receiver of replies has to answer.
    """

    capabilities = Capabilities(
        limit=PART_BYTES, unit="bytes", markup="markdown", idempotent_send=True, unreachable=unreachable, spread=True
    )

    def __init__(self, name: str, settings: Settings, *, clock: Callable[[], float] = time.time, answer_s: float = ANSWER_S) -> None:
        self._name = name
        self._secret = settings.secret.get_secret_value()
        self._secrets = (self._secret, *(old.get_secret_value() for old in settings.old_secrets))
        self._allowed = frozenset[Origin]().union(*map(origins, settings.reply_hosts))
        self._clock = clock
        self._answer_s = answer_s
        self._host: Host | None = None

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Requests arrive at `routes`; this keeps what is needed to take and to answer them."""
        self._host = host
        try:
            host.report(True, f"POST /webhooks/{self._name}")
            await asyncio.Event().wait()
        finally:
            self._host = None

    def parts(self, text: str) -> list[Part]:
        return parts(text, PART_BYTES, "bytes")

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`. The receiver drops a repeat by its Idempotency-Key."""
        if self._host is None:
            raise Retry("the transport is not running")
        target = self._target(delivery)
        for part in delivery.parts[delivery.sent :]:
            await self._post(target, _key(delivery, part), mqtt_payload.reply(delivery, part))
        return Sent()

    async def find(self, delivery: Delivery) -> Sent | None:
        """A receiver cannot be asked; it drops repeats."""
        return None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        return None

    def routes(self) -> Sequence[Route]:
        return (Route("POST", "/", self._receive),)

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        raise LookupError(f"{ref[:40]!r} is no attachment of this transport")
        yield b""

    # Messages in -------------------------------------------------------------------------------------------------

    async def _receive(self, request: web.Request) -> web.Response:
        try:
            inbound = await self._message(request)
            if self._host is None:
                raise Answered(503, "clew does not take messages right now; send it again later")
            (receipt,) = await self._host.accept([inbound])
            return _answer_to(inbound, receipt)
        except Answered as answer:
            return answer.response()

    async def _message(self, request: web.Request) -> Inbound:
        """The message of a request that is signed and well-formed. Raises Answered for any other."""
        if request.content_type != "application/json":
            raise Answered(415, "the body must be application/json")
        try:
            headers = request.headers
            stamp, signature = CLEW.stated(headers.getall(CLEW.timestamp, []), headers.getall(CLEW.signature, []), self._clock())
            raw = await body(request)
            CLEW.check(stamp, signature, raw, self._secrets)
            return read(raw, self._name, self._allowed)
        except Forged as reason:
            log.warning("inbox.rejected", transport=self._name, reason=str(reason))
            raise Answered(401, "the timestamp or the signature is missing or wrong") from None
        except Malformed as reason:
            log.warning("inbox.rejected", transport=self._name, reason=str(reason))
            raise Answered(400, str(reason)) from None

    # Replies out -------------------------------------------------------------------------------------------------

    def _target(self, delivery: Delivery) -> str:
        """Looked at once more: since the message came, the config may have changed."""
        url = delivery.context.get(REPLY_URL)
        if url is None:
            raise Refused("there is no reply_url: only answers to messages that brought one can be sent")
        if origin(url) not in self._allowed:
            raise Refused(f"{origin(url)} is no longer among the reply_hosts")
        return url

    async def _post(self, url: str, key: str, payload: bytes) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "clew", "Idempotency-Key": key}
        headers |= CLEW.signed(self._secret, int(self._clock()), payload)
        # The path of the URL may be a secret of its own: reasons name its origin.
        where = origin(url)
        try:
            async with Calls(str(where)) as calls:
                target = URL(url, encoded=True)
                answer = await calls.call("POST", target, self._answer_s, read=False, data=BytesIO(payload), headers=headers)
        except Unreached as why:
            raise Retry(str(why)) from None
        except Unanswered as why:
            raise Unknown(str(why)) from None
        status = answer.status
        if status in NOT_TAKEN or status >= 500:
            raise Retry(f"{where} answered {status}", answer.retry_after(self._clock()))
        if not 200 <= status < 300:
            raise Refused(f"{where} answered {status}" + ("; redirects are not followed" if status < 400 else ""))


def _answer_to(inbound: Inbound, receipt: Receipt) -> web.Response:
    """202 for what is stored; 403 where the access policy turns the sender away, 422 for another refusal."""
    body = {"id": inbound.client_id, "status": receipt.status}
    if receipt.status != "refused":
        return web.json_response(body, status=202)
    return web.json_response(body | {"error": receipt.reason}, status=403 if receipt.reason == STRANGER else 422)


def _key(delivery: Delivery, part: Part) -> str:
    """The `id` of the payload: the same whenever it is sent again."""
    return delivery.id if part.total == 1 else f"{delivery.id}.{part.index}"


def _build(name: str, settings: Settings) -> WebhookTransport:
    return WebhookTransport(name, settings)


plugin = Plugin("webhook", Settings, _build, mistakes=_mistakes, setup=SETUP)
