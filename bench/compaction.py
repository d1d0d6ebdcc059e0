"""CPU of a compaction without its model call: planning, hearing, the contract, and what the store does."""

import gc
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, replace
from datetime import UTC
from pathlib import Path

from clew.clock import new_id
from clew.context import survival
from clew.context.compression import cut_at
from clew.context.ledger import Ledger, render, to_json
from clew.context.revision import Report, Size, hear, revising
from clew.context.steps import Steps, finish
from clew.context.summarise import message_tokens
from clew.context.view import Rendered, window
from clew.evaluation.transcript import shipped
from clew.messages import Message
from clew.store import Compaction, Person
from clew.store.sqlite import SqliteStore
from clew.transport import Address, Inbound

KEEP = 8
TIMES = 3
ADDED = 6
"""Entries that a summariser adds."""


def thread(count: int) -> list[Message]:
    """So many messages of the evaluation's threads, one thread after the other."""
    said = [message for transcript in shipped() for message in transcript.messages]
    return [replace(said[n % len(said)], id=f"m{n}", seq=n + 1) for n in range(count)]


def revision(demoted: Sequence[Rendered], longest: list[float]) -> tuple[Ledger, Report]:
    """A summariser that says nothing: everything is the contract's work. longest: CPU seconds of the longest step so far."""
    steps = _steps(demoted)
    while True:
        started = time.thread_time()
        try:
            next(steps)
        except StopIteration as done:
            result: tuple[Ledger, Report] = done.value
            return result
        finally:
            longest[0] = max(longest[0], time.thread_time() - started)


def _steps(demoted: Sequence[Rendered], ledger: Ledger = (), answer: str = "=") -> Steps[tuple[Ledger, Report]]:
    heard = yield from hear(demoted)
    return (yield from revising(ledger, heard, answer, size=Size()))


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of CPU, each the best of a few runs. step: the longest of the contract's, in which the loop waits."""

    planning: float
    contract: float
    step: float


def contract_cpu(count: int) -> Cost:
    """Of a first compaction of so many messages."""
    rows, best = thread(count), Cost(*[float("inf")] * 3)
    for _ in range(TIMES):
        survival.forget()
        gc.collect()
        gc.freeze()  # the corpus is no work of a compaction's
        started, longest = time.process_time(), [0.0]
        messages = window(rows).messages
        cut = cut_at(messages, len(messages) - KEEP, None, "command")
        assert cut is not None
        sum(message_tokens(message, UTC) for message in messages)
        planned = time.process_time()
        revision(messages[: cut.index], longest)
        took = (planned - started, time.process_time() - planned, longest[0])
        best = Cost(*(min(known, new * 1e3) for known, new in zip(astuple(best), took, strict=True)))
    return best


def revision_cpu(before: int, new: int) -> float:
    """Milliseconds of CPU in which the summary of `before` messages takes up `new` more, by what a summariser says of them."""
    messages = window(thread(before + new)).messages
    old, demoted = ([each for each in messages if (each.rows[0].seq <= before) is first] for first in (True, False))
    ledger, _ = revision(old, [0.0])
    said = [row for each in demoted for row in each.rows if row.text][:ADDED]
    answer = "\n".join(f"+ fact | {row.sender_name or 'clew'} | said | #{row.seq} | {row.text[:100]}" for row in said)
    best = float("inf")
    for _ in range(TIMES):
        survival.forget()
        started = time.process_time()
        finish(_steps(demoted, ledger, answer))
        best = min(best, time.process_time() - started)
    return best * 1e3


async def store_cpu(folder: Path, times: int = 20) -> float:
    """Milliseconds of CPU of one compaction's reading and writing, at 1,000 messages."""
    messages = window(thread(1000)).messages
    ledger, report = revision(messages[:-KEEP], [0.0])
    store = await SqliteStore.open(folder / "clew.db", 1.0)
    try:
        await store.sync({"ada": Person("ada", "member", None, ("bench:ada",))}, None, (), 1.0)
        session = await store.open_chat(Inbound("", Address("bench", "ada"), "ada", ""), "ada", 1.0)
        made = Compaction(
            id="",
            session=session,
            parent=None,
            from_seq=1,
            to_seq=44,
            ledger=to_json(ledger),
            text=render(ledger),
            trigger="count",
            prompt_version="bench",
            report=json.dumps({"total": 44, "first_at": 1.0, "last_at": 2.0, **asdict(report)}, ensure_ascii=False),
            messages=9,
            covered=44,
            created=1.0,
        )
        await store.view(made.session)
        started = time.process_time()
        parent = None
        for _ in range(times):
            await store.view(made.session)
            new = replace(made, id=new_id(), parent=parent)
            assert await store.compact(parent, new, ())
            parent = new.id
        return (time.process_time() - started) / times * 1e3
    finally:
        await store.close()
