"""Days that a question names."""

from __future__ import annotations

from datetime import date

import pytest

from clew.context.spans import YEARS_BACK, Span, day_words, spans, written_on

TODAY = date(2026, 3, 18)  # a Wednesday


def span(first: str, last: str = "") -> Span:
    return Span(date.fromisoformat(first), date.fromisoformat(last or first))


# P31
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did Bob do on 3 June, 2023?", span("2023-06-03")),
        ("and on October 13th 2023", span("2023-10-13")),
        ("log of 2023-05-08", span("2023-05-08")),
        ("am 24.12.2025", span("2025-12-24")),
        ("el 3 de mayo de 2024", span("2024-05-03")),
        ("le 1er août 2024", span("2024-08-01")),
        ("in June 2023", span("2023-06-01", "2023-06-30")),
        ("im Februar 2024", span("2024-02-01", "2024-02-29")),
        ("2023年6月", span("2023-06-01", "2023-06-30")),
        ("2023年6月3日", span("2023-06-03")),
        ("what was decided in 2024", span("2024-01-01", "2024-12-31")),
        ("yesterday", span("2026-03-17")),
        ("was hast du gestern gesagt", span("2026-03-17")),
        ("昨天说了什么", span("2026-03-17")),
        ("the day before yesterday", span("2026-03-16")),
        ("last Tuesday", span("2026-03-17")),
        ("on Wednesday", span("2026-03-11")),
        ("letzten Freitag", span("2026-03-13")),
        ("上周五", span("2026-03-13")),
        ("three days ago", span("2026-03-15")),
        ("vor zwei Wochen", span("2026-03-02", "2026-03-06")),
        ("last week", span("2026-03-05", "2026-03-17")),
    ],
)
def test_days_are_understood(text: str, expected: Span) -> None:
    assert spans(text, TODAY)[:1] == (expected,)


@pytest.mark.parametrize(
    "text", ["", "May I ask something?", "march on", "port 8080 at 10:30", "call 2024:80", "31 April 2025", "3 of them", "marchons 5"]
)
def test_other_words_are_no_days(text: str) -> None:
    assert spans(text, TODAY) == ()


# P31
def test_a_day_without_a_year_is_the_last_one_and_perhaps_an_earlier_one() -> None:
    found = spans("on 3 June", TODAY)
    assert found[0] == span("2025-06-03")
    assert [each.likely for each in found] == [True] + [False] * (YEARS_BACK - 2)
    assert spans("on 3 March", TODAY)[0] == span("2026-03-03")


def test_days_become_words_of_the_index() -> None:
    assert day_words([span("2026-02-27", "2026-04-02")], 0) == ("20260227", "20260228", "202603", "20260401", "20260402")
    assert day_words([span("2026-03-01")], 1) == ("20260228", "20260301", "20260302")
    assert day_words([Span(date.min, date.min)], 5) == ()
    assert written_on(date(2026, 3, 1)) == "20260301 202603"
