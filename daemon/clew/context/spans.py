"""Which days a question is about: `on 3 June`, `last Tuesday`, `in 2023`, `gestern`, `上周`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from clew.context.phrases import MONTHS, fold

YEARS_BACK = 5
"""A day or month without a year is that of the last twelve months or, less likely, of one of the years before."""

_MONTH = rf"(?P<month>{'|'.join(sorted(map(re.escape, MONTHS), key=len, reverse=True))})"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_IN = r"(?:in|im|of|during|since|until|by|early|late|mid|last|this|next|en|em|de|del|di|du|w|van|в|seit|bis|letzten|diesen)"
_DATES = [
    re.compile(pattern)
    for pattern in (
        rf"(?<!\d){_YEAR}[-/.年]\s?(?P<number>1[0-2]|0?[1-9])[-/.月]\s?{_DAY}日?(?!\d)",
        rf"(?<!\d){_DAY}\.\s?(?P<number>1[0-2]|0?[1-9])\.\s?(?:{_YEAR}\b)?",
        rf"(?<!\d)(?P<number>1[0-2]|[1-9])月{_DAY}[日号號]",
        rf"\b{_DAY}(?:st|nd|rd|th|er|º|\.)?(?: of| de)? {_MONTH}\b(?:,? (?:de )?{_YEAR}\b)?",
        rf"\b{_MONTH} {_DAY}(?:st|nd|rd|th)?\b(?:,? {_YEAR}\b)?",
        rf"\b{_MONTH},? (?:of |de )?{_YEAR}\b",
        rf"(?<!\d){_YEAR}年\s?(?:(?P<number>1[0-2]|0?[1-9])月)?",
        rf"\b{_IN} {_MONTH}\b(?! \d)",
        rf"\b{_YEAR}\b(?![-/.:]\d)",
    )
]
_WEEKDAYS = (
    ("monday", "montag", "lundi", "lunes", "lunedi", "星期一", "周一", "月曜"),
    ("tuesday", "dienstag", "mardi", "martes", "martedi", "星期二", "周二", "火曜"),
    ("wednesday", "mittwoch", "mercredi", "miercoles", "mercoledi", "星期三", "周三", "水曜"),
    ("thursday", "donnerstag", "jeudi", "jueves", "giovedi", "星期四", "周四", "木曜"),
    ("friday", "freitag", "vendredi", "viernes", "venerdi", "星期五", "周五", "金曜"),
    ("saturday", "samstag", "samedi", "sabado", "sabato", "星期六", "周六", "土曜"),
    ("sunday", "sonntag", "dimanche", "domingo", "domenica", "星期日", "周日", "日曜"),
)
_WEEKDAY = {name: place for place, names in enumerate(_WEEKDAYS) for name in names}
_SPACED_DAYS = "|".join(name for name in _WEEKDAY if name.isascii())
_UNSPACED_DAYS = "|".join(name for name in _WEEKDAY if not name.isascii())
_NAMED_DAY = re.compile(
    rf"\b(?:last |on |letzten |am )?(?P<name>{_SPACED_DAYS})(?: dernier| pasado| scorso)?\b|上?(?P<other>{_UNSPACED_DAYS})日?"
)
_AGO = re.compile(
    r"\b(?P<count>\d{1,3}|an?|one|two|three|four|five|six|a few) (?P<unit>day|week|month|year)s? ago\b"
    r"|\bvor (?P<count_de>\d{1,3}|einem|einer|zwei|drei|vier|funf|sechs) (?P<unit_de>tag|woche|monat|jahr)(?:e|en|n)?\b"
)
_COUNTS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "a few": 3,
    "einem": 1,
    "einer": 1,
    "zwei": 2,
    "drei": 3,
    "vier": 4,
    "funf": 5,
    "sechs": 6,
}
_UNIT_DAYS = {"day": 1, "tag": 1, "week": 7, "woche": 7, "month": 30, "monat": 30, "year": 365, "jahr": 365}
_RELATIVE: tuple[tuple[str, int, int], ...] = (
    (r"\bday before yesterday\b|\bvorgestern\b|\bavant-hier\b|\banteayer\b|前天|一昨日", 2, 2),
    (r"\byesterday\b|\bgestern\b|\bhier soir\b|\bayer\b|\bieri\b|\bontem\b|\bgisteren\b|\bwczoraj\b|\bвчера\b|昨天|昨日|昨晚|어제", 1, 1),
    (r"\blast night\b|\bletzte nacht\b", 1, 0),
    (r"\b(?:last weekend|letztes wochenende)\b", 9, 1),
    (r"\b(?:last|past) week\b|\bletzte woche\b|\bsemaine derniere\b|\bsemana pasada\b|\bsettimana scorsa\b|上周|上星期|先週|지난주", 13, 1),
    (r"\b(?:last|past) month\b|\bletzten monat\b|\bmois dernier\b|\bmes pasado\b|\bmese scorso\b|上个月|上個月|先月|지난달", 61, 1),
    (r"\blast year\b|\bletztes jahr\b|\ban(?:nee)? dernier\b|\bano pasado\b|\banno scorso\b|去年|昨年|작년", 730, 1),
    (r"\b(?:recently|lately|the other day|neulich|kurzlich|recemment|recientemente|最近)\b", 21, 0),
)
"""(what says it, days back to the first day, days back to the last): generously, for people count weeks and months loosely."""
_PAST = [(re.compile(pattern), first, last) for pattern, first, last in _RELATIVE]


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `first` to `last`, both included. likely: False for the same days of earlier years."""

    first: date
    last: date
    likely: bool = True


