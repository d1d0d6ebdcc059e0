"""The composition root: what a clew process is made of, how it starts and how it stops."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Protocol
from zoneinfo import ZoneInfo

import structlog

from clew import __version__, access, costs, data_dir
from clew.agent import Agent
from clew.asking import Asking
from clew.assembly import (
    LOCAL,
    build_transport,
    embedding_seller,
    meaning_of,
    own_tools,
    owner_of,
    people_of,
    plugged,
    projects_of,
    sections,
    transcriber_of,
    transcribing_seller,
    zone_name,
)
from clew.attaching import Attaching, Means
from clew.backing_up import BackingUp
from clew.bills import Bills
from clew.boundaries import Boundaries
from clew.bus import Bus, Replied
from clew.clock import Time
from clew.commands.command import Rooms
from clew.compactor import Compactor
from clew.config import Config, Source
from clew.connections import Connections
from clew.contents import Contents
from clew.context.redact import redact
from clew.dispatcher import Dispatcher, Work
from clew.documents.reading import Reader
from clew.duties import UPKEEP, Duties
from clew.erasing import Erasing
from clew.errors import ClewError, UsageError
from clew.fetching import Fetcher
from clew.fitting import Fitting
from clew.hints import Hints
from clew.inbox import Door, access_line, decider, pairing_code
from clew.library import Library, Watch
from clew.lineup import Lineup, Lineups, made_of
from clew.meaning import Meaning
from clew.membership import Membership, whose_leases
from clew.metrics import Metrics
from clew.model_call import ModelCaller
from clew.outage import Outage
from clew.owner import NEVER_AGAIN, Owner
from clew.passages import Passages
from clew.progress import Progress
from clew.prompting import Prompter
from clew.providers import Provider
from clew.purse import Purse, limits_of
from clew.recall import IndexRecall, RecallProvider
from clew.reindexing import Reindexing
from clew.running import Runs
from clew.scheduler import Scheduler
from clew.stopping import Stop
from clew.store import AccessEffect, Changed
from clew.store.opening import open_store
from clew.store.sql import SqlStore
from clew.supervise import Run, Tasks, cancelled, patiently, unless_lasting
from clew.threads import Threads
from clew.tool_calls import ToolCalls
from clew.tools import skills
from clew.tools.runner import ToolRunner
from clew.tools.servers import Servers
from clew.transport import Address, Host, Inbound
from clew.upkeep import Due, Upkeep

log = structlog.get_logger()

FIXED = ("data_dir", "store", "http", "log", "embeddings")
"""Keys of the config that take effect at a start only."""
LOOK = 5.0
"""Seconds between looks for what other daemons told and was not heard."""
GRACE = 20.0
"""Seconds that running turns have to end when the daemon stops; those that do not are resumed at the next start."""


class Listening(Protocol):
    @property
    def url(self) -> str: ...


Serve = Callable[["Service"], AbstractAsyncContextManager[Listening]]


class Service:
    """Everything of one process. Open it with `open`."""

    def __init__(
        self, config: Config, store: SqlStore, lineup: Lineup, lineups: Lineups, time: Time, meaning: Meaning | None = None
    ) -> None:
        self.store = store
        self.meaning = meaning
        self.time = time
        self.bus = Bus()
        self.progress = Progress(time)
        self.metrics = Metrics()
        self.caller = ModelCaller(self.time, self.metrics, store.tell_repairs, load=store.files.read)
        self.bills = Bills(store, self.metrics, self.time)
        if self.meaning is not None and (seller := embedding_seller(config)):
            self.meaning.charge(self.bills, seller)
        self.listening: Listening | None = None
        self.source: Source | None = None
        self._reloading = asyncio.Lock()
        self.tasks = Tasks()
        self._lineups = lineups
        self._reader = Reader()
        self.servers = Servers(self._retool)
        self._started = self.time.steady()
        self.membership = Membership(
            store,
            time,
            lambda: self.duties.wanted(),
            lambda: self.connections.idempotent(),
            lambda name: self.duties.begin(name),
            lambda name: self.duties.end(name),
            self._abandon,
        )
        self._stops: dict[str, Stop] = {}
        self.connections = Connections(store, time, self.metrics, self.membership)
        self.duties = Duties(
            store.shared,
            self.connections,
            self.membership,
            self.tasks,
            self.host,
            self._report,
            lambda: self.scheduler.start(),
            self._end_schedule,
            self._chores,
        )
        self.transports = self.connections.running
        self.plan = self.connections.plan
        adapters = self.connections.here
        self.hints = Hints(self.bus, adapters, self.connections.previews)
        self.owner = Owner(store, adapters, self.plan, self.bus, self.time)
        self.outage = Outage(store, self.owner, self.time)
        self.backing_up = BackingUp(config.data_dir.expanduser() / "clew.db", self.progress, self.time, config.store)
        self.reindexing = Reindexing(store, self.time, self.progress)
        self.erasing = Erasing(store, self.time, self.progress, lambda: ZoneInfo(self.zone))
        for name, section in sections(config).items():
            self.connections.add(name, build_transport(section))
        self._compose(config, lineup, self._scheduler(config))
        self.attaching = Attaching(store, adapters, self._means, self.time, self.bills, self.duties.files_elsewhere)
        self.dispatcher = Dispatcher(store, self._work(), self.plan, self.hints.show, self.time, self.membership, self._stops)

    def _scheduler(self, config: Config) -> Scheduler:
        return Scheduler(
            self.store, self.time, zone_name(config), self.metrics, config.schedule, lambda job, entry: self.purse.keeps_from(job, entry)
        )

    def _compose(self, config: Config, lineup: Lineup, scheduler: Scheduler) -> None:
        """Make everything that follows from the config alone."""
        self.config = config
        self.scheduler = scheduler
        self._lineup = lineup
        self.providers = providers = lineup.own
        self.zone = zone = zone_name(config)
        store, agent = self.store, config.agent
        once = partial(self.owner.warn, again=NEVER_AGAIN)
        self.purse = Purse(store, limits_of(config.budgets), self.owner.tell, once, zone, self.time)
        binding = self.purse if self.purse.limits else None
        self.caller.use(config.prices, binding)
        self.bills.use(config.prices, binding)
        self.passages = Passages(store, config.docs.budget_chars, self.meaning.nearest if self.meaning else None)
        self.library = Library(store, self._reader, Fetcher(), config.limits.attachment_bytes, self.time)
        self._transcriber = transcriber_of(config)
        self.watch = Watch(store, self.library, owner_of(config), config.docs.paths, self.time, self.progress)
        learnt = skills.read(agent.skills_dir)
        for name, fault in learnt.faults:
            log.warning("skill.left_out", skill=name, err=fault)
        self._own_tools = own_tools(config, store, self.meaning, self.passages, self._reader, learnt)
        tools = [*self._own_tools, *self.servers.tools()]
        self.tools = ToolRunner(tools, agent.approver, config.limits.tool_output_chars)
        recall: RecallProvider = next(plugged("clew.recall"), None) or IndexRecall(store, agent.recall, self.metrics, self.meaning)
        specs = [tool.spec for tool in self.tools.tools.values()]
        self.prompter = Prompter(store, agent, recall, self.passages, specs, self.time, zone, learnt.text)
        self.compactor = Compactor(
            store,
            agent.compression,
            self.caller,
            lineup.summariser,
            providers[0],
            self.time,
            ZoneInfo(zone),
            self.metrics,
            config.prices,
            config.secrets(),
            self.prompter,
            offering=agent.notes.enabled,
            asking=agent.notes.enabled and agent.notes.ask_model,
        )
        self._lineups.hold(lineup, self.compactor)  # whoever works with these providers has the compactor that was made with them
        self.contents = Contents(store, agent, self.prompter, providers[0])
        self.threads = Threads(store, agent.compression, providers[0], self.time)
        fitting = Fitting(store, agent, self.prompter, self.compactor, providers[0], self.time)
        self.agent = Agent(
            store,
            agent,
            providers,
            self.prompter,
            fitting,
            Boundaries(agent.compression, providers[0], self.time),
            self.caller,
            ToolCalls(store, self.tools, Asking(store, agent.approver.expires, self.plan, self.time), fitting, self.prompter, self.time),
            learnt,
            self.hints.show,
            self.plan,
            self.time,
            self.metrics,
            self.owner.warn,
            self.connections.together() if agent.while_busy == "steer" else frozenset(),
            self._stops,
        )
        self.runs = Runs(store, self.agent, config.schedule, zone, self.plan, self.owner.warn, self.time, self.metrics, self._stops)
        self._decide = decider(config.access.unknown, config.limits, pairing_code)

    def _means(self) -> Means:
        return Means(self._reader, self.config.limits.attachment_bytes, self._transcriber, transcribing_seller(self.config))

    def _retool(self) -> None:
        """Take over the tools that MCP servers have now."""
        self.tools.use([*self._own_tools, *self.servers.tools()])
        self.prompter.use_tools([tool.spec for tool in self.tools.tools.values()])

    def _work(self) -> Work:
        """What new turns are run with."""
        rooms = Rooms(
            self.store,
            self.compactor,
            self.threads,
            self.providers,
            self.caller,
            self.zone,
            self.contents,
            self.plan,
            self.page,
            self.config.access.unknown,
            self.meaning,
            self.purse.limits,
            self.served,
        )
        merging = self.connections.together() if self.config.agent.while_busy != "one_by_one" else frozenset[str]()
        return Work(self.agent, self.runs, rooms, merging, self.config.limits.turns_at_once)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        config: Config,
        *,
        remote: bool = True,
        time: Time | None = None,
        serve: Serve | None = None,
        provider: Provider | None = None,
        source: Source | None = None,
        store: SqlStore | None = None,
    ) -> AsyncIterator["Service"]:
        """A service that runs while the block does.

        remote: False leaves remote transports and the schedule alone. time: its clocks, the machine's if None. serve: opens the web app,
        before anything is received, so that a port in use ends a second daemon before it disturbs the first. provider: takes the place of
        the config's. source: where the config can be read again. store: open already, in the place of the config's. Raises ClewError where
        the data directory is in use, the store cannot be opened or nothing can be served.
        """
        async with AsyncExitStack() as stack:
            time = time or Time()
            folder = data_dir.made(config.data_dir)
            stack.enter_context(data_dir.locked(folder))
            if store is None:
                store = await open_store(config.store, folder, time.wall(), known=config.secrets())
                stack.push_async_callback(store.close)
            lineups = Lineups()
            stack.push_async_callback(lineups.close)
            meaning = await stack.enter_async_context(meaning_of(config, store, time))
            service = cls(config, store, await lineups.opened(config, time, provider), lineups, time, meaning)
            service.source = source
            await service._sync(config, service.scheduler)
            await service._recover()
            stack.push_async_callback(service.servers.close)
            await service.servers.use(config.mcp_servers)
            service.listening = await stack.enter_async_context(serve(service)) if serve else None
            service.duties.remote = remote
            async with service._tasks():
                yield service

    async def _sync(self, config: Config, scheduler: Scheduler) -> None:
        now = self.time.wall()
        await self.store.spending.keep_zone(zone_name(config))
        await self.store.sync(*people_of(config), scheduler.jobs(now), now, projects_of(config))

    async def _recover(self) -> None:
        if self.store.shared:
            await self.membership.join()
        else:
            interrupted, unknown = await self.store.recover(self.connections.idempotent(), self.time.wall())
            if interrupted or unknown:
                log.info("daemon.recovered", turns=interrupted, sends_unknown=unknown)
        await self.erasing.recover()

    @asynccontextmanager
    async def _tasks(self) -> AsyncIterator[None]:
        remote = self.duties.remote
        for name, running in self.transports.items():
            if running.transport.capabilities.spread and (remote or name in LOCAL):
                self.duties.run_transport(name)
        due = Due(lambda: self.compactor, lambda: self.watch, lambda: self.config.sessions, lambda: ZoneInfo(self.zone)) if remote else None
        self.upkeep = Upkeep(self.store, due, self.time, self.metrics, lambda: self.membership.holds(UPKEEP))
        loops = {"hints": self.hints.run, "outage": self.outage.run, "upkeep": self.upkeep.run}
        loops |= {"attaching": self.attaching.run, "backing_up": self.backing_up.run}
        if self.store.shared:
            loops |= {"wakes": self._hear, "looks": self._look, "stops": self.dispatcher.heed}
        background = [self.tasks.start(name, run) for name, run in loops.items()]
        dispatcher = self.tasks.start("dispatcher", self.dispatcher.run)
        member = await self._member()
        self.duties.attend()
        try:
            yield
        finally:
            self.scheduler.stop()
            await cancelled([dispatcher])
            self.duties.remote = False
            await self.dispatcher.drain(GRACE)
            await self.connections.close()
            await cancelled([*member, *background])
            await self.duties.end_chores()
            await self.membership.leave()

    async def _member(self) -> list[asyncio.Task[None]]:
        """Hold what is to be had. Gives the task that goes on with it."""
        if not self.store.shared:
            await self.membership.look()
            return []
        with suppress(TimeoutError), unless_lasting():  # the task looks again
            await self.membership.look()
        return [self.tasks.start("membership", self.membership.run)]

    # What several daemons on one database do for each other --------------------------------------------------------

    def _chores(self) -> Mapping[str, Run]:
        meaning = {"meaning": partial(self.meaning.run, self.progress)} if self.meaning else {}
        return {"reindexing": self.reindexing.run, "erasing": self.erasing.run, **meaning}

    def _end_schedule(self) -> None:
        self.scheduler.stop()
        self.scheduler = self._scheduler(self.config)

    async def _abandon(self) -> None:
        """Others may go on with all that this process claimed."""
        await self.dispatcher.abandon()
        await self.connections.abandon()

    async def _hear(self) -> None:
        await self.store.listen(lambda address: self.bus.publish(address, Replied("")))

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            self.store.look()

    async def reread(self) -> None:
        """Take over the config as its file is now. Raises UsageError where none is known, ClewError where it cannot be; then nothing has
        changed."""
        if self.source is None:
            raise UsageError("This clew cannot read its config again.", hint="Only `clew run` can.")
        try:
            await self.reload(await asyncio.to_thread(self.source.read))
        except Exception as error:
            log.error("config.refused", err=str(error))
            raise

    async def reload(self, config: Config) -> None:
        """Take over a new, valid config, whole or not at all: all that can fail comes before the first change.

        Turns that run end with the one they began with; only transports that changed are restarted.
        """
        async with self._reloading:
            await self._reload(config)

    async def _reload(self, config: Config) -> None:
        fixed = [key for key in FIXED if getattr(config, key) != getattr(self.config, key)]
        if fixed:
            log.warning("config.needs_restart", keys=fixed)
            config = config.model_copy(update={key: getattr(self.config, key) for key in fixed})
        before, after = sections(self.config), sections(config)
        async with AsyncExitStack() as undo:
            lineup = self._lineup
            if lineup.made_of != made_of(config):
                lineup = await self._lineups.opened(config, self.time)
                undo.push_async_callback(self._lineups.remove, lineup)
            changed = {name: build_transport(section) for name, section in after.items() if section != before.get(name)}
            scheduler = self._scheduler(config)
            await self._sync(config, scheduler)
            undo.pop_all()
        await self.dispatcher.heed_stops()  # of whoever is taken out of the config
        self.scheduler.stop()
        ours = [name for name in changed if self.duties.runs_here(name)]
        for name in [name for name in before if before[name] != after.get(name)]:
            await self.connections.remove(name)
        for name, transport in changed.items():
            self.connections.add(name, transport)
        self._compose(config, lineup, scheduler)
        self.dispatcher.use(self._work())
        for name in changed:
            if name in ours or self.transports[name].transport.capabilities.spread:
                self.duties.run_transport(name)
        if self.membership.holds(UPKEEP):
            await patiently(self.scheduler.start)
        with unless_lasting():
            await self.membership.keep(self.duties.wanted())
        if self.store.shared:
            self.store.freed.tell()
        else:
            await self.membership.look()
        self.duties.attend()
        await self.servers.use(config.mcp_servers)
        log.info("config.reloaded", transports=list(changed))

    # What other rooms ask ----------------------------------------------------------------------------------------

    def host(self, transport: str) -> Host:
        """The door of one transport."""
        instant = self.transports[transport].transport.capabilities.instant
        return Door(
            transport,
            self.store,
            lambda item, sender: self._decide(item, sender),
            self.time,
            self.metrics,
            self._stop_turn,
            lambda up, detail: self._report(transport, up, detail),
            self.bus,
            instant,
            data_dir.made(self.config.data_dir) / "transports",
            self.owner.warn,
            self.config.http.public_url,
            self.owner.asked,
        )

    def _stop_turn(self, turn: str) -> None:
        if turn in self._stops:
            self._stops[turn].set()

    def page(self) -> str:
        """The address of the page where somebody can log in to it; empty where nobody can."""
        if self.config.http.token is None or "web" not in self.transports:
            return ""
        public = self.config.http.public_url
        return public or (self.listening.url if self.listening else "")

    def served(self, address: Address) -> str:
        """Where whoever is at `address` can open the page; empty where they cannot."""
        if "web" not in self.transports:
            return ""
        here = self.listening.url if self.listening and address.transport in LOCAL else ""
        return (self.config.http.public_url or here).rstrip("/")

    def _report(self, name: str, up: bool, detail: str) -> None:
        detail = redact(detail, known=self.config.secrets())  # a platform may say back what it was sent
        self.connections.report(name, up, detail)
        if up:
            self.outage.connected()

    async def readiness(self) -> list[str]:
        """Why this process is not ready, in words; empty if it is."""
        reasons = self.connections.down()
        try:
            await self.store.probe()
        except ClewError as error:
            reasons.append(f"store: {error}")
        else:
            reasons += [f"store: {self.outage.reason}"] if self.outage.reason else []
        return reasons

    async def status(self) -> dict[str, object]:
        """What `clew status` shows."""
        provider = self.providers[0]
        return {
            "version": __version__,
            "uptime": round(self.time.steady() - self._started, 1),
            "ready": not (reasons := await self.readiness()),
            "reasons": reasons,
            "provider": {"name": provider.name, "kind": provider.kind, "model": provider.model},
            "fallback": [each.name for each in self.providers[1:]],
            "tools_left_out": await self.prompter.left_out(provider),
            "breakers": {name: breaker.state for name, breaker in self.caller.breakers.items()},
            "transports": {name: {"up": each.up, "detail": each.detail, "since": each.since} for name, each in self.transports.items()},
            "daemons": whose_leases(await self.store.leases.listing(), self.membership.owner) if self.store.shared else {},
            "access": access_line(self.config.access.unknown),
            "spent": await costs.lately_told(self.store, self.zone, self.purse.limits, self.time.wall()),
            "counts": await self.store.counts(self.time.wall()),
            "work": self.progress.as_values(),
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

    async def change_access(self, effect: AccessEffect) -> Changed:
        """Change who may talk to clew; whoever is let in is told so where they asked. Raises NotFound or UsageError."""
        now = self.time.wall()
        _, effect = await access.prepared(self.store, effect, self.plan, now)
        changed = await self.store.change_access(effect, now)
        access.log_change(changed)
        await self.dispatcher.heed_stops()
        for notice in effect.notices:
            self.bus.publish(notice.address, Replied(""))
        return changed

    async def latest_session(self, address: Address) -> str | None:
        """The session of `address` that was used last."""
        found = await self.store.sessions(str(address), 1)
        return found[0].id if found else None
