"""What `clew init` asks for e-mail."""

from typing import Any

from clew.plugins import Ask, Setup


def first(settings: Any, sender: str) -> str:
    """How the first message is sent."""
    return f"send a mail to {settings.address}"


SETUP = Setup(
    "a mailbox",
    (
        Ask("address", "clew's own mail address", "a mailbox for clew alone"),
        Ask("password", "The mailbox's password", "", "EMAIL_PASSWORD"),
        Ask("imap_host", "The server that mail is read from", "such as imap.example.org"),
        Ask("smtp_host", "The server that mail is sent by", "such as smtp.example.org"),
        Ask("authserv_id", "The name in Authentication-Results of mail that arrives there", "docs/transports/email.md", needed=False),
    ),
    first,
    "Your own mail address",
)