def spans(text: str, today: date) -> tuple[Span, ...]:
    """The days that `text` names, seen from `today` in its writer's zone."""
    plain = fold(text)
    found: list[Span] = []
    for pattern in _DATES:
        found += [span for match in pattern.finditer(plain) for span in _dated(match, today)]
        plain = pattern.sub(" ", plain)
    for match in _AGO.finditer(plain):
        days = _UNIT_DAYS[match["unit"] or match["unit_de"]]
        named = match["count"] or match["count_de"]
        count = _COUNTS[named] if named in _COUNTS else int(named)
        found += _back(today, count * days + days // 3, count * days - days // 3)
    plain = _AGO.sub(" ", plain)
    for match in _NAMED_DAY.finditer(plain):
        back = (today.weekday() - _WEEKDAY[match["name"] or match["other"]]) % 7 or 7
        found += _back(today, back, back)
    plain = _NAMED_DAY.sub(" ", plain)
    for pattern, first, last in _PAST:
        if pattern.search(plain):
            found += _back(today, first, last)
            plain = pattern.sub(" ", plain)
    return tuple(dict.fromkeys(found))


def _back(today: date, first: int, last: int) -> Iterator[Span]:
    try:
        yield Span(today - timedelta(days=first), today - timedelta(days=last))
    except OverflowError:
        return


def _dated(match: re.Match[str], today: date) -> Iterator[Span]:
    groups = match.groupdict()
    month = int(groups.get("number") or 0) or MONTHS.get(groups.get("month") or "", 0)
    day, year = int(groups.get("day") or 0), int(groups.get("year") or 0)
    if year and not month:
        yield Span(date(year, 1, 1), date(year, 12, 31))
        return
    for each in [year] if year else range(today.year, today.year - YEARS_BACK, -1):
        try:
            first = date(each, month, day or 1)
        except ValueError:  # 30 February
            continue
        last = first if day else _next_month(first) - timedelta(days=1)
        if year or first <= today:
            yield Span(first, last, likely=bool(year) or (today - first).days <= 366)


def _next_month(first: date) -> date:
    return date(first.year + first.month // 12, first.month % 12 + 1, 1)


def day_words(found: Sequence[Span], around: int) -> tuple[str, ...]:
    """The index's words for these days and so many on each side of them: whole months as one (`202306`), the rest by day (`20230613`)."""
    words: dict[str, None] = {}
    for each in found:
        try:
            first, last = each.first - timedelta(days=around), each.last + timedelta(days=around)
        except OverflowError:
            continue
        while first <= last:
            after = _next_month(first) if first.day == 1 else first
            whole = first.day == 1 and after - timedelta(days=1) <= last
            words[f"{first:%Y%m}" if whole else f"{first:%Y%m%d}"] = None
            first = after if whole else first + timedelta(days=1)
    return tuple(words)


def written_on(day: date) -> str:
    """The words under which the index has what was written on `day` (UTC)."""
    return f"{day:%Y%m%d} {day:%Y%m}"
