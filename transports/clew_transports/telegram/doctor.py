"""What is wrong with a bot, in words, and what `clew doctor` asks Telegram about it."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from clew.plugins import Fault
from clew_transports.calls import Unanswered, Unreached
from clew_transports.reading import Malformed
from clew_transports.telegram.api import Api, Refusal
from clew_transports.telegram.settings import Settings
from clew_transports.telegram.updates import Bot

WEBHOOK_SET = "a webhook is set for this bot, and Telegram then answers no polls: call deleteWebhook (docs/transports/telegram.md)"
SECOND_POLLER = "another program reads this bot's messages with the same token: stop it, or give clew a bot of its own"
BAD_TOKEN = "Telegram does not know the token: copy it again from @BotFather"
NOT_SET = "Telegram has no webhook for this bot: clew sets it when it runs, at the address in http.public_url"
RECENT_S = 3600.0
"""Seconds for which the last failure of Telegram to reach clew is told."""


def why(error: Exception) -> str:
    """What is wrong and what mends it."""
    if isinstance(error, Refusal):
        if error.code in (401, 404):
            return BAD_TOKEN
        if error.code == 409:
            return WEBHOOK_SET if "webhook" in error.why else SECOND_POLLER
    return str(error)


async def examine(name: str, settings: Settings) -> list[Fault]:
    """For `clew doctor`: the token, the webhook, what the bot sees of its groups."""
    api = Api(settings.base_url, settings.token.get_secret_value())
    faults: list[Fault] = []
    try:
        async with api:
            bot = Bot.of(await api.call("getMe"))
            faults += _of_webhook(await api.call("getWebhookInfo") or {}, settings.mode, time.time())
            if settings.groups != "mention" and not bot.sees_all:
                text = f"groups is {settings.groups}, but privacy mode hides from @{bot.username} what does not mention it"
                faults.append(Fault(text, "@BotFather: /setprivacy, Disable; then take the bot out of its groups and add it again", False))
    except (Refusal, Unreached, Unanswered, Malformed) as error:
        faults.append(Fault(why(error), "check transports." + name))
    return faults


def _of_webhook(info: Mapping[str, Any], mode: str, now: float) -> Iterator[Fault]:
    """What getWebhookInfo tells. now: seconds since the epoch."""
    url, failed = info.get("url"), info.get("last_error_date")
    if mode == "polling":
        if url:
            yield Fault(WEBHOOK_SET, "open https://api.telegram.org/bot<token>/deleteWebhook once")
        return
    if not url:
        yield Fault(NOT_SET, "clew run")
    elif isinstance(failed, int) and now - failed < RECENT_S:
        said = str(info.get("last_error_message", ""))[:200]
        text = f"Telegram could not reach {url} {(now - failed) / 60:.0f} minutes ago ({said}); {info.get('pending_update_count', 0)} wait"
        yield Fault(text, "see whether http.public_url reaches clew from outside", bool(info.get("pending_update_count")))
