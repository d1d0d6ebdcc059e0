"""A request that fits its model: measured before every model call, and compacted where it has grown too large."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from clew.budget import numbers, summary_tokens
from clew.clock import Time
from clew.compactor import CompactFull, Compactor
from clew.config import Agent as Settings
from clew.context import view
from clew.context.compression import Cut, Plan, Sizes, Trigger, count_cut, token_plan
from clew.context.prompt import Chain, message_tokens, request_tokens
from clew.context.shares import fitted
from clew.context.shortening import Shortening, shortenings
from clew.context.tokens import Window, estimate
from clew.context.view import Rendered
from clew.messages import Message, ToolResult
from clew.prompting import REMEMBERED, Prompter, is_cold
from clew.providers import Limits, Provider, Request
from clew.stopping import Stop
from clew.store import Claim, PromptState, Ratios, ViewRows
from clew.store.sql import SqlStore

HEADING_TOKENS = 60
"""Estimated tokens of the heading of a summary and of the line that says what it stands for."""
COLD_SHARE = 8
"""Behind an expired cache results are shortened where that frees at least one such part of the window's messages."""


@dataclass(slots=True)
class TurnView:
    """What a turn shows its model: the rows as they were when it began or last compacted them, and the messages that it added.

    ratios: as they were when it began, so that nothing is measured differently within it. stop: set when somebody stops the turn.
    failed: a compaction came to nothing. tokens, threshold: size of its last request to the session's own model, and the mark above
    which that is compacted. local: rows that are one line in this turn alone: those of a run that goes on from its chat's session, which
    is compacted in its place. unseen: hashes of files that a model refuses just now. before: the window of the turn before, from which
    its own goes on.
    """

    claim: Claim
    rows: ViewRows
    messages: list[Message]
    ratios: Ratios
    stop: Stop
    failed: bool = False
    tokens: int = 0
    threshold: int = 0
    local: set[str] = field(default_factory=set)
    unseen: set[str] = field(default_factory=set)
    before: view.Window | None = None
    _rendered: tuple[int, view.Window] | None = field(default=None)  # of how many messages it was made, and it

    @property
    def thread(self) -> str:
        """The session that is compacted: the one that a run goes on from, else the turn's own."""
        return self.rows.base or self.claim.session

    @property
    def window(self) -> view.Window:
        """The messages as they are sent; they only grow, or are read anew."""
        if self._rendered is None or self._rendered[0] != len(self.messages):
            self.before = self.shown()
            self._rendered = (len(self.messages), self.before)
        return self._rendered[1]

    def shown(self, shorten: Collection[str] = ()) -> view.Window:
        """The window, with some more rows shortened. Thinking is bound to what stood in front of it: a compaction ends it."""
        compaction = self.rows.compaction
        turn = "" if compaction and compaction.created >= self.claim.started else self.claim.turn
        return view.window(self.messages, turn, self.rows.shortened.union(shorten, self.local), self.before)

    def own(self, rows: Collection[str]) -> tuple[list[str], tuple[str, ...]]:
        """Of these rows (those of this run, which are shortened for it alone, and those of the thread that is compacted)."""
        if self.rows.base is None:
            return [], tuple(rows)
        mine = {message.id for message in self.messages if message.turn == self.claim.turn}
        return [row for row in rows if row in mine], tuple(row for row in rows if row not in mine)

    def reread(self, rows: ViewRows) -> None:
        damaged = dict.fromkeys((*self.rows.damaged, *rows.damaged))  # what a new summary stands in the place of is yet to be told
        self.rows, self.messages, self._rendered = replace(rows, damaged=tuple(damaged)), list(rows.messages), None

    def ratio(self, provider: Provider) -> float:
        return self.ratios.get((provider.name, provider.model), 1.0)


@dataclass(frozen=True, slots=True)
class Measured:
    """A request with its size in `tokens`, as its model counts them; `chain.tokens` are the estimated ones."""

    chain: Chain
    tokens: int

    @property
    def request(self) -> Request:
        return self.chain.request


