"""What differs between Anthropic models: cacheable minimum, window, roles, prefill."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Model:
    """Facts about one model; sizes are in tokens.

    `system_role`: takes `role: system` inside messages. `prefill`: takes a final assistant message.
    `strict_sum`: rejects input plus max_tokens beyond the window. `sampling`: takes temperature, top_p and top_k.
    """

    minimum: int
    window: int = 1_000_000
    max_output: int = 128_000
    system_role: bool = False
    prefill: bool = False
    strict_sum: bool = False
    sampling: bool = False


_OLD = Model(1_024, window=200_000, max_output=32_000, prefill=True, strict_sum=True, sampling=True)
_NEW = Model(512, system_role=True)

MODELS: dict[str, Model] = {
    "claude-opus-5-5": _NEW,
    "claude-sonnet-5-5": Model(512),
    # The minimum of Haiku 5.5 is not documented: the safe guess is the largest.
    "claude-haiku-5-5": Model(4_096),
    "claude-opus-5": _NEW,
    "claude-fable-5": _NEW,
    "claude-fable-5-1": _NEW,
    "claude-fable-5-2": _NEW,
    "claude-mythos-5": _NEW,
    "claude-mythos-5-1": _NEW,
    "claude-mythos-preview": Model(2_048),
    "claude-opus-4-8": Model(1_024, system_role=True),
    "claude-sonnet-5": Model(1_024),
    "claude-opus-4-7": Model(2_048),
    "claude-sonnet-4-6": Model(1_024, sampling=True),
    "claude-opus-4-6": Model(4_096, sampling=True),
    "claude-sonnet-4-5": Model(1_024, window=200_000, max_output=64_000, prefill=True, sampling=True),
    "claude-opus-4-5": Model(4_096, window=200_000, max_output=64_000, prefill=True, sampling=True),
    "claude-haiku-4-5": Model(4_096, window=200_000, max_output=64_000, prefill=True, sampling=True),
    "claude-opus-4-1": _OLD,
    "claude-opus-4-0": _OLD,
    "claude-sonnet-4-0": _OLD,
}
"""By id without date, from the vendor's pages of August to October 2026."""


def find_model(name: str) -> Model | None:
    """Look up a model by id, with or without its date; None when there is no such model."""
    base, _, date = name.rpartition("-")
    return MODELS.get(base if len(date) == 8 and date.isdigit() else name)
