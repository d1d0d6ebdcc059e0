import pytest

from clew.providers.overflow import Overflow, overflow_in

VLLM = (
    "This model's maximum context length is 16384 tokens. However, you requested 8192 output tokens and your prompt "
    "contains at least 8193 input tokens, for a total of at least 16385 tokens."
)
OPENAI = (
    "context_length_exceeded This model's maximum context length is 8192 tokens. However, you requested 9000 tokens "
    "(8000 in the messages, 1000 in the completion). Please reduce the length."
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("prompt is too long: 208310 tokens > 200000 maximum", (208310, 200000)),
        ("Prompt is too long: 208,310 tokens > 200,000 maximum", (208310, 200000)),
        ("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease it", (242959, 200000)),
        ("exceed_context_size_error request (5000 tokens) exceeds the available context size (4096 tokens)", (5000, 4096)),
        (VLLM, (16385, 16384)),
        ("8192 is too large. This model's maximum context length is 16384 tokens and you sent 9000 tokens", (17192, 16384)),
        (OPENAI, (9000, 8192)),
        ("the prompt is longer than the context length currently available to the model", None),
        ("The number of tokens to keep from the initial prompt is greater than the context length.", None),
        ("413 request_too_large: Request exceeds the maximum size", None),
        ("gpt-4.1 at 10.0.0.1:8080: input is too long", None),
    ],
)
def test_overflows_of_all_servers_are_recognised_with_their_numbers(text: str, tokens: tuple[int, int] | None) -> None:
    assert overflow_in(text) == Overflow(tokens)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "invalid_request_error: the arguments of the function are malformed",
        "max_tokens: 500000 > 128000, which is the maximum allowed number of output tokens for claude-opus-5-5",
        "rate limit: 40000 tokens per minute",
    ],
)
def test_other_refusals_are_no_overflow(text: str) -> None:  # BO-116
    assert overflow_in(text) is None
