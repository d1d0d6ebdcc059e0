"""The providers of a config: kept while what they are made of stays the same, closed when nobody works with them any more."""

import asyncio
import weakref
from dataclasses import dataclass

from clew.assembly import providers_of
from clew.clock import Time
from clew.config import Config
from clew.providers import Provider


@dataclass(frozen=True, slots=True, eq=False)
class Lineup:
    """own: the session's own model, then its fallbacks. made_of: what of the config they follow from."""

    own: list[Provider]
    summariser: Provider
    made_of: object

    async def prepare(self) -> None:
        for provider in dict.fromkeys([*self.own, self.summariser]):
            await provider.prepare()

    async def close(self) -> None:
        for provider in dict.fromkeys([*self.own, self.summariser]):
            await provider.close()


def made_of(config: Config) -> object:
    """What of `config` its providers follow from, to be compared."""
    agent = config.agent
    return config.providers, agent.provider, agent.fallback, agent.compression.provider, agent.compression.model


class Lineups:
    """Those that somebody may work with. A client of a provider holds connections and some megabytes."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._holders: dict[Lineup, list[weakref.finalize[..., object]]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def opened(self, config: Config, time: Time, provider: Provider | None = None) -> Lineup:
        """The providers of `config`, prepared. provider: takes the place of all of them."""
        own, summariser = ([provider], provider) if provider else providers_of(config, time)
        lineup = Lineup(own, summariser, made_of(config))
        self._holders[lineup] = []
        try:
            await lineup.prepare()
        except BaseException:
            await self.remove(lineup)
            raise
        return lineup

    def hold(self, lineup: Lineup, holder: object) -> None:
        """Let it be closed once `holder`, and whoever else holds it, is gone."""
        gone = weakref.finalize(holder, self._loop.call_soon_threadsafe, self._released, lineup)
        gone.atexit = False
        self._holders[lineup].append(gone)

    async def remove(self, lineup: Lineup) -> None:
        """Close one, whoever holds it."""
        for each in self._holders.pop(lineup, ()):
            each.detach()
        await lineup.close()

    async def close(self) -> None:
        for lineup in list(self._holders):
            await self.remove(lineup)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _released(self, lineup: Lineup) -> None:
        holders = [each for each in self._holders.get(lineup, ()) if each.alive]
        if holders:
            self._holders[lineup] = holders
        elif lineup in self._holders:
            task = asyncio.create_task(self.remove(lineup), name="providers.closing")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
