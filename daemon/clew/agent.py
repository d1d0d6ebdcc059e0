"""One turn, start to end."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from clew import scheduled, tracing
from clew.asking import Asking, Plan
from clew.boundaries import Boundaries
from clew.bus import LiveEvent, Replied
from clew.clock import Time
from clew.compactor import CompactFull
from clew.config import Agent as Settings
from clew.context import files, view
from clew.context.recall import strip_appendix
from clew.context.templates import without_foreign
from clew.context.text import clean
from clew.fitting import Fitting, Measured, TurnView
from clew.messages import Block, Message, Text, Thinking, ToolCall, ToolResult, Usage
from clew.metrics import Metrics
from clew.model_call import ModelCaller, Spent
from clew.prompting import Decided, Prompter, is_cold
from clew.providers import Done, Provider, ProviderError
from clew.purse import OverBudget
from clew.stopping import Stop, Stopped
from clew.store import Claim, Item, LeaseLost, ModelCall, NewMessage, Outcome, Question, Reply, Step, ToolState, ViewRows
from clew.store.sql import SqlStore
from clew.supervise import patiently
from clew.tools import ToolContext, skills
from clew.tools.runner import Ran, ToolRunner, denied
from clew.transport import Address, Preview, Typing

log = structlog.get_logger()

EMPTY_TRIES = 2
"""Model calls that may come back empty before the person is told."""
UNASKED = "The tool {} needs a yes, and there is nobody who could be asked. It was not run."
REFUSED = {
    "said": "{} said no to this call. It was not run; do not try to reach the same in another way.",
    "passed": "{} did not say yes to this call and wrote something else. It was not run.",
    "expired": "{} did not answer in time whether this call may be run. It was not run.",
    "stopped": "The turn was stopped before {} had said yes to this call. It was not run.",
}
INTERRUPTED = "This call was interrupted. Whether it took effect is unknown: find out before calling it again."

WORDS = {
    "auth": "My model's provider refused the key I was given. Whoever runs me has to mend that.",
    "quota": "My model's provider says that its spending limit is reached. Whoever runs me has to mend that.",
    "invalid": "My model refused the request. It is in the log of whoever runs me.",
    "overflow": "This conversation no longer fits my model. Write /compact to shorten it or /new for a fresh one; nothing is lost.",
    "compact_full": "This conversation no longer fits my model, even shortened. Write /new for a fresh one; nothing is lost.",
    "refusal": "My model declined to answer that.",
    "empty": "My model gave an empty answer. Please ask again.",
}
UNANSWERED = "Your message is kept: write to me after that, a word is enough, and I answer it."
LATER = "I stopped in the middle. What I have so far is kept: write to me after that, a word is enough, and I go on from there."
UNREACHED = "My model could not be reached just now. Your message is stored; please ask again in a while."

SUMMARISER_FAILS = (
    "Summaries of the conversation {} at {} failed several times in a row, so I try no more. It goes on, and nothing is lost; what does not"
    " fit any longer is shortened without a model. Why they failed is in my log; /compact there tries again."
)
OWNERS_BUSINESS = ("auth", "quota")
"""Failures that only the owner can mend."""

Warn = Callable[[str, str, Address | None], Awaitable[None]]
"""Tells the owner, once, what only they can mend: (key, text, where the same was said to the person who met it)."""
Show = Callable[[Address, LiveEvent], None]


class Parked(Exception):
    """A turn waits for a person's answer; it goes on when there is one."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.id)
        self.question = question


@dataclass(slots=True)
class _Turn:
    """A turn while it runs."""

    claim: Claim
    view: TurnView
    decided: Decided
    stop: Stop
    spent: Spent = field(default_factory=Spent)
    saved: tuple[int, int] = (0, 0)  # of the calls and cache entries in `spent`
    fresh: bool = False  # the prompt is decided on, and its state is to be written with the next step
    refused: set[str] = field(default_factory=set)  # hashes of files that a model did not take

    @property
    def payer(self) -> str:
        return self.claim.person.id if self.claim.person else ""


