"""The clock contract of docs/schedules.md: ten years, every zone of the IANA list whose clocks change, times around the clock.

What is expected is worked out from the zones' changes alone (`tests/clock_changes.py`), never by the code that is looked at.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest

from clew.timetable import cron_instants, single_instant
from tests.clock_changes import FIRST, LAST, Change, Rules, days, rules

EVERY_ZONE = pytest.mark.parametrize("each", rules(), ids=lambda each: each.zones[0])
AROUND = 1
"""Days on each side of a change."""


def local_days(change: Change) -> list[date]:
    """The days around a clock change, as the zone counts them."""
    at = datetime.fromtimestamp(change.at, UTC) + timedelta(seconds=max(change.before, change.after))
    return days(at.date() - timedelta(days=AROUND + 1), at.date() + timedelta(days=AROUND))


def daily(rule: Rules, zone: str, minute: int, wanted: Sequence[date]) -> tuple[int, int]:
    """(missed, doubled): of the runs of a daily job on these days, which follow one another."""
    hour, past = divmod(minute, 60)
    expected = [rule.instant(day, minute) for day in wanted]
    found = Counter(
        takewhile(lambda instant: instant <= expected[-1], cron_instants(f"{past} {hour} * * *", expected[0] - 1.0, zone)),
    )
    return sum(1 for instant in expected if not found[instant]), sum(found.values()) - len(set(expected) & set(found))


def counted(rule: Rules, zones: Iterable[str], minutes: Iterable[int], spans: Sequence[Sequence[date]]) -> tuple[int, int]:
    results = [daily(rule, zone, minute, span) for zone in zones for minute in minutes for span in spans]
    return sum(missed for missed, _ in results), sum(doubled for _, doubled in results)


@EVERY_ZONE
def test_a_daily_job_runs_once_a_day_around_every_clock_change_of_ten_years(each: Rules) -> None:  # P45, BO-086
    """Every half hour of the day, and a minute beside it where zones change by a quarter."""
    minutes = [*range(0, 1440, 30), 1, 59, 119, 121, 179, 181, 1439]
    assert counted(each, each.zones[:1], minutes, [local_days(change) for change in each.changes]) == (0, 0)


@pytest.mark.parametrize("minute", [0, 150])
def test_a_daily_job_runs_on_every_day_of_ten_years(minute: int) -> None:  # P45, BO-086
    """At midnight and at half past two, in zones that change at night, at midnight, in the evening, by half an hour and by two."""
    odd = ("Africa/Ceuta", "Africa/Cairo", "America/Godthab", "Australia/LHI", "Antarctica/Troll", "America/Havana")
    for each in rules():
        if each.zones[0] in odd:
            assert counted(each, each.zones[:1], [minute], [days()]) == (0, 0)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@EVERY_ZONE
def test_all_zones_all_days_all_quarters_of_an_hour(each: Rules) -> None:  # P45, BO-086
    """Zones whose changes are the same to the second are the same zone under other names: one of them is asked for every day."""
    assert counted(each, each.zones[:1], range(0, 1440, 15), [days()]) == (0, 0)
    assert counted(each, each.zones, range(0, 1440, 15), [local_days(change) for change in each.changes]) == (0, 0)
    assert counted(each, each.zones[:1], range(1440), [local_days(change) for change in each.changes]) == (0, 0)


@EVERY_ZONE
def test_an_hourly_job_follows_elapsed_time_through_every_change(each: Rules) -> None:  # P45
    """Zones that change by less than an hour have one step that is as much shorter or longer, as the minute hand has."""
    for change in each.changes:
        runs = list(islice(cron_instants("15 * * * *", change.at - 6 * 3600.0, each.zones[0]), 12))
        steps = {later - earlier for earlier, later in pairwise(runs)}
        shift = abs(change.after - change.before) % 3600
        assert steps == {3600.0} if not shift else steps <= {3600.0, 3600.0 - shift, 3600.0 + shift, 1800.0, 5400.0}


@EVERY_ZONE
def test_a_single_time_follows_the_same_rule(each: Rules) -> None:  # P45, BO-086
    for change in each.changes[:4]:
        for day in local_days(change):
            for minute in range(0, 1440, 30):
                at = datetime(day.year, day.month, day.day, *divmod(minute, 60))
                assert single_instant(at, each.zones[0]) == each.instant(day, minute)


def test_all_zones_with_changes_are_there() -> None:  # P45
    assert sum(len(each.zones) for each in rules()) > 150
    assert (FIRST.year, LAST.year) == (2026, 2035)


def runs(expression: str, zone: str, day: str, count: int) -> list[str]:
    start = datetime.fromisoformat(f"{day}T00:00").replace(tzinfo=ZoneInfo(zone)).timestamp() - 1
    return [f"{datetime.fromtimestamp(at, ZoneInfo(zone)):%d %H:%M %z}" for at in islice(cron_instants(expression, start, zone), count)]


# What cron(8) of Debian's vixie-cron documents: jobs with a fixed time that a change skips are run at once behind it, and those of a
# repeated hour once; jobs "with a granularity of less than an hour", known by a star in minute or hour, follow the clock.
SPRING, AUTUMN, BERLIN = "2026-03-29", "2026-10-25", "Europe/Berlin"


@pytest.mark.parametrize(
    ("expression", "day", "expected"),
    [
        ("30 2 * * *", SPRING, ["29 03:00 +0200", "30 02:30 +0200"]),
        ("30 2 * * *", AUTUMN, ["25 02:30 +0200", "26 02:30 +0100"]),
        ("0,30 2 * * *", SPRING, ["29 03:00 +0200", "30 02:00 +0200"]),
        ("0 3 * * *", SPRING, ["29 03:00 +0200", "30 03:00 +0200"]),
        ("30 * * * *", SPRING, ["29 00:30 +0100", "29 01:30 +0100", "29 03:30 +0200"]),
        ("30 1,2,3 * * *", AUTUMN, ["25 01:30 +0200", "25 02:30 +0200", "25 03:30 +0100"]),
        ("30 * * * *", AUTUMN, ["25 00:30 +0200", "25 01:30 +0200", "25 02:30 +0200", "25 02:30 +0100"]),
    ],
)
def test_as_vixie_cron_documents(expression: str, day: str, expected: list[str]) -> None:  # P45, BO-086
    assert runs(expression, BERLIN, day, len(expected)) == expected


@pytest.mark.parametrize(
    ("expression", "day", "expected", "vixie"),
    [
        # A star for the minute does not make a nightly job follow elapsed time.
        ("*/30 2 * * *", SPRING, ["29 03:00 +0200", "30 02:00 +0200"], ["30 02:00 +0200"]),
        (
            "*/30 2 * * *",
            AUTUMN,
            ["25 02:00 +0200", "25 02:30 +0200", "26 02:00 +0100"],
            ["25 02:00 +0200", "25 02:30 +0200", "25 02:00 +0100"],
        ),
        # Neither does one in a step of hours.
        ("30 */2 * * *", SPRING, ["29 00:30 +0100", "29 03:00 +0200", "29 04:30 +0200"], ["29 00:30 +0100", "29 04:30 +0200"]),
        (
            "30 */2 * * *",
            AUTUMN,
            ["25 00:30 +0200", "25 02:30 +0200", "25 04:30 +0100"],
            ["25 00:30 +0200", "25 02:30 +0200", "25 02:30 +0100"],
        ),
        # All hours written out are all hours.
        ("30 0-23 * * *", AUTUMN, ["25 00:30 +0200", "25 01:30 +0200", "25 02:30 +0200", "25 02:30 +0100"], None),
    ],
)
def test_unlike_vixie_cron(expression: str, day: str, expected: list[str], vixie: list[str] | None) -> None:  # P45
    """vixie: what that one does, as docs/schedules.md says; None where it is not documented."""
    found = runs(expression, BERLIN, day, len(expected))
    assert found == expected
    assert found != vixie


def test_the_second_hour_of_a_repeated_one_runs_nothing_again() -> None:  # P45, BO-086
    """Asked from within it, too: 02:15 of the second time, 02:30 has had its run."""
    second = datetime(2026, 10, 25, 2, 15, tzinfo=ZoneInfo(BERLIN), fold=1).timestamp()
    assert next(cron_instants("30 2 * * *", second, BERLIN)) == datetime(2026, 10, 26, 2, 30, tzinfo=ZoneInfo(BERLIN)).timestamp()
