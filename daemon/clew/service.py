"""The composition root: what a clew process is made of, how it starts and how it stops."""

import asyncio
import fcntl
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from zoneinfo import ZoneInfo

import structlog

from clew import __version__, commands
from clew.agent import Agent
from clew.assembly import LOCAL, build_transport, people_of, plugged, providers_of, sections, zone_name
from clew.bus import Bus, Replied
from clew.clock import Time, new_id
from clew.compactor import Compactor
from clew.config import Config
from clew.delivery import Delivering, Hints
from clew.dispatcher import Dispatcher
from clew.errors import ClewError
from clew.inbox import Door, access_line, decider, pairing_code
from clew.metrics import Metrics
from clew.model_call import ModelCaller
from clew.prompting import Prompter
from clew.providers import Provider
from clew.recall import IndexRecall, RecallProvider
from clew.scheduler import Scheduler
from clew.sdnotify import notify, watchdog_interval
from clew.store import AccessRequest, Reply
from clew.store.sqlite import SqliteStore
from clew.supervise import supervise
from clew.tools import sessions
from clew.tools.runner import ToolRunner
from clew.transport import Address, Host, Inbound, Part, Transport
from clew.upkeep import Upkeep

log = structlog.get_logger()

WELCOME = "I know you now. Write to me."
WARN_AGAIN = 86_400.0
"""Seconds before the owner is told again of what is still not mended."""
GRACE = 20.0
"""Seconds that running turns have to end when the daemon stops; those that do not are resumed at the next start."""
FLUSH = 10.0
"""Seconds for replies that wait, when the daemon stops."""
HUNG = 60.0
"""Seconds without the dispatcher's progress after which systemd is no longer told that all is well."""


@dataclass(slots=True)
class Running:
    """A transport and the state of its connection. `since`: when that state began."""

    transport: Transport
    up: bool
    detail: str
    since: float


class Listening(Protocol):
    @property
    def url(self) -> str: ...


