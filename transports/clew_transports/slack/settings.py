"""The config section of Slack, and which addresses its messages can go to."""

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from clew.transport import Address
from clew_transports.settings import BaseUrl, Groups, Section


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


def secret(value: SecretStr | None) -> str:
    """What a secret says; empty where it is not set."""
    return value.get_secret_value() if value else ""
