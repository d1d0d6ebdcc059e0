"""The life of the daemon's process: signals, what systemd is told, and the end."""

import asyncio
import signal
from collections.abc import Callable

import structlog

from clew.config import Config
from clew.inbox import access_line
from clew.sdnotify import notify, watchdog_interval
from clew.service import Serve, Service, cancelled

log = structlog.get_logger()

HUNG = 60.0
"""Seconds without the dispatcher's progress after which systemd is no longer told that all is well."""


async def run(config: Config, serve: Serve, ready: Callable[[str], None], reread: Callable[[], Config]) -> None:
    """The daemon's life: until SIGTERM or SIGINT.

    serve: opens the web app. ready: told the address to open. reread: reads the config again, at SIGHUP; raises ConfigError, and then
    nothing changes.
    """
    stop, changed = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, changed.set)
    async with Service.open(config, serve=serve) as service:
        url = service.listening.url if service.listening else ""
        background = [asyncio.create_task(_watchdog(service)), asyncio.create_task(_reload_when(changed, service, reread))]
        notify("READY=1")
        provider = service.providers[0]
        log.info("daemon.ready", url=url, provider=provider.name, access=access_line(config.access.unknown))
        ready(url)
        waiting = asyncio.ensure_future(stop.wait())
        await asyncio.wait((waiting, service.failure), return_when=asyncio.FIRST_COMPLETED)
        notify("STOPPING=1")
        log.info("daemon.stopping")
        await cancelled([*background, waiting])
    log.info("daemon.stopped")
    if service.failure.done():
        service.failure.result()


async def _reload_when(changed: asyncio.Event, service: Service, reread: Callable[[], Config]) -> None:
    while True:
        await changed.wait()
        changed.clear()
        try:
            await service.reload(await asyncio.to_thread(reread))
        except Exception as error:
            log.error("config.refused", err=str(error))


async def _watchdog(service: Service) -> None:
    """Tell systemd that all is well as long as the dispatcher comes round."""
    interval = watchdog_interval()
    while interval is not None:
        if service.time.steady() - service.dispatcher.progress < HUNG:
            notify("WATCHDOG=1")
        await asyncio.sleep(interval)
