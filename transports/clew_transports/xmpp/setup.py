"""What `clew init` asks for XMPP."""

from typing import Any

from clew.plugins import Ask, Setup


def first(settings: Any, sender: str) -> str:
    """How the first message is sent."""
    return f"write to {settings.jid}"


SETUP = Setup(
    "an account on an XMPP server",
    (Ask("jid", "clew's own JID", "such as clew@example.org"), Ask("password", "Its password", "", "XMPP_PASSWORD")),
    first,
    "Your own JID",
    "such as ada@example.org",
)
