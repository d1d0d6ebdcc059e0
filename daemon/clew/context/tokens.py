"""Sizes in tokens without a tokenizer, and the numbers of a model's window.

The weights are means over prose, chat, code, JSON, log lines, URLs and scripts other than Latin, set so that current tokenizers
are rarely undercounted; a provider that reports exact totals corrects the rest by a ratio.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FRAME_TOKENS = 6
"""Tokens that role and delimiters of one message cost."""
TOOL_ROUND_TOKENS = 30
"""Tokens that one round of call and result costs beside its texts."""
TOOL_PROMPT_TOKENS = 500
"""Tokens of the provider's own hidden tool instructions, sent as soon as one tool is."""
RESERVE_TOKENS = 2_000
"""Tokens of a model window that are never planned with."""
DEFAULT_MAX_TOKENS = 4_096

_MARGIN = 13_000
_PIECES = re.compile(r"[A-Za-z]+|[0-9]+|[^\S\n]+|[^\x00-\x7f]+|.", re.DOTALL)


def estimate(text: str) -> int:
    """Mean estimate of the tokens of `text`: at least a third of its UTF-8 bytes, more for digits and symbols."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


def guard(text: str) -> int:
    """A number of tokens that `text` hardly ever exceeds: half of its UTF-8 bytes, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 2)


@dataclass(frozen=True, slots=True)
class Window:
    """The numbers of one model's window, in tokens.

    `w` is the part that is planned with, `threshold` the mark above which the window is compacted, `target` what a compaction
    aims at, `hard_limit` the most that can be sent. The other budgets are upper bounds for parts of the prompt.
    """

    model_window: int
    w: int
    threshold: int
    target: int
    hard_limit: int

    @property
    def summary_limit(self) -> int:
        return self.w // 8

    @property
    def notes_limit(self) -> int:
        return self.w // 16

    @property
    def recall_limit(self) -> int:
        """For recall and documents together."""
        return self.w // 8

    @property
    def base_limit(self) -> int:
        """For tools and base prompt; above it optional tools are left out."""
        return self.w // 4

    def target_above(self, fixed: int) -> int:
        """The target when `fixed` tokens cannot be compacted: beyond the plain target, these plus a quarter of the rest."""
        if fixed <= self.target:
            return self.target
        return min(self.hard_limit, fixed + max(0, self.threshold - fixed) // 4)


def window(model_window: int, max_tokens: int | None = None) -> Window:
    """The numbers for a model with `model_window` tokens that answers with at most `max_tokens` (None: a quarter, at most 4,096).

    Raises ValueError if the window is not larger than the reserve of 2,000 tokens or leaves no room beside the answer.
    """
    answer = min(DEFAULT_MAX_TOKENS, model_window // 4) if max_tokens is None else max_tokens
    w, hard = model_window - RESERVE_TOKENS, model_window - answer
    if w <= 0 or hard <= 0 or answer < 0:
        raise ValueError(f"a window of {model_window} tokens is too small for answers of {answer} tokens")
    threshold = max((7 * w + 5) // 10, min((17 * w + 10) // 20, w - _MARGIN))
    return Window(model_window, w, min(threshold, hard), min(w // 2, hard), hard)
