"""The generic webhook: signed JSON comes in by POST, replies go out by POST to the address that the message names."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from email.utils import parsedate_to_datetime
from io import BytesIO
from typing import Annotated

import aiohttp
import structlog
from aiohttp import web
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr
from yarl import URL

from clew.plugins import Plugin
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
from clew_transports import mqtt_payload
from clew_transports.text import split
from clew_transports.webhook_message import REPLY_URL, Malformed, read
from clew_transports.webhook_origin import Origin, origin, origins
from clew_transports.webhook_signature import SIGNATURE, TIMESTAMP, Forged, check, signed, stated

PART_BYTES = 256 * 1024
"""The longest text of one reply, in bytes: with its quotes and line ends escaped it stays below 1 MiB, a usual limit for a body."""

MAX_BODY_BYTES = 1024 * 1024
"""The longest body that is read. The host's limit for a message is smaller; this one bounds what is read before anybody is known."""
BODY_S = 30.0
"""Seconds for a body to arrive."""

CONNECT_S = 15.0
ANSWER_S = 30.0
"""Seconds for a receiver to answer, from the connection on; two parts fit into what the host grants a delivery (120 s)."""
LONGEST_WAIT_S = 3600.0
"""The longest wait, in seconds, that a receiver can ask for by Retry-After."""

NOT_TAKEN = frozenset({408, 425, 429})
"""Answers below 500 after which the same request is right later."""

STRANGER = "unknown sender"
"""The reason of a receipt by which the access policy turns somebody away."""

log = structlog.get_logger()


def _is_entry(entry: str) -> str:
    origins(entry)
    return entry


class Settings(BaseModel):
    """`secret` signs both ways; `old_secrets` are still taken from callers. Replies go to `reply_hosts` only."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)

    secret: SecretStr = SecretStr("")
    old_secrets: Annotated[tuple[SecretStr, ...], Field(max_length=10)] = ()
    reply_hosts: Annotated[tuple[Annotated[str, AfterValidator(_is_entry)], ...], Field(max_length=1000)] = ()


class _Answer(Exception):
    """What ends a request early: its status and what the caller is told."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


