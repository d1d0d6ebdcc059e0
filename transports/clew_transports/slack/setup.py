"""What `clew init` asks for Slack."""

from typing import Any

from clew.plugins import Ask, Setup


def first(settings: Any, sender: str) -> str:
    """How the first message is sent."""
    return "open the app under Apps in Slack and write to it"


SETUP = Setup(
    "an app in Slack",
    (
        Ask(
            "bot_token",
            "The bot's token, xoxb-…",
            "your app, OAuth & Permissions (docs/transports/slack.md)",
            "SLACK_BOT_TOKEN",
        ),
        Ask("app_token", "The app-level token, xapp-…", "your app, Basic Information; scope connections:write", "SLACK_APP_TOKEN"),
    ),
    first,
    "Your member ID in Slack",
    "your profile, the three dots, Copy member ID",
)
