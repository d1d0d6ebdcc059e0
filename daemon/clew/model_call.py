"""One call of a model: retried, timed, measured, written down."""

import asyncio
import base64
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import structlog

from clew import tracing
from clew.allowances import MICROS, Amount
from clew.budget import cost
from clew.clock import Time, new_id
from clew.config import Price
from clew.config.prices import price_of
from clew.context import files, rules
from clew.context.prompt import Marks, Prefix, request_tokens, segments
from clew.errors import StoreError
from clew.messages import File, Text, Usage
from clew.metrics import Metrics
from clew.providers import RETRYABLE, Began, Delta, Done, PromptMessage, Provider, ProviderError, Request, backoff
from clew.providers.breaker import Breaker
from clew.purse import EXPECTED_OUTPUT, Purse
from clew.request import Ttl
from clew.stopping import Stop, Stopped
from clew.store import CacheEntry, ModelCall

log = structlog.get_logger()

TRIES = 4
"""Calls of one provider for one request, the first included: with back-off about 4 seconds, or up to 3 minutes where waits are stated."""
SUMMARY_TRIES = 2
"""The same for a summary, and none after a stall: a reply waits for it, and one that is slow gets no faster by asking again."""
MAX_WAIT = 60.0
"""Seconds; the longest stated wait that is obeyed. A provider that asks for more is left to the fallback."""
OFFLINE = "offline"
"""The kind of provider that is no model, and costs nothing."""
TTL_SECONDS = {"5m": 300.0, "1h": 3600.0}


@dataclass(slots=True)
class Spent:
    """What model calls left behind, as they happen. calls: every attempt; cache: prefixes that providers hold since; void: an attempt that
    came to nothing, and whose reservation is not needed."""

    calls: list[ModelCall] = field(default_factory=list)
    cache: list[CacheEntry] = field(default_factory=list)
    void: str = ""


Spoken = Callable[[str, str], Awaitable[None]]
"""Told of (all words so far, the new ones)."""
Untold = Callable[[str, Sequence[str]], Awaitable[tuple[str, ...]]]
"""Which of these repairs of a session were not told yet; they are from now on."""
Load = Callable[[str], Awaitable[bytes | None]]
"""The bytes of a file by its hash, None where they are not there."""
LOGGED = 5
"""Repairs of a view that are named in one line of the log."""


async def _nothing(digest: str) -> bytes | None:
    return None


