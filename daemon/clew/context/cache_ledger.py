"""What a call could have read from its provider's cache, what it read, and why that was less. Pure.

A provider with markers (Anthropic) holds what the call before marked until its lifetime ends, so what can be read is known to the token.
Others cache by themselves (OpenAI, llama.cpp, vLLM) or do not say what they read (Ollama): of them only what changed is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from clew.messages import Usage

AUTOMATIC_MINIMUM = 1024
"""Tokens below which servers that cache by themselves keep nothing (OpenAI's guide)."""
AUTOMATIC_STEP = 2048
"""Tokens in whose multiples they keep a prompt, the longest step of one in use (OpenAI's guide, GPT-5.5)."""

MODEL, DROPPED, MESSAGES = "model changed", "the provider dropped it", "messages changed"
CHANGES = {
    "tools": "tool list changed",
    "base": "system prompt changed",
    "notes": "notes changed",
    "summary": "compaction",
    "recall": "recall changed",
}
"""Why nothing behind a segment could be read, by that segment."""

Segment = tuple[str, str, int]
"""(name, hash of the prompt up to its end, estimated tokens)."""
State = Literal["first", "whole", "short", "small", "unknown"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a session that was answered.

    started: seconds since the epoch. ttl: seconds for which what it
    marked is held, None without markers. held: tokens of its prompt that the provider held by clew's own record, None where there is none.
    """

    provider: str
    model: str
    started: float
    usage: Usage
    segments: tuple[Segment, ...] = ()
    ttl: float | None = None
    held: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of a cache. expected, reported: tokens that could be read, and that the provider says were.

    state: `first` of its session; `whole`: all of it was read; `short`: less, see `why`, from `segment` on; `small`: too short a prompt to
    be cached; `unknown`: the provider says nothing of it.
    """

    state: State
    expected: int
    reported: int
    segment: str = ""
    why: str = ""


def explain(call: Call, earlier: Sequence[Call]) -> Reading:
    """What `call` read, and why not more. earlier: the calls of its session before it, the newest first; their cache is what it goes on
    from, though other sessions share the beginning."""
    read = call.usage.cache_read
    before = next((each for each in earlier if (each.provider, each.model) == (call.provider, call.model)), None)
    if before is None:
        if not earlier or read:
            return Reading("first", call.held or 0, read)
        return Reading("short", 0, read, _front(call), MODEL)
    could = _could(call, before)
    if read >= could - (0 if call.ttl is not None else AUTOMATIC_STEP):
        return Reading("whole", max(could, read), read) if read else Reading(_nothing(call, could), could, read)
    idle = call.started - before.started
    if call.ttl is not None and idle > call.ttl and (call.held or 0) < could:
        return Reading("short", could, read, _front(call), f"idle {_span(idle)}, ttl {_span(call.ttl)}")
    if segment := first_change(before.segments, call.segments):
        return Reading("short", could, read, segment, CHANGES.get(segment, f"{segment} changed"))
    if call.held is not None and call.held < could:
        return Reading("short", could, read, "messages", MESSAGES)
    if call.ttl is None and not read:
        return Reading("unknown", could, read)
    return Reading("short", could, read, "messages", DROPPED)


def _could(call: Call, before: Call) -> int:
    """Tokens of the longest prefix that a provider may still hold of the call before: what that read and wrote or, without markers, all
    of it."""
    if call.ttl is not None:
        return before.usage.cache_read + before.usage.cache_write
    return before.usage.prompt if before.usage.prompt >= AUTOMATIC_MINIMUM else 0


def _nothing(call: Call, could: int) -> State:
    """What it means that nothing was read, and little or nothing could be."""
    return "small" if not could or call.ttl is not None else "unknown"


def first_change(before: Sequence[Segment], after: Sequence[Segment]) -> str:
    """The first segment in front of the messages that is not as it was: changed, new or gone; empty where all are. Empty too where
    nothing is known of one of them."""
    if not before or not after:
        return ""
    old, new = ([each[:2] for each in segments if each[0] != "messages"] for segments in (before, after))
    differing = next(((was, stands) for was, stands in zip_longest(old, new) if was != stands), ())
    return min((each[0] for each in differing if each), key=_place, default="")


def _place(segment: str) -> int:
    """Where a segment stands in a prompt."""
    order = list(CHANGES)
    return order.index(segment) if segment in order else len(order)


def _front(call: Call) -> str:
    return call.segments[0][0] if call.segments else ""


def _span(seconds: float) -> str:
    """A length of time as caches have it: 63 min, 1h, 5m, 40 s."""
    if seconds in (300.0, 3600.0):
        return "5m" if seconds == 300.0 else "1h"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds // 60:.0f} min" if seconds < 3 * 3600 else f"{seconds // 3600:.0f} h"


def told(reading: Reading) -> str:
    """A reading in words, to stand behind `Prompt cache:`."""
    counts = f"read {reading.reported:,} of {reading.expected:,} tokens that it could"
    match reading.state:
        case "first":
            return (
                f"read {reading.reported:,} tokens in the first call here" if reading.reported else "nothing to read in the first call here"
            )
        case "whole":
            return counts
        case "small":
            return "nothing, the prompt is too short to be cached"
        case "unknown":
            return "the provider reports no reads, and caches by itself or not at all"
    return f"{counts}: {reading.why}"
