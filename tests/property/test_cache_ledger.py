"""What a call read from its provider's cache, and why not more: each cause, and any history whatever."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.context.cache_ledger import AUTOMATIC_MINIMUM, CHANGES, Call, Segment, explain, first_change, told
from clew.messages import Usage

NOW = 1_800_000_000.0
HOUR = 3600.0


def segments(**hashes: str) -> tuple[Segment, ...]:
    return tuple((name, digest, 100) for name, digest in hashes.items())


FULL = segments(tools="t", base="b", notes="n", summary="s", recall="r", messages="m1")
BEFORE = Call("claude", "sonnet", NOW, Usage(200, 50, 8000, 1000), FULL, HOUR, 8000)
AFTER = Call("claude", "sonnet", NOW + 60, Usage(0, 50, 9000, 400), (*FULL[:-1], ("messages", "m2", 100)), HOUR, 9000)


def short(call: Call, *earlier: Call) -> str:
    reading = explain(call, earlier)
    assert reading.state == "short"
    assert reading.segment
    return reading.why


def changed(segment: str, **more: object) -> Call:
    """A call in which one segment, and so the hash of everything behind it, differs."""
    names = [name for name, _, _ in FULL]
    behind = names.index(segment)
    made = tuple((name, digest if at < behind else f"{digest}'", size) for at, (name, digest, size) in enumerate(AFTER.segments))
    return replace(AFTER, segments=made, usage=Usage(8000, 50, 1000, 0), held=1000, **more)  # type: ignore[arg-type]


def test_what_the_call_before_read_and_wrote_can_be_read() -> None:  # P28, P30
    reading = explain(AFTER, [BEFORE])
    assert (reading.state, reading.expected, reading.reported, reading.why) == ("whole", 9000, 9000, "")
    assert told(reading) == "read 9,000 of 9,000 tokens that it could"


@pytest.mark.parametrize("segment", list(CHANGES))
def test_the_first_segment_that_changed_is_named(segment: str) -> None:  # P30
    reading = explain(changed(segment), [BEFORE])
    assert (reading.segment, reading.why) == (segment, CHANGES[segment])
    assert told(reading) == f"read 1,000 of 9,000 tokens that it could: {CHANGES[segment]}"


def test_a_segment_that_came_or_went_is_named() -> None:  # P30
    without = tuple(each for each in FULL if each[0] != "notes")
    assert first_change(FULL, without) == first_change(without, FULL) == "notes"
    assert first_change(FULL[:-2], FULL) == "recall"
    assert first_change((), FULL) == first_change(FULL, ()) == ""


def test_a_silence_longer_than_the_cache_lives_is_told_with_both_lengths() -> None:  # P30
    late = replace(changed("notes"), started=NOW + 63 * 60, usage=Usage(9000, 50), held=0)
    assert short(late, BEFORE) == "idle 63 min, ttl 1h"
    assert short(replace(late, ttl=300.0, started=NOW + 301), replace(BEFORE, ttl=300.0)) == "idle 5 min, ttl 5m"
    # Another session's call kept the beginning warm: that is no silence of the cache.
    assert short(replace(late, held=9000), BEFORE) == "notes changed"


def test_another_model_has_a_cache_of_its_own() -> None:  # P30
    other = replace(AFTER, model="opus", usage=Usage(9000, 50), held=0)
    assert short(other, BEFORE) == "model changed"
    assert explain(AFTER, [other, BEFORE]).state == "whole", "it went back to the one before"


def test_messages_that_changed_are_told_from_a_cache_that_was_dropped() -> None:  # P30
    read_less = replace(AFTER, usage=Usage(5000, 50, 4000, 0))
    assert short(replace(read_less, held=4000), BEFORE) == "messages changed"
    assert short(replace(read_less, held=9000), BEFORE) == "the provider dropped it"
    assert short(replace(AFTER, usage=Usage(401, 50, 8999, 0)), BEFORE) == "the provider dropped it", "it is known to the token"


def test_a_prompt_too_short_to_be_cached_is_no_miss() -> None:
    small = replace(BEFORE, usage=Usage(300, 50), held=0)
    reading = explain(replace(small, started=NOW + 60), [small])
    assert (reading.state, told(reading)) == ("small", "nothing, the prompt is too short to be cached")


def test_the_first_call_of_a_session_has_nothing_to_read() -> None:
    assert explain(replace(BEFORE, usage=Usage(9000, 50)), []).state == "first"
    shared = explain(BEFORE, [])
    assert (shared.state, told(shared)) == ("first", "read 8,000 tokens in the first call here")


def test_servers_that_cache_by_themselves_are_told_of_as_far_as_they_say() -> None:  # P30
    plain = Call("local", "qwen", NOW, Usage(12_000, 50), FULL)
    silent = replace(plain, started=NOW + 9000)
    assert explain(silent, [plain]).state == "unknown"
    assert "by itself or not at all" in told(explain(silent, [plain]))
    assert explain(replace(silent, usage=Usage(1000, 50, 11_000)), [plain]).state == "whole", "in multiples of so many tokens"
    assert short(replace(silent, usage=Usage(9000, 50, 3000)), plain) == "the provider dropped it"
    moved = replace(silent, segments=changed("recall").segments)
    assert short(moved, plain) == "recall changed"
    tiny = replace(plain, usage=Usage(AUTOMATIC_MINIMUM - 1, 5))
    assert explain(tiny, [tiny]).state in ("small", "unknown")


counts = st.integers(0, 20_000)
hashes = st.sampled_from("abc")
calls = st.builds(
    Call,
    st.sampled_from(["claude", "local"]),
    st.sampled_from(["m", "n"]),
    st.floats(NOW, NOW + 20_000),
    st.builds(Usage, counts, counts, counts, counts),
    st.lists(st.sampled_from([*CHANGES, "messages"]), unique=True, max_size=6).flatmap(
        lambda names: st.tuples(*(st.tuples(st.just(name), hashes, counts) for name in names))
    ),
    st.sampled_from([None, 300.0, HOUR]),
    st.none() | counts,
)


@given(calls, st.lists(calls, max_size=4))
def test_any_history_is_explained(call: Call, earlier: list[Call]) -> None:  # P30
    reading = explain(call, earlier)
    assert reading.reported == call.usage.cache_read
    assert bool(reading.why) == (reading.state == "short")
    assert reading.state != "whole" or reading.reported <= reading.expected
    assert told(reading)


@given(calls, calls)
def test_the_provider_is_blamed_only_where_nothing_of_ours_changed(call: Call, before: Call) -> None:  # P30
    reading = explain(call, [before])
    if reading.why == "the provider dropped it":
        assert (call.provider, call.model) == (before.provider, before.model)
        assert not first_change(before.segments, call.segments)
        assert call.held is None or call.held >= reading.expected
    if reading.state == "short" and call.ttl is not None:
        assert reading.reported < reading.expected or reading.why == "model changed"
