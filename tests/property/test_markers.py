"""Long conversations against an independent account of the provider's cache."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.context.compression import cut_at
from clew.context.prompt import Parts, Placement, layout, mark, prefixes
from clew.context.view import head, window
from clew.messages import Usage
from clew.model_call import TTL_SECONDS
from clew.providers.anthropic import payload
from clew.request import Request, ToolSpec, Ttl
from tests.emulators.anthropic_cache import MAX_MARKERS, Accounting, CacheStore, account, chain, flatten, resolve_markers
from tests.emulators.server import words
from tests.threads import Thread

MODEL = "claude-sonnet-5-5"
HEAD = head(UTC, "", direct=True)
TOOLS = (ToolSpec("find", "finds what was said", "{}"), ToolSpec("open", "opens a message", "{}"))
RECALLS = ("", "RECALL of a garden " + "rose " * 30, "RECALL of a boat " + "sail " * 30)
NOTES = ("", "Ada gardens. " * 10, "Ada sails. " * 10)


@dataclass
class Bench:
    """A session, clew's own record of what is cached, and the account of the provider it is held against."""

    placement: Placement
    ttl: Ttl
    minimum: int
    provider: CacheStore = field(default_factory=CacheStore)
    entries: dict[str, float] = field(default_factory=dict)
    thread: Thread = field(default_factory=Thread)
    compactions: list[tuple[int, str]] = field(default_factory=list)
    recall: int = 0
    notes: int = 0
    now: float = 1_780_000_000.0
    calls: int = 0

    def parts(self) -> Parts:
        start, summary = self.compactions[-1] if self.compactions else (0, "")
        rows = [row for row in self.thread.rows if row.seq > start]
        return Parts(
            "You are clew. " * 20,
            window(rows, self.thread.turn).messages,
            HEAD,
            TOOLS,
            NOTES[self.notes],
            summary,
            f"[{start} messages were compacted.]" if summary else "",
            RECALLS[self.recall],
            self.placement,
        )

    def call(self) -> Accounting:
        """One model call: marked by clew, accounted by the provider, recorded as the agent does."""
        request = layout(self.parts(), max_tokens=100, ttl=self.ttl, cache_key="s")
        hashes = prefixes(request, account="p")
        marks = mark(request, hashes, {entry for entry, expires in self.entries.items() if expires > self.now})
        body = payload(marks.request, MODEL)
        blocks = flatten(body, words)
        markers = resolve_markers(blocks, None)
        seen = account(blocks, chain(body, blocks, "key"), markers, self.provider, self.now, minimum=self.minimum)
        self.provider.commit(seen, self.now)
        usage = Usage(seen.input, 10, seen.read, seen.created)
        self._record([prefix.hash for _, prefix in marks.marked], usage)
        assert len(markers) == len(marks.marked) <= MAX_MARKERS
        marked = repr([blocks[index].canonical for index, _ in markers])
        assert "RECALL" not in marked
        assert seen.read == seen.longest_unexpired_prefix
        self._check_kept(request, seen)
        self.calls += 1
        self.now += 5
        return seen

    def _check_kept(self, request: Request, seen: Accounting) -> None:
        """What a later call may share is in the cache now: the base, notes and summary, and all up to the newest block."""
        shared = [index for index, block in enumerate(request.system) if block.kind != "recall"]
        recall = request.messages[-1].recall is not None
        for index in (len(TOOLS), len(TOOLS) + shared[-1], len(seen.prefixes) - 1 - recall):
            prefix, tokens = seen.prefixes[index]
            assert tokens < self.minimum or self.provider.live(prefix, self.now)

    def _record(self, marked: Sequence[str], usage: Usage) -> None:
        if usage.cache_read + usage.cache_write:
            for entry in marked:
                self.entries[entry] = self.now + TTL_SECONDS[self.ttl]

    # What happens in a conversation ----------------------------------------------------------------------------------

    def turn(self, rounds: Sequence[int], recall: int) -> None:
        """One turn: `rounds` has the number of parallel calls of each round, 0 for a compaction. Recall is decided once and fixed."""
        self.recall = recall
        number = len(self.thread.rows)
        self.thread.turn = f"t{number}"
        asked = self.thread.user(f"question {number} " + "why " * 20)
        self.call()
        for index, count in enumerate(rounds):
            if count == 0:
                self.compact(2, asked.seq)
            else:
                self.thread.round(*(f"c{number}_{index}_{each}" for each in range(count)), size=8)
            self.call()
        self._answer(f"answer {number} " + "so " * 20)

    def _answer(self, text: str) -> None:
        self.thread.reply(text)
        self.thread.turn = ""

    def compact(self, keep: int, turn: int | None = None) -> None:
        start = self.compactions[-1][0] if self.compactions else 0
        messages = window([row for row in self.thread.rows if row.seq > start]).messages
        cut = cut_at(messages, len(messages) - keep, turn, "command")
        if cut is not None:
            self.compactions.append((cut.to_seq, f"Summary up to {cut.to_seq}. " + "matter " * 40))

    def undo(self) -> None:
        if self.compactions:
            self.compactions.pop()

    def take_back(self) -> None:
        """The last exchange leaves the window, as after `/undo`."""
        asked = [row.seq for row in self.thread.rows if row.role == "user"]
        start = self.compactions[-1][0] if self.compactions else 0
        if asked and asked[-1] > start:
            self.thread.rows = [row for row in self.thread.rows if row.seq < asked[-1]]


