"""Which days a question is about: `on 3 June`, `last Tuesday`, `in 2023`, `gestern`, `上周`, `next Friday`, `a few weeks ago`. Pure."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice

from clew.context.phrases import MONTHS, fold

_NAMES = {month: [name for name, number in MONTHS.items() if number == month] for month in range(1, 13)}
"""What a month is called, in every language; the first name is the English one."""
_ORDINALS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
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
_UNITS = {
    "day": 1, "tag": 1, "jour": 1, "dia": 1, "giorn": 1, "dag": 1, "天": 1, "日": 1, "일": 1,
    "week": 7, "weke": 7, "woche": 7, "semaine": 7, "semana": 7, "settiman": 7, "周": 7, "星期": 7, "週間": 7, "주": 7,
    "month": 30, "monat": 30, "moi": 30, "mes": 30, "maand": 30, "个月": 30, "個月": 30, "か月": 30, "ヶ月": 30, "개월": 30,
    "year": 365, "jahr": 365, "an": 365, "annee": 365, "ano": 365, "ann": 365, "jaar": 365, "年": 365, "년": 365,
}  # fmt: skip
"""Days of a unit, by how its name begins."""
_FEW, _COUPLE, _SEVERAL = (2, 6), (1.5, 3), (3, 8)
_VAGUE = {
    "a few": _FEW, "few": _FEW, "some": _FEW, "a couple of": _COUPLE, "a couple": _COUPLE, "several": _SEVERAL, "many": (4, 12),
    "ein paar": _FEW, "einigen": _FEW, "einige": _FEW, "mehreren": _SEVERAL, "quelques": _FEW, "plusieurs": _SEVERAL,
    "unos": _FEW, "unas": _FEW, "algunos": _FEW, "algunas": _FEW, "varios": _SEVERAL, "varias": _SEVERAL, "alguns": _FEW, "algumas": _FEW,
    "qualche": _FEW, "alcuni": _FEW, "alcune": _FEW, "diversi": _SEVERAL, "een paar": _FEW, "enkele": _FEW,
    "几": _FEW, "幾": _FEW, "数": _FEW, "몇": _FEW,
}  # fmt: skip
"""(the fewest, the most) that is meant."""
_EXACT = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10,
    "einem": 1, "einer": 1, "einen": 1, "zwei": 2, "drei": 3, "vier": 4, "fuenf": 5, "sechs": 6, "zehn": 10,
    "un": 1, "une": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5,
    "uma": 1, "um": 1, "dois": 2, "duas": 2, "due": 2, "tre": 3, "quattro": 4, "cinque": 5, "een": 1, "twee": 2, "drie": 3, "vijf": 5,
    "一": 1, "两": 2, "兩": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "十": 10,
}  # fmt: skip
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted((*_VAGUE, *_EXACT), key=len, reverse=True))})"
_UNIT = rf"(?P<unit>{'|'.join(sorted(_UNITS, key=len, reverse=True))})"
_SPACED_UNIT = rf"{_UNIT}(?:s|e|en|n|i|es|os|as|o|a)?\b"
_AGO = [
    re.compile(pattern)
    for pattern in (
        rf"\b{_COUNT} {_SPACED_UNIT} (?:ago|back|fa|geleden|atras)\b",
        rf"\b(?:vor|il y a|hace|ha) {_COUNT} {_SPACED_UNIT}",
        rf"{_COUNT}\s?{_UNIT}(?:以?前|之前|전)",
    )
]
_AHEAD = [
    re.compile(pattern)
    for pattern in (
        rf"\b(?:in|within|dans|en|em|tra|fra|over) {_COUNT} {_SPACED_UNIT}(?! (?:ago|back|fa|geleden|atras)\b)",
        rf"\b{_COUNT} {_SPACED_UNIT} from now\b",
        rf"{_COUNT}\s?{_UNIT}(?:以?后|以?後|之后|之後|뒤|후)",
    )
]
_NEXT = r"(?:next|this coming|coming|naechste[nrs]?|kommende[nrs]?|prochaine?|proxim[oa]|volgende|komende|prossim[oa])"
_NEXT_DAY = re.compile(
    rf"\b{_NEXT} (?P<name>{_SPACED_DAYS})\b|\b(?P<late>{_SPACED_DAYS}) (?:prochain|prossim[oa]|que vem|que viene)\b"
    rf"|(?:下个?|來|来週の?)(?P<other>{_UNSPACED_DAYS})日?"
)
"""The one that comes, or the one behind it: people mean either."""
_COMING: tuple[tuple[str, str], ...] = (
    (
        r"\bday after tomorrow\b|\buebermorgen\b|\bapres-demain\b|\bpasado manana\b|\bdopodomani\b|\bovermorgen\b|后天|後天|明後日|모레",
        "2",
    ),
    (
        r"\btomorrow\b|(?<!guten )\bmorgen\b|\bdemain\b|(?<!la )\bmanana\b|\bdomani\b|\bamanha\b|\bjutro\b|\bзавтра\b"
        r"|明天|明日|내일",
        "1",
    ),
    (
        rf"\b{_NEXT} (?:week|woche|semaine|semana|settimana)\b|\b(?:semaine|settimana) (?:prochaine|prossima)\b"
        r"|\bsemana que (?:viene|vem)\b|下周|下星期|下週|来週|다음 주",
        "week",
    ),
    (rf"\b(?:this|dieses|{_NEXT}) (?:weekend|wochenende)\b|\bce week-?end\b|\bfim de semana que vem\b|这个周末|這個週末|今週末", "weekend"),
    (
        rf"\b{_NEXT} (?:month|monat|mois|mes|mese|maand)\b|\bmois prochain\b|\bmese prossimo\b|\bmes que (?:viene|vem)\b"
        r"|下个月|下個月|来月|다음 달",
        "month",
    ),
    (
        rf"\b{_NEXT} (?:year|jahr|ano|anno|jaar)\b|\b(?:an|annee) prochaine?\b|\banno prossimo\b|\bano que (?:viene|vem)\b"
        r"|明年|来年|내년",
        "year",
    ),
)
_SOON = [(re.compile(pattern), when) for pattern, when in _COMING]
_RELATIVE: tuple[tuple[str, int, int], ...] = (
    (r"\bday before yesterday\b|\bvorgestern\b|\bavant-hier\b|\banteayer\b|前天|一昨日", 2, 2),
    (r"\byesterday\b|\bgestern\b|\bhier soir\b|\bayer\b|\bieri\b|\bontem\b|\bgisteren\b|\bwczoraj\b|\bвчера\b|昨天|昨日|昨晚|어제", 1, 1),
    (r"\blast night\b|\bletzte nacht\b", 1, 0),
    (r"\b(?:last weekend|letztes wochenende)\b", 9, 1),
    (r"\b(?:last|past) week\b|\bletzte woche\b|\bsemaine derniere\b|\bsemana pasada\b|\bsettimana scorsa\b|上周|上星期|先週|지난주", 13, 1),
    (r"\b(?:last|past) month\b|\bletzten monat\b|\bmois dernier\b|\bmes pasado\b|\bmese scorso\b|上个月|上個月|先月|지난달", 61, 1),
    (r"\blast year\b|\bletztes jahr\b|\ban(?:nee)? dernier\b|\bano pasado\b|\banno scorso\b|去年|昨年|작년", 730, 1),
    (r"\b(?:recently|lately|the other day|neulich|kuerzlich|recemment|recientemente|最近)\b", 21, 0),
)
"""(what says it, days back to the first day, days back to the last): generously, for people count weeks and months loosely."""
_PAST = [(re.compile(pattern), first, last) for pattern, first, last in _RELATIVE]


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `first` to `last`, both included. likely: False for the same days of earlier years. ahead: they are still to come."""

    first: date
    last: date
    likely: bool = True
    ahead: bool = False