class ModelCaller:
    """Makes model calls for the agent and the compactor. load: where the files of messages are."""

    def __init__(
        self, time: Time, metrics: Metrics, untold: Untold, rand: Callable[[], float] = random.random, load: Load = _nothing
    ) -> None:
        self._time = time
        self._untold = untold
        self._metrics = metrics
        self._rand = rand
        self._load = load
        self._prices: Mapping[str, Price] = {}
        self.purse: Purse | None = None
        self.breakers: dict[str, Breaker] = {}

    def use(self, prices: Mapping[str, Price], purse: Purse | None) -> None:
        """What calls cost from now on, where the config says so, and whose budgets bind them; None without any."""
        self._prices = prices
        self.purse = purse

    async def call(
        self,
        provider: Provider,
        marks: Marks,
        chain: Sequence[Prefix],
        *,
        payer: str,
        spent: Spent,
        session: str = "",
        repairs: Sequence[str] = (),
        spoken: Spoken | None = None,
        stop: Stop | None = None,
        estimated: int = 0,
        size: int = 0,
    ) -> Done:
        """Send a request, again where that may help. Every attempt is noted in `spent`. Raises ProviderError, Stopped, OverBudget.

        It is sent as every provider takes it (see `context.rules`). repairs: what had to be mended of the rows it was made of. estimated:
        what it was taken for, where its reported size is to teach something (`ModelCall.estimated`). size: its tokens as its model counts
        them, 0 where only the estimate is known.
        """
        request, mended = rules.mended(marks.request)
        if mended:
            marks = replace(marks, request=request)
        if repairs or mended:
            await self._tell(session, (*repairs, *mended))
        if hashes := files.sent(request):
            marks = replace(marks, request=await self._with_files(request, hashes))
        stop = stop or Stop()
        summary = marks.request.purpose == "summary"
        tries = SUMMARY_TRIES if summary else TRIES
        for attempt in range(1, tries + 1):
            breaker = self._breaker(provider.name)
            if left := breaker.wait():
                raise ProviderError("unavailable", f"{provider.name} kept failing and is left alone for {left:.0f} s")
            call = new_id()
            if self.purse is not None and provider.kind != OFFLINE:
                await self.purse.reserve(call, session, payer, self._wanted(provider, marks, size), spent.void)
                spent.void = ""
            try:
                done = await self._attempt(call, provider, marks, chain, payer, spoken, stop, spent, estimated)
                self._note(provider, breaker, None)
                return done
            except Stopped:
                breaker.release()
                raise
            except ProviderError as error:
                self._note(provider, breaker, error)
                self._metrics.model_errors.labels(provider.name, error.kind).inc()
                wait = backoff(attempt, error.retry_after, self._rand(), cap=MAX_WAIT)
                stated = error.retry_after is not None and error.retry_after > MAX_WAIT
                if error.kind not in RETRYABLE or attempt == tries or stated or (summary and error.kind == "stall"):
                    raise
                log.warning("provider.retry", provider=provider.name, kind=error.kind, wait=round(wait, 2), err=str(error))
                async with stop.heeded():
                    await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    async def _with_files(self, request: Request, hashes: Collection[str]) -> Request:
        """`request` with the bytes of its files; of one that is not there its words are sent."""
        loaded = {}
        for digest in hashes:
            if (body := await self._load(digest)) is not None:
                loaded[digest] = (await asyncio.to_thread(base64.b64encode, body)).decode("ascii")
        if len(loaded) < len(hashes):
            log.warning("attachment.lost", files=sorted(set(hashes) - loaded.keys())[:LOGGED])
            request = replace(request, messages=tuple(_without(message, loaded) for message in request.messages))
        return replace(request, files=loaded)

    async def _tell(self, session: str, repairs: Sequence[str]) -> None:
        """Log what had to be mended, each repair once."""
        try:
            repairs = await self._untold(session, repairs)
        except StoreError as error:  # a full disk; the answer is more than the note
            log.warning("store.unavailable", err=str(error))
        if repairs:
            log.warning("view.repaired", session=session, repairs=repairs[:LOGGED], more=max(0, len(repairs) - LOGGED))

    def amount(self, provider: Provider, usage: Usage, ttl: Ttl | None) -> Amount:
        """What a call of this size takes of budgets. ttl: of what it writes to the cache."""
        tokens = usage.prompt + usage.output
        price = price_of(provider.kind, provider.model, self._prices, ttl, usage.prompt)
        return Amount(tokens, round(cost(price, usage) * MICROS)) if price else Amount(tokens, 0, tokens)

    def _wanted(self, provider: Provider, marks: Marks, size: int) -> Amount:
        """What a call may come to: all of its prompt, less what the provider holds of it, and an answer of common length."""
        size = size or request_tokens(marks.request)
        read = min(marks.held or 0, size)
        written = size - read if marks.marked else 0
        output = min(marks.request.max_tokens, EXPECTED_OUTPUT)
        return self.amount(provider, Usage(size - read - written, output, read, written), marks.request.cache_ttl)

    async def _attempt(
        self,
        call: str,
        provider: Provider,
        marks: Marks,
        chain: Sequence[Prefix],
        payer: str,
        spoken: Spoken | None,
        stop: Stop,
        spent: Spent,
        estimated: int,
    ) -> Done:
        record = _Record(call, self._time, provider, marks, chain, payer, self._prices)
        try:
            with tracing.span(f"chat {provider.model}", _about(provider, marks.request)) as note:
                done = await _consume(provider, marks, record, spoken, stop)
                note(_told(done.usage))
        except (ProviderError, Stopped) as ended:
            error = f"{ended.kind}: {ended}" if isinstance(ended, ProviderError) else "stopped"
            spent.calls.append(record.written(record.usage, error=error))
            spent.void = "" if record.usage.prompt else call
            spent.cache += record.cache(record.usage)
            raise
        spent.calls.append(record.written(done.usage, estimated=estimated))
        spent.cache += record.cache(done.usage)
        self._count(provider.name, done.usage)
        return done

    def _breaker(self, provider: str) -> Breaker:
        if provider not in self.breakers:
            self.breakers[provider] = Breaker(self._time.steady)
            self._metrics.breaker_open.labels(provider).set(0)
        return self.breakers[provider]

    def _note(self, provider: Provider, breaker: Breaker, error: ProviderError | None) -> None:
        before = breaker.state
        if error is None:
            breaker.succeeded()
        else:
            breaker.failed(error.kind)
        if breaker.state != before:
            log.warning("provider.breaker", provider=provider.name, state=breaker.state)
            self._metrics.breaker_open.labels(provider.name).set(int(breaker.state != "closed"))

    def _count(self, provider: str, usage: Usage) -> None:
        for kind in ("input", "output", "cache_read", "cache_write"):
            self._metrics.tokens.labels(provider, kind).inc(getattr(usage, kind))


