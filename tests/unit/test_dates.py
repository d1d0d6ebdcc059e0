"""Which day a date means, and whether it has passed."""

from datetime import UTC, date, datetime

import pytest

from clew.context.dates import day, passed

SAID = datetime(2026, 11, 20, tzinfo=UTC).timestamp()
DAY = 86_400.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("28 November", date(2026, 11, 28)),
        ("May 5th, 2027", date(2027, 5, 5)),
        ("3 January", date(2027, 1, 3)),
        ("5. Mai", date(2027, 5, 5)),
        ("14 juillet", date(2026, 7, 14)),
        ("5 de mayo", date(2027, 5, 5)),
        ("30 stycznia", date(2027, 1, 30)),
        ("12 мая", date(2027, 5, 12)),
        ("2026-12-24", date(2026, 12, 24)),
        ("24.12.", date(2026, 12, 24)),
        ("24.12.27", date(2027, 12, 24)),
        ("2027年3月5日", date(2027, 3, 5)),
        ("3月5日", date(2027, 3, 5)),
        ("31 February", None),
        ("12/5", None),
        ("May", None),
    ],
)
def test_a_date_without_a_year_means_the_nearest_one(text: str, expected: date | None) -> None:
    assert day(text, SAID) == expected


def test_what_was_ahead_passes_and_a_record_of_the_past_does_not() -> None:
    assert passed(["28 November"], SAID, SAID + 20 * DAY, vague=False)
    assert not passed(["28 November"], SAID, SAID + 8 * DAY, vague=False)
    assert not passed(["28 November", "3 January"], SAID, SAID + 20 * DAY, vague=False)
    assert not passed(["3 October"], SAID, SAID + 20 * DAY, vague=False)
    assert passed([], SAID, SAID + 20 * DAY, vague=True)
    assert not passed([], SAID, SAID + 5 * DAY, vague=True)
    assert not passed([], SAID, SAID + 20 * DAY, vague=False)