def spans(text: str, today: date) -> tuple[Span, ...]:
    """The days that `text` names, seen from `today` in its writer's zone."""
    plain = fold(text)
    found: list[Span] = []
    for pattern in _DATES:
        found += [span for match in pattern.finditer(plain) for span in _dated(match, today)]
        plain = pattern.sub(" ", plain)
    for pattern in _AGO:
        for match in pattern.finditer(plain):
            least, most = _days_of(match)
            found += _back(today, most, least)
        plain = pattern.sub(" ", plain)
    for pattern in _AHEAD:
        for match in pattern.finditer(plain):
            least, most = _days_of(match)
            found += _ahead(today, least, most)
        plain = pattern.sub(" ", plain)
    for match in _NEXT_DAY.finditer(plain):
        days = (_WEEKDAY[match["name"] or match["late"] or match["other"]] - today.weekday()) % 7 or 7
        found += [*_ahead(today, days, days), *_ahead(today, days + 7, days + 7)]
    plain = _NEXT_DAY.sub(" ", plain)
    for match in _NAMED_DAY.finditer(plain):
        back = (today.weekday() - _WEEKDAY[match["name"] or match["other"]]) % 7 or 7
        found += _back(today, back, back)
    plain = _NAMED_DAY.sub(" ", plain)
    for pattern, first, last in _PAST:
        if pattern.search(plain):
            found += _back(today, first, last)
            plain = pattern.sub(" ", plain)
    for pattern, when in _SOON:
        if pattern.search(plain):
            found += _coming(today, when)
            plain = pattern.sub(" ", plain)
    return tuple(dict.fromkeys(found))


