"""The broker that other tests lean on must itself behave like the real thing after a crash."""

import asyncio
from pathlib import Path

import aiomqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.servers import Mosquitto

pytestmark = pytest.mark.mosquitto


def client(broker: Mosquitto, identifier: str) -> aiomqtt.Client:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = 3600
    return aiomqtt.Client(
        broker.host,
        broker.port,
        identifier=identifier,
        protocol=aiomqtt.ProtocolVersion.V5,
        clean_start=False,
        properties=properties,
    )


@pytest.mark.asyncio
async def test_a_queued_message_survives_kill_and_restart(mosquitto: Mosquitto) -> None:
    async with client(mosquitto, "sleeper") as sleeper:
        await sleeper.subscribe("box", options=SubscribeOptions(qos=1))
    async with client(mosquitto, "sender") as sender:
        await sender.publish("box", b"kept", qos=1)
    mosquitto.wait_saved(b"kept")
    mosquitto.kill()
    mosquitto.start()
    async with asyncio.timeout(60), client(mosquitto, "sleeper") as sleeper:
        async for message in sleeper.messages:
            assert message.payload == b"kept"
            break


def test_a_broken_config_is_reported_with_the_log(mosquitto: Mosquitto, tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path, settings="no_such_setting 1")
    with pytest.raises(RuntimeError, match="no_such_setting"):
        broker.start()
