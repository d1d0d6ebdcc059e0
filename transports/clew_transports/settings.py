"""What the config sections of adapters have in common."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict


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
