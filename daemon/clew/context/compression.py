"""When a window is compacted, and where it is cut. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clew.context.shortening import Shortening
from clew.context.tokens import Window
from clew.context.view import Rendered

WORTHWHILE = 12
"""A token trigger fires only where it frees at least one such part of its threshold, unless the request would not fit otherwise."""

Trigger = Literal["count", "tokens", "limit", "overflow", "command", "quiet", "task", "topic", "cold"]
"""Why a window is compacted. tokens: its threshold is passed; limit: it would not fit; overflow: the provider said so; cold: its cache
has expired."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A decision to compact: the first `index` rendered messages go to the summariser, up to row `to_seq`."""

    index: int
    to_seq: int
    trigger: Trigger


def count_cut(messages: Sequence[Rendered], mark: int, keep: int, turn_seq: int | None, hold_seq: int = 0) -> Cut | None:
    """The count trigger: at `mark` messages or more, all but the newest `keep` go.

    turn_seq: row of the first user message of the running turn, None when none runs. hold_seq: the last row when a compaction was
    undone, 0 where none was: it fires again when `mark` - `keep` messages have come behind it.
    """
    if len(messages) < mark or (hold_seq and behind(messages, hold_seq) < mark - keep):
        return None
    return cut_at(messages, len(messages) - keep, turn_seq, "count")


def behind(messages: Sequence[Rendered], seq: int) -> int:
    """How many messages came behind row `seq`."""
    return sum(message.last_seq > seq for message in messages)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a request is made of, in tokens as the model counts them.

    fixed: tools, base prompt, notes, recall. summary: the one that stands there. allowance: what a new one may take, the pinned messages
    it holds included. messages: each message of the window.
    """

    fixed: int
    summary: int
    allowance: int
    messages: tuple[int, ...]

    @property
    def total(self) -> int:
        return self.fixed + self.summary + sum(self.messages)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a request comes down to its target: rows to shorten, then a cut; None where shortening is enough. after: tokens then."""

    shorten: tuple[str, ...]
    cut: Cut | None
    after: int


def token_plan(
    messages: Sequence[Rendered], sizes: Sizes, shortenable: Sequence[Shortening], bounds: Window, turn_seq: int | None, trigger: Trigger
) -> Plan | None:
    """What brings a window that has grown too large to its target, the cheap way first.

    What `shortenable` names, in its order, is shortened until the target is reached. If that is not enough, messages are kept from
    the newest backwards until the target is reached, the running turn whatever it takes. None: nothing can be done, or what it
    would free is not worthwhile and the request fits as it is. `saved` of the shortenings: tokens as the model counts them.
    """
    saved = [0] * len(messages)
    for each in shortenable:
        saved[each.index] += each.saved
    left = [size - less for size, less in zip(sizes.messages, saved, strict=True)]
    start = _turn_index(messages, turn_seq)
    target = bounds.target_above(sizes.fixed + sizes.allowance + sum(left[start:]))
    plan = _shortened(sizes.total, shortenable, target) or _cut_plan(messages, sizes, shortenable, left, target, turn_seq, trigger)
    if plan is None:
        return None
    worthwhile = sizes.total - plan.after >= bounds.threshold // WORTHWHILE
    return plan if worthwhile or sizes.total > bounds.hard_limit else None


def _shortened(total: int, shortenable: Sequence[Shortening], target: int) -> Plan | None:
    rows: list[str] = []
    for each in shortenable:
        rows.append(each.row)
        total -= each.saved
        if total <= target:
            return Plan(tuple(rows), None, total)
    return None


def _cut_plan(
    messages: Sequence[Rendered],
    sizes: Sizes,
    shortenable: Sequence[Shortening],
    left: Sequence[int],
    target: int,
    turn_seq: int | None,
    trigger: Trigger,
) -> Plan | None:
    cut = fitting_cut(messages, left, target - sizes.fixed - sizes.allowance, turn_seq, trigger)
    if cut is None:
        rows = tuple(each.row for each in shortenable)
        return Plan(rows, None, sizes.fixed + sizes.summary + sum(left)) if rows else None
    kept = tuple(each.row for each in shortenable if each.index >= cut.index)
    return Plan(kept, cut, sizes.fixed + sizes.allowance + sum(left[cut.index :]))


def fitting_cut(messages: Sequence[Rendered], sizes: Sequence[int], room: int, turn_seq: int | None, trigger: Trigger) -> Cut | None:
    """Messages are kept from the newest backwards while they fit into `room` tokens, the running turn whatever it takes."""
    kept = len(messages)
    while kept > 0 and sizes[kept - 1] <= room:
        kept -= 1
        room -= sizes[kept]
    return cut_at(messages, kept, turn_seq, trigger)


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
