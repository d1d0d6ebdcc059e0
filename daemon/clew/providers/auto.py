"""`provider: auto`: the first way to a model that is configured and answers, else offline, looked for again while offline."""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Literal

import structlog

from clew.providers import Event, Limits, Provider, Request, Ttl

log = structlog.get_logger()

LOOK_AGAIN = 60.0
"""Seconds between two looks for a model while there is none: a local server may start after clew."""


class Automatic:
    """A provider that is one of several. `candidates` in the order of the config; `offline` answers while none of them does."""

    def __init__(self, candidates: Sequence[Provider], offline: Provider, steady: Callable[[], float]) -> None:
        self._candidates = [each for each in candidates if each.configured]
        self._offline = offline
        self._steady = steady
        self._current = offline
        self._looked = -LOOK_AGAIN

    @property
    def name(self) -> str:
        return self._current.name

    @property
    def kind(self) -> str:
        return self._current.kind

    @property
    def model(self) -> str:
        return self._current.model

    @property
    def cache_ttl(self) -> Ttl | None:
        return self._current.cache_ttl

    @property
    def max_tokens(self) -> int | Literal["auto"]:
        return self._current.max_tokens

    @property
    def configured(self) -> bool:
        return True

    async def prepare(self) -> None:
        await self._look()
        await self._current.prepare()

    async def answers(self) -> bool:
        return True

    async def limits(self) -> Limits:
        """Of the provider that answers now. This is the moment at which it may change: a request is made for one provider."""
        await self._look()
        return await self._current.limits()

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        return self._current.stream(request)

    async def close(self) -> None:
        for provider in (*self._candidates, self._offline):
            await provider.close()

    async def _look(self) -> None:
        now = self._steady()
        if self._current is not self._offline or now - self._looked < LOOK_AGAIN:
            return
        self._looked = now
        for provider in self._candidates:
            if await provider.answers():
                await provider.prepare()
                self._current = provider
                log.info("provider.found", provider=provider.name, kind=provider.kind)
                return
