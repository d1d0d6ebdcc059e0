"""What models cost."""

from clew.config import Price
from clew.config.prices import SHIPPED, price_of

OWN = Price(input=1.5, output=2)


def test_the_configured_price_comes_first() -> None:  # P21
    assert price_of("anthropic", "claude-sonnet-5-5", {"claude-sonnet-5-5": OWN}) == OWN
    assert price_of("openai", "any", {"any": OWN}) == OWN


def test_what_ships_is_for_the_models_of_that_name_at_their_own_vendor() -> None:  # P21
    assert price_of("anthropic", "claude-sonnet-5-5", {}) == SHIPPED["claude-sonnet-5-5"]
    assert price_of("anthropic", "claude-haiku-4-5-20251001", {}) == SHIPPED["claude-haiku-4-5"]
    assert price_of("claude_cli", "claude-sonnet-5-5", {}) is None
    assert price_of("anthropic", "claude-sonnet-5-5-fast", {}) is None


def test_what_is_read_from_the_cache_is_never_dearer_than_other_tokens() -> None:
    for price in SHIPPED.values():
        assert price.cache_read is not None
        assert price.cache_write is not None
        assert 10 * price.cache_read <= price.input < price.cache_write < price.output


def test_what_is_kept_for_five_minutes_is_cheaper_to_write_and_long_prompts_are_dearer() -> None:
    short, long = (price_of("anthropic", "claude-sonnet-5-5", {}, ttl) for ttl in ("5m", "1h"))
    assert short is not None
    assert long is not None
    assert (short.cache_write, long.cache_write) == (2.5, 4)
    assert short.model_copy(update={"cache_write": 4}) == long
    small, large = (price_of("anthropic", "claude-haiku-5-5", {}, "1h", prompt) for prompt in (100_000, 100_001))
    assert small is not None
    assert large is not None
    assert (large.input, large.output) == (5 * small.input, 5 * small.output)
    assert price_of("anthropic", "claude-haiku-5-5", {"claude-haiku-5-5": OWN}, "5m", 10**6) == OWN
