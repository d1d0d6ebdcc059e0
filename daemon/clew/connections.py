"""The transports of a process: which there are, whether each is connected, and what carries replies to it."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import structlog

from clew.clock import Time
from clew.delivery import Delivering
from clew.membership import Membership
from clew.metrics import Metrics
from clew.pace import Pace
from clew.previews import Previews
from clew.store.sql import SqlStore
from clew.supervise import Run, Tasks, cancelled
from clew.transport import Address, Called, Host, Part, Transport

log = structlog.get_logger()

FLUSH = 10.0
"""Seconds for replies that wait, when a transport is let go."""


@dataclass(slots=True)
class Running:
    """A transport and the state of its connection. `since`: when that state began."""

    transport: Transport
    up: bool
    detail: str
    since: float


ELSEWHERE = "another daemon runs it, or none"
ATTENDED = "another daemon runs it, or none; what is called in is taken here too"


class Here(Mapping[str, Transport]):
    """The transports that this process runs now: nothing is shown, fetched or told by any other."""

    def __init__(self, adapters: Mapping[str, Transport], started: Collection[str], membership: Membership) -> None:
        self._adapters = adapters
        self._started = started
        self._membership = membership

    def __getitem__(self, name: str) -> Transport:
        if name not in self._started or not self._membership.lives():
            raise KeyError(name)
        return self._adapters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._started) if self._membership.lives() else ())

    def __len__(self) -> int:
        return len(self._started) if self._membership.lives() else 0


class Connections:
    """Adapters come and go with the config; each that sends has lanes to its chats. membership: under whose name sends are claimed."""

    def __init__(self, store: SqlStore, time: Time, metrics: Metrics, membership: Membership) -> None:
        self._store = store
        self._time = time
        self._metrics = metrics
        self._membership = membership
        self._adapters: dict[str, Transport] = {}
        self._lines: dict[str, list[asyncio.Task[None]]] = {}
        self._attending: dict[str, asyncio.Task[None]] = {}
        self.here = Here(self._adapters, self._lines.keys(), membership)
        self._paces: dict[str, Pace] = {}
        self.running: dict[str, Running] = {}
        self.delivering: dict[str, Delivering] = {}
        self.previews = Previews(store, self.here, self._paces, time)

    def owned(self) -> list[str]:
        """Those that one daemon at a time runs."""
        return [name for name, transport in self._adapters.items() if not transport.capabilities.spread]

    def elsewhere(self) -> frozenset[str]:
        """Those that this process does not run."""
        return frozenset(self._adapters.keys() - self._lines.keys())

    def add(self, name: str, transport: Transport) -> None:
        self._adapters[name] = transport
        self._metrics.transport_up.labels(name).set(0)
        self.running[name] = Running(transport, False, ELSEWHERE, self._time.wall())
        if not transport.capabilities.instant:
            self._paces[name] = pace = Pace(transport.capabilities.per_second, self._time.steady)
            self.delivering[name] = Delivering(
                name, transport, self._store, self._time, self._metrics, self._membership, pace, self.previews
            )

    async def remove(self, name: str) -> None:
        """Let a transport go, once what waits for it was sent."""
        await self.unattend(name)
        if name in self._lines:
            await self.stop(name)
        del self._adapters[name], self.running[name]
        self.delivering.pop(name, None)
        self._metrics.transport_up.remove(name)

    def start(self, name: str, receive: Run, tasks: Tasks, down: Callable[[str], None]) -> None:
        """Let a transport receive and send. down: told why, each time that it failed at receiving."""
        self.running[name].detail = "starting"
        self._lines[name] = [tasks.start(f"transport.{name}", receive, down)]
        if name in self.delivering:
            self._lines[name].append(tasks.start(f"delivery.{name}", self.delivering[name].run))

    def attend(self, name: str, host: Host, tasks: Tasks) -> None:
        """Take what a platform calls in with, if it does and this process does not run its transport."""
        transport = self._adapters[name]
        if name not in self._lines and name not in self._attending and isinstance(transport, Called) and transport.called:
            self._attending[name] = tasks.start(f"calls.{name}", lambda: transport.attend(host))

    async def unattend(self, name: str) -> None:
        """Take no calls of a platform any more, or only while its transport runs here."""
        if task := self._attending.pop(name, None):
            await cancelled([task])

    async def stop(self, name: str) -> None:
        """Send what waits for a transport, then let it neither send nor receive."""
        receiving, *sending = self._lines.pop(name)
        await cancelled(sending)
        if name in self.delivering:
            await self.delivering[name].drain(FLUSH)
        await cancelled([receiving])

    async def drop(self, name: str) -> None:
        """Let a transport neither send nor receive from now on; another daemon may run it."""
        await cancelled(self._lines.pop(name, []))
        self.report(name, False, ELSEWHERE)

    async def abandon(self) -> None:
        """Leave what is on its way as it is, whatever it is sent by."""
        await asyncio.gather(*(each.abandon() for each in self.delivering.values()))

    async def close(self) -> None:
        await self.previews.close()
        await asyncio.gather(*(self.unattend(name) for name in list(self._attending)))
        await asyncio.gather(*(self.stop(name) for name in list(self._lines)))

    def report(self, name: str, up: bool, detail: str) -> None:
        """The state of a connection, as its adapter tells it. One that was let go has none."""
        running = self.running.get(name)
        if running is None:
            return
        if name in self._attending:
            self._report_attending(name, running, up, detail)
            return
        if up != running.up or (not up and detail != running.detail):
            running.since = self._time.wall()
            (log.info if up else log.warning)("transport.connected" if up else "transport.disconnected", transport=name, detail=detail)
        running.up, running.detail = up, detail
        if name in self.delivering:
            self.delivering[name].connected(up)
        self._metrics.transport_up.labels(name).set(int(up))

    def _report_attending(self, name: str, running: Running, up: bool, detail: str) -> None:
        """What calls in is taken here, or why not. The connection is another daemon's."""
        if not up and detail != running.detail:
            log.warning("transport.disconnected", transport=name, detail=detail)
        running.detail = ATTENDED if up else detail

    def plan(self, address: Address, text: str) -> tuple[tuple[Part, ...], bool]:
        """A reply in the parts its platform takes, and whether it counts as sent when committed."""
        running = self.running.get(address.transport)
        if running is None:
            return (Part(text),), False
        return tuple(running.transport.parts(text)), running.transport.capabilities.instant

    def together(self) -> frozenset[str]:
        """Transports that may answer several messages with one reply."""
        return frozenset(name for name, transport in self._adapters.items() if transport.capabilities.merges)

    def idempotent(self) -> frozenset[str]:
        """Those that take the same reply twice and show it once."""
        return frozenset(name for name, transport in self._adapters.items() if transport.capabilities.idempotent_send)

    def down(self) -> list[str]:
        """Why some of them are not connected, in words."""
        return [f"{name}: {each.detail or 'not connected'}" for name, each in self.running.items() if name in self._lines and not each.up]