class WebhookTransport:
    """`name` is the section's name in the config, the path below `/webhooks/` and the first part of its addresses.

    clock: seconds since the epoch. answer_s: seconds that a receiver of replies has to answer.
    """

    capabilities = Capabilities(limit=PART_BYTES, unit="bytes", markup="markdown", idempotent_send=True)

    def __init__(self, name: str, settings: Settings, *, clock: Callable[[], float] = time.time, answer_s: float = ANSWER_S) -> None:
        self._name = name
        self._secret = settings.secret.get_secret_value()
        self._secrets = (self._secret, *(old.get_secret_value() for old in settings.old_secrets))
        self._allowed = frozenset[Origin]().union(*map(origins, settings.reply_hosts))
        self._clock = clock
        self._answer_s = answer_s
        self._host: Host | None = None
        self._session: aiohttp.ClientSession | None = None

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Requests arrive at `routes`; this keeps what is needed to take and to answer them."""
        # A connection for each reply: one that was kept could be closed under the next request, whose fate were then unknown.
        connector = aiohttp.TCPConnector(force_close=True)
        timeout = aiohttp.ClientTimeout(connect=CONNECT_S, total=CONNECT_S + self._answer_s, sock_read=self._answer_s)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session:
            self._host, self._session = host, session
            try:
                host.report(True, f"POST /webhooks/{self._name}")
                await asyncio.Event().wait()
            finally:
                self._host = self._session = None

    def parts(self, text: str) -> list[Part]:
        texts = split(text, PART_BYTES, "bytes")
        return [Part(each, index, len(texts)) for index, each in enumerate(texts, 1)]

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`. The receiver drops a repeat by its Idempotency-Key."""
        if self._session is None:
            raise Retry("the transport is not running")
        target = self._target(delivery)
        for part in delivery.parts[delivery.sent :]:
            await self._post(self._session, target, _key(delivery, part), mqtt_payload.reply(delivery, part))
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
                raise _Answer(503, "clew does not take messages right now; send it again later")
            (receipt,) = await self._host.accept([inbound])
            return _answer_to(inbound, receipt)
        except _Answer as answer:
            return web.json_response({"error": str(answer)}, status=answer.status)

    async def _message(self, request: web.Request) -> Inbound:
        """The message of a request that is signed and well-formed. Raises _Answer for any other."""
        if request.content_type != "application/json" or request.headers.get("Content-Encoding", "identity") != "identity":
            raise _Answer(415, "the body must be application/json, and not compressed")
        try:
            headers = request.headers
            stamp, signature = stated(headers.getall(TIMESTAMP, []), headers.getall(SIGNATURE, []), self._clock())
            body = await _body(request)
            check(stamp, signature, body, self._secrets)
            return read(body, self._name, self._allowed)
        except Forged as reason:
            log.warning("inbox.rejected", transport=self._name, reason=str(reason))
            raise _Answer(401, "the timestamp or the signature is missing or wrong") from None
        except Malformed as reason:
            log.warning("inbox.rejected", transport=self._name, reason=str(reason))
            raise _Answer(400, str(reason)) from None

    # Replies out -------------------------------------------------------------------------------------------------

    def _target(self, delivery: Delivery) -> str:
        """Looked at once more: since the message came, the config may have changed."""
        url = delivery.context.get(REPLY_URL)
        if url is None:
            raise Refused("there is no reply_url: only answers to messages that brought one can be sent")
        if origin(url) not in self._allowed:
            raise Refused(f"{origin(url)} is no longer among the reply_hosts")
        return url

    async def _post(self, session: aiohttp.ClientSession, url: str, key: str, payload: bytes) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "clew", "Idempotency-Key": key}
        headers |= signed(self._secret, int(self._clock()), payload)
        # The path of the URL may be a secret of its own: reasons name its origin.
        where = origin(url)
        try:
            async with session.post(URL(url, encoded=True), data=BytesIO(payload), headers=headers, allow_redirects=False) as response:
                status, wait = response.status, response.headers.get("Retry-After", "")
        except aiohttp.ConnectionTimeoutError:
            raise Retry(f"{where}: no connection within {CONNECT_S:.0f} s") from None
        except aiohttp.ClientConnectorError as error:
            raise Retry(f"{where}: no connection ({error.strerror or type(error).__name__})") from None
        except TimeoutError:
            raise Unknown(f"{where}: no answer within {self._answer_s:.0f} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unknown(f"{where}: the connection broke before the answer ({type(error).__name__})") from None
        if status in NOT_TAKEN or status >= 500:
            raise Retry(f"{where} answered {status}", _seconds(wait, self._clock()))
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


async def _body(request: web.Request) -> bytes:
    """The bytes as they came. Raises _Answer for too many, too slow ones, and ones that break off."""
    too_long = _Answer(413, f"the body has more than {MAX_BODY_BYTES} bytes")
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.content.iter_any():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    raise too_long
    except TimeoutError:
        raise _Answer(408, f"the body did not arrive within {BODY_S:.0f} s") from None
    except (aiohttp.ClientError, web.RequestPayloadError, OSError):
        raise _Answer(400, "the body broke off") from None
    return bytes(body)


def _seconds(retry_after: str, now: float) -> float | None:
    """Seconds that a Retry-After asks to wait, as a number or a date; None if it says neither."""
    if retry_after.isascii() and retry_after.isdigit():
        wait = float(retry_after)
    else:
        try:
            wait = parsedate_to_datetime(retry_after).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return min(max(wait, 0.0), LONGEST_WAIT_S)


def _build(name: str, settings: Settings) -> WebhookTransport:
    return WebhookTransport(name, settings)


plugin = Plugin("webhook", Settings, _build)
