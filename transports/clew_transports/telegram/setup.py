"""What `clew init` asks for Telegram."""

from typing import Any

from clew.plugins import Ask, Setup


def first(settings: Any, sender: str) -> str:
    """How the first message is sent."""
    return "open the chat with your bot in Telegram, press Start, and write to it"


SETUP = Setup(
    "a bot in Telegram",
    (Ask("token", "The bot's token", "from @BotFather, /newbot", "TELEGRAM_TOKEN"),),
    first,
    "Your number at Telegram",
    "@userinfobot tells it",
)
