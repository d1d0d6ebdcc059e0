"""Days that a question names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest

from clew.context.spans import YEARS_BACK, Span, day_words, spans, spelled, written_on

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a few weeks ago", span("2026-02-04", "2026-03-04")),
        ("a couple of weeks ago", span("2026-02-25", "2026-03-08")),
        ("several months ago", span("2025-07-21", "2025-12-18")),
        ("vor ein paar Wochen", span("2026-02-04", "2026-03-04")),
        ("vor fünf Tagen", span("2026-03-13")),
        ("il y a quelques jours", span("2026-03-12", "2026-03-16")),
        ("hace unas semanas", span("2026-02-04", "2026-03-04")),
        ("due settimane fa", span("2026-03-02", "2026-03-06")),
        ("een paar weken geleden", span("2026-02-04", "2026-03-04")),
        ("几周前", span("2026-02-04", "2026-03-04")),
        ("3日前", span("2026-03-15")),
    ],
)
def test_vague_days_are_understood_vaguely(text: str, expected: Span) -> None:  # P31
    assert spans(text, TODAY) == (expected,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("next Friday", ("2026-03-20", "2026-03-27")),
        ("nächsten Freitag", ("2026-03-20", "2026-03-27")),
        ("vendredi prochain", ("2026-03-20", "2026-03-27")),
        ("el próximo viernes", ("2026-03-20", "2026-03-27")),
        ("下周五", ("2026-03-20", "2026-03-27")),
        ("tomorrow", ("2026-03-19",)),
        ("morgen", ("2026-03-19",)),
        ("明天", ("2026-03-19",)),
        ("übermorgen", ("2026-03-20",)),
        ("in 3 days", ("2026-03-21",)),
        ("in drei Tagen", ("2026-03-21",)),
        ("三天后", ("2026-03-21",)),
    ],
)
def test_days_to_come_are_understood(text: str, expected: Sequence[str]) -> None:  # P31
    assert [str(each.first) for each in spans(text, TODAY)] == list(expected)
    assert all(each.ahead and each.first == each.last for each in spans(text, TODAY))


def test_weeks_months_and_years_to_come_are_whole_ones() -> None:  # P31
    for text in ("next week", "nächste Woche", "la semaine prochaine", "la prossima settimana", "来週"):
        assert spans(text, TODAY) == (Span(date(2026, 3, 23), date(2026, 3, 29), ahead=True),)
    assert spans("this weekend", TODAY) == (Span(date(2026, 3, 21), date(2026, 3, 22), ahead=True),)
    assert spans("in two weeks", TODAY) == (Span(date(2026, 3, 30), date(2026, 4, 3), ahead=True),)
    assert spans("next month", TODAY) == (Span(date(2026, 4, 1), date(2026, 4, 30), ahead=True),)
    assert spans("next month", date(2026, 12, 31)) == (Span(date(2027, 1, 1), date(2027, 1, 31), ahead=True),)
    assert spans("next year", TODAY) == (Span(date(2027, 1, 1), date(2027, 12, 31), ahead=True),)
    for text in ("tomorrow", "next week", "next year", "in 900 years", "next Friday"):
        spans(text, date.max)  # there is no later one


@pytest.mark.parametrize(
    "text", ["good morning", "Guten Morgen", "por la mañana", "in an hour", "an old friend", "3 of us ago", "from now on"]
)
def test_what_merely_sounds_so_is_no_day(text: str) -> None:
    assert spans(text, TODAY) == ()


def test_days_to_come_are_looked_for_by_how_they_are_written() -> None:  # P31
    phrases = spelled([Span(date(2026, 12, 4), date(2026, 12, 5), ahead=True)], 1)
    assert {"20261204", "december 4", "4 december", "4th december", "dec 4", "4 dezember", "4 de diciembre"} <= set(phrases)
    assert not [phrase for phrase in phrases if "5" in phrase.replace("20261204", "")]
    assert len(spelled([Span(date(2026, 1, 1), date(2026, 12, 31), ahead=True)], 7)) < 500


def test_days_become_words_of_the_index() -> None:
    assert day_words([span("2026-02-27", "2026-04-02")], 0) == ("20260227", "20260228", "202603", "20260401", "20260402")
    assert day_words([span("2026-03-01")], 1) == ("20260228", "20260301", "20260302")
    assert day_words([Span(date.min, date.min)], 5) == ()
    assert day_words([Span(date.max, date.max)], 0) == ("99991231",)
    assert day_words([span("9999-11-29", "9999-12-30")], 1) == ("99991128", "99991129", "99991130", "999912")
    assert written_on(date(2026, 3, 1)) == "20260301 202603"
