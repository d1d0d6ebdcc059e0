"""What `clew init` asks for ntfy."""

from typing import Any

from clew.plugins import Ask, Setup


def first(settings: Any, sender: str) -> str:
    """How the first message is sent."""
    topic = sender or next(iter(settings.topics), "")
    return f"curl -d 'Good morning!' {settings.base_url.rstrip('/')}/{topic}"


SETUP = Setup(
    "topics of ntfy",
    (
        Ask("base_url", "The ntfy server"),
        Ask("topics", "The topic that you write to and the one for answers", "such as ada-asks-7f3k: ada-hears-9x2m"),
        Ask("token", "An access token", "", "NTFY_TOKEN", needed=False),
    ),
    first,
    "The topic that only you write to",
)
