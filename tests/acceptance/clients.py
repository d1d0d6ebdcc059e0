"""People whose clients never give up: what was not acknowledged is sent again with the same id, and a repeated reply is dropped."""

import asyncio
import contextlib
import json
import zlib
from abc import abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any

import aiohttp
import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.acceptance.harness import SESSION_EXPIRY_S, JsonObject, Watched
from tests.emulators.telegram import TelegramEmulator, person
from tests.integration.webhook_harness import Receiver, proof
from tests.servers import free_port

PEOPLE = ("ada", "bob", "cleo", "dan", "eve", "finn", "gus", "hal")
AGAIN_S = 0.05
"""Seconds before a client tries again."""
HEARTBEAT_S = 10.0
"""Seconds after which a page finds that nobody is behind its connection any more."""
UNACKNOWLEDGED = 8
"""Messages that a client of the web socket sends ahead."""


def write_config(folder: Path, model_url: str, broker_port: int, more: Mapping[str, Any] | None = None, **webhook: Any) -> Path:
    """All transports, eight people, windows that are compacted soon, a model that is given up on soon. more: further sections."""
    model = {"kind": "anthropic", "model": "claude-sonnet-5-5", "api_key": "sk-ant-emulated", "base_url": model_url}
    values = {
        "data_dir": str(folder / "data"),
        "http": {"port": free_port()},
        "log": {"level": "info", "format": "json"},
        "providers": {"claude": {**model, "timeouts": {"first_byte": "2s", "between": "2s"}}},
        "agent": {
            "provider": "claude",
            "timezone": "UTC",
            "compression": {"trigger_messages": 24, "keep_recent": 6},
            "approver": {"mode": "allow"},
        },
        "people": {
            name: {"role": "member" if number else "owner", "identities": [f"mqtt:{name}", f"webhook:{name}"]}
            for number, name in enumerate(PEOPLE)
        },
        "transports": {
            "mqtt": {"enabled": True, "host": "127.0.0.1", "port": broker_port},
            "webhook": {"enabled": bool(webhook), **webhook},
        },
        **(more or {}),
    }
    path = folder / "clew.yaml"
    path.write_text(json.dumps(values, indent=1))
    return path