def _days_of(match: re.Match[str]) -> tuple[int, int]:
    """(the fewest, the most) days that a count of units means; an exact one too is said loosely: by a third of its unit."""
    count, days = match["count"], _UNITS[match["unit"]]
    if count in _VAGUE:
        least, most = _VAGUE[count]
        return int(least * days), int(most * days)
    exact = (_EXACT[count] if count in _EXACT else int(count)) * days
    return exact - days // 3, exact + days // 3


def _ahead(today: date, first: int, last: int) -> Iterator[Span]:
    try:
        yield Span(today + timedelta(days=first), today + timedelta(days=last), ahead=True)
    except OverflowError:
        return


def _coming(today: date, when: str) -> Iterator[Span]:
    monday = 7 - today.weekday()
    match when:
        case "week":
            yield from _ahead(today, monday, monday + 6)
        case "weekend":
            yield from _ahead(today, (5 - today.weekday()) % 7, (5 - today.weekday()) % 7 + 1)
        case "month" | "year":
            first = _next_month(today.replace(day=1)) if when == "month" else date(min(today.year + 1, date.max.year), 1, 1)
            last = (_next_month(first) if when == "month" else date(min(first.year + 1, date.max.year), 1, 1)) - timedelta(days=1)
            yield Span(first, max(first, last), ahead=True)
        case days:
            yield from _ahead(today, int(days), int(days))


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
            end = first.replace(day=monthrange(first.year, first.month)[1])
            whole = first.day == 1 and end <= last
            words[f"{first:%Y%m}" if whole else f"{first:%Y%m%d}"] = None
            last_one = end if whole else first
            if last_one == date.max:
                break
            first = last_one + timedelta(days=1)
    return tuple(words)


def spelled(found: Sequence[Span], most: int) -> tuple[str, ...]:
    """Phrases by which texts name these days, the first `most` of them: `20261204`, as the index has a date of numbers, `4 december`, …"""
    days = islice((span.first + timedelta(days=n) for span in found for n in range((span.last - span.first).days + 1)), most)
    phrases: dict[str, None] = {}
    for day in days:
        phrases[f"{day:%Y%m%d}"] = None
        for name in (*_NAMES[day.month], _NAMES[day.month][0][:3]):
            for number in (f"{day.day}", f"{day.day}{_ORDINALS.get(day.day, 'th')}"):
                phrases[f"{name} {number}"] = phrases[f"{number} {name}"] = None
        for name in _NAMES[day.month]:
            phrases[f"{day.day} de {name}"] = None
    return tuple(phrases)


def written_on(day: date) -> str:
    """The words under which the index has what was written on `day` (UTC)."""
    month = f"{day.year}{day.month:02}"
    return f"{month}{day.day:02} {month}"
