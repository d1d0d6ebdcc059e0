"""One connection to an MQTT 5 broker that acknowledges nothing by itself."""

import asyncio
import socket
import ssl
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiomqtt
from aiomqtt.exceptions import MqttConnectError
from aiomqtt.types import PahoSocket
from paho.mqtt.client import MQTT_ERR_SUCCESS, ConnectFlags, DisconnectFlags, MQTTMessage
from paho.mqtt.client import Client as PahoClient
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from clew_transports.mqtt.payload import MAX_PAYLOAD_BYTES, Packet, first_id

RECEIVE_MAXIMUM = 64
"""Messages that the broker may have in flight to us: what a batch, and a process that dies, can hold."""

SESSION_EXPIRY_S = 30 * 86400
"""How long the broker keeps messages for a clew that is switched off."""

MAX_PACKET_BYTES = 16 * 1024 * 1024
"""The broker keeps larger packets to itself. Far above MAX_PAYLOAD_BYTES, so that whoever sends too much is told so."""

MAX_WAITING_QOS0 = 256
"""Incoming ones that are not yet stored; more are dropped."""

MAX_WAITING_PACKETS = 256
"""Outgoing ones that the network has not taken yet; above it nothing is sent at QoS 0."""

TIMEOUT_S = 10.0
"""For each answer of the broker."""
NO_DELAY = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
"""A reply leaves right behind the acknowledgement of its message, which TCP would have confirmed first, 40 ms later."""

TOLD = ("MaximumPacketSize", "MaximumQoS", "RetainAvailable", "SessionExpiryInterval", "WildcardSubscriptionAvailable")
"""What a broker may say of itself when it takes a connection."""

SESSION_TAKEN_OVER = 142
UNSUPPORTED_PROTOCOL = 132
SECOND_CLEW = "does a second clew run for this bot?"
_WHY = {
    SESSION_TAKEN_OVER: f"the session was taken over by another client with the same id: {SECOND_CLEW}",
    UNSUPPORTED_PROTOCOL: "the broker does not speak MQTT 5",
}
LASTING = frozenset({SESSION_TAKEN_OVER, UNSUPPORTED_PROTOCOL, 133, 134, 135, 138, 140})
"""Reason codes that trying again soon does not change; also client id, password, authorisation, ban and method."""

PASSING = frozenset({128, 131, 145, 151})
"""Reason codes of a PUBACK that may go away: unspecified, implementation specific, packet identifier in use, quota."""


class Disconnected(Exception):
    """There is no connection, or none any more.

    code: the MQTT 5 reason code, 0 if there was none. left: the packet had left by then. after_hello: the broker had
    taken the connection.
    """

    def __init__(self, why: str, code: int = 0, *, left: bool = False, after_hello: bool = False) -> None:
        super().__init__(_WHY.get(code, why))
        self.code = code
        self.left = left
        self.after_hello = after_hello


class NotAccepted(Exception):
    """The broker answered a publish or a subscription with a failure. `code`: the MQTT 5 reason code."""

    def __init__(self, why: str, code: int) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True, slots=True)
class Broker:
    """Where to connect to and as whom. `keepalive` in seconds; `status` is the topic of the last will, empty for none. clean: nothing is
    taken up from an earlier session. session_s: seconds that the broker is to keep the session."""

    host: str
    port: int
    client_id: str
    status: str
    username: str | None = None
    password: str | None = None
    tls: bool = False
    keepalive: float = 30.0
    clean: bool = False
    session_s: int = SESSION_EXPIRY_S


