"""What `clew init` asks for Matrix."""

from typing import Any

from clew.plugins import Ask, Setup


def first(settings: Any, sender: str) -> str:
    """How the first message is sent."""
    return f"invite {settings.user or 'clew'} to a room with you, and write there"


SETUP = Setup(
    "an account on a Matrix homeserver",
    (
        Ask("base_url", "The homeserver"),
        Ask("user", "clew's own account there", "such as @clew:example.org"),
        Ask("password", "Its password", "", "MATRIX_PASSWORD"),
    ),
    first,
    "Your own account",
    "such as @ada:example.org",
)
