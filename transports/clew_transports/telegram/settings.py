"""The config section of Telegram, and which addresses its messages can go to."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from clew.plugins import Mistake
from clew.transport import Address, Stream
from clew_transports.settings import BaseUrl, Groups, Section, plain_http


def _is_token(token: SecretStr) -> SecretStr:
    if not re.fullmatch(r"([0-9]{1,20}:[A-Za-z0-9_-]{1,200})?", token.get_secret_value()):
        raise ValueError("must look like 123456789:AA…, as @BotFather gives it")
    return token


class Settings(Section):
    """The bot's `token`. mode: whether clew asks Telegram for messages, or Telegram calls clew. groups: which lines of a group are
    answered; those that begin with `prefix` always are."""

    token: Annotated[SecretStr, AfterValidator(_is_token)] = SecretStr("")
    base_url: BaseUrl = "https://api.telegram.org"
    mode: Literal["polling", "webhook"] = "polling"
    groups: Groups = "mention"
    prefix: Annotated[str, Field(min_length=1, max_length=50)] | None = None


def unreachable(to: Address) -> str:
    """Why the Bot API takes no message for `to`; empty where it may."""
    fits = re.fullmatch(r"-?[0-9]{1,20}", to.chat) and re.fullmatch(r"[0-9]{1,20}", to.thread or "0")
    return "" if fits else "chat and topic must be the numbers that Telegram has for them"


def sender(settings: Settings, text: str) -> str:
    """See `Plugin.sender`."""
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise ValueError("must stand the number that Telegram has for the person, such as 123456789, and not their @name")
    return str(int(text))


def mistakes(name: str, settings: Settings) -> Sequence[Mistake]:
    """See `Plugin.mistakes`."""
    return plain_http(settings.base_url)


def account(settings: Settings) -> tuple[str, str]:
    """See `Plugin.account`."""
    return "token", settings.token.get_secret_value().partition(":")[0]


def streams(to: Address) -> Stream:
    """Private chats have drafts; groups, whose ids are negative, have none."""
    return "edit" if to.chat.startswith("-") else "ephemeral"
