"""One reading of "the prompt does not fit" for every server: a pure classifier of error texts."""

import re
from dataclasses import dataclass

_SIGNS = (
    "prompt is too long",
    "exceed_context_size_error",
    "exceeds the available context size",
    "maximum context length is",
    "context_length_exceeded",
    "exceed context limit",
    "longer than the context length",
    "number of tokens to keep from the initial prompt",
    "input is too long",
    "request_too_large",
)
_MAX_CHARS = 10_000
_SEPARATOR = re.compile(r"(?<=[0-9])[,_](?=[0-9]{3}(?![0-9]))")
_NUMBER = re.compile(r"(?<![\w.\-])[0-9]{1,12}(?![\w]|\.[0-9])")
_ALLOWED = re.compile(r"maximum context length is ([0-9]{1,12})")
_SUM = re.compile(r"([0-9]{1,12}) \+ ([0-9]{1,12}) > ([0-9]{1,12})")


@dataclass(frozen=True, slots=True)
class Overflow:
    """A prompt that is too long. tokens: (sent, allowed), room reserved for the reply included; None where not told."""

    tokens: tuple[int, int] | None


def overflow_in(text: str) -> Overflow | None:
    """The overflow that an error's `text` (code, type and message, in any order) speaks of; None if it does not.

    The signs are the texts of Anthropic, OpenAI, llama.cpp, vLLM, Ollama and LM Studio.
    """
    lowered = " ".join(text[:_MAX_CHARS].lower().split())
    if not any(sign in lowered for sign in _SIGNS):
        return None
    return Overflow(_tokens(_SEPARATOR.sub("", lowered)))


def _tokens(text: str) -> tuple[int, int] | None:
    if found := _SUM.search(text):
        prompt, reserved, allowed = (int(each) for each in found.groups())
        return _pair(prompt + reserved, allowed)
    numbers = [int(each) for each in _NUMBER.findall(text)]
    if found := _ALLOWED.search(text):
        return _beside_maximum(int(found[1]), numbers)
    return _pair(max(numbers[:2]), min(numbers[:2])) if len(numbers) > 1 else None


def _beside_maximum(allowed: int, numbers: list[int]) -> tuple[int, int] | None:
    """The maximum is named; what was sent is the largest other number, or prompt and reply told apart."""
    others = sorted({number for number in numbers if number != allowed})
    if not others or others[-1] > allowed:
        return _pair(others[-1], allowed) if others else None
    return _pair(sum(others[-2:]), allowed)


def _pair(sent: int, allowed: int) -> tuple[int, int] | None:
    return (sent, allowed) if sent > allowed > 0 else None
