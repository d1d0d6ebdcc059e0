"""The broker settings that we ship, in a real broker: the ACL is what makes a sender's name true."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiomqtt
import pytest
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.servers import MOSQUITTO_MISSING, Mosquitto, find_program

pytestmark = pytest.mark.mosquitto

DEPLOY = Path(__file__).parents[2] / "deploy"
USERS = {"clew": "bot-password", "ada": "ada-password", "bob": "bob-password"}
# Set by the test server itself: they name ports and files of the machine.
OWN = ("listener", "allow_anonymous", "password_file", "acl_file", "persistence ", "persistence_location", "autosave", "log_dest")


@pytest.fixture(params=["mosquitto.conf", "compose/mosquitto.conf"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mosquitto]:
    if find_program("mosquitto") is None:
        pytest.skip(MOSQUITTO_MISSING)
    lines = (DEPLOY / request.param).read_text().splitlines()
    settings = "\n".join(line for line in lines if not line.startswith(OWN))
    with Mosquitto(tmp_path, users=USERS, acl=DEPLOY / "mosquitto.acl", settings=settings) as running:
        yield running


def connect(broker: Mosquitto, user: str, password: str | None = None) -> aiomqtt.Client:
    return aiomqtt.Client(
        broker.host,
        broker.port,
        username=user,
        password=password or USERS[user],
        protocol=aiomqtt.ProtocolVersion.V5,
    )


async def payloads(client: aiomqtt.Client, until: bytes) -> list[bytes]:
    """What has come in, up to the payload ``until``."""
    got: list[bytes] = []
    async with asyncio.timeout(60):
        async for message in client.messages:
            assert isinstance(message.payload, bytes)
            got.append(message.payload)
            if message.payload == until:
                break
    return got


@pytest.mark.asyncio
async def test_nobody_speaks_as_somebody_else(broker: Mosquitto) -> None:
    async with connect(broker, "clew") as bot, connect(broker, "ada") as ada, connect(broker, "bob") as bob:
        await bot.subscribe("chat/v1/clew/in/#", options=SubscribeOptions(qos=1))
        await ada.publish("chat/v1/clew/in/ada", b"ada, no thread", qos=1)
        await ada.publish("chat/v1/clew/in/ada/kitchen", b"ada, kitchen", qos=1)
        await ada.publish("chat/v1/clew/in/bob", b"forged", qos=1)
        await ada.publish("chat/v1/clew/in/bob/kitchen", b"forged", qos=1)
        await bob.publish("chat/v1/clew/in/bob", b"bob", qos=1)
        assert await payloads(bot, until=b"bob") == [b"ada, no thread", b"ada, kitchen", b"bob"]


@pytest.mark.asyncio
async def test_nobody_reads_what_is_for_somebody_else(broker: Mosquitto) -> None:
    async with connect(broker, "clew") as bot, connect(broker, "ada") as ada:
        await ada.subscribe("chat/v1/clew/#", options=SubscribeOptions(qos=1))
        await bot.publish("chat/v1/clew/status", b"online", qos=1, retain=True)
        await bot.publish("chat/v1/clew/out/bob", b"for bob", qos=1)
        await bot.publish("chat/v1/clew/ev/bob/kitchen", b"for bob", qos=1)
        await bot.publish("chat/v1/clew/ev/ada/kitchen", b"typing", qos=1)
        await bot.publish("chat/v1/clew/out/ada", b"for ada", qos=1)
        assert await payloads(ada, until=b"for ada") == [b"online", b"typing", b"for ada"]


@pytest.mark.asyncio
async def test_a_person_cannot_pose_as_the_bot(broker: Mosquitto) -> None:
    async with connect(broker, "clew") as bot, connect(broker, "ada") as ada, connect(broker, "bob") as bob:
        await bob.subscribe("chat/v1/clew/#", options=SubscribeOptions(qos=1))
        await ada.publish("chat/v1/clew/out/bob", b"forged", qos=1)
        await ada.publish("chat/v1/clew/status", b"offline", qos=1, retain=True)
        await bot.publish("chat/v1/clew/out/bob", b"real", qos=1)
        assert await payloads(bob, until=b"real") == [b"real"]


@pytest.mark.asyncio
async def test_a_wrong_password_is_refused(broker: Mosquitto) -> None:
    with pytest.raises(aiomqtt.MqttError):
        async with connect(broker, "ada", "wrong"):
            pass
