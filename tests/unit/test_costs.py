"""What is said of costs and budgets."""

import pytest

from clew import costs
from clew.allowances import Amount, Limit, Per, Standing, Unit
from clew.messages import Usage
from clew.store import ModelCall
from clew.store.records.spending import Sums

NOON = 1_800_014_400.0
"""Seconds since the epoch: 2027-01-15 12:00 UTC."""
TOLD = (1000, 50), (990, 50), (0, 5000)
"""(used of 1000, what a call would take)."""
HOUR = ("tools", "t", 10), ("base", "b", 10), ("messages", "m", 10)


def standing(spent: int, most: int, unit: Unit = "tokens", per: Per = "person", unpriced: int = 0) -> Standing:
    amount = Amount(spent, spent, unpriced)
    return Standing(Limit("each", per, "day", unit, most), "ada", "2027-01-15", NOON, amount, Amount())


def call(turn: str, at: float, read: int, written: int, *, cost: float | None = 0.01, purpose: str = "reply", error: str = "") -> ModelCall:
    usage = Usage(10, 5, read, written)
    return ModelCall(f"c{at}", purpose, "ada", "p", "m", usage, at, at, at + 2, error, HOUR, cost=cost, held=read, ttl=3600.0, turn=turn)


@pytest.mark.parametrize(
    ("micros", "text"), [(0, "$0.00"), (50_000, "$0.05"), (12_340, "$0.0123"), (123_456, "$0.12"), (1_234_560_000, "$1,234.56")]
)
def test_money_is_told_as_exactly_as_is_useful(micros: int, text: str) -> None:
    assert costs.money(micros) == text


def test_what_has_no_price_is_told_apart() -> None:
    assert costs.amount(Sums()) == "nothing"
    assert costs.amount(Sums(1, 10, 5, unpriced=15)) == "1 call, 10 tokens in, 5 out, no price known"
    both = Sums(2, 20, 10, 80, 0, micros=50_000, unpriced=15)
    assert (
        costs.amount(both)
        == "2 calls, 100 tokens in (80% from the cache, 0 written to it), 10 out, $0.05 and 15 tokens of models without a price"
    )


def test_a_refusal_says_how_much_is_left_and_when_it_resets() -> None:
    reset = "It resets Fri 15 Jan 2027 at 13:00 (Europe/Berlin)."
    used_up = costs.refusal(standing(1000, 1000), Amount(50), "Europe/Berlin")
    assert used_up == f"Your budget for today is used up: 1,000 of 1,000 tokens. {reset}"
    nearly = costs.refusal(standing(990, 1000, per="chat"), Amount(50), "Europe/Berlin")
    assert nearly == (
        f"The budget of this chat for today is nearly used up: 10 of 1,000 tokens are left, and this would take about 50 tokens. {reset}"
    )
    hopeless = costs.refusal(standing(0, 1000, per="all"), Amount(5000), "Europe/Berlin")
    assert "more than all of the budget of everybody here for today, 1,000 tokens" in hopeless
    assert "resets" not in hopeless


def test_amounts_that_are_not_theirs_are_told_to_nobody() -> None:
    reset = "It resets Fri 15 Jan 2027 at 12:00 (UTC)."
    told = [costs.refusal(standing(spent, 1000, per="all"), Amount(wanted), "UTC", whole=False) for spent, wanted in TOLD]
    assert told == [
        f"The budget of everybody here for today is used up. {reset}",
        f"The budget of everybody here for today is nearly used up, and this would take more. {reset}",
        "This would take more than all of the budget of everybody here for today. /new begins a shorter conversation.",
    ]
    line = costs.budget_line(standing(250, 1000, per="all"), "UTC", whole=False)
    assert line == "Budget each (everybody together, today): 25% used; it resets Fri 15 Jan 2027 at 12:00 (UTC)"


def test_a_budget_of_money_says_what_is_not_in_it() -> None:
    line = costs.budget_line(standing(250_000, 1_000_000, "money", unpriced=70), "UTC")
    assert line == (
        "Budget each (ada, today): $0.25 of $1.00 used (25%), $0.75 left; it resets Fri 15 Jan 2027 at 12:00 (UTC)."
        " Not in it: 70 tokens of models without a price"
    )
    assert "(100%)" in costs.budget_line(standing(0, 0), "UTC")


def test_calls_are_told_by_turn_with_the_first_that_fell_short() -> None:  # P30
    calls = [
        call("t2", 130, 4000, 100),
        call("t2", 120, 1000, 3000),  # less than the 5000 that were there
        call("", 110, 0, 0, purpose="summary"),
        call("t1", 105, 0, 0, error="server: down"),
        call("t1", 100, 0, 5000),
    ]
    second, first = costs.turns(calls)
    assert (second.id, first.id) == ("t2", "t1")
    assert [each.call.started for each in second.calls] == [120, 130]
    assert second.sums == Sums(2, 20, 10, 5000, 3100, 20_000, 0, 2, 4000)
    assert second.reading is not None
    assert (second.reading.state, second.reading.reported, second.reading.expected) == ("short", 1000, 5000)
    assert first.reading is not None
    assert (first.reading.state, first.sums.replies) == ("first", 1)
    assert [each.reading is None for each in costs.explained(calls)] == [False, False, True, True, False]
