"""What goes into a `claude` process and what comes out of it: lines of JSON. Pure.

The texts of the CLI change with its versions, so they are read last: first its structured fields.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.messages import Block, Text, ToolCall, ToolResult, Usage
from clew.providers import Began, Delta, Done, ErrorKind, Limits, PromptMessage, ProviderError, Request, Stop
from clew.providers.failures import Answer, failure, safe
from clew.providers.overflow import overflow_in
from clew.providers.wire import Turn, count, turns, well_formed

MAX_LINE_BYTES = 10_000_000
"""Bytes of piped input that the CLI takes."""
LONGEST_WAIT = 8 * 86_400.0
"""Seconds; a plan's longest limit is weekly."""
NO_TOOLS = "No tool can be called in this conversation, whatever else is said about tools: answer in words."
NO_SYSTEM = "You are a helpful assistant."
"""The CLI needs a system prompt, or it takes its own."""
HISTORY = (
    "What was said in this conversation before, oldest first: one JSON object a line, in which `assistant` is you. "
    "The newest message follows below."
)
CLOSING = "That was the newest message: answer it."
"""Ends everything that is sent. The CLI looks for commands and for names of local files to read (`/help`, `@/etc/passwd`) in the last
block alone, so nothing that anybody said may stand there."""

_BY_ERROR: Mapping[str, ErrorKind] = {
    "authentication_failed": "auth",
    "oauth_org_not_allowed": "auth",
    "account_on_hold": "auth",
    "verification_required": "auth",
    "billing_error": "quota",
    "rate_limit": "rate_limit",
    "overloaded": "overloaded",
    "invalid_request": "invalid",
    "model_not_found": "invalid",
    "server_error": "server",
}
"""By `error` of an assistant line, from the types of the agent SDK; `unknown` says nothing."""
_STOPS: Mapping[str, Stop] = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal"}
_TOO_MUCH_SAID = "max_output_tokens"
_HINTS: Mapping[ErrorKind, str] = {"auth": "; run `claude auth login` as the user that clew runs as"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a process takes it.

    system: the system prompt. key: names everything before the newest message, so that the process which already holds it can be
    found. newest: the content blocks for that process; whole: those for a new one, with the history flattened into them.
    """

    system: str
    key: str
    newest: bytes
    whole: bytes
    turns: tuple[Turn, ...]

    def key_after(self, answer: str) -> str:
        """The key of a request that follows when the model has answered `answer`."""
        return _key(self.system, (*self.turns, Turn("assistant", ((Text(answer), False),))))


def asked(request: Request) -> Asked:
    """Raises ProviderError: `invalid` without a message, `overflow` for more than the CLI takes.

    Recalled text in a message does not count for the key: what a process was told once stays in its history.
    """
    sent = turns(request.messages, "")
    if not sent:
        raise ProviderError("invalid", "there is no message to answer")
    kept = tuple(turns(tuple(map(_without_recall, request.messages)), ""))
    system = well_formed(request.system_text).strip() or NO_SYSTEM
    if request.tools:
        system = f"{system}\n\n{NO_TOOLS}"
    newest = [*(_part(block) for block, _ in sent[-1].blocks), {"type": "text", "text": CLOSING}]
    history = "\n".join([HISTORY, *(_record(turn.role, block) for turn in sent[:-1] for block, _ in turn.blocks)])
    whole = [{"type": "text", "text": history}, *newest] if sent[:-1] else newest
    return Asked(system, _key(system, kept[:-1]), _line(newest), _line(whole), kept)


def _without_recall(message: PromptMessage) -> PromptMessage:
    blocks = tuple(block for index, block in enumerate(message.blocks) if index != message.recall)
    return replace(message, blocks=blocks, marked=(), recall=None)


def _key(system: str, before: Sequence[Turn]) -> str:
    records = [_record(turn.role, block) for turn in before for block, _ in turn.blocks]
    return hashlib.sha256(json.dumps([system, records]).encode()).hexdigest()


def _record(role: str, block: Block) -> str:
    """A block of the history on one line that nothing said in it can break out of."""
    match block:
        case Text(text):
            said = {role: text}
        case ToolCall(_, name, given):
            said = {"tool_call": name, "arguments": given}
        case ToolResult(_, name, text):
            said = {"tool_result": name, "text": text}
        case _:
            said = {}
    return well_formed(json.dumps(said, ensure_ascii=False))


def _part(block: Block) -> dict[str, str]:
    return {"type": "text", "text": well_formed(block.text) if isinstance(block, Text) else _record("user", block)}


def _line(parts: Iterable[Mapping[str, str]]) -> bytes:
    message = {"type": "user", "message": {"role": "user", "content": list(parts)}}
    line = json.dumps(message, ensure_ascii=False).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise ProviderError("overflow", f"{len(line)} bytes are more than the CLI takes", tokens=(len(line) // 3, MAX_LINE_BYTES // 3))
    return line


def parsed(line: bytes) -> dict[str, Any]:
    """A line of the output; what is not a JSON object is a stray word of the CLI's and means nothing."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class Reply:
    """The lines of one answer, put together. `feed` them in order; once `complete`, `failed` or else `done`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._pieces: list[str] = []
        self._whole: list[str] = []
        self._usage: dict[str, int] = {}
        self._spent = Usage()
        self._stop = ""
        self._error = ""
        self._rejected: dict[str, Any] | None = None
        self._result: dict[str, Any] = {}
        self._restarted = False
        self.began = False
        self.complete = False
        self.text_delivered = False

    def feed(self, line: Mapping[str, Any]) -> list[Began | Delta]:
        """What is to be passed on for one line. The model's thinking is not, nor a second beginning after a retry of the CLI's."""
        match line.get("type"):
            case "stream_event":
                return self._streamed(_mapping(line.get("event")))
            case "assistant":
                self._error = str(line.get("error") or self._error)
                self._whole = [*self._whole, *_texts(line.get("message"))]
            case "rate_limit_event":
                limit = _mapping(line.get("rate_limit_info"))
                self._rejected = limit if limit.get("status") == "rejected" else None
            case "result":
                self.complete, self._result = True, dict(line)
        return []

    @property
    def text(self) -> str:
        """All words. A retry inside the CLI may have begun anew, or not be streamed: then its result has them."""
        streamed = "".join(self._pieces)
        whole = "" if self._error else str(self._result.get("result") or "".join(self._whole))
        return well_formed(streamed if whole in streamed else whole)

    def done(self) -> Done:
        """The whole answer."""
        text = self.text
        stop: Stop = "length" if self._error == _TOO_MUCH_SAID else _STOPS.get(self._stopped, "end")
        return Done((Text(text),) if text.strip() else (), stop, self._spent + self._tokens(), self._model)

    def failed(self, now: float) -> ProviderError | None:
        """The error that the result amounts to: `subtype` is `success` for most of them. now: seconds since the epoch."""
        result = self._result
        if self._error == _TOO_MUCH_SAID or self._stopped == "refusal":
            return None
        if not self._error and not result.get("is_error") and result.get("subtype", "success") == "success":
            return None
        text = str(result.get("result") or "")
        kind, wait = self._kind(text, now)
        overflow = overflow_in(text) if kind == "overflow" else None
        words = ": ".join(filter(None, (self._error, text or str(result.get("subtype")))))
        return ProviderError(
            kind,
            f"{safe(words)}{_HINTS.get(kind, '')}",
            retry_after=wait,
            text_delivered=self.text_delivered,
            tokens=overflow.tokens if overflow else None,
        )

    def limits(self) -> Limits | None:
        """What the result tells of the model."""
        models = _mapping(self._result.get("modelUsage"))
        facts = _mapping(models.get(self._model) or (next(iter(models.values())) if len(models) == 1 else None))
        window, output = count(facts.get("contextWindow")), count(facts.get("maxOutputTokens"))
        return Limits(window, output or window) if window else None

    @property
    def _stopped(self) -> str:
        return str(self._result.get("stop_reason") or self._stop)

    def _kind(self, text: str, now: float) -> tuple[ErrorKind, float | None]:
        """In the order of trust: the plan's limit, the kind of error, the status of the API, why the turn ended, the words."""
        if self._rejected is not None:
            until = self._rejected.get("resetsAt")
            if isinstance(until, (int, float)) and until > 0:
                return "rate_limit", max(min(until, now + LONGEST_WAIT) - now, 0.0)  # any number: compared before it is subtracted
            return "quota", None
        status = self._result.get("api_error_status")
        told = failure(Answer(status if isinstance(status, int) and status >= 400 else 500, text), now)
        kind = _BY_ERROR.get(self._error, told.kind)
        if kind == "invalid" and self._result.get("terminal_reason") == "prompt_too_long":
            return "overflow", None
        if kind in ("invalid", "server") and told.kind in ("overflow", "overloaded"):  # says the same more exactly
            return told.kind, None
        if kind == "server" and status is None and self.began and not self._stop:
            return "cut", None
        return kind, None

    def _streamed(self, event: dict[str, Any]) -> list[Began | Delta]:
        match event.get("type"):
            case "message_start":
                return self._started(_mapping(event.get("message")))
            case "content_block_delta":
                return self._said(_mapping(event.get("delta")).get("text"))
            case "message_delta":
                self._stop = str(_mapping(event.get("delta")).get("stop_reason") or self._stop)
                self._counted(_mapping(event.get("usage")))
        return []

    def _started(self, message: dict[str, Any]) -> list[Began | Delta]:
        self._spent, self._usage = self._spent + self._tokens(), {}
        self._counted(_mapping(message.get("usage")))
        self._model = well_formed(str(message.get("model") or self._model))
        if self._stop != "max_tokens":  # else this goes on where the last message had to end
            self._restarted = self._restarted or self.text_delivered
            self._pieces = []
        self._stop = ""
        if self.began:
            return []
        self.began = True
        return [Began(self._tokens())]

    def _said(self, text: Any) -> list[Began | Delta]:
        if not isinstance(text, str) or not text:
            return []
        self._pieces.append(text)
        if self._restarted:
            return []
        self.text_delivered = True
        return [Delta(well_formed(text))]

    def _counted(self, usage: dict[str, Any]) -> None:
        """Later counts of one message are cumulative and replace earlier ones; what is absent stays."""
        self._usage.update({name: count(value) for name, value in usage.items() if isinstance(value, int)})

    def _tokens(self) -> Usage:
        known = self._usage.get
        return Usage(
            input=known("input_tokens", 0),
            output=known("output_tokens", 0),
            cache_read=known("cache_read_input_tokens", 0),
            cache_write=known("cache_creation_input_tokens", 0),
        )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(message: Any) -> list[str]:
    content = _mapping(message).get("content")
    parts = [_mapping(part) for part in content] if isinstance(content, list) else []
    return [part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)]
