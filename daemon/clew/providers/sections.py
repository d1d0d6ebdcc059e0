"""Fields that config sections of several kinds of providers share."""

from typing import Annotated, Literal

from pydantic import Field

from clew.config.settings import Settings
from clew.config.units import Duration

ModelName = Annotated[str, Field(min_length=1, max_length=200)]
Url = Annotated[str, Field(pattern=r"^https?://[^/\s]+", max_length=2000)]
MaxTokens = Literal["auto"] | Annotated[int, Field(ge=1, le=1_000_000)]
"""The longest reply, tokens."""
Window = Annotated[int, Field(ge=1024, le=100_000_000)]
"""What fits into one call, tokens."""


class Waits(Settings):
    """Seconds to the first byte of a response, and between two bytes of it."""

    first_byte: Annotated[Duration, Field(gt=0)] = 60.0
    between: Annotated[Duration, Field(gt=0)] = 60.0
