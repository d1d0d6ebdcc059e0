"""The tool calls of a turn: written down before they are run, asked about where they need a yes, settled after a crash."""

from collections.abc import Mapping, Sequence

from clew.asking import Asking
from clew.clock import Time
from clew.fitting import Fitting
from clew.messages import Block, ToolCall, ToolResult
from clew.prompting import Prompter
from clew.stopping import Stopped
from clew.store import NewMessage, Question, Step, ToolState
from clew.store.sql import SqlStore
from clew.supervise import patiently
from clew.tools import ToolContext
from clew.tools.runner import Ran, ToolRunner, denied
from clew.turn import Turn

UNASKED = "The tool {} needs a yes, and there is nobody who could be asked. It was not run."
REFUSED = {
    "said": "{} said no to this call. It was not run; do not try to reach the same in another way.",
    "passed": "{} did not say yes to this call and wrote something else. It was not run.",
    "expired": "{} did not answer in time whether this call may be run. It was not run.",
    "stopped": "The turn was stopped before {} had said yes to this call. It was not run.",
}
INTERRUPTED = "This call was interrupted. Whether it took effect is unknown: find out before calling it again."


class Parked(Exception):
    """A turn waits for a person's answer; it goes on when there is one."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.id)
        self.question = question


class ToolCalls:
    """runner: which tools there are, and which need a yes."""

    def __init__(self, store: SqlStore, runner: ToolRunner, asking: Asking, fitting: Fitting, prompter: Prompter, time: Time) -> None:
        self._store = store
        self._runner = runner
        self._asking = asking
        self._fitting = fitting
        self._prompter = prompter
        self._time = time

    def allows(self, call: ToolCall) -> bool:
        return self._runner.allows(call)

    async def run(self, turn: Turn, blocks: tuple[Block, ...], calls: Sequence[ToolCall], metadata: Mapping[str, object]) -> None:
        """Write down what the model said, run its calls, and ask for those that need a yes. Raises Parked, Stopped."""
        asked = turn.said(blocks, metadata)
        proposed, approved = await self._sorted(turn, calls)
        now = self._time.wall()
        states = tuple(ToolState(c.id, c.name, c.arguments, "proposed" if c in proposed else "started", now) for c in calls)
        await turn.record(turn.step((asked,), tools=states))
        if at_once := [call for call in calls if call not in proposed]:
            await self._finish(turn, at_once, approved)
        if proposed:
            await self._ask(turn, proposed)

    async def _sorted(self, turn: Turn, calls: Sequence[ToolCall]) -> tuple[list[ToolCall], list[ToolCall]]:
        """Of these calls those for which somebody has to be asked, and those that have a yes for good."""
        asking = [] if turn.claim.risky else [call for call in calls if self._runner.asks(call)]
        if not asking:
            return [], []
        person = turn.claim.person.id if turn.claim.person else ""
        standing = {(each.tool, each.wording) for each in await self._store.standing(str(turn.claim.address), person)}
        approved = [call for call in asking if (call.name, self._runner.wording(call.name)) in standing]
        return [call for call in asking if call not in approved], approved

    async def _ask(self, turn: Turn, calls: Sequence[ToolCall]) -> None:
        """Ask somebody, and let the turn wait. Raises Parked, or Stopped."""
        wordings = {call.name: self._runner.wording(call.name) for call in calls}
        question = await self._asking.question(turn.claim, calls, wordings)
        if question is None:
            await self._results(turn, [denied(call, UNASKED.format(call.name)) for call in calls])
        elif await patiently(lambda: self._store.park(turn.claim, question, self._time.wall())):
            raise Parked(question)
        else:
            await self._results(turn, [denied(call, REFUSED["stopped"].format(question.person)) for call in calls])
            raise Stopped

    async def _finish(self, turn: Turn, calls: Sequence[ToolCall], approved: Sequence[ToolCall] = ()) -> None:
        if turn.claim.risky:
            ran = [_switched_off(call) for call in calls]
        else:
            try:
                async with turn.stop.heeded():
                    ran = await self._runner.run(calls, self._context(turn), approved)
            except Stopped:
                await self._interrupted(turn, calls)
                raise
        await self._results(turn, ran)

    async def _results(self, turn: Turn, ran: Sequence[Ran]) -> None:
        now = self._time.wall()
        fitted = await self._fitting.results(turn.view, [each.result for each in ran])
        results = tuple(NewMessage("tool", (result,), now) for result in fitted)
        states = tuple(ToolState(r.call.id, r.call.name, r.call.arguments, "denied" if r.denied else "done", now) for r in ran)
        await turn.record(turn.step(results, tools=states))

    async def _interrupted(self, turn: Turn, calls: Sequence[ToolCall]) -> None:
        """Store that nobody knows what came of these calls."""
        now = self._time.wall()
        results = tuple(NewMessage("tool", (ToolResult(c.id, c.name, INTERRUPTED, is_error=True),), now) for c in calls)
        states = tuple(ToolState(c.id, c.name, c.arguments, "interrupted", now) for c in calls)
        await turn.record(Step(messages=results, tools=states))

    async def resume(self, turn: Turn) -> None:
        """After a crash between a call and its result: run it again if that is harmless, else say that nobody knows. Of calls that waited
        for somebody, do as they said."""
        own = [message for message in turn.view.messages if message.turn == turn.claim.turn]
        asked = next((message for message in reversed(own) if message.calls), None)
        # Only results behind it count: some models give every call the same id.
        answered = {result.call_id for message in own if asked and message.seq > asked.seq for result in message.results}
        missing = [call for call in (asked.calls if asked else ()) if call.id not in answered]
        states = await self._store.tool_states(turn.claim.turn) if missing else {}
        held = [call for call in missing if states.get(call.id) in ("proposed", "waiting")]
        lost = [call for call in missing if call not in held and not self._runner.idempotent(call.name)]
        if lost:
            await self._interrupted(turn, lost)
        if again := [call for call in missing if call not in held and call not in lost]:
            answers = await self._store.answers(turn.claim.turn)
            said_yes = [call for call in again if call in answers and answers[call].state == "yes"]
            await self._finish(turn, again, [*said_yes, *(await self._sorted(turn, again))[1]])
        if waited := [call for call in held if states[call.id] == "waiting"]:
            await self._as_answered(turn, waited)
        if proposed := [call for call in held if states[call.id] == "proposed"]:
            await self._ask(turn, proposed)

    async def _as_answered(self, turn: Turn, calls: Sequence[ToolCall]) -> None:
        """Run the calls that got a yes, once; the others get a result that says why not."""
        answers = await self._store.answers(turn.claim.turn)
        yes = [call for call in calls if answers[call].state == "yes"]
        refused = [call for call in calls if call not in yes]
        if refused:
            await self._results(turn, [denied(c, REFUSED[answers[c].how].format(answers[c].person)) for c in refused])
        if yes:
            now = self._time.wall()
            await turn.record(Step(tools=tuple(ToolState(c.id, c.name, c.arguments, "started", now) for c in yes)))
            await self._finish(turn, yes, yes)

    def _context(self, turn: Turn) -> ToolContext:
        claim = turn.claim
        zone, name = self._prompter.zone(claim)
        after = turn.view.rows.to_seq
        now, scheduled_run = self._time.wall(), claim.kind == "job"
        return ToolContext(claim.session, claim.turn, str(claim.address), claim.person, after, zone, name, now, scheduled_run, claim.direct)


def _switched_off(call: ToolCall) -> Ran:
    text = "Tools are switched off for this message: answering it has failed badly before. Answer without them."
    return Ran(call, ToolResult(call.id, call.name, text, is_error=True))
