"""The config section of Slack, and which addresses its messages can go to."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from clew.plugins import Mistake
from clew.transport import Address
from clew_transports.settings import BaseUrl, Groups, Section, plain_http

REQUIRED = "neither app_token (Socket Mode) nor signing_secret (Events API) is set: no message can arrive (docs/transports/slack.md)"
USER = re.compile(r"[UW][A-Z0-9]{1,30}", re.ASCII)
"""The id of a person."""


def _is_token(prefix: str) -> Callable[[SecretStr], SecretStr]:
    def check(token: SecretStr) -> SecretStr:
        if not re.fullmatch(rf"({prefix}[A-Za-z0-9.%_-]{{1,500}})?", token.get_secret_value()):
            raise ValueError(f"must begin with {prefix}, as Slack shows it")
        return token

    return check


def _is_secret(secret: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[A-Za-z0-9]{0,200}", secret.get_secret_value()):
        raise ValueError("must be the letters and digits of Basic Information, Signing Secret")
    return secret


class Settings(Section):
    """app_token: for Socket Mode. signing_secret: for the Events API. groups: which lines of channels are answered; those that begin with
    `prefix` always are."""

    bot_token: Annotated[SecretStr, AfterValidator(_is_token("xoxb-"))] = SecretStr("")
    app_token: Annotated[SecretStr, AfterValidator(_is_token("xapp-"))] | None = None
    signing_secret: Annotated[SecretStr, AfterValidator(_is_secret)] | None = None
    base_url: BaseUrl = "https://slack.com/api"
    groups: Groups = "mention"
    prefix: Annotated[str, Field(min_length=1, max_length=50)] | None = None


def unreachable(to: Address) -> str:
    """Why Slack takes no message for `to`; empty where it may."""
    fits = re.fullmatch(r"[CDG][A-Z0-9]{1,30}", to.chat) and re.fullmatch(r"[0-9]{1,12}\.[0-9]{1,6}", to.thread or "0.0", re.ASCII)
    return "" if fits else "chat must be a channel's id such as C024BE91L, and a thread the ts of its first message"


def mistakes(name: str, settings: Settings) -> Sequence[Mistake]:
    """See `Plugin.mistakes`."""
    mute = not (secret(settings.app_token) or secret(settings.signing_secret))
    return (*((Mistake("bot_token", REQUIRED),) if mute else ()), *plain_http(settings.base_url))


def sender(settings: Settings, text: str) -> str:
    """See `Plugin.sender`."""
    if not USER.fullmatch(text.upper()):
        raise ValueError("must stand the person's member ID, such as U024BE7LH, and not their name")
    return text.upper()


def account(settings: Settings) -> tuple[str, str]:
    """See `Plugin.account`."""
    return "bot_token", settings.bot_token.get_secret_value()


def secret(value: SecretStr | None) -> str:
    """What a secret says; empty where it is not set."""
    return value.get_secret_value() if value else ""
