"""What is wrong with the app's account, in words for people."""

import time

from clew.plugins import Fault
from clew_transports.calls import Unanswered, Unreached
from clew_transports.reading import Malformed
from clew_transports.signature import WINDOW_S
from clew_transports.slack.api import ACCOUNT, Api, Refusal
from clew_transports.slack.events import Bot
from clew_transports.slack.settings import REQUIRED, Settings, secret

PAGE = "https://api.slack.com/apps"
BAD_BOT = f"Slack does not take the bot_token: copy the Bot User OAuth Token again ({PAGE}, OAuth & Permissions)"
BAD_APP = f"Slack does not take the app_token: make an app-level token with the scope connections:write ({PAGE}, Basic Information)"
DISABLED = f"Socket Mode is off for this app: turn it on ({PAGE}, Socket Mode), or use the Events API (docs/transports/slack.md)"
SCOPES = {
    "chat:write": "answer",
    "app_mentions:read": "hear that it is mentioned",
    "im:history": "hear what is written to it in private, and read again what it missed",
    "channels:history": "hear replies in threads of public channels",
    "groups:history": "hear replies in threads of private channels",
    "mpim:history": "hear what is said in group messages",
    "im:read": "find private messages that it missed from people it has not met",
    "channels:read": "find mentions that it missed in public channels it has not met",
    "groups:read": "find mentions that it missed in private channels it has not met",
    "mpim:read": "find group messages that it missed and has not met",
    "users:read": "know the names of people",
    "files:read": "read files",
    "reactions:read": "take an emoji for an answer",
}
"""Scopes of the bot's token, and what clew cannot do without them."""
NEEDED = frozenset({"chat:write", "app_mentions:read", "im:history"})


def why(error: Exception) -> str:
    """What is wrong and what mends it."""
    if isinstance(error, Refusal):
        if error.error == "socket_mode_not_enabled":
            return DISABLED
        if error.error == "missing_scope":
            return f"{error}: add the scope and install the app again ({PAGE}, OAuth & Permissions)"
        if error.error in ACCOUNT:
            return f"{BAD_APP if error.method == 'apps.connections.open' else BAD_BOT} ({error.error[:50]})"
    return str(error)


async def examine(name: str, settings: Settings) -> list[Fault]:
    """For `clew doctor`: tokens, scopes, Socket Mode, this machine's clock."""
    app_token = secret(settings.app_token)
    faults = [] if app_token or secret(settings.signing_secret) else [Fault(REQUIRED, f"set it in transports.{name}")]
    try:
        async with Api(settings.base_url, settings.bot_token.get_secret_value(), app_token) as api:
            answer, scopes, clock = await api.examined()
            Bot.of(answer)
            faults += [_missing(scope) for scope in SCOPES if scopes and scope not in scopes]
            if clock is not None and abs(time.time() - clock) > WINDOW_S / 2:
                text = f"this machine's clock is {abs(time.time() - clock):.0f} s away from Slack's: events are refused beyond {WINDOW_S} s"
                faults.append(Fault(text, "timedatectl set-ntp true"))
            if app_token:
                await api.address()
    except (Refusal, Unreached, Unanswered, Malformed) as error:
        faults.append(Fault(why(error), f"check transports.{name}"))
    return faults


def _missing(scope: str) -> Fault:
    text = f"the scope {scope} is missing: without it clew cannot {SCOPES[scope]}"
    return Fault(text, f"{PAGE}, OAuth & Permissions: add it, and install the app again", scope in NEEDED)
