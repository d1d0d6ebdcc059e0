"""What models cost, where the config does not say."""

import re
from collections.abc import Mapping
from typing import Literal

from clew.config.settings import Price

SHIPPED: Mapping[str, Price] = {
    "claude-opus-5-5": Price(input=4, output=20, cache_read=0.2, cache_write=8),
    "claude-sonnet-5-5": Price(input=2, output=10, cache_read=0.1, cache_write=4),
    "claude-haiku-5-5": Price(input=0.1, output=0.5, cache_read=0.01, cache_write=0.2),
    "claude-haiku-4-5": Price(input=1, output=5, cache_read=0.1, cache_write=2),
}
"""Anthropic's list prices of October 2026, US dollars per million tokens; what is written to the cache is kept for an hour."""
LONG: Mapping[str, tuple[int, Price]] = {
    "claude-haiku-5-5": (100_000, Price(input=0.5, output=2.5, cache_read=0.05, cache_write=1)),
}
"""Of the same list: tokens of a prompt above which the whole call costs more, and what it costs then."""
SHORT_WRITE = 1.25
"""What a token costs that is written to the cache for five minutes, in plain ones (the same list)."""
_DATE = re.compile(r"-[0-9]{8}\Z")


def price_of(
    kind: str, model: str, configured: Mapping[str, Price], ttl: Literal["5m", "1h"] | None = None, prompt: int = 0
) -> Price | None:
    """The configured price of a model, else that which ships for its own vendor's endpoint (`kind`), with or without a date in its name.

    ttl: for how long what is written to the cache is kept; prompt: its length in tokens.
    """
    if model in configured:
        return configured[model]
    name = _DATE.sub("", model)
    if kind != "anthropic" or name not in SHIPPED:
        return None
    longest, above = LONG.get(name, (prompt, SHIPPED[name]))
    price = above if prompt > longest else SHIPPED[name]
    return price.model_copy(update={"cache_write": SHORT_WRITE * price.input}) if ttl == "5m" else price
