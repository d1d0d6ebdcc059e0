"""What models cost, where the config does not say."""

import re
from collections.abc import Mapping

from clew.config.settings import Price

SHIPPED: Mapping[str, Price] = {
    "claude-opus-5-5": Price(input=4, output=20, cache_read=0.2, cache_write=8),
    "claude-sonnet-5-5": Price(input=2, output=10, cache_read=0.1, cache_write=4),
    "claude-haiku-4-5": Price(input=1, output=5, cache_read=0.1, cache_write=2),
}
"""Anthropic's list prices of October 2026, US dollars per million tokens; what is written to the cache is kept for an hour."""
_DATE = re.compile(r"-[0-9]{8}\Z")


def price_of(kind: str, model: str, configured: Mapping[str, Price]) -> Price | None:
    """The configured price of a model, else that which ships for its own vendor's endpoint (`kind`), with or without a date in its name."""
    if model in configured:
        return configured[model]
    return SHIPPED.get(_DATE.sub("", model)) if kind == "anthropic" else None
