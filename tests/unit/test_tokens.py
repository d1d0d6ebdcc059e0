"""Token estimates and the numbers of a window."""

from __future__ import annotations

import pytest

from clew.context.tokens import GREATEST_RATIO, LEAST_RATIO, TELLING_TOKENS, Window, estimate, guard, learned, window

SAMPLES = {  # text, tokens by a current tokenizer that needs many
    "english": ("The lighthouse keeper had long since stopped counting the ships that passed. In winter the fog lay thick.", 35),
    "chinese": ("昨天晚上我们讨论了是否要把服务器迁移到另一个数据中心，最后决定先检查备份。", 41),
    "emoji": ("lol 😂😂😂 that's great 🎉🎉 see you at 8 👍🏽", 32),
    "numbers": ("[0.3237, 0.1508, 0.6509, 0.0724, 0.5358, 0.3687]", 36),
    "code": ("def clean(text: str) -> str:\n    return _UNWANTED.sub('', text.replace('\\r\\n', '\\n'))\n", 42),
    "log": (
        "2026-11-30T02:07:17.259Z INFO [worker-3] req=7f3a9c1e-b21c GET /api/v1/chats/217/messages?after=6839 200 25.9ms 10.0.7.49",
        75,
    ),
}


# P9
@pytest.mark.parametrize(
    ("model_window", "expected"),
    [
        (8_192, (6_192, 4_334, 3_096, 6_144)),
        (16_384, (14_384, 10_069, 7_192, 12_288)),
        (32_768, (30_768, 21_538, 15_384, 28_672)),
        (65_536, (63_536, 50_536, 31_768, 61_440)),
        (200_000, (198_000, 168_300, 99_000, 195_904)),
        (1_000_000, (998_000, 848_300, 499_000, 995_904)),
    ],
)
def test_window_reproduces_the_promised_table(model_window: int, expected: tuple[int, int, int, int]) -> None:
    assert window(model_window) == Window(model_window, *expected)


# P9
def test_threshold_and_target_never_exceed_the_hard_limit() -> None:
    numbers = window(16_384, 14_000)
    assert numbers.hard_limit == 2_384
    assert numbers.threshold == 2_384
    assert numbers.target == 2_384


# P9
def test_a_threshold_of_ones_own_brings_its_target_and_stays_below_the_hard_limit() -> None:
    assert window(200_000, trigger=34_000) == Window(200_000, 198_000, 34_000, 20_000, 195_904)
    assert window(200_000, trigger=190_000).target == 99_000
    assert window(8_192, trigger=50_000) == Window(8_192, 6_192, 6_144, 3_096, 6_144)


# P9
def test_a_ratio_rises_at_once_falls_slowly_and_is_bounded() -> None:
    assert learned(None, 1000, 1500) == 1.5
    assert learned(1.0, 1000, 1500) == 1.5
    assert learned(2.0, 1000, 1000) == 1.75
    assert learned(None, 1000, 1_000_000) == GREATEST_RATIO
    assert learned(None, 1_000_000, 1000) == LEAST_RATIO


# P9
def test_short_prompts_and_unreported_sizes_teach_nothing() -> None:
    assert learned(None, TELLING_TOKENS - 1, 5000) is None
    assert learned(1.2, 10_000, 0) == 1.2


# P9
def test_budgets_are_shares_of_the_planned_window() -> None:
    numbers = window(32_768)
    assert numbers.summary_limit == 3_846
    assert numbers.notes_limit == 1_923
    assert numbers.recall_limit == 3_846
    assert numbers.base_limit == 7_692


# P9
def test_target_rises_above_what_cannot_be_compacted() -> None:
    numbers = window(200_000)
    assert numbers.target_above(99_000) == 99_000
    assert numbers.target_above(128_300) == 138_300
    assert numbers.target_above(190_000) == 190_000


@pytest.mark.parametrize(("model_window", "max_tokens"), [(2_000, None), (0, None), (8_192, 8_192), (8_192, -1)])
def test_a_window_without_room_is_refused(model_window: int, max_tokens: int | None) -> None:
    with pytest.raises(ValueError, match="too small"):
        window(model_window, max_tokens)


@pytest.mark.parametrize("name", SAMPLES)
def test_estimate_is_not_far_under_for_any_kind_of_text(name: str) -> None:
    text, tokens = SAMPLES[name]
    assert estimate(text) >= 0.9 * tokens
    assert guard(text) >= tokens


def test_nothing_costs_nothing() -> None:
    assert estimate("") == guard("") == 0
