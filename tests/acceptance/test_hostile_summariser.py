"""Whatever the summariser does, the contract holds: weeks-long threads, twenty compactions, the real compactor and a real socket."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from tests.emulators.summariser import MODES
from tests.evaluation_page import OFFLINE, measure

PROTECTED = ("identifier", "constraint", "correction", "task")
"""What the contract protects, together with decisions and guesses, which are few in a thread."""
FIRST, LAST = 0.99, 0.97
"""Shares of it that survive the first compaction after they were said, and twenty compactions of their thread."""
NEVER = ("speaker", "certainty", "negation", "source", "invented")
"""Faults that no summary may have."""
QUICK = (OFFLINE, "drops", "denies-nothing")
SHORT = ("gata", "haus")
"""Two threads, with as few words as any."""
LONG = ("ci", "hikkoshi", "renovierung", "voyage")
"""Four others, in as many languages; docs/evaluation.md has the figures of all."""


def survived(counted: Mapping[str, Any]) -> tuple[int, int]:
    """(how much survived, of how much) of what the contract protects."""
    parts = [counted["survival"][name] for name in PROTECTED]
    return sum(part["survived"] for part in parts), sum(part["of"] for part in parts)


def check(found: Mapping[str, Any]) -> None:
    for counted, share in ((found["passed"]["1"], FIRST), (found["final"], LAST)):
        kept, of = survived(counted)
        assert kept >= math.floor(share * of), (kept, of)  # a single item of a few is more than a hundredth of them
    assert {name: found["faults"][name] for name in NEVER} == dict.fromkeys(NEVER, 0)
    assert all(each["within"] for each in found["threads"])
    assert all(len(each["compactions"]) >= 19 for each in found["threads"])  # a summariser that fails is given up at the fourth


@pytest.mark.asyncio
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", QUICK)
async def test_what_binds_survives_a_summariser_without_a_model_or_a_bad_one(mode: str) -> None:  # P17 P18 P50
    check(await measure(mode, SHORT))


@pytest.mark.e2e
@pytest.mark.asyncio
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [OFFLINE, *MODES])
async def test_the_contract_holds_whatever_the_summariser_does(mode: str) -> None:  # P17 P18 P50
    check(await measure(mode, LONG))