class Agent:
    """Runs turns. providers: the session's model first, then the fallbacks. steering: transports whose messages join a running turn."""

    def __init__(
        self,
        store: SqlStore,
        settings: Settings,
        providers: Sequence[Provider],
        prompter: Prompter,
        fitting: Fitting,
        boundaries: Boundaries,
        caller: ModelCaller,
        tools: ToolRunner,
        learnt: skills.Skills,
        asking: Asking,
        show: Show,
        plan: Plan,
        time: Time,
        metrics: Metrics,
        warn: Warn,
        steering: frozenset[str],
        stops: dict[str, Stop],
    ) -> None:
        self._store = store
        self._settings = settings
        self._warn = warn
        self._steering = steering
        self._providers = tuple(providers)
        self._prompter = prompter
        self._fitting = fitting
        self._boundaries = boundaries
        self._caller = caller
        self._tools = tools
        self._skills = learnt
        self._asking = asking
        self._show = show
        self._plan = plan
        self._time = time
        self._metrics = metrics
        self._stops = stops
        self._told: set[str] = set()  # sessions of which the owner knows that nothing is summarised

    async def run(self, claim: Claim) -> tuple[Outcome, str] | None:
        """Run a turn to its end: how it ended, and what was said. Cancelled, it stays as it is stored and is resumed after a restart.

        None: somebody else has it, or it waits for somebody's yes.
        """
        started = self._time.steady()
        stop = self._stops[claim.turn]
        log.info("turn.started", resumed=claim.resumed, kind=claim.kind)
        self._hint(claim, Typing(_newest(claim)))
        try:
            rows = await self._rows(claim)
            refused = set(rows.unseen(self._providers[0].name, self._providers[0].model))
            turn = _Turn(claim, self._fitting.begin(claim, rows, stop), Decided(rows.prompt), stop, refused=refused)
            outcome, text = await self._ended(turn)
            text = "\n\n".join(filter(None, (*self._notices(turn, text), text)))
            outcome = replace(outcome, boundary=self._boundaries.at_end(turn.view, text if outcome.state == "done" else None))
            if claim.kind == "job":
                outcome, text = scheduled.ending(claim, outcome, text)
            said = replies(turn.claim, text, self._plan) if text else []
            await patiently(lambda: self._store.finish(turn.claim, outcome, said, self._time.wall()))
        except LeaseLost:
            log.info("turn.lost")
            return None
        except Parked as parked:
            asked = parked.question
            log.info("approval.asked", tools=[call.name for call in asked.calls], person=asked.person, address=str(asked.reply.address))
            self._show(asked.reply.address, Replied(""))
            return None
        self._report(outcome, turn.spent.calls, self._time.steady() - started)
        thread = turn.view.thread
        if not self._fitting.tries(turn.view) and thread not in self._told:
            self._told.add(thread)
            await self._warn(f"compaction/{thread}", SUMMARISER_FAILS.format(thread, claim.address), None)
        return outcome, text

    @staticmethod
    def _notices(turn: _Turn, text: str) -> tuple[str, ...]:
        """What the person is told of their files beside the answer."""
        if turn.claim.kind != "message":
            return ()
        told = files.notices(_asked(turn), turn.refused)
        return () if text == "\n".join(told) else told

    async def _rows(self, claim: Claim) -> ViewRows:
        """What the session shows its model. What was deleted leaves it as soon as no provider holds it in its cache."""
        rows = claim.rows or await self._store.view(claim.session)
        if not rows.deleted or not is_cold(rows.prompt, self._providers[0], self._time.wall()):
            return rows
        await self._store.let_go(claim.session, self._prompter.zone(claim)[0])
        return await self._store.view(claim.session)

    def _hint(self, claim: Claim, event: Typing | Preview) -> None:
        """Show somebody who waits that something comes. For a job nobody waits, and it may come to nothing."""
        if claim.kind != "job":
            self._show(claim.address, event)

    async def _ended(self, turn: _Turn) -> tuple[Outcome, str]:
        if turn.claim.kind == "message" and files.says_nothing(_asked(turn)):  # no model can say anything to it
            text = "\n".join(files.notices(_asked(turn), ()))
            return Outcome("done", Step((self._said(turn, (Text(text),), {"in_reply_to": _newest(turn.claim)}),))), text
        try:
            if turn.claim.resumed:
                await self._settle_interrupted(turn)
            if all(message.role == "user" for message in turn.view.messages if message.turn == turn.claim.turn):
                await self._open_skills(turn, turn.claim.items)
            outcome, text = await self._loop(turn)
        except Stopped:
            if turn.stop.reason:
                return Outcome("failed", self._step(turn), turn.stop.reason), f"I stopped: {turn.stop.reason}."
            text = "Stopped."
            outcome = Outcome("stopped", self._step(turn, (self._said(turn, (Text(text),), {"stopped": True}),)))
        except CompactFull as full:
            text = WORDS["compact_full"]
            outcome = Outcome("failed", self._step(turn), f"compact_full: {full}")
        except OverBudget as over:
            return await self._out_of_budget(turn, over)
        except ProviderError as error:
            text = WORDS.get(error.kind, UNREACHED)
            if error.kind in OWNERS_BUSINESS:
                await self._warn(f"provider/{error.kind}", f"My model cannot be used until you mend it: {error}", turn.claim.address)
            outcome = Outcome("failed", self._step(turn), f"{error.kind}: {error}")
        return outcome, text

    async def _out_of_budget(self, turn: _Turn, over: OverBudget) -> tuple[Outcome, str]:
        """End a turn with what it has. Nothing is answered by itself after the reset: whoever writes then is answered with all that is
        here. A job says so once in each period."""
        outcome = Outcome("stopped", self._step(turn), over.note)
        own = [message for message in turn.view.messages if message.turn == turn.claim.turn and message.role != "user"]
        said = [message.text for message in own if message.role == "assistant" and message.text]
        if turn.claim.kind == "job" and not said:
            if self._caller.purse is not None:
                await self._caller.purse.tell_job(turn.claim.items[-1].job or "", over, turn.claim.address)
            return outcome, ""
        later = f" {LATER if own else UNANSWERED}" if over.passes else ""
        return outcome, "\n\n".join([*said, f"{over}{later}"])

    async def _loop(self, turn: _Turn) -> tuple[Outcome, str]:
        empty = 0
        for number in range(1, self._settings.max_model_calls + 1):
            if turn.stop.is_set():
                raise Stopped
            done = await self._call(turn, first=number == 1)
            blocks = _clean(done.blocks)
            if done.stop == "refusal":
                return Outcome("failed", self._step(turn), "refusal"), WORDS["refusal"]
            if calls := tuple(block for block in blocks if isinstance(block, ToolCall)):
                await self._run_tools(turn, blocks, calls, {"model": done.model})
                await self._take_in(turn)
                continue
            text = "\n".join(block.text for block in blocks if isinstance(block, Text)).strip()
            if text:
                return self._answered(turn, blocks, text, done)
            empty += 1
            if empty == EMPTY_TRIES:
                return Outcome("failed", self._step(turn), "empty"), WORDS["empty"]
            await self._record(turn, self._step(turn))
        text = f"I stopped after {self._settings.max_model_calls} model calls without coming to an end. Ask me to go on if I should."
        return Outcome("done", self._step(turn, (self._said(turn, (Text(text),), {"limit": True}),))), text

    def _answered(self, turn: _Turn, blocks: tuple[Block, ...], text: str, done: Done) -> tuple[Outcome, str]:
        metadata = {"model": done.model, "stop": done.stop, "in_reply_to": _newest(turn.claim)}
        kept = tuple(block for block in blocks if not isinstance(block, Thinking))
        if done.stop == "length":
            text = f"{text}\n\n[My reply reached its longest length and was cut here.]"
        return Outcome("done", self._step(turn, (self._said(turn, kept, metadata),))), text

    async def _take_in(self, turn: _Turn) -> None:
        """Hand the model what the person wrote while its tools ran, where the transport answers messages together."""
        if turn.claim.address.transport not in self._steering or turn.claim.kind != "message":
            return
        items, messages = await patiently(lambda: self._store.steer(turn.claim, self._time.wall()))
        turn.claim = replace(turn.claim, items=(*turn.claim.items, *items))
        turn.view.messages += messages
        await self._open_skills(turn, items)

    async def _open_skills(self, turn: _Turn, items: Sequence[Item]) -> None:
        """Open the skills that somebody's words call for, as if the model had asked for them; what is open in view stays so."""
        if not self._skills.found:
            return
        there = skills.opened(turn.view.messages, turn.view.rows.shortened | turn.view.local)
        calls = [
            call for call in self._skills.called_for((without_foreign(item.text) for item in items), there) if self._tools.allows(call)
        ]
        if calls and not turn.claim.risky:
            await self._run_tools(turn, tuple(calls), calls, {"triggered": True})

    # Tools -------------------------------------------------------------------------------------------------------

    async def _run_tools(self, turn: _Turn, blocks: tuple[Block, ...], calls: Sequence[ToolCall], metadata: Mapping[str, object]) -> None:
        asked = self._said(turn, blocks, metadata)
        proposed, approved = await self._sorted(turn, calls)
        now = self._time.wall()
        states = tuple(ToolState(c.id, c.name, c.arguments, "proposed" if c in proposed else "started", now) for c in calls)
        await self._record(turn, self._step(turn, (asked,), tools=states))
        if at_once := [call for call in calls if call not in proposed]:
            await self._finish_tools(turn, at_once, approved)
        if proposed:
            await self._ask(turn, proposed)

    async def _sorted(self, turn: _Turn, calls: Sequence[ToolCall]) -> tuple[list[ToolCall], list[ToolCall]]:
        """Of these calls those for which somebody has to be asked, and those that have a yes for good."""
        asking = [] if turn.claim.risky else [call for call in calls if self._tools.asks(call)]
        if not asking:
            return [], []
        person = turn.claim.person.id if turn.claim.person else ""
        standing = {(each.tool, each.wording) for each in await self._store.standing(str(turn.claim.address), person)}
        approved = [call for call in asking if (call.name, self._tools.wording(call.name)) in standing]
        return [call for call in asking if call not in approved], approved

    async def _ask(self, turn: _Turn, calls: Sequence[ToolCall]) -> None:
        """Ask somebody, and let the turn wait. Raises Parked, or Stopped."""
        wordings = {call.name: self._tools.wording(call.name) for call in calls}
        question = await self._asking.question(turn.claim, calls, wordings)
        if question is None:
            await self._results(turn, [denied(call, UNASKED.format(call.name)) for call in calls])
        elif await patiently(lambda: self._store.park(turn.claim, question, self._time.wall())):
            raise Parked(question)
        else:
            await self._results(turn, [denied(call, REFUSED["stopped"].format(question.person)) for call in calls])
            raise Stopped

    async def _finish_tools(self, turn: _Turn, calls: Sequence[ToolCall], approved: Sequence[ToolCall] = ()) -> None:
        if turn.claim.risky:
            ran = [_switched_off(call) for call in calls]
        else:
            try:
                async with turn.stop.heeded():
                    ran = await self._tools.run(calls, self._tool_context(turn), approved)
            except Stopped:
                await self._interrupted(turn, calls)
                raise
        await self._results(turn, ran)

    async def _results(self, turn: _Turn, ran: Sequence[Ran]) -> None:
        now = self._time.wall()
        fitted = await self._fitting.results(turn.view, [each.result for each in ran])
        results = tuple(NewMessage("tool", (result,), now) for result in fitted)
        states = tuple(ToolState(r.call.id, r.call.name, r.call.arguments, "denied" if r.denied else "done", now) for r in ran)
        await self._record(turn, self._step(turn, results, tools=states))

    async def _interrupted(self, turn: _Turn, calls: Sequence[ToolCall]) -> None:
        """Store that nobody knows what came of these calls."""
        now = self._time.wall()
        results = tuple(NewMessage("tool", (ToolResult(c.id, c.name, INTERRUPTED, is_error=True),), now) for c in calls)
        states = tuple(ToolState(c.id, c.name, c.arguments, "interrupted", now) for c in calls)
        await self._record(turn, Step(messages=results, tools=states))

    async def _settle_interrupted(self, turn: _Turn) -> None:
        """After a crash between a call and its result: run it again if that is harmless, else say that nobody knows. Of calls that waited
        for somebody, do as they said."""
        own = [message for message in turn.view.messages if message.turn == turn.claim.turn]
        asked = next((message for message in reversed(own) if message.calls), None)
        # Only results behind it count: some models give every call the same id.
        answered = {result.call_id for message in own if asked and message.seq > asked.seq for result in message.results}
        missing = [call for call in (asked.calls if asked else ()) if call.id not in answered]
        states = await self._store.tool_states(turn.claim.turn) if missing else {}
        held = [call for call in missing if states.get(call.id) in ("proposed", "waiting")]
        lost = [call for call in missing if call not in held and not self._tools.idempotent(call.name)]
        if lost:
            await self._interrupted(turn, lost)
        if again := [call for call in missing if call not in held and call not in lost]:
            answers = await self._store.answers(turn.claim.turn)
            said_yes = [call for call in again if call in answers and answers[call].state == "yes"]
            await self._finish_tools(turn, again, [*said_yes, *(await self._sorted(turn, again))[1]])
        if waited := [call for call in held if states[call.id] == "waiting"]:
            await self._as_answered(turn, waited)
        if proposed := [call for call in held if states[call.id] == "proposed"]:
            await self._ask(turn, proposed)

    async def _as_answered(self, turn: _Turn, calls: Sequence[ToolCall]) -> None:
        """Run the calls that got a yes, once; the others get a result that says why not."""
        answers = await self._store.answers(turn.claim.turn)
        yes = [call for call in calls if answers[call].state == "yes"]
        refused = [call for call in calls if call not in yes]
        if refused:
            await self._results(turn, [denied(c, REFUSED[answers[c].how].format(answers[c].person)) for c in refused])
        if yes:
            now = self._time.wall()
            await self._record(turn, Step(tools=tuple(ToolState(c.id, c.name, c.arguments, "started", now) for c in yes)))
            await self._finish_tools(turn, yes, yes)

    def _tool_context(self, turn: _Turn) -> ToolContext:
        claim = turn.claim
        zone, name = self._prompter.zone(claim)
        after = turn.view.rows.to_seq
        now, scheduled_run = self._time.wall(), claim.kind == "job"
        return ToolContext(claim.session, claim.turn, str(claim.address), claim.person, after, zone, name, now, scheduled_run, claim.direct)

    # The model ---------------------------------------------------------------------------------------------------

    async def _call(self, turn: _Turn, *, first: bool) -> Done:
        """The next model call: compacted if it is due, by the first provider that answers."""
        await self._fitting.compact_if_due(turn.view, first=first)
        if first:
            turn.decided = await self._prompter.decide(turn.claim, turn.view.rows, self._providers[0])
            turn.fresh = True
        *others, last = self._providers
        for provider in others:
            try:
                return await self._call_with(turn, provider)
            except ProviderError as error:
                log.warning("provider.fallback", provider=provider.name, kind=error.kind, err=str(error))
                self._metrics.fallbacks.labels(provider.name).inc()
        return await self._call_with(turn, last)

    async def _call_with(self, turn: _Turn, provider: Provider) -> Done:
        made = await self._fitting.request(turn.view, turn.decided.state, provider)
        try:
            return await self._send(turn, provider, made)
        except ProviderError as error:
            if error.kind == "invalid" and (shown := files.sent(made.request)):
                return await self._send_without(turn, provider, shown, error)
            if error.kind != "overflow" or provider is not self._providers[0]:
                raise
            sent, allowed = error.tokens or (2, 1)
            # The provider's own count says how far the measure was off; without one, half is taken.
            fits = int(made.tokens * allowed / max(sent, 1) * 0.95)
            return await self._send(turn, provider, await self._fitting.request(turn.view, turn.decided.state, provider, fits))

    async def _send_without(self, turn: _Turn, provider: Provider, sent: frozenset[str], error: ProviderError) -> Done:
        """A request again that was refused, without its files: those of this turn, which came last, and if they are not it, all."""
        newest = sent.intersection(file.hash for message in _asked(turn) for file in message.files)
        for refused in dict.fromkeys(each for each in (newest, sent) if each):
            turn.view.unseen |= refused
            try:
                done = await self._send(turn, provider, await self._fitting.request(turn.view, turn.decided.state, provider))
            except ProviderError as again:
                if again.kind != "invalid":
                    raise
                continue
            log.warning("attachment.refused", provider=provider.name, model=provider.model, files=len(refused), err=str(error))
            turn.refused |= refused
            thread = turn.view.thread
            await patiently(lambda: self._store.files.refuse(thread, provider.name, provider.model, refused))  # noqa: B023 - awaited here
            return done
        turn.view.unseen -= sent
        raise error

    async def _send(self, turn: _Turn, provider: Provider, made: Measured) -> Done:
        marks = await self._prompter.marked(made.chain, provider)

        async def spoken(text: str, words: str) -> None:
            self._hint(turn.claim, Preview(turn.claim.turn, text, words, _newest(turn.claim)))

        return await self._caller.call(
            provider,
            marks,
            made.chain.prefixes,
            payer=turn.payer,
            spent=turn.spent,
            session=turn.claim.session,
            repairs=(*turn.view.rows.damaged, *turn.view.window.repairs),
            spoken=spoken,
            stop=turn.stop,
            estimated=made.chain.tokens,
            size=made.tokens,
        )

    # Writing down ------------------------------------------------------------------------------------------------

    def _said(self, turn: _Turn, blocks: tuple[Block, ...], metadata: Mapping[str, object]) -> NewMessage:
        return NewMessage("assistant", blocks, self._time.wall(), metadata=metadata)

    def _step(self, turn: _Turn, messages: tuple[NewMessage, ...] = (), *, tools: tuple[ToolState, ...] = ()) -> Step:
        """What is to be committed: everything since the last step, with the prompt's state where that is new."""
        fresh, turn.fresh = turn.fresh, False
        calls, cache = tuple(turn.spent.calls[turn.saved[0] :]), tuple(turn.spent.cache[turn.saved[1] :])
        turn.saved = (len(turn.spent.calls), len(turn.spent.cache))
        state = replace(turn.decided.state, last_call=self._time.wall()) if fresh or calls else None
        return Step(messages, calls, tools, cache, turn.decided.recalled if fresh else (), state)

    async def _record(self, turn: _Turn, step: Step) -> None:
        turn.view.messages += await patiently(lambda: self._store.record(turn.claim, step))

    def _report(self, outcome: Outcome, spent: Sequence[ModelCall], seconds: float) -> None:
        self._metrics.turns.labels(outcome.state).inc()
        tracing.note({"clew.outcome": outcome.state})
        self._metrics.turn_seconds.observe(seconds)
        usage = sum((call.usage for call in spent), Usage())
        if outcome.state == "failed":
            log.error("turn.failed", error=outcome.error.partition(":")[0], detail=outcome.error)
        log.info(
            "turn.finished",
            outcome=outcome.state,
            duration=round(seconds, 3),
            calls=len(spent),
            prompt_tokens=usage.prompt,
            output_tokens=usage.output,
            cache_read_share=round(usage.cache_read / usage.prompt, 3) if usage.prompt else 0.0,
        )


def replies(claim: Claim, text: str, plan: Plan) -> list[Reply]:
    """The reply of a turn, addressed and cut into parts."""
    parts, instant = plan(claim.address, text)
    answers = tuple(item.client_id for item in claim.items if item.client_id)
    context = claim.items[-1].context if claim.items else {}
    return [Reply(claim.address, text, parts, _newest(claim), answers, context, instant)]


def _asked(turn: _Turn) -> tuple[Message, ...]:
    """What the person said in this turn."""
    return tuple(message for message in turn.view.messages if message.turn == turn.claim.turn and message.role == "user")


def _newest(claim: Claim) -> str:
    return claim.items[-1].client_id if claim.items else ""


def _clean(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """A response without control characters and without clew's own wrappers, should the model have repeated them."""
    return tuple(Text(view.strip_head(strip_appendix(clean(block.text)))) if isinstance(block, Text) else block for block in blocks)


def _switched_off(call: ToolCall) -> Ran:
    text = "Tools are switched off for this message: answering it has failed badly before. Answer without them."
    return Ran(call, ToolResult(call.id, call.name, text, is_error=True))
