"""The life of the daemon's process: signals, what systemd is told, and the end."""

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import structlog

from clew.config import Config, Source, notes
from clew.errors import StoreError
from clew.inbox import access_line
from clew.sdnotify import notify, watchdog_interval
from clew.service import Serve, Service
from clew.supervise import cancelled

log = structlog.get_logger()

START_WAIT = 5.0
"""Seconds between two tries of a start to open a store whose disk is full or which somebody holds, and between two requests for time."""
HUNG = 60.0
"""Seconds without the dispatcher's progress after which systemd is no longer told that all is well."""


async def run(config: Config, serve: Serve, ready: Callable[[str], None], source: Source) -> None:
    """The daemon's life: until SIGTERM or SIGINT.

    serve: opens the web app. ready: told the address to open. source: where the config is read again, at SIGHUP.
    """
    stop, changed = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, changed.set)
    async with AsyncExitStack() as stack:
        service = await _opened(stack, config, serve, stop, source)
        if service is None:
            return
        url = service.listening.url if service.listening else ""
        background = [asyncio.create_task(_watchdog(service)), asyncio.create_task(_reload_when(changed, service))]
        notify("READY=1", "STATUS=")
        keep_what_is_there()
        provider = service.providers[0]
        log.info("daemon.ready", url=url, provider=provider.name, access=access_line(config.access.unknown))
        for line in (*map(str, config.warnings), *notes(config, service.time.wall(), service.zone)):
            log.warning("config.note", note=line)
        ready(url)
        waiting = asyncio.ensure_future(stop.wait())
        await asyncio.wait((waiting, service.tasks.failure), return_when=asyncio.FIRST_COMPLETED)
        notify("STOPPING=1")
        log.info("daemon.stopping")
        await cancelled([*background, waiting])
    log.info("daemon.stopped")
    if service.tasks.failure.done():
        service.tasks.failure.result()


def keep_what_is_there() -> None:
    """What a start made stays to the end: the garbage collector looks at it once more and then no longer."""
    gc.collect()
    gc.freeze()


async def _opened(stack: AsyncExitStack, config: Config, serve: Serve, stop: asyncio.Event, source: Source) -> Service | None:
    """The service, once the store can be used. None: it was stopped before.

    A disk that is full now may have room later. Under systemd that is waited for: a process that ends each time would soon be
    started no more. Elsewhere somebody is there to read the error. Raises ClewError.
    """
    told = False
    async with _taking_its_time():
        while not stop.is_set():
            try:
                return await stack.enter_async_context(Service.open(config, serve=serve, source=source))
            except StoreError as error:
                if error.lasting or not notify(f"STATUS={error}"):
                    raise
                if not told:
                    log.error("store.unavailable", err=error.message, hint=error.hint)
                told = True
                with suppress(TimeoutError):
                    async with asyncio.timeout(START_WAIT):
                        await stop.wait()
    return None


@asynccontextmanager
async def _taking_its_time() -> AsyncIterator[None]:
    """Ask systemd for more time while the block runs: an index that is built anew after an upgrade takes minutes where much was said."""

    async def ask() -> None:
        told = True
        while told:
            told = notify(f"EXTEND_TIMEOUT_USEC={10 * START_WAIT * 1_000_000:.0f}")
            await asyncio.sleep(START_WAIT)

    asking = asyncio.create_task(ask())
    try:
        yield
    finally:
        await cancelled([asking])


async def _reload_when(changed: asyncio.Event, service: Service) -> None:
    while True:
        await changed.wait()
        changed.clear()
        with suppress(Exception):  # which is logged
            await service.reread()


async def _watchdog(service: Service) -> None:
    """Tell systemd that all is well as long as the dispatcher comes round."""
    interval = watchdog_interval()
    while interval is not None:
        if service.time.steady() - service.dispatcher.progress < HUNG:
            notify("WATCHDOG=1")
        await asyncio.sleep(interval)