Event = tuple[str, object]
turns = st.tuples(st.just("turn"), st.tuples(st.lists(st.sampled_from([0, 1, 2, 11, 25]), max_size=3), st.integers(0, 2)))
plain = st.tuples(st.just("plain"), st.integers(1, 12))
others = (
    st.tuples(st.just("compact"), st.integers(1, 9))
    | st.tuples(st.just("undo"), st.none())
    | st.tuples(st.just("take back"), st.none())
    | st.tuples(st.just("notes"), st.integers(0, 2))
    | st.tuples(st.just("idle"), st.sampled_from([60.0, 200.0, 299.0, 300.0, 1800.0, 3600.0, 4000.0]))
)
conversations = st.lists(turns | plain | others, min_size=3, max_size=14)


def happen(bench: Bench, event: Event) -> None:
    match event:
        case "turn", (list() as rounds, int() as recall):
            bench.turn(rounds, recall)
        case "plain", int() as count:
            for _ in range(count):
                bench.turn([], bench.recall)
        case "compact", int() as keep:
            bench.compact(keep)
        case "undo", None:
            bench.undo()
        case "take back", None:
            bench.take_back()
        case "notes", int() as notes:
            bench.notes = notes
        case "idle", float() as seconds:
            bench.now += seconds


@settings(max_examples=250, deadline=None)
@given(conversations, st.sampled_from(["system", "message"]), st.sampled_from(["5m", "1h"]), st.sampled_from([1, 150, 512]))
def test_every_call_reads_the_longest_prefix_that_an_earlier_one_wrote(
    events: list[Event], placement: Placement, ttl: Ttl, minimum: int
) -> None:  # P28 P29
    bench = Bench(placement, ttl, minimum)
    for event in [*events, ("turn", ([1], 1))]:
        happen(bench, event)
    assert bench.calls >= 2


def test_the_first_call_after_a_compaction_writes_the_summary_and_every_later_one_reads_it() -> None:  # P28
    bench = Bench("system", "1h", 100)
    for _ in range(6):
        bench.turn([], 1)
    bench.compact(4)
    first = bench.call()
    base, summary, *_ = first.markers
    upto = first.prefixes[summary[0]][1]
    assert (base[0], summary[0]) == (len(TOOLS), len(TOOLS) + 1)
    assert first.read < upto <= first.read + first.created
    for recall in (2, 0, 1):
        bench.recall = recall
        assert bench.call().read >= upto
    bench.now += 3600
    assert bench.call().read == 0


def test_an_undo_reads_the_bytes_that_are_still_cached() -> None:  # P21 P28
    bench = Bench("system", "1h", 100)
    for _ in range(4):
        bench.turn([], 0)
    whole = bench.call()
    bench.compact(2)
    assert bench.call().read < whole.total
    bench.undo()
    again = bench.call()
    assert (again.read, again.created) == (whole.total, 0)


def test_a_recall_block_that_flips_back_reads_all_that_was_behind_it() -> None:  # P28 P29
    bench = Bench("system", "1h", 100)
    bench.turn([11, 25], 1)
    whole = bench.call()
    bench.turn([], 2)
    bench.thread.rows = bench.thread.rows[:-2]
    bench.recall = 1
    assert bench.call().read == whole.total


def test_a_changed_recall_leaves_base_notes_and_summary_read_from_the_cache() -> None:  # P29
    bench = Bench("system", "1h", 100)
    bench.notes = 1
    for _ in range(4):
        bench.turn([], 1)
    bench.compact(3)
    before = bench.call()
    bench.recall = 2
    after = bench.call()
    assert after.read == before.prefixes[before.markers[1][0]][1] > 0


def test_a_round_of_many_parallel_calls_is_read_behind_the_look_back_of_a_marker() -> None:  # P28
    bench = Bench("system", "1h", 100)
    bench.turn([], 0)
    whole = bench.call()
    bench.thread.turn = "t"
    bench.thread.user("find them all")
    bench.call()
    bench.thread.round(*(f"p{number}" for number in range(40)))
    after = bench.call()
    assert after.read > whole.total
    assert after.read == after.longest_unexpired_prefix


def test_the_bench_sees_a_marker_that_is_missing() -> None:
    """Without the third marker a long round is not read again: the account above is not empty."""
    bench = Bench("system", "1h", 1)
    bench.turn([], 0)
    bench.thread.round(*(f"p{number}" for number in range(40)))
    request = layout(bench.parts(), max_tokens=100, ttl="1h", cache_key="s")
    body = payload(mark(request, prefixes(request), ()).request, MODEL)
    blocks = flatten(body, words)
    seen = account(blocks, chain(body, blocks, "key"), resolve_markers(blocks, None), bench.provider, bench.now, minimum=1)
    assert seen.read < seen.longest_unexpired_prefix


def test_without_a_lifetime_nothing_is_marked_on_the_wire() -> None:  # P28
    bench = Bench("system", "1h", 1)
    bench.turn([], 0)
    request = layout(bench.parts(), max_tokens=100, ttl=None, cache_key="s")
    assert "cache_control" not in repr(payload(mark(request, prefixes(request), ()).request, MODEL))
