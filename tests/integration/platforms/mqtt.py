"""mosquitto, and people who are its clients."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, Self

import aiomqtt

from tests.emulators.server import JsonObject
from tests.integration.mqtt_harness import person
from tests.integration.platforms import Platform
from tests.integration.web_harness import Clew
from tests.servers import Mosquitto


class Mqtt(Platform):
    name = "mqtt"
    groups = refuses = loses_answers = False

    @classmethod
    @contextlib.asynccontextmanager
    async def standing(cls, broker: Mosquitto) -> AsyncIterator[Self]:
        async with person(broker.port, "+") as client:
            mqtt = cls(broker, client)
            reader = asyncio.create_task(mqtt.collect())
            try:
                yield mqtt
            finally:
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)

    def __init__(self, broker: Mosquitto, client: aiomqtt.Client) -> None:
        self.broker = broker
        self.client = client
        self.replies: dict[str, JsonObject] = {}
        self._number = 0

    def section(self) -> JsonObject:
        return {"host": "127.0.0.1", "port": self.broker.port}

    async def collect(self) -> None:
        with contextlib.suppress(aiomqtt.MqttError):
            async for each in self.client.messages:
                if "/out/" in str(each.topic) and isinstance(each.payload, bytes):
                    reply = json.loads(each.payload)
                    self.replies[reply["id"]] = {**reply, "to": str(each.topic).rpartition("/")[2]}

    async def say(self, clew: Clew, text: str, who: str = "ada", *, group: bool = False, called: bool = True) -> Any:
        self._number += 1
        said = (f"chat/v1/clew/in/{who}", json.dumps({"id": f"m{self._number}", "text": text}))
        await self.again(clew, said)
        return said

    async def again(self, clew: Clew, said: Any) -> None:
        topic, payload = said
        await self.client.publish(topic, payload, qos=1)

    def heard(self, who: str = "ada", *, group: bool = False) -> list[str]:
        return [each["text"] for each in self.replies.values() if each["to"] == who]
