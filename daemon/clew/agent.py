"""One turn, start to end."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import structlog

from clew import scheduled, tracing
from clew.asking import Plan
from clew.boundaries import Boundaries
from clew.bus import LiveEvent, Replied
from clew.clock import Time
from clew.compactor import CompactFull
from clew.config import Agent as Settings
from clew.context import files, view
from clew.context.recall import strip_appendix
from clew.context.templates import without_foreign
from clew.context.text import clean
from clew.fitting import Fitting, Measured
from clew.messages import Block, Text, Thinking, ToolCall, Usage
from clew.metrics import Metrics
from clew.model_call import ModelCaller
from clew.prompting import Decided, Prompter, is_cold
from clew.providers import Done, Provider, ProviderError
from clew.purse import OverBudget
from clew.stopping import Stop, Stopped
from clew.store import Claim, Item, LeaseLost, ModelCall, Outcome, Reply, Step, ViewRows
from clew.store.sql import SqlStore
from clew.supervise import patiently
from clew.tool_calls import Parked, ToolCalls
from clew.tools import skills
from clew.transport import Address, Preview, Typing
from clew.turn import Turn, newest

log = structlog.get_logger()

EMPTY_TRIES = 2
"""Model calls that may come back empty before the person is told."""

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
        tools: ToolCalls,
        learnt: skills.Skills,
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
        self._hint(claim, Typing(newest(claim)))
        try:
            rows = await self._rows(claim)
            refused = set(rows.unseen(self._providers[0].name, self._providers[0].model))
            turn = Turn(self._store, self._time, claim, self._fitting.begin(claim, rows, stop), Decided(rows.prompt), stop, refused=refused)
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
    def _notices(turn: Turn, text: str) -> tuple[str, ...]:
        """What the person is told of their files beside the answer."""
        if turn.claim.kind != "message":
            return ()
        told = files.notices(turn.asked, turn.refused)
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

    async def _ended(self, turn: Turn) -> tuple[Outcome, str]:
        if turn.claim.kind == "message" and files.says_nothing(turn.asked):  # no model can say anything to it
            text = "\n".join(files.notices(turn.asked, ()))
            return Outcome("done", Step((turn.said((Text(text),), {"in_reply_to": newest(turn.claim)}),))), text
        try:
            if turn.claim.resumed:
                await self._tools.resume(turn)
            if all(message.role == "user" for message in turn.view.messages if message.turn == turn.claim.turn):
                await self._open_skills(turn, turn.claim.items)
            outcome, text = await self._loop(turn)
        except Stopped:
            if turn.stop.reason:
                return Outcome("failed", turn.step(), turn.stop.reason), f"I stopped: {turn.stop.reason}."
            text = "Stopped."
            outcome = Outcome("stopped", turn.step((turn.said((Text(text),), {"stopped": True}),)))
        except CompactFull as full:
            text = WORDS["compact_full"]
            outcome = Outcome("failed", turn.step(), f"compact_full: {full}")
        except OverBudget as over:
            return await self._out_of_budget(turn, over)
        except ProviderError as error:
            text = WORDS.get(error.kind, UNREACHED)
            if error.kind in OWNERS_BUSINESS:
                await self._warn(f"provider/{error.kind}", f"My model cannot be used until you mend it: {error}", turn.claim.address)
            outcome = Outcome("failed", turn.step(), f"{error.kind}: {error}")
        return outcome, text

    async def _out_of_budget(self, turn: Turn, over: OverBudget) -> tuple[Outcome, str]:
        """End a turn with what it has. Nothing is answered by itself after the reset: whoever writes then is answered with all that is
        here. A job says so once in each period."""
        outcome = Outcome("stopped", turn.step(), over.note)
        own = [message for message in turn.view.messages if message.turn == turn.claim.turn and message.role != "user"]
        said = [message.text for message in own if message.role == "assistant" and message.text]
        if turn.claim.kind == "job" and not said:
            if self._caller.purse is not None:
                await self._caller.purse.tell_job(turn.claim.items[-1].job or "", over, turn.claim.address)
            return outcome, ""
        later = f" {LATER if own else UNANSWERED}" if over.passes else ""
        return outcome, "\n\n".join([*said, f"{over}{later}"])

    async def _loop(self, turn: Turn) -> tuple[Outcome, str]:
        empty = 0
        for number in range(1, self._settings.max_model_calls + 1):
            if turn.stop.is_set():
                raise Stopped
            done = await self._call(turn, first=number == 1)
            blocks = _clean(done.blocks)
            if done.stop == "refusal":
                return Outcome("failed", turn.step(), "refusal"), WORDS["refusal"]
            if calls := tuple(block for block in blocks if isinstance(block, ToolCall)):
                await self._tools.run(turn, blocks, calls, {"model": done.model})
                await self._take_in(turn)
                continue
            text = "\n".join(block.text for block in blocks if isinstance(block, Text)).strip()
            if text:
                return self._answered(turn, blocks, text, done)
            empty += 1
            if empty == EMPTY_TRIES:
                return Outcome("failed", turn.step(), "empty"), WORDS["empty"]
            await turn.record(turn.step())
        text = f"I stopped after {self._settings.max_model_calls} model calls without coming to an end. Ask me to go on if I should."
        return Outcome("done", turn.step((turn.said((Text(text),), {"limit": True}),))), text

    def _answered(self, turn: Turn, blocks: tuple[Block, ...], text: str, done: Done) -> tuple[Outcome, str]:
        metadata = {"model": done.model, "stop": done.stop, "in_reply_to": newest(turn.claim)}
        kept = tuple(block for block in blocks if not isinstance(block, Thinking))
        if done.stop == "length":
            text = f"{text}\n\n[My reply reached its longest length and was cut here.]"
        return Outcome("done", turn.step((turn.said(kept, metadata),))), text

    async def _take_in(self, turn: Turn) -> None:
        """Hand the model what the person wrote while its tools ran, where the transport answers messages together."""
        if turn.claim.address.transport not in self._steering or turn.claim.kind != "message":
            return
        items, messages = await patiently(lambda: self._store.steer(turn.claim, self._time.wall()))
        turn.claim = replace(turn.claim, items=(*turn.claim.items, *items))
        turn.view.messages += messages
        await self._open_skills(turn, items)

    async def _open_skills(self, turn: Turn, items: Sequence[Item]) -> None:
        """Open the skills that somebody's words call for, as if the model had asked for them; what is open in view stays so."""
        if not self._skills.found:
            return
        there = skills.opened(turn.view.messages, turn.view.rows.shortened | turn.view.local)
        calls = [
            call for call in self._skills.called_for((without_foreign(item.text) for item in items), there) if self._tools.allows(call)
        ]
        if calls and not turn.claim.risky:
            await self._tools.run(turn, tuple(calls), calls, {"triggered": True})

    # The model ---------------------------------------------------------------------------------------------------

    async def _call(self, turn: Turn, *, first: bool) -> Done:
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

    async def _call_with(self, turn: Turn, provider: Provider) -> Done:
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

    async def _send_without(self, turn: Turn, provider: Provider, sent: frozenset[str], error: ProviderError) -> Done:
        """A request again that was refused, without its files: those of this turn, which came last, and if they are not it, all."""
        last = sent.intersection(file.hash for message in turn.asked for file in message.files)
        for refused in dict.fromkeys(each for each in (last, sent) if each):
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

    async def _send(self, turn: Turn, provider: Provider, made: Measured) -> Done:
        marks = await self._prompter.marked(made.chain, provider)

        async def spoken(text: str, words: str) -> None:
            self._hint(turn.claim, Preview(turn.claim.turn, text, words, newest(turn.claim)))

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
    return [Reply(claim.address, text, parts, newest(claim), answers, context, instant)]


def _clean(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """A response without control characters and without clew's own wrappers, should the model have repeated them."""
    return tuple(Text(view.strip_head(strip_appendix(clean(block.text)))) if isinstance(block, Text) else block for block in blocks)
