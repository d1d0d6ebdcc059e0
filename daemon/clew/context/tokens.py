"""Sizes in tokens without a tokenizer, and the numbers of a model's window.

The weights are fitted to current tokenizers over prose and chat in eleven languages, code, JSON, log lines, URLs, ids and emoji, and
lean to the tokenizer that needs the most tokens. A provider that reports exact totals corrects the rest by a ratio.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

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

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_NUMBER = re.compile(r"[0-9]+")
_GAP = re.compile(r"\n\s*|  +")
_DIGITS = b"0123456789"
_SYMBOLS = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_SHORT_WORD = 4
# Hundredths of a token.
_WORD_WEIGHT, _LETTER_WEIGHT, _NUMBER_WEIGHT, _DIGIT_WEIGHT, _SYMBOL_WEIGHT, _GAP_WEIGHT = 150, 30, 50, 55, 80, 125
_OTHER_WEIGHTS: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile("[\u0080-\u036f]"), 120),
    (re.compile("[\u0370-\u052f]"), 60),
    (re.compile("[\u0530-\u08ff]"), 85),
    (re.compile("[\u0900-\u1fff]"), 100),
    (re.compile("[\u2000-\u2fff\ud800-\uf8ff\ufe00-\ufe0f\U00010000-\U0010ffff]"), 290),
    (re.compile("[\u3000-\uabff\uf900-\ufdff\ufe10-\uffff]"), 110),
    (re.compile("[\uac00-\ud7ff]"), 145),
)
CACHED_CHARS = 2_000
"""Characters up to which the estimate of a text is remembered: a window's messages are measured again for every call."""


def estimate(text: str) -> int:
    """Mean estimate of the tokens of `text`, at least a third of its UTF-8 bytes; the time is linear in its length.

    On samples of prose, chat, code, JSON, logs, ids and emoji it is at most 10 % under each of two current tokenizers (16 % for German,
    25 % for base64) and, for the one that is frugal on plain English, up to 60 % over.
    """
    return _remembered(text) if len(text) <= CACHED_CHARS else _measured(text)


def _measured(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    words = _WORD.findall(text)
    size = _WORD_WEIGHT * len(words) + _LETTER_WEIGHT * sum(len(word) - _SHORT_WORD for word in words if len(word) > _SHORT_WORD)
    size += _DIGIT_WEIGHT * (len(data) - len(data.translate(None, _DIGITS))) + _NUMBER_WEIGHT * len(_NUMBER.findall(text))
    size += _SYMBOL_WEIGHT * (len(data) - len(data.translate(None, _SYMBOLS))) + _GAP_WEIGHT * len(_GAP.findall(text))
    if not text.isascii():
        size += sum(weight * len(pattern.findall(text)) for pattern, weight in _OTHER_WEIGHTS)
    return max(-(-size // 100), -(-len(data) // 3))


_remembered = lru_cache(maxsize=4096)(_measured)


def guard(text: str) -> int:
    """A number of tokens that `text` hardly ever exceeds: half of its UTF-8 bytes or seven fifths of the estimate, rounded up."""
    return max(-(-_byte_count(text) // 2), -(-7 * estimate(text) // 5))


def _byte_count(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


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


@lru_cache(maxsize=64)
def window(model_window: int, max_tokens: int | None = None, trigger: int | None = None) -> Window:
    """The numbers for a model with `model_window` tokens that answers with at most `max_tokens` (None: a quarter, at most 4,096).

    trigger: a threshold of one's own; the target is ten seventeenths of it at most, its share of the threshold in large windows. Raises
    ValueError if the window is not larger than the reserve of 2,000 tokens or leaves no room beside the answer.
    """
    answer = min(DEFAULT_MAX_TOKENS, model_window // 4) if max_tokens is None else max_tokens
    w, hard = model_window - RESERVE_TOKENS, model_window - answer
    if w <= 0 or hard <= 0 or answer < 0:
        raise ValueError(f"a window of {model_window} tokens is too small for answers of {answer} tokens")
    threshold = max((7 * w + 5) // 10, min((17 * w + 10) // 20, w - _MARGIN))
    target = w // 2
    if trigger is not None:
        threshold, target = trigger, min(target, 10 * trigger // 17)
    return Window(model_window, w, min(threshold, hard), min(target, hard), hard)


# Calibration -----------------------------------------------------------------------------------------------------

LEAST_RATIO, GREATEST_RATIO = 0.5, 4.0
"""Bounds of a ratio: no known tokenizer is further from the estimate, and a server that counts nonsense does no more harm than this."""
TELLING_TOKENS = 500
"""Estimated tokens of a prompt from which on its reported size says something of its text: what providers add in secret costs as much."""
_FALL = 0.25


def learned(ratio: float | None, estimated: int, reported: int) -> float | None:
    """The ratio of reported to estimated tokens after one more call; None while nothing is known.

    It rises at once and falls by a quarter of the difference: a text that costs more than the last one must not surprise a full window.
    """
    if estimated < TELLING_TOKENS or reported <= 0:
        return ratio
    seen = min(max(reported / estimated, LEAST_RATIO), GREATEST_RATIO)
    return seen if ratio is None or seen > ratio else ratio + (seen - ratio) * _FALL
