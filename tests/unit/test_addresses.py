"""Which addresses a transport can ever send to."""

import pytest

from clew.transport import Address, Capabilities
from clew.web.transport import LookIn
from clew_transports.discord.transport import DiscordTransport
from clew_transports.matrix.transport import MatrixTransport
from clew_transports.mqtt.transport import MqttTransport
from clew_transports.slack.transport import SlackTransport
from clew_transports.telegram.transport import TelegramTransport
from clew_transports.webhook.transport import WebhookTransport

_CAN: dict[str, Capabilities] = {
    "matrix": MatrixTransport.capabilities,
    "discord": DiscordTransport.capabilities,
    "mqtt": MqttTransport.capabilities,
    "telegram": TelegramTransport.capabilities,
    "slack": SlackTransport.capabilities,
    "webhook": WebhookTransport.capabilities,
    "web": LookIn.capabilities,
    "terminal": LookIn.capabilities,
    "other": Capabilities(),
}


def unreachable(text: str) -> str:
    address = Address.parse(text)
    return _CAN[address.transport].unreachable(address)


@pytest.mark.parametrize(
    "text",
    [
        "webhook:ada",
        "mqtt:#",
        "mqtt:+/x",
        "mqtt:ada/../../x",
        "mqtt:a b",
        "mqtt:ada\n",
        "matrix:#alias:example.org",
        "matrix:@ada:example.org",
        "matrix:!a b:example.org",
        "matrix:!a:example.org/7",
        "discord:general",
        "discord:1/2",
        "telegram:ada",
        "telegram:1/x",
        "telegram:١",
        "slack:#general",
        "slack:general",
        "slack:C024BE91L/x",
        "slack:C024BE91L/1.1\n",
        "web:日 本",
        "web:a/b",
    ],
)
def test_what_can_never_be_sent_to_is_known_beforehand(text: str) -> None:  # P45
    assert unreachable(text)


@pytest.mark.parametrize(
    "text",
    [
        "mqtt:ada",
        "mqtt:ada/kitchen",
        "matrix:!a:example.org",
        "matrix:!a/$b-_1",
        "telegram:42",
        "telegram:-100123/7",
        "slack:D024BE91L",
        "slack:C024BE91L/1700000000.000100",
        "discord:112233445566778899",
        "web:local",
        "web:a.b-c_1",
        "terminal:ada+x",
        "other:日 本",
    ],
)
def test_what_may_be_sent_to_is_let_through(text: str) -> None:  # P45
    assert unreachable(text) == ""
