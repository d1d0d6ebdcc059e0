"""What a configuration says that is allowed and yet has no effect now, or a costly one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from clew.config.prices import price_of
from clew.config.settings import Config

SMALL_GAP = 5
"""Messages between two compactions by count below which somebody is told what they cost."""


def notes(config: Config, now: float, zone: str) -> list[str]:
    """Lines for a person, each beginning with the key. now: seconds since the epoch; zone: IANA name, for jobs that name none."""
    return [*_small_gap(config), *_unpriced(config), *_past_jobs(config, now, zone)]


def _small_gap(config: Config) -> Iterator[str]:
    compression = config.agent.compression
    gap = compression.count_mark - compression.kept_messages
    if compression.enabled and gap < SMALL_GAP:
        yield (
            f"agent.compression: trigger_messages ({compression.count_mark}) is only {gap} above keep_recent ({compression.kept_messages}):"
            f" every {gap} messages cost a summary"
        )


def _unpriced(config: Config) -> Iterator[str]:
    counting = [name for name, budget in config.budgets.items() if budget.money is not None]
    for name, section in config.providers.items() if counting else ():
        model = str(getattr(section.settings, "model", None) or "")
        if section.kind != "offline" and price_of(section.kind, model, config.prices) is None:
            yield (
                f"budgets.{counting[0]}: it counts money, and {model or 'the model'} of providers.{name} has no price in prices:"
                " what that costs is not in it"
            )


def _past_jobs(config: Config, now: float, zone: str) -> Iterator[str]:
    for index, job in enumerate(config.schedule):
        if job.at is not None and _seconds(job.at, job.timezone or zone) <= now:
            yield f"schedule[{index}].at: {job.at.isoformat()} has passed: the job runs no more, unless it is still within its grace"


def _seconds(at: datetime, zone: str) -> float:
    return (at if at.tzinfo else at.replace(tzinfo=ZoneInfo(zone))).timestamp()
