"""Runs of jobs, from the claim to what they come to: condition, template, then a command or a model."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import structlog

from clew import programs, scheduled
from clew.agent import Agent, Warn, replies
from clew.asking import Plan
from clew.clock import Time
from clew.config import Job as Entry
from clew.context.templates import rendered
from clew.context.text import clean
from clew.errors import NotFound
from clew.messages import Text
from clew.metrics import Metrics
from clew.stopping import Stop, Stopped
from clew.store import Claim, NewMessage, Outcome, Step, ToolState
from clew.store.sql import SqlStore
from clew.supervise import patiently
from clew.timetable import span

log = structlog.get_logger()

LONGEST = 3600.0
"""Seconds that a run may take whose job has no `timeout`."""
LONGEST_CONDITION = 60.0
"""Seconds that a condition may take, and a command whose job has no `timeout`."""
SKIP = 1
"""Exit code of a condition that says that there is nothing to do."""
_COMMAND = "command"
"""Under which call a command is noted before it runs."""
UNKNOWN_OUTCOME = "it was interrupted while its command ran; whether that took effect is unknown"


class Failed(Exception):
    """A run came to nothing; its text says why."""


class Runs:
    """Runs jobs. entries: those of the config, which alone may name programs. zone: of those that name none."""

    def __init__(
        self,
        store: SqlStore,
        agent: Agent,
        entries: Sequence[Entry],
        zone: str,
        plan: Plan,
        warn: Warn,
        time: Time,
        metrics: Metrics,
        stops: dict[str, Stop],
    ) -> None:
        self._store = store
        self._agent = agent
        self._entries = {entry.name: entry for entry in entries}
        self._zone = zone
        self._plan = plan
        self._warn = warn
        self._time = time
        self._metrics = metrics
        self._stops = stops

    async def run(self, claim: Claim) -> None:
        """Carry a run to its end, or to the end of its time. Cancelled, it is resumed after a restart. Raises LeaseLost."""
        stop = self._stops[claim.turn]
        entry = await self._entry(claim)
        limit = entry.timeout or (LONGEST_CONDITION if entry.command else LONGEST)
        left = min(max(claim.started + limit - self._time.wall(), 0.0), limit)
        late = asyncio.get_running_loop().call_later(left, stop.set, f"it took longer than {span(limit)}")
        try:
            await self._run(claim, entry, stop)
        except Stopped:
            outcome = Outcome("failed", error=stop.reason) if stop.reason else Outcome("stopped", error="stopped by hand")
            await self._finish(claim, outcome, stop.reason and sentence(stop.reason))
        except Failed as error:
            await self._finish(claim, Outcome("failed", error=str(error)), sentence(str(error)))
        finally:
            late.cancel()

    async def _entry(self, claim: Claim) -> Entry:
        """The job's entry; of one that is gone since, what its last run needs. Only the config's may name programs."""
        name = claim.items[-1].job or ""
        if name in self._entries:
            return self._entries[name]
        try:
            entry = Entry.model_validate_json((await self._store.job(name)).spec)
            return entry.model_copy(update={"command": None, "condition": None})
        except NotFound:
            return Entry(name=name, every=LONGEST, prompt=claim.items[-1].text, deliver_to=str(claim.address))

    async def _run(self, claim: Claim, entry: Entry, stop: Stop) -> None:
        if claim.items[-1].person and claim.person is None:
            raise Failed("the person whose job it is is not known any more")
        if claim.first_seq:  # it was begun before a restart
            await self._ask(claim)
            return
        async with stop.heeded():
            output = await self._condition(entry)
        if output is None:
            await self._finish(claim, Outcome("done", run="skipped", error="its condition said no"))
        elif entry.command is not None:
            await self._command(claim, entry, entry.command, stop)
        else:
            text = await self._prompt(claim, entry, output)
            opened = await patiently(lambda: self._store.open_run(claim, text, self._time.wall()))
            await self._ask(opened)

    async def _ask(self, claim: Claim) -> None:
        """Let the agent answer it."""
        ended = await self._agent.run(claim)
        if ended is not None:
            await self._report(claim, *ended)

    async def _condition(self, entry: Entry) -> str | None:
        """What the condition wrote, empty where there is none; None where there is nothing to do."""
        if entry.condition is None:
            return ""
        ended = await self._program(entry, entry.condition, "condition", min(entry.timeout or LONGEST_CONDITION, LONGEST_CONDITION))
        if ended.status == SKIP:
            return None
        if ended.status != 0:
            raise Failed(f"its condition ended with {ended.status}{said(ended.errors)}")
        return ended.output

    async def _command(self, claim: Claim, entry: Entry, command: str | Sequence[str], stop: Stop) -> None:
        """Deliver what a program writes. It is noted before it runs: what a crash interrupted is not run again."""
        if (await self._store.tool_states(claim.turn)).get(_COMMAND):
            raise Failed(UNKNOWN_OUTCOME)
        state = ToolState(_COMMAND, _COMMAND, "{}", "started", self._time.wall())
        await patiently(lambda: self._store.record(claim, Step(tools=(state,))))
        async with stop.heeded():
            ended = await self._program(entry, command, _COMMAND, entry.timeout or LONGEST_CONDITION)
        done = replace(state, state="done", at=self._time.wall())
        if ended.status != 0:
            note = f"its command ended with {ended.status}{said(ended.errors or ended.output)}"
            await self._finish(claim, Outcome("failed", Step(tools=(done,)), note), sentence(note))
            return
        spoken = (NewMessage("assistant", (Text(ended.output),), self._time.wall(), metadata={"job": entry.name}),) if ended.output else ()
        outcome = Outcome("done", Step(spoken, tools=(done,)), run="" if ended.output else "silent")
        await self._finish(claim, outcome, ended.output)

    async def _program(self, entry: Entry, command: str | Sequence[str], what: str, timeout: float) -> programs.Ended:
        variables = {"TZ": entry.timezone or self._zone, "CLEW_JOB": entry.name}
        try:
            ended = await programs.run(command, timeout, variables)
        except (OSError, ValueError) as error:
            raise Failed(f"its {what} could not be started: {error}") from None
        if ended.status is None:
            raise Failed(f"its {what} took longer than {span(timeout)}")
        return replace(ended, output=clean(ended.output), errors=clean(ended.errors))

    async def _prompt(self, claim: Claim, entry: Entry, output: str) -> str:
        zone, now = entry.timezone or self._zone, self._time.wall()
        item = claim.items[-1]
        due = item.received if item.instant is None else item.instant
        local = datetime.fromtimestamp(now, ZoneInfo(zone))
        values = {
            "date": f"{local:%Y-%m-%d}",
            "time": f"{local:%H:%M}",
            "due": scheduled.stamp(due, zone),
            "job": entry.name,
            "last_reply": programs.bounded(await self._store.last_reply(entry.name)),
            "output": output,
        }
        return scheduled.asked(rendered(item.text, values), entry.name, due, now, zone)

    async def _finish(self, claim: Claim, outcome: Outcome, text: str = "") -> None:
        outcome, text = scheduled.ending(claim, outcome, text)
        parts = replies(claim, text, self._plan) if text else []
        await patiently(lambda: self._store.finish(claim, outcome, parts, self._time.wall()))
        await self._report(claim, outcome, text)

    async def _report(self, claim: Claim, outcome: Outcome, text: str) -> None:
        """Count a run that ended; one that failed is logged, and the first of a row told to the owner where it was not said to them."""
        job = claim.items[-1].job or ""
        self._metrics.cron_runs.labels(job, outcome.run or outcome.state).inc()
        if outcome.state == "failed":
            log.error("job.failed", job=job, err=outcome.error, failures=claim.failures + 1)
            if text and not claim.items[-1].person:
                await self._warn(f"job/{job}/{claim.turn}", text, claim.address)


def sentence(note: str) -> str:
    """A note of a run as a sentence."""
    return f"{note[:1].upper()}{note[1:]}."


def said(errors: str) -> str:
    """The last line of what a program wrote, for a note."""
    lines = errors.splitlines()
    return f": {lines[-1][:200]}" if lines else ""
