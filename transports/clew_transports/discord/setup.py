"""What `clew init` asks for Discord."""

from typing import Any

from clew.plugins import Ask, Setup


def first(settings: Any, sender: str) -> str:
    """How the first message is sent."""
    return "write to the bot in Discord: it stands among the members of a server that it was invited to (docs/transports/discord.md)"


SETUP = Setup(
    "a bot in Discord",
    (Ask("token", "The bot's token", "Developer Portal, your application, Bot", "DISCORD_TOKEN"),),
    first,
    "Your number at Discord",
    "Settings, Advanced, Developer Mode; then right-click your name, Copy User ID",
)