def _about(provider: Provider, request: Request) -> tracing.Attributes:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider.kind,
        "gen_ai.request.model": provider.model,
        "clew.provider": provider.name,
        "clew.purpose": request.purpose,
    }


def _told(usage: Usage) -> tracing.Attributes:
    return {
        "gen_ai.usage.input_tokens": usage.prompt,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
    }


def _without(message: PromptMessage, loaded: Mapping[str, str]) -> PromptMessage:
    """A message with words in the place of files that are not there."""
    blocks = tuple(Text(block.line) if isinstance(block, File) and block.hash not in loaded else block for block in message.blocks)
    return replace(message, blocks=blocks)


async def _consume(provider: Provider, marks: Marks, record: "_Record", spoken: Spoken | None, stop: Stop) -> Done:
    """The response, or Stopped as soon as `stop` is set: a model that thinks for minutes says nothing meanwhile."""
    async with stop.heeded():
        return await _read(provider, marks, record, spoken)


async def _read(provider: Provider, marks: Marks, record: "_Record", spoken: Spoken | None) -> Done:
    text = ""
    async with aclosing(provider.stream(marks.request)) as events:
        async for event in events:
            match event:
                case Began(usage):
                    record.began(usage)
                case Delta(words):
                    text += words
                    if spoken is not None:
                        await spoken(text, words)
                case Done():
                    return event
    raise ProviderError("cut", "the response ended without an end", text_delivered=bool(text))


class _Record:
    """The row of one attempt while it runs."""

    def __init__(
        self, call: str, time: Time, provider: Provider, marks: Marks, chain: Sequence[Prefix], payer: str, prices: Mapping[str, Price]
    ) -> None:
        self._call = call
        self._time = time
        self._prices = prices
        self._provider = provider
        self._marks = marks
        self._chain = chain
        self._payer = payer
        self._started = time.wall()
        self._first_byte: float | None = None
        self.usage = Usage()

    def began(self, usage: Usage | None) -> None:
        self._first_byte = self._time.wall()
        self.usage = usage or Usage()

    def written(self, usage: Usage, error: str = "", estimated: int = 0) -> ModelCall:
        return ModelCall(
            id=self._call,
            purpose=self._marks.request.purpose,
            payer=self._payer,
            provider=self._provider.name,
            model=self._provider.model,
            usage=usage,
            started=self._started,
            first_byte=self._first_byte,
            ended=self._time.wall(),
            error=error,
            segments=segments(self._chain),
            marks=tuple(label for label, _ in self._marks.marked),
            estimated=estimated,
            cost=self._cost(usage),
            held=self._marks.held,
            ttl=TTL_SECONDS[self._marks.request.cache_ttl] if self._marks.request.cache_ttl and self._marks.marked else None,
        )

    def _cost(self, usage: Usage) -> float | None:
        price = price_of(self._provider.kind, self._provider.model, self._prices, self._marks.request.cache_ttl, usage.prompt)
        return cost(price, usage) if price else None

    def cache(self, usage: Usage) -> tuple[CacheEntry, ...]:
        """Prefixes the provider holds from now on: the marked ones, if it cached any. Their time runs from the start of the request."""
        ttl = self._marks.request.cache_ttl
        if ttl is None or usage.cache_read + usage.cache_write == 0:
            return ()
        seconds = TTL_SECONDS[ttl]
        name, model, expires = self._provider.name, self._provider.model, self._started + seconds
        marked = [prefix for _, prefix in self._marks.marked]
        # What was read and written is all up to the last marker: known to the token there, and in proportion in front of it.
        scale = (usage.cache_read + usage.cache_write) / max(marked[-1].tokens, 1) if marked else 1.0
        return tuple(CacheEntry(name, model, prefix.hash, round(prefix.tokens * scale), seconds, expires) for prefix in marked)