class Service:
    """Everything of one process. Open it with `open`."""

    def __init__(self, config: Config, store: SqliteStore, providers: list[Provider], summariser: Provider, zone: str, time: Time) -> None:
        self.config = config
        self.store = store
        self.providers = providers
        self.time = time
        self.bus = Bus()
        self.metrics = Metrics()
        self.zone = zone
        self._started = self.time.steady()
        self.listening: Listening | None = None
        self.transports = {
            name: Running(build_transport(section), False, "starting", self.time.wall()) for name, section in sections(config).items()
        }
        everything = {name: running.transport for name, running in self.transports.items()}
        self.hints = Hints(self.bus, everything)
        self.caller = caller = ModelCaller(self.time, self.metrics)
        tools = [*sessions.tools(store), *plugged("clew.tools")]
        self.tools = ToolRunner(tools, config.agent.approver, config.limits.tool_output_chars)
        recall: RecallProvider = next(plugged("clew.recall"), None) or IndexRecall(store, config.agent.recall, self.metrics)
        self.prompter = Prompter(store, config.agent, recall, [tool.spec for tool in self.tools.tools.values()], self.time, zone)
        self.compactor = Compactor(
            store, config.agent.compression, caller, summariser, self.time, ZoneInfo(zone), self.metrics, config.prices, config.secrets()
        )
        self.agent = Agent(
            store,
            config.agent,
            providers,
            self.prompter,
            self.compactor,
            caller,
            self.tools,
            self.hints.show,
            self.plan,
            self.time,
            self.metrics,
            self.warn_owner,
            frozenset(n for n, t in everything.items() if t.capabilities.merges and config.agent.while_busy == "steer"),
        )
        owner = new_id()
        merging = frozenset(n for n, t in everything.items() if t.capabilities.merges and config.agent.while_busy != "one_by_one")
        rooms = commands.Rooms(store, self.compactor, providers[0], caller)
        self.dispatcher = Dispatcher(store, self.agent, rooms, self.plan, self.bus, self.time, owner, config.limits.turns_at_once, merging)
        self.delivering = {
            name: Delivering(name, transport, store, self.time, self.metrics, owner)
            for name, transport in everything.items()
            if not transport.capabilities.instant
        }
        self.scheduler = Scheduler(store, self.time, zone, self.metrics, config.schedule)
        self._decide = decider(config.access.unknown, config.limits, pairing_code)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        config: Config,
        *,
        remote: bool = True,
        time: Time | None = None,
        serve: "Serve | None" = None,
        provider: Provider | None = None,
    ) -> AsyncIterator["Service"]:
        """A service that runs while the block does.

        remote: False leaves remote transports and the schedule alone. time: its clocks, the machine's if None. serve: opens the web app,
        before anything is received, so that a port in use ends a second daemon before it disturbs the first. provider: takes the place of
        the config's. Raises ClewError where the data directory is in use, the store cannot be opened or nothing can be served.
        """
        async with AsyncExitStack() as stack:
            time = time or Time()
            folder = _data_dir(config)
            stack.enter_context(_locked(folder))
            store = await SqliteStore.open(folder / "clew.db", time.wall(), known=config.secrets())
            stack.push_async_callback(store.close)
            providers, summariser = ([provider], provider) if provider else providers_of(config, time)
            for provider in dict.fromkeys([*providers, summariser]):
                stack.push_async_callback(provider.close)
                await provider.prepare()
            service = cls(config, store, providers, summariser, zone_name(config), time)
            await service._sync()
            service.listening = await stack.enter_async_context(serve(service)) if serve else None
            async with service._tasks(remote):
                yield service

    async def _sync(self) -> None:
        people, local = people_of(self.config)
        await self.store.sync_people(people, local, self.time.wall())
        await self.scheduler.sync()
        safe = frozenset(name for name, each in self.transports.items() if each.transport.capabilities.idempotent_send)
        interrupted, unknown = await self.store.recover(safe, self.time.wall())
        if interrupted or unknown:
            log.info("daemon.recovered", turns=interrupted, sends_unknown=unknown)

    @asynccontextmanager
    async def _tasks(self, remote: bool) -> AsyncIterator[None]:
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        receiving = [n for n in self.transports if remote or n in LOCAL]
        tasks = [self._spawn(f"transport.{name}", self._receive(name), name) for name in receiving]
        tasks.append(self._spawn("hints", self.hints.run))
        tasks.append(self._spawn("upkeep", Upkeep(self.store, self.time, self.metrics).run))
        sending = [d for name, d in self.delivering.items() if name in receiving]
        deliveries = [self._spawn("delivery", each.run) for each in sending]
        dispatcher = self._spawn("dispatcher", self.dispatcher.run)
        if remote:
            await self.scheduler.start()
        try:
            yield
        finally:
            self.scheduler.stop()
            await _cancel([dispatcher])
            await self.dispatcher.drain(GRACE)
            await _cancel(deliveries)
            await asyncio.gather(*(each.drain(FLUSH) for each in sending))
            await _cancel(tasks)

    def _spawn(self, name: str, factory: Callable[[], Any], transport: str | None = None) -> asyncio.Task[None]:
        down = (lambda reason: self._report(transport, False, reason)) if transport else None
        task = asyncio.create_task(supervise(name, factory, down), name=name)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) and not self.failure.done():
            self.failure.set_exception(error)

    def _receive(self, name: str) -> Callable[[], Any]:
        return lambda: self.transports[name].transport.run(self.host(name))

    # What other rooms ask ----------------------------------------------------------------------------------------

    def host(self, transport: str) -> Host:
        """The door of one transport."""
        instant = self.transports[transport].transport.capabilities.instant
        return Door(
            transport,
            self.store,
            self._decide,
            self.time,
            self.metrics,
            self.agent.stop,
            lambda up, detail: self._report(transport, up, detail),
            self.bus,
            instant,
        )

    def plan(self, address: Address, text: str) -> tuple[tuple[Part, ...], bool]:
        """A reply in the parts its platform takes, and whether it counts as sent when committed."""
        running = self.transports.get(address.transport)
        if running is None:
            return (Part(text),), False
        return tuple(running.transport.parts(text)), running.transport.capabilities.instant

    async def warn_owner(self, key: str, text: str, met_at: Address) -> None:
        """Tell the owner something that only they can mend, once a day; not where the same was said to them already."""
        to = await self.store.owner_address()
        if to is None or to == str(met_at):
            return
        address = Address.parse(to)
        parts, instant = self.plan(address, text)
        if await self.store.say_once(key, Reply(address, text, parts, instant=instant), self.time.wall(), WARN_AGAIN):
            self.bus.publish(address, Replied(""))

    def _report(self, name: str, up: bool, detail: str) -> None:
        running = self.transports[name]
        if up != running.up or (not up and detail != running.detail):
            running.since = self.time.wall()
            (log.info if up else log.warning)("transport.connected" if up else "transport.disconnected", transport=name, detail=detail)
        running.up, running.detail = up, detail
        if name in self.delivering:
            self.delivering[name].connected(up)
        self.metrics.transport_up.labels(name).set(int(up))

    async def readiness(self) -> list[str]:
        """Why this process is not ready, in words; empty if it is."""
        reasons = [f"{name}: {each.detail or 'not connected'}" for name, each in self.transports.items() if not each.up]
        try:
            await self.store.probe()
        except ClewError as error:
            reasons.append(f"store: {error}")
        return reasons

    async def status(self) -> dict[str, object]:
        """What `clew status` shows."""
        provider = self.providers[0]
        return {
            "version": __version__,
            "uptime": round(self.time.steady() - self._started, 1),
            "ready": not await self.readiness(),
            "provider": {"name": provider.name, "kind": provider.kind, "model": provider.model},
            "breakers": {name: breaker.state for name, breaker in self.caller.breakers.items()},
            "transports": {name: {"up": each.up, "detail": each.detail, "since": each.since} for name, each in self.transports.items()},
            "access": access_line(self.config.access.unknown),
            "counts": await self.store.counts(self.time.wall()),
        }

    async def attach(self, address: Address, identity: str, session: str | None, title: str = "") -> str:
        """Let the next message at `address` join `session` (an unambiguous beginning of its id is enough), or a new one."""
        person = await self.store.person_at(identity, self.time.wall(), local=address.transport in LOCAL)
        item = Inbound("", address, identity.partition(":")[2], "")
        if session is None:
            return await self.store.open_chat(item, person, self.time.wall(), title)
        found = await self.store.find_session(session)
        await self.store.join_chat(item, person, found.id, self.time.wall())
        return found.id

    async def answer_access(self, key: str, approve: bool, role: str) -> AccessRequest:
        """Let somebody in, who is told so where they asked, or turn them away. Raises NotFound or UsageError."""
        request = await self.store.answer_access(key, approve, role, self.time.wall())
        if approve and request.messages:
            address = Address.parse(request.address)
            parts, instant = self.plan(address, WELCOME)
            await self.store.say(Reply(address, WELCOME, parts, instant=instant), self.time.wall())
        return request

    async def latest_session(self, address: Address) -> str | None:
        """The session of `address` that was used last."""
        found = await self.store.sessions(str(address), 1)
        return found[0].id if found else None


