"""The token benchmark, through the whole engine, with less talk than it measures."""

from pathlib import Path

import pytest

from bench.tokens import POLICIES, Policy, bill
from bench.weeks import AT_EASE, Chat

FEW = (Chat("ada", ("ada",), 3.0, 7.0), Chat("family", ("ada", "bob"), 1.0, 2.0))


@pytest.mark.asyncio
async def test_what_is_paid_lies_between_the_optimum_and_the_price_without_a_cache(tmp_path: Path) -> None:  # P28
    found = await bill(tmp_path, Policy("system", "1h", tools=True), 1, 18, FEW)
    assert found.missed == 0
    assert found.best <= found.paid < found.uncached
    assert found.older[0] > found.paid
    assert found.older[1] > found.best
    assert found.summaries >= 1
    assert found.calls > found.turns + found.summaries
    assert 0 < found.changed < found.turns


@pytest.mark.asyncio
async def test_the_same_seed_costs_the_same_to_the_token(tmp_path: Path) -> None:
    policy = Policy("message", "5m", pace=AT_EASE)
    first, again, other = [await bill(tmp_path / name, policy, 1, seed, FEW) for name, seed in (("a", 5), ("b", 5), ("c", 8))]
    assert first == again != other


def test_each_policy_is_billed_once() -> None:
    assert len({policy.name for policy in POLICIES}) == len(POLICIES) == 12
    assert sum(policy.default for policy in POLICIES) == 3
