"""One model call: retried where that helps, written down whatever happens."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from clew.clock import Time
from clew.context.prompt import Parts, layout, mark, prefixes
from clew.context.view import head
from clew.errors import StoreError
from clew.messages import Text, ToolCall, ToolResult, Usage
from clew.metrics import Metrics
from clew.model_call import MAX_WAIT, TRIES, ModelCaller, Spent, Spoken, Untold
from clew.providers import (
    RETRYABLE,
    Began,
    Delta,
    Done,
    ErrorKind,
    Event,
    Limits,
    PromptMessage,
    Provider,
    ProviderError,
    Request,
    Ttl,
    backoff,
)
from clew.stopping import Stop, Stopped
from tests.threads import numbered

NOW = 1_780_000_000.0
READ = Usage(input=5, output=7, cache_read=100, cache_write=20)
ANSWER = Done((Text("Hello there"),), "end", READ, "m-2026")
KINDS: tuple[ErrorKind, ...] = (
    *("rate_limit", "overloaded", "quota", "auth", "overflow", "invalid", "server", "network", "cut", "stall", "unavailable"),
)

Step = Event | Exception | asyncio.Event | Callable[[], None]


@dataclass
class Scripted:
    """A provider that plays one list of steps for each call and keeps the requests. It waits for an `asyncio.Event` among them."""

    script: list[Sequence[Step]]
    name: str = "p"
    kind: str = "scripted"
    model: str = "m"
    cache_ttl: Ttl | None = "1h"
    max_tokens: int | Literal["auto"] = "auto"
    requests: list[Request] = field(default_factory=list)
    open: int = 0

    @property
    def configured(self) -> bool:
        return True

    async def prepare(self) -> None:
        return

    async def answers(self) -> bool:
        return True

    async def limits(self) -> Limits:
        return Limits(8192, 4096, 512)

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        steps = self.script[len(self.requests)]
        self.requests.append(request)
        self.open += 1
        try:
            for step in steps:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, Began | Delta | Done):
                    yield step
                else:
                    step()
        finally:
            self.open -= 1

    async def close(self) -> None:
        return


async def repeat_back(repairs: Sequence[str]) -> tuple[str, ...]:
    return tuple(repairs)


def error(kind: ErrorKind, wait: float | None = 0.0) -> ProviderError:
    return ProviderError(kind, f"{kind} it is", retry_after=wait)


@dataclass
class Bench:
    """untold: what a store says of repairs; it is asked for each call that has some."""

    provider: Provider
    metrics: Metrics = field(default_factory=Metrics)
    spent: Spent = field(default_factory=Spent)
    untold: Untold = field(default=lambda session, repairs: repeat_back(repairs))

    async def call(
        self,
        *,
        spoken: Spoken | None = None,
        stop: Stop | None = None,
        cached: bool = False,
        repairs: Sequence[str] = (),
        said: Sequence[PromptMessage] = (),
    ) -> Done:
        parts = Parts("Be kind.", numbered(3).window(), head(UTC, "", direct=True))
        request = layout(parts, max_tokens=100, ttl=self.provider.cache_ttl, cache_key="s")
        request = replace(request, messages=(*request.messages, *said))
        chain = prefixes(request)
        marks = mark(request, chain, {chain[1].hash} if cached else ())
        caller = ModelCaller(Time(lambda: NOW, lambda: 0.0), self.metrics, self.untold, lambda: 0.0)
        return await caller.call(
            self.provider, marks, chain, payer="ada", spent=self.spent, session="s1", repairs=repairs, spoken=spoken, stop=stop
        )

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


@pytest.mark.asyncio
async def test_an_answer_is_passed_on_as_it_is_spoken_and_written_down() -> None:  # P1
    bench = Bench(Scripted([[Began(Usage(input=5)), Delta("Hello"), Delta(" there"), ANSWER]]))
    heard: list[tuple[str, str]] = []

    async def spoken(text: str, words: str) -> None:
        heard.append((text, words))

    called = await bench.call(spoken=spoken)
    assert called == ANSWER
    assert heard == [("Hello", "Hello"), ("Hello there", " there")]
    (row,) = bench.spent.calls
    assert (row.payer, row.provider, row.model, row.purpose, row.usage, row.error) == ("ada", "p", "m", "reply", READ, "")
    assert (row.started, row.first_byte, row.ended) == (NOW, NOW, NOW)
    assert row.marks == ("M1", "M4")
    assert [name for name, _, _ in row.segments] == ["base", "messages"]
    kinds = ("input", "output", "cache_read", "cache_write")
    assert [bench.count("clew_model_tokens_total", provider="p", kind=kind) for kind in kinds] == [5, 7, 100, 20]


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", KINDS)
async def test_what_may_pass_is_tried_again_and_what_will_not_is_not(kind: ErrorKind) -> None:  # P25
    provider = Scripted([[error(kind)], [ANSWER]])
    bench = Bench(provider)
    if kind in RETRYABLE:
        assert await bench.call() == ANSWER
    else:
        with pytest.raises(ProviderError, match=f"{kind} it is"):
            await bench.call()
    assert len(provider.requests) == len(bench.spent.calls) == (2 if kind in RETRYABLE else 1)
    assert bench.spent.calls[0].error == f"{kind}: {kind} it is"
    assert bench.count("clew_model_errors_total", provider="p", kind=kind) == 1


@pytest.mark.asyncio
async def test_a_retry_sends_the_same_request() -> None:  # P29
    provider = Scripted([[error("overloaded")], [error("cut")], [ANSWER]])
    bench = Bench(provider)
    with capture_logs() as logs:
        await bench.call()
    assert provider.requests == [provider.requests[0]] * 3
    assert [(line["event"], line["kind"]) for line in logs] == [("provider.retry", "overloaded"), ("provider.retry", "cut")]


@pytest.mark.asyncio
async def test_after_so_many_tries_it_gives_up_with_the_last_error() -> None:
    provider = Scripted([*([error("server")] for _ in range(TRIES - 1)), [error("stall")]])
    bench = Bench(provider)
    with pytest.raises(ProviderError) as raised:
        await bench.call()
    assert raised.value.kind == "stall"
    assert len(provider.requests) == len(bench.spent.calls) == TRIES


@pytest.mark.asyncio
async def test_a_stated_wait_that_is_too_long_is_left_to_the_fallback() -> None:
    provider = Scripted([[error("rate_limit", MAX_WAIT + 1)]])
    with pytest.raises(ProviderError, match="rate_limit"):
        await Bench(provider).call()
    assert len(provider.requests) == 1


@pytest.mark.asyncio
async def test_a_response_without_an_end_counts_as_cut_and_may_be_tried_again() -> None:
    stop = Stop()
    bench = Bench(Scripted([[Began(), Delta("Hel"), stop.set]]))
    with capture_logs() as logs, pytest.raises(Stopped):
        await bench.call(stop=stop)  # stopped in the wait before the next try
    assert bench.spent.calls[0].error.startswith("cut: ")
    assert [line["kind"] for line in logs] == ["cut"]


@pytest.mark.asyncio
async def test_stop_ends_a_call_whose_model_has_fallen_silent() -> None:
    stop, never = Stop(), asyncio.Event()
    provider = Scripted([[Began(Usage(input=9, cache_write=3)), Delta("Hel"), stop.set, never, Delta("lo"), ANSWER]])
    bench = Bench(provider)
    heard: list[str] = []

    async def spoken(text: str, words: str) -> None:
        heard.append(words)

    with pytest.raises(Stopped):
        await bench.call(spoken=spoken, stop=stop)
    assert heard == ["Hel"]
    assert provider.open == 0
    (row,) = bench.spent.calls
    assert (row.error, row.usage) == ("stopped", Usage(input=9, cache_write=3))


@pytest.mark.asyncio
async def test_stop_ends_the_wait_before_the_next_try() -> None:
    stop = Stop()
    provider = Scripted([[stop.set, error("overloaded", 50.0)]])
    with pytest.raises(Stopped):
        await Bench(provider).call(stop=stop)
    assert len(provider.requests) == 1


@pytest.mark.asyncio
async def test_what_was_marked_is_recorded_as_cached_until_its_lifetime_ends() -> None:  # P28
    bench = Bench(Scripted([[ANSWER]]))
    await bench.call(cached=True)
    tokens = [entry.tokens for entry in bench.spent.cache]
    assert len(bench.spent.cache) == 3
    assert tokens == sorted(set(tokens))
    assert tokens[-1] == READ.cache_read + READ.cache_write, "as the provider counts them"
    assert {(entry.provider, entry.model, entry.ttl, entry.expires) for entry in bench.spent.cache} == {("p", "m", 3600.0, NOW + 3600.0)}
    assert bench.spent.calls[0].marks == ("M1", "M3", "M4")


@pytest.mark.asyncio
@pytest.mark.parametrize("ttl", ["1h", None])
async def test_nothing_is_recorded_where_nothing_was_cached(ttl: Ttl | None) -> None:  # P28
    done = Done((Text("Hi"),), "end", Usage(input=50, output=5) if ttl else READ)
    bench = Bench(Scripted([[done]], cache_ttl=ttl))
    await bench.call()
    assert bench.spent.cache == []


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 0.5), (2, 1.0), (3, 2.0), (8, 60.0), (10_000, 60.0)])
def test_the_wait_doubles_up_to_a_minute(attempt: int, seconds: float) -> None:
    assert backoff(attempt, None, 0.0) == seconds


@given(st.integers(1, 50), st.floats(0, 1, exclude_max=True))
def test_chance_takes_at_most_a_quarter_off(attempt: int, rand: float) -> None:
    assert 0.75 * backoff(attempt, None, 0.0) <= backoff(attempt, None, rand) <= backoff(attempt, None, 0.0)


@pytest.mark.parametrize(("stated", "seconds"), [(0.0, 0.0), (7.5, 7.5), (60.0, 60.0), (3600.0, 60.0), (-3.0, 0.0)])
def test_a_stated_wait_is_obeyed_up_to_a_bound(stated: float, seconds: float) -> None:
    assert backoff(1, stated, 0.9) == seconds


@pytest.mark.asyncio
async def test_what_was_marked_is_recorded_even_if_the_reply_is_cut_off() -> None:  # P28
    bench = Bench(Scripted([[Began(READ), error("invalid")]]))
    with pytest.raises(ProviderError):
        await bench.call(cached=True)
    assert len(bench.spent.cache) == 3
    assert bench.spent.calls[0].usage == READ


DANGLING = (PromptMessage("assistant", (ToolCall("c", "find me", "{}"),)),)


@pytest.mark.asyncio
async def test_a_request_that_providers_would_refuse_is_mended_on_its_way() -> None:  # P11, BO-001, BO-004
    provider = Scripted([[error("overloaded")], [ANSWER]])
    with capture_logs() as logs:
        await Bench(provider).call(said=DANGLING, repairs=["message m1: it cannot be read"])
    sent, again = provider.requests
    assert sent == again
    assert sent.messages[-2] == PromptMessage("assistant", (ToolCall("c", "find_me", "{}"),), marked=(0,))
    assert [type(block) for block in sent.messages[-1].blocks] == [ToolResult]
    (line,) = [line for line in logs if line["event"] == "view.repaired"]
    assert (line["log_level"], line["session"]) == ("warning", "s1")
    assert line["repairs"] == (
        "message m1: it cannot be read",
        "a call 'c' by a name that no tool can have",
        "a call 'c' without its result",
    )


@pytest.mark.asyncio
async def test_what_was_told_before_is_not_told_again() -> None:  # BO-004
    asked: list[tuple[str, Sequence[str]]] = []

    async def untold(session: str, repairs: Sequence[str]) -> tuple[str, ...]:
        asked.append((session, repairs))
        return ()

    with capture_logs() as logs:
        await Bench(Scripted([[ANSWER]]), untold=untold).call(said=DANGLING)
        await Bench(Scripted([[ANSWER]]), untold=untold).call()
    assert logs == []
    assert [session for session, _ in asked] == ["s1"]


@pytest.mark.asyncio
async def test_a_store_that_cannot_note_it_costs_no_answer() -> None:  # BO-046
    async def full(session: str, repairs: Sequence[str]) -> tuple[str, ...]:
        raise StoreError("the disk is full")

    with capture_logs() as logs:
        assert await Bench(Scripted([[ANSWER]]), untold=full).call(repairs=["something"]) == ANSWER
    assert [line["event"] for line in logs] == ["store.unavailable", "view.repaired"]