def _data_dir(config: Config) -> Path:
    folder = config.data_dir.expanduser()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ClewError(f"{folder}: the data directory cannot be made ({error.strerror}).", hint="Set data_dir in the config.") from None
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process per data directory."""
    try:
        handle = os.open(folder / "clew.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ClewError(f"{folder}: the data directory cannot be written ({error.strerror}).", hint="Check its owner.") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise ClewError(f"{folder}: another clew uses this data directory.", hint="Stop it first, or choose another data_dir.") from None
    try:
        yield
    finally:
        os.close(handle)


async def _cancel(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# Running ---------------------------------------------------------------------------------------------------------

Serve = Callable[[Service], AbstractAsyncContextManager[Listening]]


async def run(config: Config, serve: Serve, ready: Callable[[str], None]) -> None:
    """The daemon's life: until SIGTERM or SIGINT. `serve` opens the web app; `ready` is told the address to open."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: log.warning("config.unchanged", reason="a changed config takes effect at a restart"))
    async with Service.open(config, serve=serve) as service:
        url = service.listening.url if service.listening else ""
        watchdog = asyncio.create_task(_watchdog(service))
        notify("READY=1")
        provider = service.providers[0]
        log.info("daemon.ready", url=url, provider=provider.name, access=access_line(config.access.unknown))
        ready(url)
        waiting = asyncio.ensure_future(stop.wait())
        await asyncio.wait((waiting, service.failure), return_when=asyncio.FIRST_COMPLETED)
        notify("STOPPING=1")
        log.info("daemon.stopping")
        await _cancel([watchdog, waiting])
    log.info("daemon.stopped")
    if service.failure.done():
        service.failure.result()


async def _watchdog(service: Service) -> None:
    """Tell systemd that all is well as long as the dispatcher comes round."""
    interval = watchdog_interval()
    while interval is not None:
        if service.time.steady() - service.dispatcher.progress < HUNG:
            notify("WATCHDOG=1")
        await asyncio.sleep(interval)
