"""The zones of the IANA list whose clocks change, and what the clock contract asks of them, worked out from the changes alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

FIRST, LAST = date(2026, 1, 1), date(2035, 12, 31)
"""The ten years that are looked at."""
_LOOK = 12 * 3600
"""Seconds between two looks for a change; none of these zones changes its clocks twice within that."""


@dataclass(frozen=True, slots=True)
class Change:
    """A clock change at `at` (seconds since the epoch), from one offset to another (seconds east of Greenwich)."""

    at: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Rules:
    """Zones whose clocks change alike in the ten years. `first`: their offset when those begin."""

    zones: tuple[str, ...]
    first: int
    changes: tuple[Change, ...]

    def instant(self, day: date, minute: int) -> int:
        """When a daily job of this minute of the day (0 to 1439) runs on `day`: in a gap at its end, in a repeated hour the first time."""
        local = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) + minute * 60
        offset = self.first
        for change in self.changes:
            if local < change.at + change.before:
                break
            if local < change.at + change.after:
                return change.at
            offset = change.after
        return local - offset


@cache
def rules() -> tuple[Rules, ...]:
    """The zones with changes, those that change alike together."""
    found: dict[tuple[int, tuple[Change, ...]], list[str]] = {}
    for zone in sorted(available_timezones() - {"localtime"}):
        first, changes = _offset(zone, _start()), tuple(_changes(zone))
        if changes:
            found.setdefault((first, changes), []).append(zone)
    return tuple(Rules(tuple(zones), first, changes) for (first, changes), zones in found.items())


def days(start: date = FIRST, end: date = LAST) -> list[date]:
    return [start + timedelta(days=n) for n in range((end - start).days + 1)]


def _start() -> int:
    return int(datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC).timestamp()) - 2 * 86_400


def _offset(zone: str, at: int) -> int:
    offset = datetime.fromtimestamp(at, ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def _changes(zone: str) -> Iterator[Change]:
    at, end = _start(), _start() + (len(days()) + 4) * 86_400
    offset = _offset(zone, at)
    while at < end:
        following = at + _LOOK
        if (changed := _offset(zone, following)) != offset:
            low, high = at, following
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
            yield Change(high, offset, changed)
        at, offset = following, changed
