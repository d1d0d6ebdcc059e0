"""What a sequence of requests costs, and the least that any placement of cache markers could have made it cost. Pure.

Costs are in input-token equivalents: a token that is neither read from the cache nor written to it counts 1.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.emulators.anthropic_cache import TTL_SECONDS, Accounting, Block


@dataclass(frozen=True, slots=True)
class Weights:
    """What a token read from the cache and one written to it cost, in plain ones (Anthropic's list prices of October 2026)."""

    read: float
    write: float


WRITE = {"5m": 1.25, "1h": 2.0}
"""Weights of a written token, by the time to live."""
READ = 0.05
"""Weight of a token read by Opus 5.5 and Sonnet 5.5."""
READ_OLDER = 0.1
"""Weight of a token read by most other models."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request. at: its start, seconds. total: its tokens. prefixes: (hash, tokens up to there) of each block that can bear a marker,
    front to back."""

    at: float
    total: int
    prefixes: tuple[tuple[str, int], ...]


def sent(at: float, blocks: Sequence[Block], accounting: Accounting) -> Sent:
    """The request that was accounted for, with those of its blocks that can bear a marker."""
    able = zip(accounting.prefixes, blocks, strict=True)
    return Sent(at, accounting.total, tuple(prefix for prefix, block in able if block.eligible))


def cost(accounting: Accounting, read: float) -> float:
    """What a request cost. read: the weight of a token read."""
    written = accounting.created_5m * WRITE["5m"] + accounting.created_1h * WRITE["1h"]
    return accounting.input + written + accounting.read * read


@dataclass(slots=True)
class _Stretch:
    """The tokens between two places for a marker, and the requests that hold them and all in front of them: when they were sent."""

    tokens: int
    times: list[float] = field(default_factory=list)


def optimum(requests: Iterable[Sent], ttl: str, weights: Weights, minimum: int) -> float:
    """The least that `requests`, in the order of their times, could cost with one time to live, whoever sets markers knowing them all.

    Nothing limits it but what the provider bills by: entries end at blocks, hold at least `minimum` tokens and live for `ttl` from the
    start of the request that wrote or last read them. Four markers and a look back of twenty blocks can only cost more. Each stretch of
    a prompt decides for itself: of requests that hold it, each within `ttl` of the one before, it is best written by the first, if the
    others save more by reading it than that costs. Whoever is in front of it is held by the same requests and more, so that it is
    written and alive wherever this one is.
    """
    plain, stretches = 0, dict[str, _Stretch]()
    for request in requests:
        done = 0
        for prefix, upto in request.prefixes:
            if upto >= minimum:
                stretches.setdefault(prefix, _Stretch(upto - done)).times.append(request.at)
                done = upto
        plain += request.total - done
    lifetime = TTL_SECONDS[ttl]
    return plain + sum(
        stretch.tokens * min(count, weights.write + (count - 1) * weights.read)
        for stretch in stretches.values()
        for count in _runs(stretch.times, lifetime)
    )


def _runs(times: Sequence[float], lifetime: float) -> Iterator[int]:
    """How many requests follow each other, each while what the one before left is alive."""
    count, before = 0, times[0]
    for at in times:
        if at - before >= lifetime:
            yield count
            count = 0
        count, before = count + 1, at
    yield count
