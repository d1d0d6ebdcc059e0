"""Tasks that are watched: a failure is logged, reported down, backed off and tried again."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

from clew.errors import StoreError
from clew.providers import backoff

log = structlog.get_logger()

CAP = 60.0
"""Seconds; the longest wait before a failed task is started again."""
STEADY = 60.0
"""Seconds a task must have run for its earlier failures to be forgotten."""


async def supervise(name: str, factory: Callable[[], Awaitable[None]], failed: Callable[[str], None] | None = None) -> None:
    """Run `factory` for ever. Only the store's failure gets out; cancelling ends it."""
    loop = asyncio.get_running_loop()
    attempt = 0
    while True:
        started = loop.time()
        try:
            await factory()
            reason = "it ended"
        except StoreError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        attempt = 1 if loop.time() - started > STEADY else attempt + 1
        wait = backoff(attempt, None, random.random(), base=1.0, cap=CAP)  # noqa: S311 - jitter
        log.error("task.restarted", task=name, err=reason, wait=round(wait, 1))
        if failed is not None:
            failed(reason)
        await asyncio.sleep(wait)
