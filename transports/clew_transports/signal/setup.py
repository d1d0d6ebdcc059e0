"""What `clew init` asks for Signal."""

from typing import Any

from clew.plugins import Ask, Setup


def first(settings: Any, sender: str) -> str:
    """How the first message is sent."""
    return f"write to {settings.account} in Signal"


SETUP = Setup(
    "a number in Signal, by signal-cli",
    (Ask("account", "clew's own number", "such as +15551234567; signal-cli must run (docs/transports/signal.md)"),),
    first,
)
