"""When a window is compacted, and where it is cut. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clew.context.view import Rendered

Trigger = Literal["count", "limit", "command", "quiet"]


@dataclass(frozen=True, slots=True)
class Cut:
    """A decision to compact: the first `index` rendered messages go to the summariser, up to row `to_seq`."""

    index: int
    to_seq: int
    trigger: Trigger


def count_cut(messages: Sequence[Rendered], mark: int, keep: int, turn_seq: int | None) -> Cut | None:
    """The count trigger: at `mark` messages or more, all but the newest `keep` go.

    turn_seq: row of the first user message of the running turn, None when none runs.
    """
    if len(messages) < mark:
        return None
    return cut_at(messages, len(messages) - keep, turn_seq, "count")


def limit_cut(messages: Sequence[Rendered], sizes: Sequence[int], fixed: int, target: int, turn_seq: int | None) -> Cut | None:
    """The cut that brings a request under `target` tokens.

    Messages are kept from the newest backwards while they fit beside `fixed` tokens (tools, system prompt, summary); the running turn
    is kept whatever it takes. `sizes`: tokens of each message.
    """
    kept, room = len(messages), target - fixed
    while kept > 0 and sizes[kept - 1] <= room:
        kept -= 1
        room -= sizes[kept]
    return cut_at(messages, kept, turn_seq, "limit")


def cut_at(messages: Sequence[Rendered], index: int, turn_seq: int | None, trigger: Trigger) -> Cut | None:
    """A cut in front of message `index`, moved so that no call is parted from its results and the running turn stays whole.

    A cut that would part a pair moves forward, and both halves go. None: nothing would go.
    """
    bound = _turn_index(messages, turn_seq)
    index = min(max(index, 0), bound)
    while index < bound and messages[index].kind == "results":
        index += 1
    if index <= 0:
        return None
    return Cut(index, messages[index - 1].last_seq, trigger)


def _turn_index(messages: Sequence[Rendered], turn_seq: int | None) -> int:
    if turn_seq is None:
        return len(messages)
    return next((i for i, message in enumerate(messages) if message.first_seq >= turn_seq), len(messages))


def chunks(sizes: Sequence[int], capacity: int) -> list[tuple[int, int]]:
    """Consecutive spans (from, to) whose sizes add up to at most `capacity`; a message larger than that stands alone."""
    spans: list[tuple[int, int]] = []
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if index > start and total + size > capacity:
            spans.append((start, index))
            start, total = index, 0
        total += size
    if start < len(sizes):
        spans.append((start, len(sizes)))
    return spans