class Fitting:
    """Makes requests that fit. own: the session's own model, whose window decides about compactions."""

    def __init__(self, store: SqlStore, settings: Settings, prompter: Prompter, compactor: Compactor, own: Provider, time: Time) -> None:
        self._store = store
        self._settings = settings
        self._prompter = prompter
        self._compactor = compactor
        self._own = own
        self._time = time
        self._windows: dict[str, view.Window] = {}  # of sessions, those last asked for behind

    def begin(self, claim: Claim, rows: ViewRows, stop: Stop) -> TurnView:
        """What a turn shows its model when it begins."""
        return TurnView(claim, rows, list(rows.messages), rows.ratios, stop, before=self._windows.get(claim.session))

    def tries(self, turn: TurnView) -> bool:
        """Whether summaries are still written in this session without being asked for."""
        return self._compactor.tries(turn.rows)

    async def compact_if_due(self, turn: TurnView, *, first: bool) -> None:
        """The triggers that need no request: the number of messages and, at the start of a turn, a cache that has expired.

        Raises Stopped.
        """
        settings = self._settings.compression
        if not settings.enabled or turn.failed or not self._compactor.tries(turn.rows):
            return
        cut = count_cut(turn.window.messages, settings.count_mark, settings.kept_messages, turn.claim.first_seq, turn.rows.hold_seq)
        if cut is not None and turn.thread not in self._compactor.running:  # else it is being done, and what still fits may wait
            await self._compact(turn, "count", cut)
        elif first and turn.rows.prompt.last_call and is_cold(turn.rows.prompt, self._own, self._time.wall()):
            await self._shorten_cold(turn)

    async def request(self, turn: TurnView, state: PromptState, provider: Provider, allowed: int | None = None) -> Measured:
        """The request of the next call.

        Above its threshold the session's own model has the window compacted for good; a fallback gets a view of its own. allowed: tokens
        that the provider said it takes, as they are measured here. Raises CompactFull, Stopped.
        """
        limits = await provider.limits()
        bounds = numbers(provider, limits, self._settings.compression)
        if allowed is not None:  # half of it leaves room for a summary beside what is kept
            limit = min(bounds.hard_limit, allowed)
            bounds = replace(bounds, threshold=limit, target=min(bounds.target, limit // 2), hard_limit=limit)
        made = self._measured(turn, turn.window.messages, state, provider, limits)
        if provider is not self._own:
            return made if made.tokens <= bounds.hard_limit else await self._trimmed(turn, made, state, provider, limits, bounds)
        trigger, mark = self._token_trigger(turn, bounds, allowed)
        for extract in (False, True):
            if made.tokens <= mark:
                break
            plan = await asyncio.to_thread(self._plan, turn, made, bounds, trigger)
            if plan is not None:
                await self._carry_out(turn, plan, trigger, extract=extract)
                made = self._measured(turn, turn.window.messages, state, provider, limits)
            trigger, mark = "limit", bounds.hard_limit
        turn.tokens, turn.threshold = made.tokens, bounds.threshold
        self._remember(turn)
        return _fits(made, bounds)

    def _remember(self, turn: TurnView) -> None:
        self._windows.pop(turn.claim.session, None)
        self._windows[turn.claim.session] = turn.window
        if len(self._windows) > REMEMBERED:
            del self._windows[next(iter(self._windows))]

    async def results(self, turn: TurnView, results: Sequence[ToolResult]) -> tuple[ToolResult, ...]:
        """All results of one message as they are stored: together at most a quarter of the window is shown of them."""
        bounds = numbers(self._own, await self._own.limits(), self._settings.compression)
        return fitted(results, bounds.w // 4, turn.ratio(self._own))

    def _token_trigger(self, turn: TurnView, bounds: Window, allowed: int | None) -> tuple[Trigger, int]:
        """The trigger by tokens, and the size above which it fires."""
        settings = self._settings.compression
        if allowed is not None:
            return "overflow", bounds.hard_limit
        if settings.enabled and settings.trigger_tokens != "off" and not turn.failed and self._compactor.tries(turn.rows):
            return "tokens", bounds.threshold
        return "limit", bounds.hard_limit

    def _measured(self, turn: TurnView, messages: tuple[Rendered, ...], state: PromptState, provider: Provider, limits: Limits) -> Measured:
        chain = self._prompter.request(turn.claim, turn.rows, messages, state, provider, limits, turn.unseen)
        return Measured(chain, round(chain.tokens * turn.ratio(provider)))

    def _plan(self, turn: TurnView, made: Measured, bounds: Window, trigger: Trigger) -> Plan | None:
        """How the window comes down to its target. Takes milliseconds, so not on the loop."""
        ratio = turn.ratio(self._own)
        held = [*turn.rows.pinned, *(message for message in turn.messages if message.id in turn.rows.pins)]
        summary = summary_tokens(self._settings.compression, bounds, ratio)
        allowance = round(ratio * (summary + HEADING_TOKENS + sum(estimate(message.text) for message in held)))
        messages = turn.window.messages
        return token_plan(
            messages,
            sizes(made.request, len(messages), ratio, allowance),
            self._shortenings(turn, messages, ratio),
            bounds,
            turn.claim.first_seq,
            trigger,
        )

    @staticmethod
    def _shortenings(turn: TurnView, messages: tuple[Rendered, ...], ratio: float) -> list[Shortening]:
        found = shortenings(messages, turn.rows.shortened.union(turn.local), turn.rows.pins, turn.claim.turn)
        return [replace(each, saved=int(each.saved * ratio)) for each in found]

    async def _trimmed(
        self, turn: TurnView, made: Measured, state: PromptState, provider: Provider, limits: Limits, bounds: Window
    ) -> Measured:
        """A request for a fallback with a smaller window: less is shown for this call, nothing is compacted."""
        ratio, messages = turn.ratio(provider), turn.window.messages
        measured = sizes(made.request, len(messages), ratio)
        plan = token_plan(messages, measured, self._shortenings(turn, messages, ratio), bounds, turn.claim.first_seq, "limit")
        if plan is not None:
            shown = turn.shown(plan.shorten).messages[plan.cut.index if plan.cut else 0 :]
            made = self._measured(turn, shown, state, provider, limits)
        return _fits(made, bounds)

    async def _shorten_cold(self, turn: TurnView) -> None:
        """Nothing of the prefix is cached, so results that were answered long ago become lines at no cost."""
        messages = turn.window.messages
        last = len(messages) - self._settings.compression.kept_messages
        found = await asyncio.to_thread(shortenings, messages, turn.rows.shortened, turn.rows.pins, turn.claim.turn)
        found = [each for each in found if each.index < last]
        if found and sum(each.saved for each in found) * COLD_SHARE >= sum(map(message_tokens, messages)):
            await self._compactor.shorten(turn.thread, "cold", [each.row for each in found])
            turn.reread(await self._store.view(turn.claim.session))

    async def _carry_out(self, turn: TurnView, plan: Plan, trigger: Trigger, *, extract: bool) -> None:
        mine, theirs = turn.own(plan.shorten)
        turn.local.update(mine)
        if plan.cut is None:
            if theirs:
                await self._compactor.shorten(turn.thread, trigger, theirs)
            turn.reread(await self._store.view(turn.claim.session))
        elif extract or not turn.failed:
            await self._compact(turn, trigger, plan.cut, theirs, extract=extract)

    async def _compact(self, turn: TurnView, trigger: Trigger, cut: Cut, shorten: tuple[str, ...] = (), *, extract: bool = False) -> None:
        payer = turn.claim.person.id if turn.claim.person else ""
        outcome = await self._compactor.compact(
            turn.thread, trigger, cut=cut, shorten=shorten, payer=payer, extract=extract, stop=turn.stop
        )
        turn.failed |= outcome.state != "done"
        turn.reread(await self._store.view(turn.claim.session))


def sizes(request: Request, window: int, ratio: float, allowance: int | None = None) -> Sizes:
    """What a request is made of; its last `window` messages are those of the thread. allowance: None for the summary that stands."""
    opening = len(request.messages) - window
    others = tuple(block for block in request.system if block.kind != "summary")
    fixed = request_tokens(replace(request, system=others, messages=request.messages[:opening]), ratio)
    summary = round(ratio * sum(estimate(block.text) for block in request.system if block.kind == "summary"))
    messages = tuple(round(ratio * message_tokens(message)) for message in request.messages[opening:])
    return Sizes(fixed, summary, summary if allowance is None else allowance, messages)


def _fits(made: Measured, bounds: Window) -> Measured:
    if made.tokens > bounds.hard_limit:
        raise CompactFull(f"{made.tokens} tokens estimated, {bounds.hard_limit} allowed")
    return made
