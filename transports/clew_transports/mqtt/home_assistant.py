"""What Home Assistant is told, so that clew appears there by itself: one retained message of its MQTT discovery.

The form is that of https://www.home-assistant.io/integrations/mqtt/#device-discovery-payload (Home Assistant 2024.11 and later).
"""

import json
from typing import Annotated, Any

from pydantic import Field

from clew.transport import Address
from clew_transports.mqtt.payload import NAME, Topics
from clew_transports.settings import Section

LONGEST_STATE = 255
"""Characters that a state has at most in Home Assistant; the whole text is an attribute."""
COMMAND = '{{ {"id": "ha-" ~ (as_timestamp(now()) * 1000000) | int, "text": value} | to_json }}'
"""An id makes a message that is published twice one message."""


class HomeAssistant(Section):
    """prefix: of its discovery. user: as whom it writes, which is its name at the broker."""

    enabled: bool = False
    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_/-]{1,64}$")] = "homeassistant"
    user: Annotated[str, Field(pattern=f"^{NAME}$")] = "homeassistant"


def announcement(settings: HomeAssistant, topics: Topics, transport: str) -> tuple[str, bytes]:
    """(topic, payload) of the message. transport: the name of the section, in whose addresses the chat stands."""
    device = f"clew_{topics.bot.replace('.', '_')}"
    said, heard = f"{topics.base}/in/{settings.user}", topics.replies(Address(transport, settings.user))
    message: dict[str, Any] = {
        "device": {"identifiers": [device], "name": topics.bot, "manufacturer": "clew"},
        "origin": {"name": "clew"},
        "availability_topic": topics.status,
        "payload_available": "online",
        "payload_not_available": "offline",
        "qos": 1,
        "components": {
            f"{device}_notify": _component("notify", "Notify", "mdi:message-arrow-right", command_topic=said, command_template=COMMAND),
            f"{device}_message": _component("text", "Message", "mdi:message-text", command_topic=said, command_template=COMMAND),
            f"{device}_reply": _component(
                "sensor",
                "Reply",
                "mdi:message-reply-text",
                state_topic=heard,
                value_template=f"{{{{ value_json.text[:{LONGEST_STATE}] }}}}",
                json_attributes_topic=heard,
            ),
        },
    }
    for identifier, component in message["components"].items():
        component["unique_id"] = identifier
    return f"{settings.prefix}/device/{device}/config", json.dumps(message).encode()


def _component(platform: str, name: str, icon: str, **more: str) -> dict[str, Any]:
    return {"platform": platform, "name": name, "icon": icon, **more}