class Packed(Properties):
    """Properties of publishes that are the same each time: written out once."""

    def __init__(self, **properties: object) -> None:
        super().__init__(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        for name, value in properties.items():
            setattr(self, name, value)
        self._packed: bytes
        object.__setattr__(self, "_packed", super().pack())  # type: ignore[no-untyped-call]  # the class's own takes nothing but properties

    def pack(self) -> bytes:
        return self._packed


class Connection(aiomqtt.Client):
    """Use as an async context manager, once: a new object for each connection.

    (One that is used again would send what was published while it was cut off, and whose sender, told of a failure,
    sends it again.)
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__(
            broker.host,
            broker.port,
            identifier=broker.client_id,
            protocol=aiomqtt.ProtocolVersion.V5,
            clean_start=broker.clean,
            properties=_connect_properties(broker.session_s),
            username=broker.username or None,
            password=broker.password or None,
            tls_context=ssl.create_default_context() if broker.tls else None,
            will=aiomqtt.Will(broker.status, b"offline", qos=1, retain=True) if broker.status else None,
            keepalive=max(1, round(broker.keepalive)),
            timeout=TIMEOUT_S,
            socket_options=NO_DELAY,
        )
        self._client.manual_ack_set(True)  # aiomqtt has no option for it
        self._client.on_publish = None  # where one is set, paho makes a reason and properties for every message that left at QoS 0 too
        self._client.disable_logger()  # five lines a message that nobody reads, made before it is known whether they are wanted
        self.session_present = False
        self.told: dict[str, int] = {}
        self._max_packet: int | None = None
        self._packets: deque[Packet] = deque()
        self._stirred = asyncio.Event()
        self._answers: dict[int, asyncio.Future[ReasonCode]] = {}
        self._lost = Disconnected("the connection to the broker was lost", after_hello=True)
        self._abandoned = False
        self._watched = False  # the loop waits until the socket can be written to

    async def __aenter__(self) -> Self:
        """Connect. Raises Disconnected."""
        try:
            await super().__aenter__()
            heed_cancellation()
        except MqttConnectError as error:
            self._abandon()
            raise Disconnected(f"the broker refused the connection: {error.rc}", _code(error.rc)) from None
        except (aiomqtt.MqttError, ValueError) as error:
            self._abandon()
            raise Disconnected(_connect_failure(error), self._lost.code) from None
        except BaseException:
            self._abandon()
            raise
        self._disconnected.add_done_callback(self._on_lost)
        return self

    async def __aexit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        try:
            await super().__aexit__(exc_type, exc, tb)
        except aiomqtt.MqttError:
            pass  # it is being left anyway
        finally:
            self._abandon()

    async def listen(self, topic: str) -> None:
        """Subscribe at QoS 1, without retained messages and without our own. Raises Disconnected or NotAccepted."""
        options = SubscribeOptions(qos=1, noLocal=True, retainHandling=SubscribeOptions.RETAIN_DO_NOT_SEND)
        try:
            granted = await self.subscribe(topic, options=options)
        except aiomqtt.MqttError as error:
            raise Disconnected(f"no answer to the subscription: {error}", self._lost.code) from None
        heed_cancellation()
        for code in granted:
            if _code(code) >= 128:
                raise NotAccepted(f"the broker refused the subscription to {topic}: {code}", _code(code))

    async def receive(self) -> list[Packet]:
        """What has arrived, in order, at least one and at most RECEIVE_MAXIMUM. Raises Disconnected."""
        while not self._packets:
            if self._disconnected.done():
                raise self._lost
            self._stirred.clear()
            await self._stirred.wait()
        return [self._packets.popleft() for _ in range(min(len(self._packets), RECEIVE_MAXIMUM))]

    def acknowledge(self, packet: Packet) -> None:
        """Send the PUBACK, if there is still somebody to send it to."""
        if packet.qos and not self._disconnected.done():
            self._client.ack(packet.mid, packet.qos)

    async def deliver(self, topic: str, payload: bytes, *, retain: bool = False, properties: Properties | None = None) -> None:
        """Publish at QoS 1 and wait for the PUBACK: TimeoutError after TIMEOUT_S. Raises Disconnected, NotAccepted."""
        if self._disconnected.done():
            raise Disconnected(str(self._lost), self._lost.code)
        if self._max_packet is not None and len(topic) + len(payload) + 1024 > self._max_packet:
            raise NotAccepted(f"the broker takes packets of at most {self._max_packet} bytes", 149)
        self._client.on_publish = self._on_publish
        info = self._client.publish(topic, payload, 1, retain, properties)
        if info.rc != MQTT_ERR_SUCCESS:
            raise Disconnected(str(self._lost), self._lost.code)
        answer = self._answers[info.mid] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                code = await answer
        finally:
            self._answers.pop(info.mid, None)
            if not self._answers:
                self._client.on_publish = None
        if code.is_failure:
            raise NotAccepted(f"the broker refused a message to {topic}: {code}", code.value)

    def mention(self, topic: str, payload: bytes) -> None:
        """Publish at QoS 0, unless there is no connection or a slow one: nothing is kept for later."""
        if not self._disconnected.done() and len(self._client._out_packet) < MAX_WAITING_PACKETS:
            self._client.publish(topic, payload, 0)

    def _on_connect(
        self,
        client: PahoClient,
        userdata: Any,
        flags: ConnectFlags,
        reason_code: ReasonCode,
        properties: Properties | None = None,
    ) -> None:
        self.session_present = flags.session_present
        self.told = {name: value for name in TOLD if isinstance(value := getattr(properties, name, None), int)}
        self._max_packet = self.told.get("MaximumPacketSize")
        super()._on_connect(client, userdata, flags, reason_code, properties)

    def _on_socket_register_write(self, client: PahoClient, userdata: Any, sock: PahoSocket) -> None:
        """Something is to be written. Once connected, all runs in the loop and the socket nearly always has room: it is tried at the end of
        this round. To have the loop watch the socket first, as aiomqtt does, costs more than the write."""
        if self._connected.done():
            self._loop.call_soon(self._write, client, userdata, sock)
        else:
            self._watch(client, userdata, sock)

    def _on_socket_unregister_write(self, client: PahoClient, userdata: Any, sock: PahoSocket) -> None:
        if self._watched:
            self._watched = False
            super()._on_socket_unregister_write(client, userdata, sock)

    def _watch(self, client: PahoClient, userdata: Any, sock: PahoSocket) -> None:
        self._watched = True
        super()._on_socket_register_write(client, userdata, sock)

    def _write(self, client: PahoClient, userdata: Any, sock: PahoSocket) -> None:
        try:
            client.loop_write()
        except Exception as error:
            if not self._disconnected.done():
                self._disconnected.set_exception(error)
            return
        if client.want_write() and client.socket() is sock:
            self._watch(client, userdata, sock)

    def _on_message(self, client: PahoClient, userdata: Any, message: MQTTMessage) -> None:
        if message.qos == 0 and len(self._packets) >= MAX_WAITING_QOS0:
            return  # the receive maximum bounds the others
        self._packets.append(_packet(message))
        self._stirred.set()

    def _on_publish(self, client: PahoClient, userdata: Any, mid: int, reason_code: ReasonCode, properties: Properties) -> None:
        answer = self._answers.pop(mid, None)
        if answer and not answer.done():
            answer.set_result(reason_code)

    def _on_disconnect(
        self,
        client: PahoClient,
        userdata: Any,
        flags: DisconnectFlags,
        reason_code: ReasonCode,
        properties: Properties | None = None,
    ) -> None:
        why = "the broker closed the connection" if flags.is_disconnect_packet_from_server else "the connection broke"
        if not self._disconnected.done():  # the first call has the broker's reason, a second one may follow
            self._lost = Disconnected(f"{why}: {reason_code}", reason_code.value, after_hello=True)
        if not self._connected.done():
            self._connected.set_exception(aiomqtt.MqttCodeError(reason_code))
        super()._on_disconnect(client, userdata, flags, reason_code, properties)

    def _on_lost(self, disconnected: "asyncio.Future[None]") -> None:
        self._stirred.set()
        error = None if disconnected.cancelled() else disconnected.exception()
        if error and not isinstance(error, aiomqtt.MqttError):
            self._lost = Disconnected(f"the connection broke: {error}", after_hello=True)
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(Disconnected(str(self._lost), self._lost.code, left=True))

    def _client_connect(self) -> None:
        """Runs in a thread, which a cancelled connection attempt leaves behind."""
        super()._client_connect()
        if self._abandoned:
            self._loop.call_soon_threadsafe(self._abandon)

    def _abandon(self) -> None:
        """Close the socket if it is still open. Nothing is sent: to the broker it is a connection that broke."""
        self._abandoned = True
        for future in (self._connected, self._disconnected):
            if future.done() and not future.cancelled():
                future.exception()
        self._client._sock_close()


def heed_cancellation() -> None:
    """Raise CancelledError if this task has been cancelled.

    Until Python 3.12 `asyncio.wait_for`, which aiomqtt uses, swallows a cancellation that comes together with its result.
    """
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError


def _connect_properties(session_s: int) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = session_s
    properties.ReceiveMaximum = RECEIVE_MAXIMUM
    properties.MaximumPacketSize = MAX_PACKET_BYTES
    return properties


def _packet(message: MQTTMessage) -> Packet:
    properties = message.properties
    return Packet(
        topic=_topic(message),
        payload=bytes(message.payload[:MAX_PAYLOAD_BYTES]),
        size=len(message.payload),
        qos=message.qos,
        mid=message.mid,
        retain=message.retain,
        dup=message.dup,
        id=first_id(getattr(properties, "UserProperty", ())),
        response_topic=getattr(properties, "ResponseTopic", None),
        correlation=getattr(properties, "CorrelationData", None),
        expiry=getattr(properties, "MessageExpiryInterval", None),
    )


def _topic(message: MQTTMessage) -> str:
    """Its topic, or "" (which is nobody's) if a broker let one through that is not UTF-8."""
    try:
        return message.topic
    except UnicodeDecodeError:
        return ""


def _code(code: object) -> int:
    return code.value if isinstance(code, ReasonCode) else int(code) if isinstance(code, int) else 0


def _connect_failure(error: Exception) -> str:
    if isinstance(error, aiomqtt.MqttCodeError):
        return f"the broker closed the connection before answering ({error.rc}); is it an MQTT 5 broker?"
    if str(error) == "Operation timed out":
        return f"no answer within {TIMEOUT_S:g} s; is it an MQTT 5 broker?"
    return f"cannot connect: {error}"
