"""What `clew init` asks for WhatsApp."""

from typing import Any

from clew.plugins import Ask, Setup


def first(settings: Any, sender: str) -> str:
    """How the first message is sent."""
    return "enter the webhook at Meta (docs/transports/whatsapp.md), then write to the number in WhatsApp"


SETUP = Setup(
    "a number in WhatsApp, by Meta's Cloud API (Meta restricts assistants there)",
    (
        Ask("token", "The token of a system user", "Meta Business settings", "WHATSAPP_TOKEN"),
        Ask("app_secret", "The app's secret", "App settings, Basic", "WHATSAPP_APP_SECRET"),
        Ask("verify_token", "The word by which Meta verifies the webhook", "", "WHATSAPP_VERIFY_TOKEN", drawn=True),
        Ask("phone_number_id", "The number's id", "WhatsApp, API Setup; not the number itself"),
    ),
    first,
    "Your own number",
    "with the country's code",
)
