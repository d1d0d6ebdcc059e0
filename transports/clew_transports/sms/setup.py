"""What `clew init` asks for SMS."""

from typing import Any

from clew.plugins import Ask, Setup


def first(settings: Any, sender: str) -> str:
    """How the first message is sent."""
    return f"enter {settings.url} at Twilio (docs/transports/sms.md), then text {settings.number}"


SETUP = Setup(
    "a telephone number, by Twilio",
    (
        Ask("account_sid", "The account's SID", "AC…, Twilio Console"),
        Ask("auth_token", "Its auth token", "Twilio Console", "TWILIO_AUTH_TOKEN"),
        Ask("number", "clew's own number", "such as +15551234567"),
        Ask("url", "The webhook's address, as it is entered at Twilio", "such as https://clew.example.org/webhooks/sms/"),
    ),
    first,
    "Your own number",
    "such as +15551234567",
)
