"""What `clew init` asks for IRC."""

from typing import Any

from clew.plugins import Ask, Setup


def first(settings: Any, sender: str) -> str:
    """How the first message is sent."""
    return f"/msg {settings.nick} Good morning!   (logged in to the network's services)"


SETUP = Setup(
    "a client in an IRC network",
    (
        Ask("host", "The server", "such as irc.libera.chat"),
        Ask("nick", "clew's nickname"),
        Ask("account", "clew's account at the services", needed=False),
        Ask("password", "Its password", "", "IRC_PASSWORD", needed=False),
        Ask("channels", "Channels, with commas", "such as #garden, #club", needed=False),
    ),
    first,
    "Your own account at the services",
)
