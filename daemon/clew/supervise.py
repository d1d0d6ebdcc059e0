"""Tasks that are watched: a failure is logged, reported down, backed off and tried again."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import structlog

from clew.errors import StoreError
from clew.providers import backoff

log = structlog.get_logger()

T = TypeVar("T")
Run = Callable[[], Awaitable[None]]

CAP = 60.0
"""Seconds; the longest wait before a failed task is started again."""
STEADY = 60.0
"""Seconds a task must have run for its earlier failures to be forgotten."""


STORE_WAIT = 5.0
"""Seconds between two tries of a write that must not be given up."""


async def patiently(write: Callable[[], Awaitable[T]]) -> T:
    """`write()`, again until the store takes it: a full disk or a lock must not cost a reply that was paid for."""
    while True:
        try:
            return await write()
        except StoreError as error:
            if error.lasting:
                raise
        await asyncio.sleep(STORE_WAIT)


@contextmanager
def unless_lasting() -> Iterator[None]:
    """Go on where the store cannot be used just now; `outage` tells of that, once. A store that is lost gets out."""
    try:
        yield
    except StoreError as error:
        if error.lasting:
            raise


async def supervise(name: str, factory: Run, failed: Callable[[str], None] | None = None) -> None:
    """Run `factory` for ever. Only a store that is lost gets out; cancelling ends it."""
    loop = asyncio.get_running_loop()
    attempt = 0
    while True:
        started = loop.time()
        try:
            await factory()
            reason = "it ended"
        except Exception as error:
            if isinstance(error, StoreError) and error.lasting:
                raise
            reason = f"{type(error).__name__}: {error}"
        attempt = 1 if loop.time() - started > STEADY else attempt + 1
        wait = backoff(attempt, None, random.random(), base=1.0, cap=CAP)  # noqa: S311 - jitter
        log.error("task.restarted", task=name, err=reason, wait=round(wait, 1))
        if failed is not None:
            failed(reason)
        await asyncio.sleep(wait)


class Tasks:
    """Tasks that run until they are cancelled. failure: set by the first error that gets out of one."""

    def __init__(self) -> None:
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def start(self, name: str, run: Run, down: Callable[[str], None] | None = None) -> asyncio.Task[None]:
        """Run `run` for ever. down: told why, each time it failed."""
        task = asyncio.create_task(supervise(name, run, down), name=name)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) and not self.failure.done():
            self.failure.set_exception(error)


async def cancelled(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
