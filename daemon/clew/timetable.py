"""When jobs are due, and which of the instants that are due run: the clock contract of docs/schedules.md. Pure."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim

from clew.config import LAST_YEAR, Job

ON_TIME = 60.0
"""Seconds by which a run may be late without being a missed one."""
CATCH_UP = 100
"""Missed instants that are looked at; of a longer absence, the newest."""
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 6 * 3600.0
"""Seconds that a job rests after its first failure, and at most: a daily job misses no day by it."""
END = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC).timestamp()
"""Nothing is due from then on, seconds since the epoch: the calendar ends a year later."""
_MINUTE, _HOUR = 0, 1
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def upcoming(entry: Job, after: float, zone: str) -> Iterator[float]:
    """The instants of an entry behind `after` (seconds since the epoch), in order. `zone`: where the entry names none.

    `cron` as `cron_instants` has it; `every` counts from `after`; `at` that a clock change skips is the first valid instant after it,
    and of a repeated one the first.
    """
    if entry.cron is not None:
        yield from cron_instants(entry.cron, after, entry.timezone or zone)
    elif entry.every is not None:
        instant = after + entry.every
        while instant < END:
            yield instant
            instant += entry.every
    elif entry.at is not None:
        at = single_instant(entry.at, entry.timezone or zone)
        if at > after:
            yield at


def single_instant(at: datetime, zone: str) -> float:
    """Seconds since the epoch of a time that is meant in `zone`, unless it has an offset of its own."""
    if at.tzinfo is not None:
        return at.timestamp()
    local = at.replace(tzinfo=ZoneInfo(zone), fold=0)
    # A time that does not exist lies as far behind the gap's end as it lies behind its beginning, read with the offset from before.
    shifted = datetime.fromtimestamp(local.timestamp(), local.tzinfo)
    if shifted.replace(tzinfo=None) == at.replace(fold=0):
        return local.timestamp()
    return _gap_end(local)


def _gap_end(local: datetime) -> float:
    """The first instant after a clock change that skips `local`: where the offset turns from the one before to the one behind."""
    before = local.timestamp() - 86_400.0
    after = local.timestamp()
    old = datetime.fromtimestamp(before, local.tzinfo).utcoffset()
    while after - before > 1.0:
        middle = (before + after) // 2
        if datetime.fromtimestamp(middle, local.tzinfo).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after


def cron_instants(expression: str, after: float, zone: str) -> Iterator[float]:
    """The instants of a cron expression behind `after`, in `zone`.

    A time of day that a clock change skips runs at the first valid instant after it, one that occurs twice runs the first time.
    Where every hour is named, elapsed time is followed.
    """
    last, times = after, CronSim(_marked(expression), datetime.fromtimestamp(after, ZoneInfo(zone)))
    while (local := _following(times)) is not None:
        instant = local.timestamp()
        if instant > last:
            yield instant
            last = instant


def _following(times: CronSim) -> datetime | None:
    """The next local time, None behind the end of the calendar."""
    try:
        local = next(times, None)
    except OverflowError:
        return None
    return local if local is not None and local.year <= LAST_YEAR else None


def _marked(expression: str) -> str:
    """The expression, with a star for the hour exactly where all hours are meant, and none for the minute otherwise.

    That is by what cronsim tells jobs that follow elapsed time.
    """
    fields = expression.split()
    every_hour = CronSim(f"0 {fields[_HOUR]} * * *", datetime(2026, 1, 1)).hours == set(range(24))
    fields[_HOUR] = "*" if every_hour else fields[_HOUR].replace("*", "0-23")
    if not every_hour:
        fields[_MINUTE] = fields[_MINUTE].replace("*", "0-59")
    return " ".join(fields)


def delay(name: str, instant: float, jitter: float | None) -> float:
    """Seconds by which the run of an instant is put off, the same whenever it is asked: from 0 to below `jitter`."""
    if not jitter:
        return 0.0
    drawn = int.from_bytes(blake2b(f"{name}\0{instant!r}".encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
    return drawn / 2**64 * jitter


def pause(failures: int) -> float:
    """Seconds that a job rests after so many failures in a row: a minute, doubled with each, at most six hours."""
    return min(FIRST_PAUSE * 2.0 ** min(failures - 1, 20), LONGEST_PAUSE) if failures > 0 else 0.0


def plan(due: Sequence[float], now: float, entry: Job) -> tuple[list[float], list[float]]:
    """(instants to run, instants that are missed) of those due, oldest first, by the entry's misfire rule and grace.

    One that is less than ON_TIME late always runs. `skip`: nothing else does. `once`: the newest does. `all`: each does. `grace` bounds
    how late the latter two may be.
    """
    late_by = {instant: now - instant - delay(entry.name, instant, entry.jitter) for instant in due}
    on_time = [instant for instant in due if late_by[instant] <= ON_TIME]
    late = [instant for instant in due if late_by[instant] > ON_TIME]
    within = [instant for instant in late if entry.grace is None or late_by[instant] <= entry.grace]
    if entry.misfire == "all":
        caught_up = within
    elif entry.misfire == "once" and not on_time:
        caught_up = within[-1:]
    else:
        caught_up = []
    return [*caught_up, *on_time], [instant for instant in late if instant not in caught_up]


def newest(instants: Iterator[float], count: int = CATCH_UP) -> list[float]:
    """The last `count` of them, of at most 100,000."""
    found: list[float] = []
    for instant in islice(instants, 100_000):
        found.append(instant)
        if len(found) > count:
            del found[0]
    return found


def when(entry: Job) -> str:
    """The schedule in words: `30 8 * * 1-5`, `every 6h`, `at 2027-03-01T08:30`."""
    if entry.cron is not None:
        return entry.cron
    return f"every {span(entry.every)}" if entry.every is not None else f"at {entry.at.isoformat(timespec='minutes') if entry.at else ''}"


def words(entry: Job) -> str:
    """The schedule for people: `At 08:30 on Monday through Friday`, `every 6h`, `at 2027-03-01T08:30`."""
    return CronSim(entry.cron, _ANY_TIME).explain() if entry.cron is not None else when(entry)


def span(seconds: float) -> str:
    """A duration as the config writes it, in the largest unit that it is a whole number of."""
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
