"""The one owner of compaction: agent, `/compact` and the command line all ask here."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Literal

import structlog

from clew.budget import cost, numbers, summary_tokens
from clew.clock import Time, new_id
from clew.compacted import EXTRACT, Made, shorten_row, summary_row
from clew.config import Compression, Price
from clew.config.prices import price_of
from clew.context import prompt
from clew.context.boundaries import boundary_cut
from clew.context.compression import Cut, Trigger, behind, cut_at
from clew.context.ledger import Ledger
from clew.context.redact import redact
from clew.context.revision import Report
from clew.context.summarise import message_tokens
from clew.context.tokens import estimate
from clew.context.view import Rendered, window
from clew.messages import Usage
from clew.metrics import Metrics
from clew.model_call import ModelCaller, Spent
from clew.offering import candidates, choose, offers
from clew.prompting import Prompter
from clew.providers import Provider
from clew.purse import EXPECTED_OUTPUT, OverBudget
from clew.stopping import Stop, Stopped
from clew.store import Boundary, ViewRows
from clew.store.notes import Offer
from clew.store.sql import SqlStore
from clew.summariser import Summariser, SummaryFailed, Work

log = structlog.get_logger()

GIVE_UP = 3
"""Failures in a row after which no summariser is called in a session until somebody compacts by hand (promise 25)."""


class CompactFull(Exception):
    """What cannot be compacted does not fit the model."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a compaction came to.

    state: `done`; `nothing` to demote; `failed` (see `error`); `lost` to another compaction; `off`: not tried, see `error`.
    messages: the new length of the window, the summary counted as one. covered: messages demoted by this one. note: why it was done
    without a model, though somebody asked for it, empty where it was not.
    """

    state: Literal["done", "nothing", "failed", "lost", "off"]
    messages: int = 0
    covered: int = 0
    error: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a compaction would do: messages that would go and stay, the window's estimated tokens before and after, and the call.

    call_tokens: what the summariser would read and, at most, write. cost: dollars by the configured price, None where there is none.
    """

    demoted: int
    kept: int
    tokens_before: int
    tokens_after: int
    call_tokens: tuple[int, int] = (0, 0)
    cost: float | None = None


