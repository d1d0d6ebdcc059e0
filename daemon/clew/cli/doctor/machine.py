"""The machine: SQLite, time zones, its clock."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import aiohttp

from clew.cli.doctor.findings import Bounded, Finding
from clew.config import Config
from clew.config.database import is_shared
from clew.providers.probe import on_this_machine

OLDEST_SQLITE = (3, 40, 0)
BUILT = 1_767_225_600
"""2026-01-01, UTC: a clock that is before this is wrong."""
ASKED_S = 5.0
MOST_ASKED = 4
"""Servers that are asked for the time, and how long they have."""
SLOW_S, WRONG_S = 30.0, 300.0
"""Seconds that the clock may be away from a server's: signed requests are refused beyond the second."""
SET_CLOCK = "timedatectl set-ntp true"
HOMES = {"anthropic": "https://api.anthropic.com"}
"""Where kinds are whose `base_url` may be left out."""


async def sqlite(config: Config) -> Sequence[Finding]:
    if is_shared(config.store):
        return []
    options = {row[0] for row in _query("PRAGMA compile_options")}
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        return [Finding("problem", f"SQLite {version} is older than 3.40", "python3 -c 'import sqlite3; print(sqlite3.sqlite_version)'")]
    if "ENABLE_FTS5" not in options:
        return [Finding("problem", f"this Python's SQLite {version} has no FTS5", "use a Python whose sqlite3 module has FTS5")]
    return [Finding("ok", f"SQLite {version} with FTS5")]


def _query(statement: str) -> list[tuple[str, ...]]:
    database = sqlite3.connect(":memory:")
    try:
        return database.execute(statement).fetchall()
    finally:
        database.close()


async def time_zones(config: Config) -> Sequence[Finding]:
    try:
        ZoneInfo("Europe/Berlin")
    except ZoneInfoNotFoundError:
        return [Finding("problem", "there is no time zone data", "pip install tzdata")]
    return [Finding("ok", "time zone data is there")]


async def clock(config: Config) -> Sequence[Finding]:
    now = time.time()
    said = time.strftime("the clock says %Y-%m-%d %H:%M UTC", time.gmtime(now))
    if now < BUILT:
        return [Finding("problem", said, SET_CLOCK)]
    places = list(dict.fromkeys(_places(config)))[:MOST_ASKED]
    told = zip(await asyncio.gather(*map(_away, places)), places, strict=True)
    away = [(each, place) for each, place in told if each is not None]
    if not away:
        return [Finding("ok", f"{said}; no server tells another time, for none could be asked")]
    # Of several the one that is nearest: a server's own clock may be wrong, or its answer come from a cache.
    least, place = min(away, key=lambda each: abs(each[0]))
    if abs(least) > SLOW_S:
        text = f"{said}, which is {abs(least):,.0f} s {'ahead of' if least > 0 else 'behind'} {urlsplit(place).hostname}"
        return [Finding("problem" if abs(least) > WRONG_S else "warning", text, SET_CLOCK)]
    return [Finding("ok", f"{said}, as the servers that clew talks to")]


def _places(config: Config) -> Iterator[str]:
    """Servers on other machines that clew talks to over HTTP."""
    providers = [each for each in config.providers.values() if each.configured]
    transports = [each for each in config.transports.values() if each.enabled]
    for kind, settings in [(each.kind, each.settings) for each in providers] + [(each.kind, each.settings) for each in transports]:
        url = getattr(settings, "base_url", None) or HOMES.get(kind, "")
        if url and not on_this_machine(url):
            parts = urlsplit(url)
            yield f"{parts.scheme}://{parts.netloc}/"


async def _away(url: str) -> float | None:
    """Seconds that this machine's clock is ahead of a server's, None where it does not tell."""
    try:
        async with asyncio.timeout(ASKED_S), aiohttp.ClientSession(trust_env=True) as session:
            begun = time.time()
            async with session.head(url, allow_redirects=False) as response:
                # A Date is cut to the second.
                told = parsedate_to_datetime(response.headers["Date"]).timestamp() + 0.5
                return (begun + time.time()) / 2 - told
    except (aiohttp.ClientError, OSError, TimeoutError, LookupError, ValueError, OverflowError):
        return None


CHECKS: Mapping[str, Bounded] = {
    "SQLite": Bounded(sqlite),
    "time zones": Bounded(time_zones),
    "clock": Bounded(clock, 15),
}
