"""When a schedule runs: clock changes, zones, misfires."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from clew.config import Job
from clew.timetable import CATCH_UP, ON_TIME, cron_instants, newest, plan, upcoming

BERLIN = ZoneInfo("Europe/Berlin")


def job(**fields: Any) -> Job:
    return Job.model_validate({"name": "j", "prompt": "go", "deliver_to": "web:local", **fields})


def between(entry: Job, start: datetime, end: datetime, zone: str = "UTC") -> list[datetime]:
    """The instants of an entry in local time of its zone."""
    local = ZoneInfo(entry.timezone or zone)
    found = takewhile(lambda instant: instant < end.timestamp(), upcoming(entry, start.timestamp(), zone))
    return [datetime.fromtimestamp(instant, local) for instant in found]


def written(instants: list[datetime]) -> list[str]:
    return [instant.strftime("%d %H:%M %z") for instant in instants]


DAILY = job(cron="30 2 * * *", timezone="Europe/Berlin")


def test_a_daily_job_runs_once_on_the_night_that_has_no_such_time() -> None:  # P45, BO-086
    runs = between(DAILY, datetime(2026, 3, 28, tzinfo=BERLIN), datetime(2026, 3, 31, tzinfo=BERLIN))
    assert written(runs) == ["28 02:30 +0100", "29 03:00 +0200", "30 02:30 +0200"]


def test_a_daily_job_runs_once_on_the_night_that_has_the_time_twice() -> None:  # P45, BO-086
    runs = between(DAILY, datetime(2026, 10, 24, tzinfo=BERLIN), datetime(2026, 10, 27, tzinfo=BERLIN))
    assert written(runs) == ["24 02:30 +0200", "25 02:30 +0200", "26 02:30 +0100"]


def test_a_run_that_was_just_made_is_not_made_again_in_the_repeated_hour() -> None:  # P45, BO-086
    first = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN)
    assert first.utcoffset() == timedelta(hours=2)
    assert next(upcoming(DAILY, first.timestamp(), "UTC")) == datetime(2026, 10, 26, 2, 30, tzinfo=BERLIN).timestamp()


@pytest.mark.parametrize(("month", "day", "hours"), [(3, 29, 23), (10, 25, 25)])
def test_an_hourly_job_follows_elapsed_time(month: int, day: int, hours: int) -> None:  # P45
    start = datetime(2026, month, day, tzinfo=BERLIN)
    hourly = job(cron="15 * * * *", timezone="Europe/Berlin")
    runs = [instant.timestamp() for instant in between(hourly, start, datetime(2026, month, day + 1, tzinfo=BERLIN))]
    assert len(runs) == hours
    assert {later - earlier for earlier, later in pairwise(runs)} == {3600.0}


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 23), st.integers(0, 59), st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
)
def test_a_daily_job_runs_once_on_every_local_day_of_the_year(hour: int, minute: int, zone: str) -> None:  # P45, BO-086
    start = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))
    runs = between(
        job(cron=f"{minute} {hour} * * *", timezone=zone), start - timedelta(seconds=1), datetime(2027, 1, 1, tzinfo=start.tzinfo)
    )
    assert [run.date() for run in runs] == [(start + timedelta(days=day)).date() for day in range(365)]


def test_a_zone_of_half_hours_is_converted_once() -> None:  # P45, BO-087
    after = datetime(2026, 5, 1, tzinfo=UTC).timestamp()
    expected = datetime(2026, 5, 1, 12, 0, tzinfo=UTC).timestamp()
    assert next(upcoming(job(cron="30 17 * * *", timezone="Asia/Kolkata"), after, "UTC")) == expected
    assert next(upcoming(job(at="2026-05-01T17:30:00", timezone="Asia/Kolkata"), after, "UTC")) == expected
    assert next(upcoming(job(at="2026-05-01T17:30:00"), after, "Asia/Kolkata")) == expected


def test_a_stated_offset_wins_over_the_zone() -> None:  # P45
    after = datetime(2026, 5, 1, tzinfo=UTC).timestamp()
    entry = job(at="2026-05-01T17:30:00+02:00", timezone="Asia/Kolkata")
    assert next(upcoming(entry, after, "UTC")) == datetime(2026, 5, 1, 15, 30, tzinfo=UTC).timestamp()


def test_once_is_once() -> None:  # P45
    entry = job(at="2026-05-01T12:00:00+00:00")
    at = datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp()
    assert list(upcoming(entry, at - 1, "UTC")) == [at]
    assert list(upcoming(entry, at, "UTC")) == []


def test_an_interval_counts_from_the_last_run() -> None:  # P45
    assert list(islice(upcoming(job(every="10m"), 1000.0, "UTC"), 3)) == [1600.0, 2200.0, 2800.0]


def test_instants_lie_behind_what_was_asked_for() -> None:  # P45
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp()
    assert next(cron_instants("0 12 * * *", noon, "UTC")) == noon + 86_400
    assert next(cron_instants("0 12 * * *", noon - 0.5, "UTC")) == noon


NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("rule", "late", "runs"),
    [
        ("once", [0.0], [0.0]),
        ("skip", [0.0], [0.0]),
        ("all", [0.0], [0.0]),
        ("skip", [7200.0, 3600.0], []),
        ("once", [7200.0, 3600.0], [3600.0]),
        ("all", [7200.0, 3600.0], [7200.0, 3600.0]),
        ("skip", [3600.0, 0.0], [0.0]),
        ("once", [3600.0, 0.0], [0.0]),
        ("all", [3600.0, 0.0], [3600.0, 0.0]),
        ("skip", [ON_TIME], [ON_TIME]),
        ("skip", [ON_TIME + 1], []),
    ],
)
def test_the_misfire_rule(rule: str, late: list[float], runs: list[float]) -> None:  # P45
    """Instants by how many seconds they are late."""
    due = [NOW - seconds for seconds in late]
    run, missed = plan(due, NOW, job(every="1h", misfire=rule))
    assert run == [NOW - seconds for seconds in runs]
    assert missed == [instant for instant in due if instant not in run]


@pytest.mark.parametrize(("rule", "runs"), [("once", [1000.0]), ("all", [1800.0, 1000.0]), ("skip", [])])
def test_grace_bounds_how_late_a_run_may_be(rule: str, runs: list[float]) -> None:  # P45
    due = [NOW - seconds for seconds in (9000.0, 1800.0, 1000.0)]
    run, missed = plan(due, NOW, job(every="1h", misfire=rule, grace="30m"))
    assert run == [NOW - seconds for seconds in runs]
    assert NOW - 9000.0 in missed


@given(
    st.lists(st.integers(0, 100_000), unique=True, max_size=20),
    st.sampled_from(["skip", "once", "all"]),
    st.none() | st.integers(1, 50_000),
)
def test_every_instant_runs_or_is_missed_and_none_does_both(late: list[int], rule: str, grace: int | None) -> None:  # P45
    due = sorted(NOW - seconds for seconds in late)
    run, missed = plan(due, NOW, job(every="1h", misfire=rule, grace=None if grace is None else f"{grace}s"))
    assert sorted([*run, *missed]) == due
    assert run == sorted(run)
    assert set(run) >= {instant for instant in due if NOW - instant <= ON_TIME}


def test_of_a_long_absence_the_newest_instants_are_looked_at() -> None:  # P45
    instants = iter(float(second) for second in range(100_000))
    assert newest(instants) == [float(second) for second in range(100_000 - CATCH_UP, 100_000)]


@pytest.mark.parametrize(
    "fields",
    [{"every": "900000d"}, {"at": "9999-12-31T23:59"}, {"at": "0001-01-01T00:00"}, {"cron": "@daily", "jitter": "900000d"}],
)
def test_what_lies_outside_of_the_calendar_is_refused(fields: dict[str, str]) -> None:  # P45
    with pytest.raises(ValidationError, match=r"less than or equal|must lie between"):
        job(**fields)


@pytest.mark.parametrize("fields", [{"every": "3650d"}, {"cron": "0 0 29 2 *"}, {"cron": "59 23 31 12 *", "timezone": "America/New_York"}])
def test_the_calendar_has_an_end(fields: dict[str, str]) -> None:  # P45
    entry = job(**fields)
    instants = list(upcoming(entry, datetime(9980, 1, 1, tzinfo=UTC).timestamp(), "Asia/Tokyo"))
    assert instants, "as long as it lasts"
    for zone in ("Pacific/Kiritimati", "Pacific/Midway"):
        assert {datetime.fromtimestamp(at, ZoneInfo(zone)).year for at in instants} <= set(range(9979, 10_000))