class Client(Watched):
    """A person, in one or more threads.

    said: the ids of what was said, by thread, in order. replies: by their own id, in the order in which they came first.
    repeats: replies that came again; differing: those that were not the same as before. acknowledged: told of each acknowledged id.
    """

    threads: Sequence[str] = ("", "kitchen")

    def __init__(self, name: str, changed: Callable[[], None], acknowledged: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self.name = name
        self.said: dict[str, list[str]] = defaultdict(list)
        self.texts: dict[str, str] = {}
        self.replies: dict[str, JsonObject] = {}
        self.repeats = 0
        self.differing: list[JsonObject] = []
        self._changed_too = changed
        self._acknowledged = acknowledged

    def __str__(self) -> str:
        waiting = [each for thread, ids in self.said.items() for each in ids if each not in set(self.answered(thread))]
        return f"{self.name}: {len(self.texts)} said, {len(self.replies)} replies, without one: {waiting[:5]}"

    @abstractmethod
    async def run(self) -> None:
        """Stay connected until cancelled."""

    @abstractmethod
    async def _hand_over(self, identifier: str, text: str, thread: str) -> None:
        """Return once it is acknowledged, or will be sent again until it is."""

    async def say(self, text: str, thread: str = "") -> str:
        identifier = f"{self.name}{thread[:1]}-{len(self.said[thread]) + 1:05d}"
        self.said[thread].append(identifier)
        self.texts[identifier] = text
        await self._hand_over(identifier, text, thread)
        return identifier

    def answered(self, thread: str) -> list[str]:
        """Ids of this thread in the order of the replies to them, as often as they were answered."""
        known = set(self.said[thread])
        return [each for reply in self.replies.values() for each in reply["answers"] if each in known]

    @property
    def waiting(self) -> int:
        return len(self.texts) - sum(len(reply["answers"]) for reply in self.replies.values())

    def _heard(self, reply: JsonObject) -> None:
        known = self.replies.setdefault(reply["id"], reply)
        if known is not reply:
            self.repeats += 1
            if known != reply:
                self.differing.append(reply)
        self._tell()

    def _tell(self) -> None:
        super()._tell()
        self._changed_too()


class MqttClient(Client):
    """An MQTT 5 client with a session that outlasts its connections. An acknowledgement is clew's word that it has a message."""

    def __init__(self, name: str, port: int, *told: Any) -> None:
        super().__init__(name, *told)
        self._port = port
        self._topics = f"chat/v1/clew/%s/{name}"
        self._client: aiomqtt.Client | None = None

    @property
    def connected(self) -> bool:
        """Whether it has subscribed."""
        return self._client is not None

    async def run(self) -> None:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = SESSION_EXPIRY_S
        settings: dict[str, Any] = {"protocol": aiomqtt.ProtocolVersion.V5, "clean_start": False, "properties": properties}
        while True:
            with contextlib.suppress(aiomqtt.MqttError):
                async with aiomqtt.Client("127.0.0.1", self._port, identifier=self.name, **settings) as client:
                    for kind in ("out", "ev"):
                        await client.subscribe(f"{self._topics % kind}/#", qos=1)
                    self._client = client
                    self._tell()
                    async for message in client.messages:
                        assert isinstance(message.payload, bytes)
                        self._take(str(message.topic), json.loads(message.payload))
            self._client = None
            await asyncio.sleep(AGAIN_S)

    def _take(self, topic: str, payload: JsonObject) -> None:
        if topic.startswith(self._topics % "out"):
            self._heard(payload)
        elif payload["type"] == "stored":
            self._acknowledged(payload["id"])

    async def _hand_over(self, identifier: str, text: str, thread: str) -> None:
        topic = self._topics % "in" + (f"/{thread}" if thread else "")
        payload = json.dumps({"id": identifier, "text": text})
        while True:
            await self.until(lambda: self.connected, "a connection to the broker")
            assert self._client is not None
            with contextlib.suppress(aiomqtt.MqttError):
                await self._client.publish(topic, payload, qos=1)
                return
            await asyncio.sleep(AGAIN_S)


class WebClient(Client):
    """A chat page: it keeps what was not acknowledged, and comes back with the place up to which it has everything.

    urls: of daemons, one of them after the other.
    """

    threads = ("",)

    def __init__(self, name: str, http: aiohttp.ClientSession, urls: Sequence[str], *told: Any) -> None:
        super().__init__(name, *told)
        self._http = http
        self._urls = cycle(urls)
        self._after = 0
        self._unacknowledged: dict[str, str] = {}
        self._socket: aiohttp.ClientWebSocketResponse | None = None

    async def run(self) -> None:
        while True:
            with contextlib.suppress(aiohttp.ClientError, OSError):
                address = f"{next(self._urls)}/chat/ws?chat={self.name}&after={self._after}"
                async with self._http.ws_connect(address, heartbeat=HEARTBEAT_S) as socket:
                    for identifier, text in tuple(self._unacknowledged.items()):
                        await socket.send_json({"type": "message", "id": identifier, "text": text})
                    self._socket = socket
                    async for frame in socket:
                        if frame.type is not aiohttp.WSMsgType.TEXT:
                            break
                        self._take(frame.json())
            self._socket = None
            await asyncio.sleep(AGAIN_S)

    def _take(self, frame: JsonObject) -> None:
        if frame["type"] == "ack":
            if self._unacknowledged.pop(frame["id"], None) is not None:
                self._acknowledged(frame["id"])
            self._tell()
        elif frame["type"] == "message":
            self._after = frame["seq"]
            if frame["role"] == "assistant":
                self._heard(frame)

    async def _hand_over(self, identifier: str, text: str, thread: str) -> None:
        await self.until(lambda: len(self._unacknowledged) < UNACKNOWLEDGED, "acknowledgements")
        self._unacknowledged[identifier] = text
        if self._socket is not None:
            with contextlib.suppress(ConnectionError):
                await self._socket.send_json({"type": "message", "id": identifier, "text": text})


class WebhookClient(Client):
    """A program that posts until it is told 202, to one daemon after the other, and whose own receiver fails now and then."""

    def __init__(self, name: str, http: aiohttp.ClientSession, urls: Sequence[str], receiver: Receiver, *told: Any) -> None:
        super().__init__(name, *told)
        self._http = http
        self._urls = cycle(urls)
        self._receiver = receiver
        self._read = 0

    async def run(self) -> None:
        while True:
            calls = self._receiver.calls[self._read :]
            self._read += len(calls)
            for call in calls:
                if call.path == f"/{self.name}":
                    self._heard(call.body)
            await asyncio.sleep(AGAIN_S)

    async def _hand_over(self, identifier: str, text: str, thread: str) -> None:
        chat = self.name + (f"/{thread}" if thread else "")
        fields = {"id": identifier, "chat": chat, "sender": self.name, "text": text, "reply_url": f"{self._receiver.url}/{self.name}"}
        body = json.dumps(fields).encode()
        while not await self._taken(body):
            await asyncio.sleep(AGAIN_S)
        self._acknowledged(identifier)

    async def _taken(self, body: bytes) -> bool:
        try:
            address = f"{next(self._urls)}/webhooks/webhook"
            async with self._http.post(address, data=BytesIO(body), headers=proof(body)) as response:
                assert response.status in (202, 503), await response.text()
                return response.status == 202
        except (aiohttp.ClientError, OSError):
            return False


class TelegramClient(Client):
    """A person in a private chat with the bot. Telegram has a message once it is said; a reply that comes again has the same words."""

    threads = ("",)

    def __init__(self, name: str, emulator: TelegramEmulator, *told: Any) -> None:
        super().__init__(name, *told)
        self._emulator = emulator

    @staticmethod
    def number(name: str) -> int:
        """The user id of the person with this name."""
        return 1_000_000 + zlib.crc32(name.encode())

    async def run(self) -> None:
        read = 0
        while True:
            came, read = self._emulator.messages[read:], len(self._emulator.messages)
            for message in came:
                if message["chat"]["id"] == self.number(self.name):
                    self._took(message["text"])
            await asyncio.sleep(AGAIN_S)

    def _took(self, text: str) -> None:
        known = self.replies.get(text)
        waiting = [each for each in self.said[""] if each not in self.answered("")]
        answers = known["answers"] if known else waiting[:1]
        self._heard({"id": text, "in_reply_to": answers[0], "answers": answers, "text": text})

    async def say(self, text: str, thread: str = "") -> str:
        message = self._emulator.say(text, person(self.number(self.name), self.name))
        identifier = str(message["message_id"])
        self.said[thread].append(identifier)
        self.texts[identifier] = text
        return identifier

    async def _hand_over(self, identifier: str, text: str, thread: str) -> None:
        """`say` has done it: the platform gives the numbers."""


@contextlib.asynccontextmanager
async def online(clients: Sequence[Client]) -> AsyncIterator[None]:
    """All of them connected, and whatever ends one of them raised at the end."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(client.run()) for client in clients]
        yield
        for task in tasks:
            task.cancel()
