"""The config section of a Matrix account."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from clew.plugins import Mistake
from clew_transports.settings import BaseUrl, Groups, Section, plain_http

NO_ACCOUNT = "neither a password nor a token is set"


def _is_user(user: str) -> str:
    if not re.fullmatch(r"(@[^\s:]{1,200}:[^\s]{1,200})?", user):
        raise ValueError("must look like @clew:example.org")
    return user


class Settings(Section):
    """Where the homeserver is, and how clew signs in there: as `user` with its `password`, or with the `token` of a session.

    groups: which lines of a group are answered; those that begin with `prefix` always are. invites: whose are accepted.
    """

    base_url: BaseUrl = "https://matrix.org"
    user: Annotated[str, AfterValidator(_is_user)] = ""
    password: SecretStr | None = None
    token: SecretStr | None = None
    groups: Groups = "mention"
    prefix: Annotated[str, Field(min_length=1, max_length=50)] | None = None
    invites: Literal["known", "anyone", "nobody"] = "known"

    @model_validator(mode="after")
    def _signs_in_one_way(self) -> Self:
        if self.secret("password") and self.secret("token"):
            raise ValueError("has both a password and a token: leave one out")
        if self.secret("password") and not self.user:
            raise ValueError("has a password and no user")
        return self

    def secret(self, key: Literal["password", "token"]) -> str:
        """A secret, empty where it is not set."""
        held: SecretStr | None = getattr(self, key)
        return held.get_secret_value() if held else ""


def mistakes(name: str, settings: Settings) -> Sequence[Mistake]:
    """See `Plugin.mistakes`."""
    nobody = not (settings.secret("password") or settings.secret("token"))
    return (*((Mistake("user", NO_ACCOUNT),) if nobody else ()), *plain_http(settings.base_url))


def sender(settings: Settings, text: str) -> str:
    """See `Plugin.sender`. Of old accounts capitals are part of the name."""
    if not re.fullmatch(r"@[^\s:]{1,254}:[^\s]{1,254}", text):
        raise ValueError("must stand the person's whole id, such as @ada:example.org")
    return text


def account(settings: Settings) -> tuple[str, str]:
    """See `Plugin.account`."""
    key: Literal["user", "token"] = "user" if settings.user else "token"
    return key, f"{settings.base_url} {settings.user or settings.secret('token')}"
