"""What the config sections of adapters have in common."""

import ipaddress
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict

from clew.plugins import Mistake


class Section(BaseModel):
    """The settings of one transport: every key known, every type exact, no value repeated in an error, for it may be a secret."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", hide_input_in_errors=True)


def _is_base(url: str) -> str:
    if not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]_-]{1,255}(/[A-Za-z0-9._~/-]*)?", url):
        raise ValueError("must be http(s)://host[:port][/path]")
    return url


BaseUrl = Annotated[str, AfterValidator(_is_base)]
"""Where a platform's API is."""

Groups = Literal["mention", "listen", "all"]
"""Which lines of a group are answered: those that speak to clew, or all. `listen`: the former, and the others are kept as context."""


def is_here(host: str) -> bool:
    """Whether `host` is this machine, so that nobody between reads what is sent there."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def readable(host: str, key: str, what: str, then: str) -> tuple[Mistake, ...]:
    """The mistake that `what` goes to `host` without encryption, none where that is this machine. then: what is to be done about `key`."""
    if not host or is_here(host):
        return ()
    return (Mistake(key, f"{what} to {host} without encryption, for everybody between to read: {then}", serious=False),)


def plain_http(base_url: str) -> tuple[Mistake, ...]:
    """The mistake that a `base_url` with a secret behind it is http to another machine."""
    host = urlsplit(base_url).hostname or ""
    return readable(host, "base_url", "secrets and messages go", "use https") if base_url.startswith("http:") else ()
