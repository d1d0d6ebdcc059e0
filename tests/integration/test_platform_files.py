"""Photos over real ways: inside an MQTT message, and from Telegram's servers."""

import base64
import json
from pathlib import Path

import pytest

from tests.databases import databases
from tests.emulators.openai import OpenAIEmulator
from tests.emulators.scripts import numbered
from tests.emulators.telegram import TOKEN, TelegramEmulator, person
from tests.integration import mqtt_harness
from tests.integration.web_harness import running, settings
from tests.integration.webhook_harness import until
from tests.pictures import png
from tests.servers import Mosquitto

pytestmark = pytest.mark.asyncio

PHOTO = png()
URL = f"data:image/png;base64,{base64.b64encode(PHOTO).decode()}"


@pytest.mark.mosquitto
async def test_a_photo_inside_an_mqtt_message_reaches_the_model(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P47
    async with OpenAIEmulator(script=numbered("seen")) as model:
        config = settings(
            tmp_path / "c",
            base_url=model.base_url,
            transports={"mqtt": {"enabled": True, "host": "127.0.0.1", "port": mosquitto.port}},
            people={"ada": {"role": "member", "identities": ["mqtt:ada"]}},
        )
        async with running(config) as clew, mqtt_harness.person(mosquitto.port) as ada:
            await until(lambda: clew.service.transports["mqtt"].up)
            data = {"name": "door.png", "mime": "image/png", "data": base64.b64encode(PHOTO).decode()}
            await ada.publish("chat/v1/clew/in/ada", json.dumps({"id": "m1", "text": "", "attachments": [data]}), qos=1)
            answer = mqtt_harness.payload(await mqtt_harness.heard(ada, mqtt_harness.on("chat/v1/clew/out/ada")))
            assert (answer["text"], answer["answers"]) == ("seen 1", ["m1"])
            assert model.calls[0].body["messages"][-1]["content"][1]["image_url"]["url"] == URL
    assert databases.rows(tmp_path / "c" / "data", "SELECT state, ref FROM attachments") == [("ready", "")]  # its bytes are not kept twice


async def test_a_photo_from_telegram_reaches_the_model(tmp_path: Path) -> None:  # P47
    async with OpenAIEmulator(script=numbered("seen")) as model, TelegramEmulator() as telegram:
        config = settings(
            tmp_path / "c",
            base_url=model.base_url,
            transports={"telegram": {"enabled": True, "token": TOKEN, "base_url": telegram.url}},
            people={"ada": {"role": "member", "identities": ["telegram:11"]}},
        )
        async with running(config):
            telegram.files["big"] = PHOTO
            sizes = [{"file_id": "small", "file_size": 10}, {"file_id": "big", "file_size": len(PHOTO)}]
            telegram.say("", person(11), photo=sizes, caption="what is this?")
            await until(lambda: bool(telegram.messages))
            content = model.calls[0].body["messages"][-1]["content"]
            assert content[0]["text"].endswith("what is this?")
            assert content[1]["image_url"]["url"] == URL
            assert telegram.messages[0]["text"] == "seen 1"
