"""What `clew init` asks for MQTT."""

from typing import Any

from clew.plugins import Ask, Setup
from clew_transports.mqtt.payload import Topics


def first(settings: Any, sender: str) -> str:
    """How the first message is sent: a line for one shell."""
    broker = f"-h {settings.host} -p {settings.port}" + (" -u ACCOUNT -P PASSWORD" if settings.username else "")
    base, who = Topics(settings.bot).base, sender or "ada"
    return f"mosquitto_sub {broker} -t {base}/out/{who} & mosquitto_pub {broker} -q 1 -t {base}/in/{who} -m 'Good morning!'"


SETUP = Setup(
    "an MQTT broker",
    (
        Ask("host", "The broker"),
        Ask("port", "Its port"),
        Ask("tls", "With TLS (true or false)"),
        Ask("username", "clew's account there", needed=False),
        Ask("password", "Its password", "", "MQTT_PASSWORD", needed=False),
    ),
    first,
    "Your own name in the topics",
    "chat/v1/clew/in/NAME",
)
