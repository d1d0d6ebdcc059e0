"""A transcript lived through again: its messages enter a store one after another, and the real compactor works as they come."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from clew.clock import Time
from clew.compactor import Compactor
from clew.config import Compression
from clew.context.compression import count_cut
from clew.context.tokens import estimate
from clew.context.view import window
from clew.errors import UsageError
from clew.evaluation.invented import said
from clew.evaluation.score import Score, score
from clew.evaluation.statement import statements
from clew.evaluation.transcript import Transcript
from clew.messages import Message, Text, Usage
from clew.metrics import Metrics
from clew.model_call import ModelCaller
from clew.providers import Provider
from clew.store import Claim, Compaction, NewMessage, Sender, Step, Verdict
from clew.store import Outcome as TurnOutcome
from clew.store.sql import SqlStore
from clew.store.sqlite import SqliteStore
from clew.transport import Address, Inbound

KEEP = 8
"""Messages that stay behind each cut, the default of `keep_recent`."""
_OWNER = "evaluation"
_LEASE = 1e9
_ADDRESS = Address("evaluation", "thread")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after one compaction.

    number: which one, from 1. upto: number of the last message behind the cut. before: estimated tokens of everything behind the cut;
    tokens: of the summary. usage: tokens that the summariser took for this one. seconds: how long it took.
    """

    number: int
    upto: int
    before: int
    tokens: int
    seconds: float
    usage: Usage
    score: Score
    text: str
    lost: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A thread from its first message to its last. failed: summariser calls that came to nothing."""

    transcript: Transcript
    snapshots: tuple[Snapshot, ...]
    failed: int
    prompt: str


class _Clock:
    """A wall clock that shows when the newest message was written."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def settings_for(transcript: Transcript, base: Compression, compactions: int) -> Compression:
    """The settings with the highest count mark at which a thread is compacted `compactions` times, or as often as it is long enough for."""
    turns = [(list(asked), list(answers)) for asked, answers in _turns(transcript.messages)]
    mark = max(len(transcript.messages) // compactions, 1) + KEEP
    while mark > KEEP + 1 and _firings(turns, mark) < compactions:
        mark -= 1
    return base.model_copy(update={"enabled": True, "keep_recent": KEEP, "trigger_messages": mark})


def _firings(turns: Sequence[tuple[list[Message], list[Message]]], mark: int) -> int:
    """How often the count trigger fires over these turns."""
    fired, rows = 0, list[Message]()
    for asked, answers in turns:
        rows += asked
        for message in answers:
            if message.role == "assistant" and (cut := count_cut(window(rows).messages, mark, KEEP, asked[0].seq)):
                fired += 1
                rows = [row for row in rows if row.seq > cut.to_seq]
            rows.append(message)
    return fired


async def replay(transcript: Transcript, provider: Provider, base: Compression, compactions: int) -> Run:
    """Live through a transcript and score the summary after each compaction, `compactions` of them at most.

    Nothing is kept: the store is a file in a folder that is removed at the end.
    """
    clock = _Clock()
    with TemporaryDirectory(prefix="clew-eval-") as folder:
        async with _store(Path(folder) / "clew.db") as store:
            return await _Replay(transcript, provider, settings_for(transcript, base, compactions), store, clock).run(compactions)


@asynccontextmanager
async def _store(path: Path) -> AsyncIterator[SqlStore]:
    store = await SqliteStore.open(path, 0.0)
    try:
        yield store
    finally:
        await store.close()


class _Replay:
    def __init__(self, transcript: Transcript, provider: Provider, settings: Compression, store: SqlStore, clock: _Clock) -> None:
        time, metrics, zone = Time(wall=clock), Metrics(), _zone(transcript.zone)
        caller = ModelCaller(time, metrics, store.tell_repairs)
        self._transcript = transcript
        self._settings = settings
        self._store = store
        self._clock = clock
        self._compactor = Compactor(store, settings, caller, provider, provider, time, zone, metrics, {})
        self._said = said(transcript.messages, zone)
        self._snapshots: list[Snapshot] = []
        self._failed = 0

    async def run(self, most: int) -> Run:
        session = ""
        for asked, answers in _turns(self._transcript.messages):
            if len(self._snapshots) >= most:
                break
            claim = await self._begin(asked)
            session = claim.session
            unsaved: tuple[NewMessage, ...] = ()
            for message in answers:
                if message.role == "assistant":  # as before every model call
                    if unsaved:
                        await self._store.record(claim, Step(unsaved))
                        unsaved = ()
                    await self._compact_if_due(session)
                self._clock.at = message.at
                unsaved += (NewMessage(message.role, message.blocks, message.at),)
            await self._store.finish(claim, TurnOutcome("done", Step(unsaved)), (), self._clock.at)
        done = await self._store.compactions(session)
        return Run(self._transcript, tuple(self._snapshots), self._failed, done[-1].prompt_version if done else "")

    async def _begin(self, asked: Sequence[Message]) -> Claim:
        """Store what people said, and begin the turn that answers it: one person's words share a turn, and the last one's is answered."""
        self._clock.at = asked[-1].at
        for message in asked:
            text = "\n".join(block.text for block in message.blocks if isinstance(block, Text))
            name = message.sender_name or message.sender or "user"
            item = Inbound(f"evaluation/{message.seq}", _ADDRESS, name, text, sender_name=name, direct=self._transcript.direct)
            await self._store.accept(_ADDRESS.transport, [item], None, message.at, _let_in)
        taken = 0
        while claim := await self._store.claim_turn(_OWNER, self._clock.at, _LEASE, frozenset({_ADDRESS.transport})):
            taken += len(claim.items)
            if taken == len(asked):
                return claim
            await self._store.finish(claim, TurnOutcome("done"), (), self._clock.at)  # the answer comes behind what others said
        raise AssertionError("a message was stored and no turn can be claimed")

    async def _compact_if_due(self, session: str) -> None:
        rows = await self._store.view(session)
        messages = window(rows.messages, shortened=rows.shortened).messages
        cut = count_cut(messages, self._settings.count_mark, self._settings.kept_messages, rows.turn_seq, rows.hold_seq)
        if cut is None:
            return
        outcome = await self._compactor.compact(session, cut.trigger, cut=cut)
        self._failed += outcome.state == "failed"
        if outcome.state == "off":  # the summariser is given up: what a full window falls back on
            outcome = await self._compactor.compact(session, "limit", cut=cut, extract=True)
        if outcome.state == "done":
            self._snapshots.append(await self._snapshot(session))

    async def _snapshot(self, session: str) -> Snapshot:
        done = await self._store.compactions(session)
        newest = done[-1]
        rows = await self._store.transcript(session)
        behind = [row for row in rows if row.seq <= newest.to_seq]
        result = score(
            self._transcript.key,
            statements(newest, {row.id: row.seq for row in behind}),
            [text for each in done for text in _dropped(each)],
            {row.seq: self._said[row.seq] for row in behind},
            {row.seq: row.sender_name or row.role for row in behind},
            people=len(self._transcript.speakers),
        )
        before = sum(estimate(self._said[row.seq]) for row in behind)
        usage = await self._usage(newest)
        report = json.loads(newest.report)
        lost = tuple(each.item.quote for each in result.verdicts if each.fate == "lost")
        return Snapshot(
            len(self._snapshots) + 1, newest.to_seq, before, estimate(newest.text), report["seconds"], usage, result, newest.text, lost
        )

    async def _usage(self, compaction: Compaction) -> Usage:
        export = await self._store.export_session(compaction.session)
        calls = [call for call in export["model_calls"] if call["compaction"] == compaction.id]
        return sum((Usage(call["input"], call["output"], call["cache_read"], call["cache_write"]) for call in calls), Usage())


def _dropped(compaction: Compaction) -> Iterator[str]:
    """The texts that a compaction's report lists as dropped."""
    for each in json.loads(compaction.report).get("dropped", ()):
        yield each["text"] if isinstance(each, dict) else str(each)


def _turns(messages: Sequence[Message]) -> Iterator[tuple[list[Message], list[Message]]]:
    """What people said, with the model's and the tools' messages that follow it."""
    asked: list[Message] = []
    answers: list[Message] = []
    for message in messages:
        if message.role == "user" and answers:
            yield asked, answers
            asked, answers = [], []
        (asked if message.role == "user" else answers).append(message)
    yield asked, answers


def _let_in(item: Inbound, sender: Sender) -> Verdict:
    return Verdict()


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise UsageError(f"There is no time zone {name!r}.") from None
