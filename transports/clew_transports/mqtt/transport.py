"""The MQTT transport: `chat/v1/<bot>/in/<user>[/<thread>]` and back."""

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Self

import structlog
from pydantic import Field, SecretStr, model_validator

from clew.config import Duration
from clew.plugins import Fault, Mistake, Plugin, Remark
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
from clew_transports.mqtt import payload as mqtt_payload
from clew_transports.mqtt.connection import (
    LASTING,
    PASSING,
    SECOND_CLEW,
    Broker,
    Connection,
    Disconnected,
    NotAccepted,
    Packed,
    heed_cancellation,
)
from clew_transports.mqtt.doctor import examine
from clew_transports.mqtt.home_assistant import HomeAssistant, announcement
from clew_transports.mqtt.payload import NAME, Ignored, Packet, Topics
from clew_transports.mqtt.redelivery import Unnamed
from clew_transports.mqtt.setup import SETUP
from clew_transports.settings import Section, readable
from clew_transports.text import parts

PART_BYTES = 256 * 1024
"""MQTT has no limit of its own; brokers do, mosquitto's example config 1 MiB for the whole payload."""

LONGEST_PAUSE_S = 60.0
STEADY_S = 30.0
"""A connection that lasted this long makes the pauses start anew."""

SUSPICIOUS = 3
GOODBYE_S = 2.0
COUNTED_PREVIEWS = 256

log = structlog.get_logger()


class Settings(Section):
    """Broker and account. `bot` names the topics (`chat/v1/<bot>/…`) and, as `clew-<bot>`, the client."""

    host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=65535)] = 1883
    bot: Annotated[str, Field(pattern=f"^{NAME}$")] = "clew"
    username: Annotated[str, Field(max_length=1000)] | None = None
    password: SecretStr | None = None
    tls: bool = False
    keepalive: Annotated[Duration, Field(ge=1.0, le=65535.0)] = 30.0
    home_assistant: HomeAssistant = HomeAssistant()

    @model_validator(mode="after")
    def _password_has_user(self) -> Self:
        if self.password and self.password.get_secret_value() and not self.username:
            raise ValueError("a password needs a username")
        return self


class MqttTransport:
    """`name` is the section's name in the config and the first part of its addresses. `first_pause` in seconds."""

    capabilities = Capabilities(
        limit=PART_BYTES,
        unit="bytes",
        markup="markdown",
        stream="ephemeral",
        idempotent_send=True,
        unreachable=mqtt_payload.unreachable,
    )

    def __init__(self, name: str, settings: Settings, *, first_pause: float = 1.0) -> None:
        self._name = name
        self._topics = Topics(settings.bot)
        self._broker = _broker(settings, self._topics.status)
        told = settings.home_assistant
        self._announcement = announcement(told, self._topics, name) if told.enabled else None
        self._first_pause = first_pause
        self._connection: Connection | None = None
        self._unnamed = Unnamed(lambda: secrets.token_hex(8))
        self._previews: dict[str, int] = {}

    async def run(self, host: Host) -> None:
        """See `Transport.run`. Raises what `host.accept` raises."""
        self._unnamed.load(await host.cursor())
        loop = asyncio.get_running_loop()
        pause, short = self._first_pause, 0
        while True:
            begun = loop.time()
            try:
                await self._converse(host)
            except (Disconnected, NotAccepted) as error:
                if loop.time() - begun >= STEADY_S:
                    pause, short = self._first_pause, 0
                short = short + 1 if isinstance(error, Disconnected) and error.after_hello else 0
                host.report(False, f"{self._broker.host}:{self._broker.port}: {error}{_suspicion(short)}")
                if error.code in LASTING or isinstance(error, NotAccepted):
                    pause = LONGEST_PAUSE_S
            heed_cancellation()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - it keeps clients apart, no secret
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def parts(self, text: str) -> list[Part]:
        return parts(text, PART_BYTES, "bytes")

    async def send(self, delivery: Delivery) -> Sent:
        """See `Transport.send`. The PUBACK says that the broker has it, not that anybody reads it."""
        topic = self._reply_topic(delivery)
        properties = _reply_properties(mqtt_payload.correlation(delivery.context))
        for part in delivery.parts[delivery.sent :]:
            with _as_outcome(already_left=part.index > delivery.sent + 1):
                if self._connection is None:
                    raise Disconnected("not connected to the broker")
                await self._connection.deliver(topic, mqtt_payload.reply(delivery, part), properties=properties)
        return Sent()

    async def find(self, delivery: Delivery) -> Sent | None:
        """A broker cannot be asked; the receiver drops repeats by their `id`."""
        return None

    async def hint(self, to: Address, event: Typing | Preview) -> PreviewRef | None:
        if self._connection:
            with contextlib.suppress(Ignored):
                self._connection.mention(self._topics.events(to), self._event(event))
        return None

    def routes(self) -> Sequence[Route]:
        return ()

    async def fetch(self, ref: str) -> AsyncIterator[bytes]:
        yield mqtt_payload.attachment_bytes(ref)

    async def _converse(self, host: Host) -> None:
        """One connection, from CONNECT to its end. Raises Disconnected or NotAccepted."""
        async with Connection(self._broker) as connection:
            if not connection.session_present and self._unnamed.forget():
                await host.accept([], str(self._unnamed))
            await connection.listen(self._topics.inbox)
            refusal = await self._greet(connection)
            self._connection = connection
            try:
                host.report(True, f"{self._broker.host}:{self._broker.port}{refusal}")
                while True:
                    await self._take(host, connection, await connection.receive())
            finally:
                self._connection = None
                await self._say_goodbye(connection)

    async def _greet(self, connection: Connection) -> str:
        """Publish `online`, and what Home Assistant is told. Returns what to add to the report if the broker does not let us."""
        try:
            await connection.deliver(self._topics.status, b"online", retain=True)
            if self._announcement:
                await connection.deliver(*self._announcement, retain=True)
        except NotAccepted as error:
            return f" ({error})"
        except TimeoutError:
            raise Disconnected("no answer to the first publish") from None
        return ""

    async def _say_goodbye(self, connection: Connection) -> None:
        with contextlib.suppress(Disconnected, NotAccepted, TimeoutError):
            async with asyncio.timeout(GOODBYE_S):
                await connection.deliver(self._topics.status, b"offline", retain=True)

    async def _take(self, host: Host, connection: Connection, packets: Sequence[Packet]) -> None:
        """Store, then acknowledge; in order, and the ignored ones too: what is never acknowledged stalls the rest."""
        batch = [inbound for packet in packets if (inbound := self._read(packet))]
        receipts = await host.accept(batch, self._unnamed.news()) if batch else []
        for packet in packets:
            connection.acknowledge(packet)
        self._confirm(connection, batch, receipts)

    def _read(self, packet: Packet) -> Inbound | None:
        made = self._unnamed.id_for(packet)
        try:
            reading = mqtt_payload.read(packet, self._topics, self._name, made, time.time())
        except Ignored as reason:
            log.warning("inbox.rejected", transport=self._name, reason=str(reason))
            return None
        for warning in reading.warnings:
            log.warning("inbox.rejected", transport=self._name, reason=warning)
        self._unnamed.keep(packet, None if reading.inbound.client_id else made)
        return reading.inbound

    def _confirm(self, connection: Connection, batch: Sequence[Inbound], receipts: Sequence[Receipt]) -> None:
        known = {receipt.external_id for receipt in receipts if receipt.status != "refused"}
        for inbound in batch:
            if inbound.client_id and inbound.external_id in known:
                connection.mention(self._topics.events(inbound.address), mqtt_payload.stored(inbound.client_id))

    def _reply_topic(self, delivery: Delivery) -> str:
        asked = delivery.context.get("response_topic", "")
        if asked and self._topics.allows_reply(delivery.address.chat, asked):
            return asked
        try:
            return self._topics.replies(delivery.address)
        except Ignored as error:
            raise Refused(str(error)) from None

    def _event(self, event: Typing | Preview) -> bytes:
        if isinstance(event, Typing):
            return mqtt_payload.typing()
        seq = self._previews.pop(event.turn, 0) + 1
        self._previews[event.turn] = seq
        while len(self._previews) > COUNTED_PREVIEWS:
            del self._previews[next(iter(self._previews))]
        return mqtt_payload.partial(event.turn, seq, event.text)


