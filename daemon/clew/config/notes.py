"""What a configuration says that is allowed and yet has no effect now."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from clew.config.settings import Config


def notes(config: Config, now: float, zone: str) -> list[str]:
    """Lines for a person, each beginning with the key. now: seconds since the epoch; zone: IANA name, for jobs that name none."""
    return [*_past_jobs(config, now, zone)]


def _past_jobs(config: Config, now: float, zone: str) -> Iterator[str]:
    for index, job in enumerate(config.schedule):
        if job.at is not None and _seconds(job.at, job.timezone or zone) <= now:
            yield f"schedule[{index}].at: {job.at.isoformat()} has passed: the job runs no more, unless it is still within its grace"


def _seconds(at: datetime, zone: str) -> float:
    return (at if at.tzinfo else at.replace(tzinfo=ZoneInfo(zone))).timestamp()
