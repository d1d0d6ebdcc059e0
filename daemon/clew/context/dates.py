"""Which day a date in a text means, and whether it has passed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from clew.context.phrases import MONTHS, fold

_ISO = re.compile(r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})")
_CJK = re.compile(r"(\d{1,2})月(\d{1,2})[日号號]")
_DOTTED = re.compile(r"\A(\d{1,2})\.(\d{1,2})\.(\d{2,4})?\Z")
_NUMBER = re.compile(r"\d+")
_GRACE = timedelta(days=1)
_VAGUE = timedelta(days=12)
"""How long `tomorrow` or `on Saturday` may still be ahead."""


def day(text: str, said: float) -> date | None:
    """The day that a date means which was written at `said` (seconds since the epoch): where it names no year, the nearest one."""
    if found := _ISO.search(text):
        return _date(int(found[1]), int(found[2]), int(found[3]))
    at = datetime.fromtimestamp(said, UTC).date()
    if found := _CJK.search(text):
        return _nearest(int(found[1]), int(found[2]), at)
    if found := _DOTTED.match(text):
        year = int(found[3] or 0)
        return _date(year + 2000 * (year < 100), int(found[2]), int(found[1])) if year else _nearest(int(found[2]), int(found[1]), at)
    month = next((MONTHS[word] for word in re.findall(r"[^\W\d_]+", fold(text)) if word in MONTHS), 0)
    numbers = [int(number) for number in _NUMBER.findall(text)]
    if not month or not numbers:
        return None
    year = next((number for number in numbers if number > 31), 0)
    number = next((number for number in numbers if number <= 31), 0)
    return _date(year, month, number) if year else _nearest(month, number, at)


def _nearest(month: int, number: int, at: date) -> date | None:
    found = [each for year in (at.year - 1, at.year, at.year + 1) if (each := _date(year, month, number))]
    return min(found, key=lambda each: abs(each - at), default=None)


def _date(year: int, month: int, number: int) -> date | None:
    try:
        return date(year, month, number)
    except ValueError:
        return None


def passed(texts: Iterable[str], said: float, now: float, *, vague: bool) -> bool:
    """Whether everything that was ahead at `said` is over by `now` (seconds since the epoch).

    texts: the dates that were named; what was past already when it was said is a record and does not pass. vague: another word for a
    time to come, such as `tomorrow`, was used.
    """
    at, today = (datetime.fromtimestamp(each, UTC).date() for each in (said, now))
    days = [found for text in texts if (found := day(text, said))]
    if days:
        return at <= max(days) < today - _GRACE
    return vague and today - at > _VAGUE