def _suspicion(short: int) -> str:
    """What `short` connections in a row may mean. Not every broker gives the reason (mosquitto 2.0.11 does not)."""
    return f"; {short} times in a row soon after connecting: {SECOND_CLEW}" if short >= SUSPICIOUS else ""


@contextlib.contextmanager
def _as_outcome(*, already_left: bool) -> Iterator[None]:
    """What became of a publish, in the words of the port. `already_left`: parts in front of it have been sent."""
    try:
        yield
    except TimeoutError:
        raise Unknown("the broker has not acknowledged the reply in time") from None
    except Disconnected as error:
        raise (Unknown if error.left or already_left else Retry)(str(error)) from None
    except NotAccepted as error:
        raise (Retry if error.code in PASSING else Refused)(str(error)) from None


@lru_cache(maxsize=16)
def _reply_properties(correlation: bytes | None) -> Packed:
    asked = {} if correlation is None else {"CorrelationData": correlation}
    return Packed(ContentType="application/json", PayloadFormatIndicator=1, **asked)


def _broker(settings: Settings, status: str) -> Broker:
    return Broker(
        host=settings.host,
        port=settings.port,
        client_id=f"clew-{settings.bot}",
        status=status,
        username=settings.username,
        password=settings.password.get_secret_value() if settings.password else None,
        tls=settings.tls,
        keepalive=settings.keepalive,
    )


async def _examine(name: str, settings: Settings) -> Sequence[Fault | Remark]:
    return await examine(_broker(settings, ""), Topics(settings.bot), f"transports.{name}")


def _mistakes(name: str, settings: Settings) -> Sequence[Mistake]:
    return () if settings.tls else readable(settings.host, "tls", "messages and password go", "set tls: true, and the port for it (8883)")


def _sender(settings: Settings, text: str) -> str:
    if why := mqtt_payload.unreachable(Address("mqtt", text)):
        raise ValueError(f"must stand a user as it is in the topic: {why}")
    return text


def _account(settings: Settings) -> tuple[str, str]:
    return "bot", f"{settings.host.lower()}:{settings.port} {settings.bot}"


def _build(name: str, settings: Settings) -> MqttTransport:
    return MqttTransport(name, settings)


plugin = Plugin("mqtt", Settings, _build, _examine, _mistakes, _sender, _account, setup=SETUP)
