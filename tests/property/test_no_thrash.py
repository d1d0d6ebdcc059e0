"""Long threads in windows of every size: always below the hard limit, and no compaction that frees nothing."""

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.context.compression import WORTHWHILE, Sizes, Trigger, count_cut, token_plan
from clew.context.shortening import Shortening
from clew.context.tokens import Window, window
from clew.context.view import Kind, Rendered
from clew.messages import Message
from tests.threads import START

LINE = 40
"""Tokens of the line that stands for a shortened result."""


@dataclass
class Said:
    """A message of the simulated thread."""

    seq: int
    kind: Kind
    size: int
    turn: int
    read: bool = False
    short: bool = False


@dataclass
class Thread:
    """A thread whose model counts as it is estimated, and whose summaries are as long as they may be."""

    bounds: Window
    fixed: int
    mark: int
    keep: int
    said: list[Said] = field(default_factory=list)
    summary: int = 0
    seq: int = 0
    turn: int = 0
    added: int = 0
    first: int = 0
    freed: list[int] = field(default_factory=list)
    """What each token compaction freed that was not forced by the hard limit."""
    counted: list[int] = field(default_factory=list)

    def add(self, kind: Kind, size: int) -> None:
        self.seq += 1
        self.added += size
        self.said.append(Said(self.seq, kind, size, self.turn))

    @property
    def allowance(self) -> int:
        return min(1500, self.bounds.summary_limit) + 60

    @property
    def messages(self) -> list[Rendered]:
        return [
            Rendered(m.kind, (Message(f"m{m.seq}", m.seq, "tool" if m.kind == "results" else "user", (), START),), ()) for m in self.said
        ]

    @property
    def sizes(self) -> Sizes:
        return Sizes(self.fixed, self.summary, self.allowance, tuple(m.size for m in self.said))

    def call(self) -> None:
        """A model call: what is due is done in front of it, and the model has read everything behind it."""
        cut = count_cut(self.messages, self.mark, self.keep, self.first)
        if cut is not None:
            self.counted.append(cut.index)
            self.said, self.summary = self.said[cut.index :], self.allowance
        before = self.sizes.total
        if before > self.bounds.threshold:
            self._compact("tokens")
        self._check(before)
        for each in self.said:
            each.read = True

    def _compact(self, trigger: Trigger) -> None:
        before = self.sizes.total
        plan = token_plan(self.messages, self.sizes, self._shortenings(), self.bounds, self.first, trigger)
        if plan is None:
            return
        shorten = {int(row[1:]) for row in plan.shorten}
        for each in self.said:
            if each.seq in shorten:
                assert each.read
                assert each.kind == "results"
                each.size, each.short = LINE, True
        if plan.cut is not None:
            assert all(each.turn != self.turn for each in self.said[: plan.cut.index])
            self.said, self.summary = self.said[plan.cut.index :], self.allowance
        assert self.sizes.total == plan.after < before
        if before <= self.bounds.hard_limit:
            self.freed.append(before - plan.after)

    def _shortenings(self) -> list[Shortening]:
        found = [
            Shortening(f"m{m.seq}", index, m.size - LINE, 4 * m.size, m.seq % 3)
            for index, m in enumerate(self.said)
            if m.kind == "results" and m.read and not m.short and m.size > 300
        ]
        return sorted(found, key=lambda each: (each.references, -each.size, each.index))

    def _check(self, before: int) -> None:
        total = self.sizes.total
        running = sum(LINE if m.kind == "results" and m.read and m.size > 300 else m.size for m in self.said if m.turn == self.turn)
        least = self.fixed + self.allowance + running
        assert total <= max(self.bounds.hard_limit, least)
        if total > self.bounds.threshold:  # then hardly anything of it could have gone
            assert total - max(least, self.bounds.target) < self.bounds.threshold // WORTHWHILE + (
                self.bounds.threshold - self.bounds.target
            )


size = st.floats(0, 1).map(lambda x: x**4)
"""Shares of the largest size: many small messages, a few large ones."""
turns = st.lists(st.tuples(size, st.lists(size, max_size=4), size), min_size=5, max_size=60)


@settings(max_examples=150)
@given(
    st.sampled_from([8_192, 16_384, 32_768, 200_000, 1_000_000]),
    turns,
    st.integers(1, 6),
    st.floats(0, 0.375),
    st.sampled_from([(60, 8), (20, 6), (10_000, 8)]),
)
def test_a_long_thread_stays_below_the_hard_limit_and_compacts_only_for_a_gain(
    model_window: int, said: list[tuple[float, list[float], float]], times: int, fixed: float, marks: tuple[int, int]
) -> None:  # P9
    bounds = window(model_window)
    # Tools, base and recall at their upper bounds at most; a person's message and the results of one message a quarter of W each.
    thread = Thread(bounds, 100 + int(fixed * bounds.w), *marks)
    largest = bounds.w // 4
    for asked, rounds, reply in said * times:
        thread.turn += 1
        thread.add("user", 10 + int(asked * largest * 0.8))
        thread.first = thread.seq
        thread.call()
        for result in rounds:
            thread.add("assistant", 60)
            thread.add("results", 20 + int(result * largest))
            thread.call()
        thread.add("assistant", 10 + int(reply * 1000))
    # Each token compaction frees a twelfth of T of what was said: there are no more of them than that allows, however the sizes fall.
    assert all(freed >= bounds.threshold // WORTHWHILE for freed in thread.freed)
    allowances = (len(thread.freed) + len(thread.counted)) * thread.allowance
    assert sum(thread.freed) <= thread.added + allowances
    # And each count compaction needs as many new messages as the last one took.
    mark, keep = marks
    assert sum(thread.counted) <= thread.seq
    assert all(demoted >= 1 for demoted in thread.counted)
    assert len(thread.counted) <= thread.seq // (mark - keep) + sum(len(rounds) * 2 + 2 > mark - keep for _, rounds, _ in said * times) + 1


@given(st.integers(8_192, 1_000_000), st.integers(1, 40))
def test_a_plain_thread_in_any_window_never_compacts_twice_in_a_row(model_window: int, size: int) -> None:  # P9
    bounds = window(model_window)
    thread = Thread(bounds, bounds.w // 8, 10_000, 8)
    fired: list[int] = []
    for number in range(200):
        thread.turn += 1
        before = len(thread.freed)
        thread.add("user", max(bounds.w * size // 400, 1))
        thread.first = thread.seq
        thread.call()
        thread.add("assistant", max(bounds.w * size // 800, 1))
        if len(thread.freed) > before:
            fired.append(number)
    # From the target to the threshold there is room for a fifth of W at least.
    gap = (bounds.threshold - bounds.target) * 2 // 3 // max(bounds.w * size * 3 // 800, 1)
    assert all(later - earlier >= gap for earlier, later in pairwise(fired))
