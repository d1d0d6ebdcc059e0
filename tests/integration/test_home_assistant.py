"""What Home Assistant finds at the broker, and that its templates make messages of ours."""

import json
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, StrictUndefined

from clew_transports.mqtt.home_assistant import COMMAND, HomeAssistant, announcement
from clew_transports.mqtt.payload import Topics
from tests.integration.mqtt_harness import Inbox, answer_to, heard, on, payload, person, running
from tests.servers import Mosquitto, find_program

pytestmark = [
    pytest.mark.mosquitto,
    pytest.mark.skipif(find_program("mosquitto") is None, reason="mosquitto is not installed"),
]
TOPIC = "homeassistant/device/clew_clew/config"
DEPLOY = Path(__file__).parents[2] / "deploy"


def rendered(template: str, **values: Any) -> str:
    """What Home Assistant makes of a template, with the two functions and the filter of its own that ours use."""
    environment = Environment(undefined=StrictUndefined, autoescape=False)
    environment.filters["to_json"] = json.dumps
    environment.globals.update(now=lambda: 1764530000.25, as_timestamp=float)
    return environment.from_string(template).render(**values)


@pytest.mark.asyncio
async def test_home_assistant_finds_clew_and_talks_to_it(mosquitto: Mosquitto) -> None:  # P42
    inbox = Inbox()
    async with (
        running(mosquitto.port, inbox, home_assistant=HomeAssistant(enabled=True)) as transport,
        person(mosquitto.port, "homeassistant") as home,
    ):
        await home.subscribe("homeassistant/#", qos=1)
        found = await heard(home, on(TOPIC))
        assert found.retain
        told = payload(found)
        notify, message, reply = (told["components"][f"clew_clew_{name}"] for name in ("notify", "message", "reply"))
        assert [each["platform"] for each in (notify, message, reply)] == ["notify", "text", "sensor"]
        assert (told["availability_topic"], told["payload_available"]) == ("chat/v1/clew/status", "online")

        text = 'Is the "back" door shut?\n\\o/'
        await home.publish(notify["command_topic"], rendered(notify["command_template"], value=text), qos=told["qos"])
        await inbox.until(lambda: bool(inbox.rows))
        (said,) = inbox.rows.values()
        assert (said.text, said.sender, said.client_id) == (text, "homeassistant", "ha-1764530000250000")

        long = "It is. " * 60
        await transport.send(answer_to(said, long, transport))
        answer = await heard(home, on(reply["state_topic"]))
        assert rendered(reply["value_template"], value_json=payload(answer)) == long[:255]
        assert payload(answer)["text"] == long


@pytest.mark.asyncio
async def test_a_broker_that_forbids_the_announcement_is_reported_and_the_rest_works(tmp_path: Path) -> None:
    acl = tmp_path / "acl-file"
    acl.write_text("topic readwrite chat/v1/clew/#\n")
    directory = tmp_path / "broker"
    directory.mkdir()
    inbox = Inbox()
    with Mosquitto(directory, acl=acl) as broker:
        async with running(broker.port, inbox, home_assistant=HomeAssistant(enabled=True)):
            assert inbox.up
            assert TOPIC in inbox.reports[-1][1]


def test_the_acl_that_ships_names_the_topic() -> None:
    topic, _ = announcement(HomeAssistant(enabled=True), Topics("clew"), "mqtt")
    assert topic == TOPIC
    assert f"#topic write {topic}" in (DEPLOY / "mosquitto.acl").read_text()


@pytest.mark.parametrize("bot", ["clew", "living.room-2"])
def test_names_are_such_as_home_assistant_takes(bot: str) -> None:
    topic, message = announcement(HomeAssistant(enabled=True), Topics(bot), "mqtt")
    told = json.loads(message)
    names = [topic.split("/")[2], *told["device"]["identifiers"], *told["components"]]
    assert all(name.replace("_", "").replace("-", "").isalnum() for name in names)
    assert [each["unique_id"] for each in told["components"].values()] == list(told["components"])
    assert all(each.get("command_template", COMMAND) == COMMAND for each in told["components"].values())
