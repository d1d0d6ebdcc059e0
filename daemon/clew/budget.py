"""How many tokens the parts of a request may take, by its provider's window and the config."""

from clew.config import Compression, Price
from clew.context.tokens import Window, window
from clew.messages import Usage
from clew.providers import Limits, Provider


def reply_tokens(provider: Provider, limits: Limits) -> int:
    """The longest reply that is asked for: `auto` is min(4096, a quarter of the window)."""
    wanted = min(4096, limits.window // 4) if provider.max_tokens == "auto" else provider.max_tokens
    return max(1, min(wanted, limits.max_output))


def numbers(provider: Provider, limits: Limits, settings: Compression) -> Window:
    """The thresholds of a provider's window, with the configured one if there is one."""
    trigger = settings.trigger_tokens if isinstance(settings.trigger_tokens, int) else None
    return window(limits.window, reply_tokens(provider, limits), trigger)


def summary_tokens(settings: Compression, bounds: Window, ratio: float) -> int:
    """The longest summary, in estimated tokens: the configured length, at most an eighth of the window as its model counts (`ratio`)."""
    return min(settings.summary_tokens, int(bounds.summary_limit / ratio))


def cost(price: Price, usage: Usage) -> float:
    """What a call cost, in dollars. Where no price is given for them, tokens read from or written to a cache cost as much as others."""
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    return (usage.input * price.input + usage.output * price.output + usage.cache_read * read + usage.cache_write * write) / 1e6
