"""Periods of the calendar, and whether calls fit what is left."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.allowances import EVERY, Amount, Every, Limit, Payer, Standing, applying, period, refusing, resets_at, shares

ZONES = sorted(name for name in available_timezones() if "/" in name)
SINCE, UNTIL = datetime(2012, 1, 1, tzinfo=UTC).timestamp(), datetime(2037, 1, 1, tzinfo=UTC).timestamp()
"""Before that some clocks were put back over midnight, so that a day began twice."""

times = st.floats(SINCE, UNTIL)
zones = st.sampled_from(ZONES)
everies = st.sampled_from(EVERY)
amounts = st.builds(Amount, st.integers(0, 1000), st.integers(0, 1000))


def at(text: str, zone: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


# Periods ---------------------------------------------------------------------------------------------------------


@given(times, zones, everies)
def test_a_period_ends_where_the_next_begins_and_nowhere_else(now: float, zone: str, every: Every) -> None:
    reset = resets_at(now, zone, every)
    assert now < reset
    assert period(now, zone, every) == period(reset - 1, zone, every) < period(reset, zone, every)
    assert reset - now <= (26 * 3600 if every == "day" else 32 * 86_400)


@given(times, zones)
def test_a_day_lies_in_its_month(now: float, zone: str) -> None:
    assert period(now, zone, "day").startswith(period(now, zone, "month") + "-")
    assert resets_at(now, zone, "day") <= resets_at(now, zone, "month")


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("Australia/Lord_Howe", "2026-10-04", 23.5),
        ("America/Santiago", "2026-09-06", 23),  # its midnight is left out
        ("Asia/Kolkata", "2026-03-29", 24),
    ],
)
def test_days_on_which_clocks_change_are_as_long_as_they_are(zone: str, day: str, hours: float) -> None:
    first = at(f"{day}T12:00", zone)
    begun = resets_at(first - 86_400, zone, "day")
    assert resets_at(first, zone, "day") - begun == hours * 3600
    assert period(begun, zone, "day") == day


def test_a_month_ends_by_the_zone_of_whoever_it_is_for() -> None:
    now = at("2026-11-30T23:30", "UTC")
    assert (period(now, "UTC", "month"), period(now, "Asia/Tokyo", "month")) == ("2026-11", "2026-12")
    assert resets_at(now, "America/New_York", "month") == at("2026-12-01T00:00", "America/New_York")


# Limits ----------------------------------------------------------------------------------------------------------

ADA = Payer("ada", "member", "desk:ada", "Europe/Berlin", "Europe/Berlin", "UTC")
NOBODY = Payer("", None, "desk:group", "UTC", "UTC", "UTC")


def limit(name: str, most: int = 100, unit: Literal["tokens", "money"] = "tokens", **more: object) -> Limit:
    return Limit(name, **{"per": "person", "every": "day", "unit": unit, "most": most, **more})  # type: ignore[arg-type]


def names(limits: list[Limit], payer: Payer) -> list[str]:
    return [each.name for each, _ in applying(limits, payer)]


def test_the_most_exact_budget_holds_of_those_that_count_the_same() -> None:
    each, guests = limit("each"), limit("guests", roles=frozenset({"guest"}))
    members, ada = limit("members", roles=frozenset({"member"})), limit("ada", people=frozenset({"ada"}))
    monthly, money = limit("monthly", every="month"), limit("money", unit="money")
    assert names([each, guests], ADA) == ["each"]
    assert names([each, guests, members], ADA) == ["members"]
    assert names([each, members, ada, monthly, money], ADA) == ["ada", "monthly", "money"]


def test_a_budget_binds_whose_it_is() -> None:
    chats, group = limit("chats", per="chat"), limit("group", per="chat", chats=frozenset({"desk:group"}))
    everybody = limit("all", per="all")
    assert applying([limit("each"), chats, group, everybody], ADA) == [(limit("each"), "ada"), (chats, "desk:ada"), (everybody, "")]
    assert applying([limit("each"), chats, group, everybody], NOBODY) == [(group, "desk:group"), (everybody, "")]


def test_amounts_are_told_to_those_whose_they_are() -> None:
    alone, owner = replace(ADA, direct=True), replace(ADA, direct=True, role="owner")
    each, chat, everybody = limit("each"), limit("chats", per="chat"), limit("all", per="all")
    assert [payer.sees(each) for payer in (ADA, alone, owner)] == [False, True, True]
    assert [payer.sees(chat) for payer in (ADA, alone, owner)] == [True, True, True]
    assert [payer.sees(everybody) for payer in (replace(ADA, role="owner"), alone, owner)] == [False, False, True]


def standing(most: int, spent: Amount, reserved: Amount, unit: Literal["tokens", "money"] = "tokens", resets: float = 1.0) -> Standing:
    return Standing(limit("each", most, unit), "ada", "2026-11-30", resets, spent, reserved)


@given(st.integers(0, 3000), amounts, amounts, amounts)
def test_what_fits_a_budget_never_exceeds_it(most: int, spent: Amount, reserved: Amount, wanted: Amount) -> None:
    stands = standing(most, spent, reserved)
    assert stands.left == max(most - spent.tokens - reserved.tokens, 0)
    if stands.takes(wanted):
        assert not wanted.tokens or spent.tokens + reserved.tokens + wanted.tokens <= most
    else:
        assert wanted.tokens > stands.left


def test_what_costs_nothing_of_a_budget_fits_it_when_it_is_used_up() -> None:
    over = standing(100, Amount(0, 150), Amount(), "money")
    assert over.takes(Amount(5000, 0, 5000))
    assert not over.takes(Amount(1, 1))


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(1, 9)), max_size=5))
def test_the_budget_that_refuses_is_the_one_that_resets_last(given_limits: list[tuple[int, float]]) -> None:
    standings = [standing(most, Amount(), Amount(), resets=resets) for most, resets in given_limits]
    refused = refusing(standings, Amount(30))
    full = [each.resets_at for each in standings if each.limit.most < 30]
    assert (refused is None) == (not full)
    assert refused is None or refused.resets_at == max(full)


@given(st.integers(0, 10**6), st.lists(st.integers(0, 1000), min_size=1, max_size=8))
def test_parts_are_all_of_it_and_as_large_as_their_weights(total: int, weights: list[int]) -> None:
    parts = shares(total, weights)
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        even = total / len(weights) if not any(weights) else total * weight / sum(weights)
        assert abs(part - even) <= 1


def test_people_are_warned_at_four_fifths() -> None:
    assert not standing(100, Amount(60), Amount(10)).is_near(Amount(9))
    assert standing(100, Amount(60), Amount(10)).is_near(Amount(10))
