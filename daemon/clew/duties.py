"""What one daemon on a database does at a time, of which this process does what it holds the names of; and what it does of the rest."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from clew.connections import Connections
from clew.membership import Membership
from clew.supervise import Run, Tasks, cancelled
from clew.transport import Host

TRANSPORT, UPKEEP, CHORES = "transport:", "upkeep", "chores"
"""Names that one daemon at a time holds: a transport that is not `spread`, and what is done in the background."""

Report = Callable[[str, bool, str], None]
"""Tells of the connection of a transport by name: whether it is up, and why not."""


class Duties:
    """remote: whether this process talks to platforms and keeps the schedule, as one that soon ends does not.

    shared: other daemons may be on the database. host: the door of a transport. begin_schedule, end_schedule: of what holds UPKEEP. chores:
    what runs, by name, where CHORES is held.
    """

    def __init__(
        self,
        shared: bool,
        connections: Connections,
        membership: Membership,
        tasks: Tasks,
        host: Callable[[str], Host],
        report: Report,
        begin_schedule: Callable[[], Awaitable[None]],
        end_schedule: Callable[[], None],
        chores: Callable[[], Mapping[str, Run]],
    ) -> None:
        self.remote = False
        self._shared = shared
        self._connections = connections
        self._membership = membership
        self._tasks = tasks
        self._host = host
        self._report = report
        self._begin_schedule = begin_schedule
        self._end_schedule = end_schedule
        self._chores = chores
        self._running: list[asyncio.Task[None]] = []

    def wanted(self) -> list[str]:
        """What one daemon does at a time. A process that soon ends leaves it to the others, where there can be any, but for what it may be
        asked to do at once: there need not be any."""
        if not self.remote:
            return [CHORES] if self._shared else [UPKEEP, CHORES]
        return [*(f"{TRANSPORT}{name}" for name in self._connections.owned()), UPKEEP, CHORES]

    async def begin(self, name: str) -> None:
        """Do what `name` stands for from now on."""
        if name.startswith(TRANSPORT):
            await self._connections.unattend(name.removeprefix(TRANSPORT))
            self.run_transport(name.removeprefix(TRANSPORT))
        elif name == CHORES:
            self._running = [self._tasks.start(chore, run) for chore, run in self._chores().items()]
        elif self.remote:
            await self._begin_schedule()

    async def end(self, name: str) -> None:
        """Do nothing more of it, at once."""
        if name.startswith(TRANSPORT):
            await self._connections.drop(name.removeprefix(TRANSPORT))
            self.attend()
        elif name == CHORES:
            await self.end_chores()
        else:
            self._end_schedule()

    async def end_chores(self) -> None:
        await cancelled(self._running)
        self._running = []

    def run_transport(self, name: str) -> None:
        """Let a transport receive and send."""
        transport = self._connections.running[name].transport
        self._connections.start(
            name, lambda: transport.run(self._host(name)), self._tasks, lambda reason: self._report(name, False, reason)
        )

    def attend(self) -> None:
        """Take what platforms call in with whose transports other daemons run."""
        if self._shared and self.remote:
            for name in self._connections.running:
                self._connections.attend(name, self._host(name), self._tasks)

    def runs_here(self, transport: str) -> bool:
        """Whether this process is the one that runs a transport of which one daemon does."""
        return self._membership.holds(f"{TRANSPORT}{transport}")

    def files_elsewhere(self) -> frozenset[str]:
        """Transports whose files another daemon fetches and reads: its own, and all others' where it has the upkeep."""
        elsewhere = self._connections.elsewhere()
        if self._membership.holds(UPKEEP):
            return elsewhere
        return elsewhere | (self._connections.running.keys() - set(self._connections.owned()))
