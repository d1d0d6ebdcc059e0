"""What `clew init` asks for webhooks."""

from typing import Any

from clew.plugins import Ask, Setup


def first(settings: Any, sender: str) -> str:
    """How the first message is sent."""
    return "send a signed message to /webhooks/webhook (docs/transports/webhook.md)"


SETUP = Setup(
    "other programs, by signed webhooks",
    (
        Ask("secret", "The secret that signs", "", "CLEW_WEBHOOK_SECRET", drawn=True),
        Ask("reply_hosts", "Hosts that replies may be sent to, with commas", "such as hooks.example.org", needed=False),
    ),
    first,
)