class Compactor:
    """Compacts sessions. provider: the session's own model or the configured summariser; own: the session's own model.

    prompter: what makes the requests of the session's replies; None where there are none whose cached prefix a summary could share.
    offering: lasting facts that a summary has no room for are noted. asking: the summariser chooses more of what it lets go.
    running: sessions of which a background compaction is in flight.
    """

    def __init__(
        self,
        store: SqlStore,
        settings: Compression,
        caller: ModelCaller,
        provider: Provider,
        own: Provider,
        time: Time,
        zone: tzinfo,
        metrics: Metrics,
        prices: Mapping[str, Price],
        known: Collection[str] = (),
        prompter: Prompter | None = None,
        offering: bool = False,
        asking: bool = False,
    ) -> None:
        self._store = store
        self._settings = settings
        self._caller = caller
        self._provider = provider
        self._own = own
        self._time = time
        self._zone = zone
        self._metrics = metrics
        self._prices = prices
        self._known = known
        self._summariser = Summariser(store, settings, caller, provider, own, zone, known, prompter)
        self._offering = offering
        self._asking = asking
        self._reached = 0.0  # the midnight of the day on which it was said that the day's tokens are spent
        self.running: set[str] = set()  # sessions that are compacted in the background

    async def compact(
        self,
        session: str,
        reason: Trigger,
        focus: str | None = None,
        *,
        cut: Cut | None = None,
        shorten: Sequence[str] = (),
        payer: str = "",
        extract: bool = False,
        stop: Stop | None = None,
    ) -> Outcome:
        """Compact a session now.

        cut: where, decided by whoever runs a turn; None: everything but the newest `keep_recent`. shorten: rows to shorten with it. focus:
        what to keep, in the words of whoever asked. extract: write a deterministic extract, without a model. Never raises for a
        summariser that fails; raises Stopped as soon as `stop` is set, and then nothing was compacted.
        """
        await self._store.let_go(session, self._zone)
        rows = await self._store.view(session)
        messages = window(rows.messages, shortened=rows.shortened).messages
        if cut is None:
            cut = cut_at(messages, len(messages) - self._settings.kept_messages, rows.turn_seq, reason)
        else:  # another compaction may have come since it was decided
            cut = replace(cut, index=sum(message.last_seq <= cut.to_seq for message in messages))
        if cut is None or not cut.index:
            return Outcome("nothing", messages=len(messages))
        if not self.tries(rows) and reason != "command" and not extract:
            return Outcome("off", error=f"{rows.failures} compactions failed in a row; write /compact to try again")
        work = await self._work(rows, messages, cut, focus, payer, shorten, extract=extract, stop=stop)
        if reason != "command" and not extract and (spent := await self._over_budget(work)):
            return Outcome("off", error=spent)
        if extract or not (over := await self._unaffordable(work)):
            return await self._carried_out(work, cut)
        if reason != "command":
            return Outcome("off", error=str(over))
        return replace(await self._carried_out(replace(work, extract=True, behind=None), cut), note=str(over))

    async def _work(
        self,
        rows: ViewRows,
        messages: tuple[Rendered, ...],
        cut: Cut,
        focus: str | None = None,
        payer: str = "",
        shorten: Sequence[str] = (),
        *,
        extract: bool = False,
        instructions: str = "",
        replaces: str | None = None,
        stop: Stop | None = None,
    ) -> Work:
        budget = await self._summary_tokens(rows)
        demoted, kept = messages[: cut.index], messages[cut.index :]
        focus, instructions = redact(focus or "", self._known), redact(instructions.strip(), self._known)
        work = Work(rows, demoted, kept, focus, instructions, payer, budget, tuple(shorten), extract, replaces, stop)
        return work if extract else replace(work, behind=await self._summariser.behind(work))

    async def _carried_out(self, work: Work, cut: Cut) -> Outcome:
        started = self._time.steady()
        try:
            outcome = await self._commit(work, cut, *await self._summariser.revised(work), started)
        except OverBudget as over:
            outcome = Outcome("off", error=str(over))
        except SummaryFailed as failure:
            outcome = await self._failed(work.rows.session, cut.trigger, failure)
        self._metrics.compactions.labels(cut.trigger, outcome.state).inc()
        return outcome

    async def at_boundary(self, boundary: Boundary) -> Outcome:
        """Compact at a place where the thread is best cut, if that is worth a call. Meant to run beside whatever is said meanwhile."""
        rows = await self._store.view(boundary.session)
        if boundary.session in self.running or not self.tries(rows):
            return Outcome("nothing")
        bounds = numbers(self._own, await self._own.limits(), self._settings)
        cut = await asyncio.to_thread(self._boundary_cut, rows, boundary, bounds.threshold)
        if cut is None:
            return Outcome("nothing")
        self.running.add(boundary.session)
        try:
            return await self.compact(boundary.session, boundary.reason, cut=cut)
        finally:
            self.running.discard(boundary.session)

    async def _over_budget(self, work: Work) -> str:
        """Why a summary would exceed what compactions may take in a day, empty where it would not."""
        most = self._settings.daily_tokens
        if most is None:
            return ""
        now = self._time.wall()
        midnight = datetime.fromtimestamp(now, self._zone).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        spent = await self._store.summary_tokens(midnight)
        planned = self._summariser.read_tokens(work) + work.summary_tokens
        if spent + planned <= most:
            return ""
        if self._reached != midnight:
            self._reached = midnight
            log.warning("budget.reached", budget="agent.compression.daily_tokens", spent=spent, planned=planned, most=most)
        return f"compactions took {spent:,} of the {most:,} tokens they may take today; this one would take about {planned:,}"

    async def _unaffordable(self, work: Work) -> OverBudget | None:
        """Why the budgets refuse a summary, None where they do not."""
        if self._caller.purse is None:
            return None
        read, held = self._summariser.read_tokens(work), work.behind.read if work.behind else 0
        usage = Usage(read - held, min(work.summary_tokens, EXPECTED_OUTPUT), held)
        amount = self._caller.amount(self._provider, usage, self._provider.cache_ttl)
        return await self._caller.purse.hindrance(work.rows.session, work.payer, amount)

    def _boundary_cut(self, rows: ViewRows, boundary: Boundary, threshold: int) -> Cut | None:
        mark, keep = self._settings.count_mark, self._settings.kept_messages
        messages = window(rows.messages, shortened=rows.shortened).messages
        if rows.hold_seq and behind(messages, rows.hold_seq) < mark - keep:
            return None  # somebody undid a compaction, and would not have it back at once
        ratio = rows.ratio(self._own.name, self._own.model)
        sizes = [round(ratio * prompt.message_tokens(message)) for message in messages]
        return boundary_cut(messages, sizes, boundary.seq or 0, mark, keep, threshold, rows.turn_seq, boundary.reason)

    @staticmethod
    def tries(rows: ViewRows) -> bool:
        """Whether a summariser is called for this session without somebody asking for it."""
        return rows.failures < GIVE_UP

    async def shorten(self, session: str, reason: Trigger, rows: Sequence[str]) -> Outcome:
        """Let these rows of the window be one line each from now on: a compaction without a model, undone like any other."""
        view = await self._store.view(session)
        new = await asyncio.to_thread(shorten_row, view, rows, reason, new_id(), self._time.wall())
        done = await self._store.compact(new.parent, new, ())
        if done:
            log.info("agent.compressed", session=session, messages=new.messages, covered=0, trigger=reason, shortened=len(rows))
        outcome = Outcome("done", new.messages) if done else Outcome("lost")
        self._metrics.compactions.labels(reason, outcome.state).inc()
        return outcome

    async def redo(self, session: str, focus: str | None = None, payer: str = "", instructions: str = "") -> Outcome:
        """Write the newest summary anew from what it was made of. It stands until the new one does.

        focus: what to keep, in other words; instructions: these, in the place of the usual ones, this once.
        """
        await self._store.let_go(session, self._zone)
        found = await self._store.before_summary(session)
        if found is None:
            return Outcome("nothing")
        rows, done, tip = found
        messages = window(rows.messages, shortened=tip.shortened).messages
        cut = Cut(sum(message.last_seq <= done.to_seq for message in messages), done.to_seq, "command")
        work = await self._work(rows, messages, cut, focus, payer, tip.shortened, instructions=instructions, replaces=tip.id)
        if over := await self._unaffordable(work):
            return Outcome("off", error=str(over))
        return await self._carried_out(work, cut)

    async def preview(self, session: str) -> Preview:
        """What `compact` would do, without a call."""
        rows = await self._store.view(session)
        messages = window(rows.messages, shortened=rows.shortened).messages
        cut = cut_at(messages, len(messages) - self._settings.kept_messages, None, "command")
        sizes = [message_tokens(message, self._zone) for message in messages]
        summary = estimate(rows.compaction.text) if rows.compaction else 0
        if cut is None:
            return Preview(0, len(messages), summary + sum(sizes), summary + sum(sizes))
        work = await self._work(rows, messages, cut)
        read, cached = self._summariser.read_tokens(work), work.behind.read if work.behind else 0
        written = min(work.summary_tokens, summary + sum(sizes[: cut.index]))
        price = price_of(self._provider.kind, self._provider.model, self._prices)
        spent = cost(price, Usage(read - cached, written, cache_read=cached)) if price else None
        after = written + sum(sizes[cut.index :])
        return Preview(cut.index, len(messages) - cut.index, summary + sum(sizes), after, (read, written), spent)

    async def _summary_tokens(self, rows: ViewRows) -> int:
        """The longest summary that the session's own model is shown."""
        bounds = numbers(self._own, await self._own.limits(), self._settings)
        return summary_tokens(self._settings, bounds, rows.ratio(self._own.name, self._own.model))

    async def _commit(self, work: Work, cut: Cut, ledger: Ledger, report: Report, spent: Spent, started: float) -> Outcome:
        calls = spent.calls
        seconds = round(self._time.steady() - started, 3)
        price = price_of(self._provider.kind, self._provider.model, self._prices)
        made = Made(
            rows=work.rows,
            cut=cut,
            demoted=work.demoted,
            kept=work.kept,
            shorten=work.shorten,
            ledger=ledger,
            report=report,
            prompt_version=self._summariser.prompt_version(work) if calls else EXTRACT,
            model=self._provider.model if calls else EXTRACT,
            seconds=seconds,
            cost=sum(cost(price, call.usage) for call in calls) if price else None,
            calls=tuple(calls),
            focus=work.focus,
            instructions=work.instructions,
        )
        new = await asyncio.to_thread(summary_row, made, new_id(), self._time.wall(), self._zone, self._known)
        offered = await offers(self._store, report.dropped) if self._offering else ()
        if self._asking and calls:
            offered = (*offered, *await self._chosen(work, ledger, report, offered, spent))
        if not await self._store.compact(new.parent, new, spent.calls, tip=work.replaces, cache=spent.cache, offered=offered):
            return Outcome("lost")
        log.info("agent.compressed", session=new.session, messages=new.messages, covered=new.covered, trigger=new.trigger, seconds=seconds)
        return Outcome("done", new.messages, new.covered)

    async def _chosen(self, work: Work, ledger: Ledger, report: Report, offered: Sequence[Offer], spent: Spent) -> tuple[Offer, ...]:
        """Of what leaves with this summary and is not offered yet, what the summariser finds worth a note."""
        rows = [row for message in work.demoted for row in message.rows]
        leaving = await asyncio.to_thread(candidates, rows, report.dropped, ledger, offered, self._known)
        try:
            return await choose(self._caller, self._provider, leaving, work.rows.session, work.payer, spent, work.stop)
        except Stopped:
            await self._store.note_calls(work.rows.session, spent.calls)
            raise

    async def _failed(self, session: str, reason: Trigger, failure: SummaryFailed) -> Outcome:
        log.warning("agent.compress_failed", session=session, trigger=reason, err=str(failure))
        await self._store.compaction_failed(session, str(failure), failure.calls)
        return Outcome("failed", error=str(failure))
