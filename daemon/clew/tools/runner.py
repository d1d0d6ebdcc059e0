"""Running the calls of one message: checked, side by side, each with exactly one result."""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog
from pydantic import BaseModel, ValidationError

from clew import tracing
from clew.config import Approver
from clew.context.view import ends
from clew.messages import ToolCall, ToolResult
from clew.tools import Tool, ToolContext, ToolError
from clew.tools.approver import decide

log = structlog.get_logger()

AT_ONCE = 64
"""Calls that run at once, of all turns; further ones wait for a place, and their time begins when they have it."""
STORED_CHARS = 200_000
"""Characters of a result that are stored, its beginning and its end, or more where more are shown."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a call came to."""

    call: ToolCall
    result: ToolResult
    denied: bool = False


class ToolRunner:
    """The tools of a process, and how their calls are run."""

    def __init__(self, tools: Sequence[Tool], approver: Approver, output_chars: int) -> None:
        self.use(tools)
        self._approver = approver
        self._output_chars = output_chars
        self._places = asyncio.Semaphore(AT_ONCE)

    def use(self, tools: Sequence[Tool]) -> None:
        """Have these tools from now on."""
        self.tools: Mapping[str, Tool] = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}

    def idempotent(self, name: str) -> bool:
        """Whether a call of this tool may run again after a crash."""
        return name in self.tools and self.tools[name].idempotent

    def wording(self, name: str) -> str:
        """See `Tool.wording`; empty for a tool that is unknown."""
        return self.tools[name].wording if name in self.tools else ""

    def asks(self, call: ToolCall) -> bool:
        """Whether a call waits for somebody's yes: it could be run, and no rule of the config decides."""
        tool = self.tools.get(call.name)
        if tool is None:
            return False
        try:
            return decide(tool, _checked(tool, call).model_dump(), self._approver) == "ask"
        except (ValueError, RecursionError):
            return False

    def allows(self, call: ToolCall) -> bool:
        """Whether a call is run without asking anybody."""
        tool = self.tools.get(call.name)
        return tool is not None and decide(tool, json.loads(call.arguments), self._approver) == "allow"

    async def run(self, calls: Sequence[ToolCall], context: ToolContext, approved: Collection[ToolCall] = ()) -> list[Ran]:
        """Run calls side by side. A failing tool gives an error result, never an exception. approved: those that somebody said yes to."""
        ran = await asyncio.gather(*(self._run(call, context, approved=call in approved) for call in calls))
        return [self._bounded(each) for each in ran]

    async def _run(self, call: ToolCall, context: ToolContext, *, approved: bool) -> Ran:
        tool = self.tools.get(call.name)
        if tool is None:
            known = ", ".join(self.tools)
            return _error(call, f"There is no tool {call.name!r}. The tools are: {known}.")
        try:
            arguments = _checked(tool, call)
        except (ValueError, RecursionError) as error:
            return _error(call, f"The arguments of {call.name} are wrong: {_plain(error)}")
        decision = decide(tool, arguments.model_dump(), self._approver)
        if decision == "deny" or (decision == "ask" and not approved):
            return denied(call, f"The tool {call.name} is not allowed here.")
        try:
            with tracing.span(f"execute_tool {call.name}", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.name}):
                async with self._places, asyncio.timeout(tool.timeout):
                    answer = await _answer(tool, context, arguments)
        except ToolError as error:
            return _error(call, str(error))
        except TimeoutError:
            log.warning("tool.failed", tool=call.name, err=f"no answer within {tool.timeout:g} s")
            return _error(call, f"The tool {call.name} gave no answer within {tool.timeout:g} seconds. Whether it took effect is unknown.")
        except (Exception, SystemExit) as error:
            log.warning("tool.failed", tool=call.name, err=f"{type(error).__name__}: {error}")
            return _error(call, f"The tool {call.name} failed ({type(error).__name__}).")
        log.info("tool.finished", tool=call.name)
        return Ran(call, _result(call, answer, error=False))

    def _bounded(self, ran: Ran) -> Ran:
        """With a result of which not too much is shown, whoever wrote it: a tool's error can be as long as its answer."""
        if len(ran.result.text) <= self._output_chars:
            return ran
        text = kept(ran.result.text, max(STORED_CHARS, self._output_chars))
        return replace(ran, result=replace(ran.result, text=text, shown=self._output_chars))


def kept(text: str, most: int) -> str:
    """Of a text of more than `most` characters its beginning and its end, with a line that says how many are gone."""
    if (more := len(text) - most) <= 0:
        return text
    head, tail = ends(text, most)
    return f"{head}\n[… {more:,} more characters were not stored]\n{tail}"


async def _answer(tool: Tool, context: ToolContext, arguments: BaseModel) -> str:
    """What a tool says. That something of its own was cancelled is its failure, not the end of the turn."""
    try:
        answer = await tool.run(context, arguments)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("something that it waited for was cancelled") from None
    if not isinstance(answer, str):
        raise TypeError(f"it answered with a {type(answer).__name__}, not a text")
    return answer


def denied(call: ToolCall, why: str) -> Ran:
    """A call that was not run."""
    return Ran(call, _result(call, why, error=True), denied=True)


def _checked(tool: Tool, call: ToolCall) -> BaseModel:
    """The arguments of a call. Raises ValueError or RecursionError."""
    return tool.Arguments.model_validate(json.loads(call.arguments or "{}"))


def _error(call: ToolCall, text: str) -> Ran:
    return Ran(call, _result(call, text, error=True))


def _result(call: ToolCall, text: str, *, error: bool) -> ToolResult:
    return ToolResult(call.id, call.name, text or "(no output)", error)


def _plain(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}" for each in error.errors(include_input=False))
    return "they are not valid JSON"
