"""The least that a sequence of requests can cost, held against every placement of markers."""

from itertools import chain, combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.optimum import READ, READ_OLDER, WRITE, Sent, Weights, cost, optimum, sent
from tests.emulators.anthropic_cache import MAX_MARKERS, Block, CacheStore, account

MINIMUM = 10
Request = tuple[float, tuple[tuple[str, int], ...]]
"""(seconds, (name, tokens) of each block)."""


def blocks_of(request: Request) -> list[Block]:
    return [Block("messages", "", name, tokens, None, eligible=name != "thought") for name, tokens in request[1]]


def hashes_of(request: Request) -> list[str]:
    return [repr(request[1][: end + 1]) for end in range(len(request[1]))]


def as_sent(request: Request) -> Sent:
    blocks = blocks_of(request)
    return sent(request[0], blocks, account(blocks, hashes_of(request), [], CacheStore(), request[0], minimum=MINIMUM))


def placements(request: Request) -> list[tuple[int, ...]]:
    able = [index for index, block in enumerate(blocks_of(request)) if block.eligible]
    return list(chain.from_iterable(combinations(able, count) for count in range(min(len(able), MAX_MARKERS) + 1)))


def paid(requests: list[Request], marked: tuple[tuple[int, ...], ...], ttl: str, read: float) -> float:
    """What the emulated provider asks for these requests with markers on these blocks."""
    provider, total = CacheStore(), 0.0
    for request, markers in zip(requests, marked, strict=True):
        blocks = blocks_of(request)
        seen = account(blocks, hashes_of(request), [(index, ttl) for index in markers], provider, request[0], minimum=MINIMUM)
        provider.commit(seen, request[0])
        total += cost(seen, read)
    return total


@st.composite
def sequences(draw: st.DrawFn, blocks: int = 4, requests: int = 3) -> list[Request]:
    """A few requests that share beginnings, one after the other."""
    names = st.sampled_from([("base", 12), ("base", 7), ("recall", 5), ("ask", 3), ("thought", 4)])
    made: list[Request] = []
    now = 0.0
    for _ in range(draw(st.integers(1, requests))):
        now += draw(st.sampled_from([0.0, 100.0, 299.0, 300.0, 3599.0, 3600.0]))
        kept = draw(st.sampled_from(made))[1] if made else ()
        start = kept[: draw(st.integers(0, len(kept)))]
        more = draw(st.lists(names, min_size=0 if start else 1, max_size=blocks - len(start)))
        made.append((now, (*start, *more)))
    return made


@settings(max_examples=150)
@given(sequences(), st.sampled_from(["5m", "1h"]), st.sampled_from([READ, READ_OLDER]))
def test_no_placement_of_markers_is_cheaper_and_one_is_as_cheap(requests: list[Request], ttl: str, read: float) -> None:
    best = min(paid(requests, marked, ttl, read) for marked in product(*map(placements, requests)))
    assert optimum(map(as_sent, requests), ttl, Weights(read, WRITE[ttl]), MINIMUM) == pytest.approx(best)


@given(sequences(blocks=30, requests=12), st.sampled_from(["5m", "1h"]), st.data())
def test_it_is_beneath_whatever_is_marked(requests: list[Request], ttl: str, data: st.DataObject) -> None:
    marked = []
    for request in requests:
        able = [index for index, block in enumerate(blocks_of(request)) if block.eligible]
        some = st.lists(st.sampled_from(able), max_size=MAX_MARKERS, unique=True) if able else st.just([])
        marked.append(tuple(sorted(data.draw(some))))
    least = optimum(map(as_sent, requests), ttl, Weights(READ, WRITE[ttl]), MINIMUM)
    assert least <= paid(requests, tuple(marked), ttl, READ) + 1e-9
    assert least <= sum(tokens for _, blocks in requests for _, tokens in blocks)


def test_a_thread_that_grows_is_written_once_and_read_by_all_that_comes_behind_it() -> None:
    thread = tuple((f"m{n}", 100) for n in range(40))
    requests = [(60.0 * n, thread[: 10 + 10 * n]) for n in range(4)]
    least = optimum(map(as_sent, requests), "5m", Weights(0.1, 1.25), MINIMUM)
    assert least == pytest.approx(1000 * (1.25 + 3 * 0.1) + 1000 * (1.25 + 2 * 0.1) + 1000 * (1.25 + 0.1) + 1000)
    moving = [{len(blocks) - 1, max(len(blocks) - 11, 0)} for _, blocks in requests]
    assert paid(requests, tuple(tuple(sorted(marked)) for marked in moving), "5m", 0.1) == pytest.approx(least + 1000 * 0.25)


def test_what_is_held_twice_an_hour_is_not_worth_a_write_for_an_hour() -> None:
    requests: list[Request] = [(0.0, (("base", 1000),)), (1800.0, (("base", 1000),))]
    assert optimum(map(as_sent, requests), "1h", Weights(0.05, 2.0), MINIMUM) == 2000
    assert optimum(map(as_sent, [*requests, (3000.0, (("base", 1000),))]), "1h", Weights(0.05, 2.0), MINIMUM) == pytest.approx(2100)


def test_nothing_shorter_than_the_minimum_is_held() -> None:
    requests: list[Request] = [(float(n), (("base", 9),)) for n in range(5)]
    assert optimum(map(as_sent, requests), "5m", Weights(0.05, 1.25), MINIMUM) == 45


def test_a_compacted_thread_with_changing_recall_costs_what_its_closed_form_says() -> None:
    """Cycles of 26 turns on base B and a summary S, K messages kept, recall R behind the newest message and gone with the next."""
    b, s, m, r, kept, turns, cycles = 3000, 1000, 150, 500, 8, 26, 3
    read, write = 0.1, 1.25
    requests: list[Request] = []
    for cycle in range(cycles):
        thread = [(f"{cycle} m{n}", m) for n in range(kept + 2 * turns)]
        for turn in range(1, turns + 1):
            blocks = (("base", b), (f"{cycle} summary", s), *thread[: kept + 2 * turn - 1], (f"{cycle} recall {turn}", r))
            requests.append((30.0 * len(requests), blocks))
    read_again = sum(b + s + (kept + 2 * turn - 3) * m for turn in range(1, turns + 1))
    cycle_cost = read * read_again + turns * (2 * m * write + r) + (write - read) * (s + (kept - 1) * m)
    unread = (write - 1) * 2 * m  # what was said last in front of a compaction is not worth a write
    least = optimum(map(as_sent, requests), "5m", Weights(read, write), 512)
    assert least == pytest.approx(cycles * (cycle_cost - unread) + (write - read) * b)
    assert cycle_cost / turns == pytest.approx(1846, abs=1)
