"""What providers ask of a request, and how one that breaks it is mended. Pure.

The rules are those of the strictest: the first message and the last are the user's; none is empty and no text is blank; each holds what
its role may hold; a call has a name that providers take, an id of its own, and exactly one result in front of what the user says next.
"""

import json
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from clew.context.prompt import OPENING
from clew.context.view import LOST
from clew.messages import Block, File, Text, Thinking, ToolCall, ToolResult
from clew.request import PromptMessage, Request

NOTHING = "(empty message)"
"""Stands for the user's message that a request has to end with, where there is none."""
LONGEST_NAME = 64
"""Characters of a tool's name; Amazon Bedrock's bound, the narrowest."""

_NAME = re.compile(f"[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}")
_NOT_IN_NAME = re.compile("[^a-zA-Z0-9_-]")

Exchange = Sequence[PromptMessage]
"""Any number of the model's messages, then any number of the user's: a call and its results stand in one."""


def mended(request: Request) -> tuple[Request, tuple[str, ...]]:
    """`request` as every provider takes it, and what had to be mended, in words. A sound one comes back as it is, the same object.

    A mark stays with its block. What is mended in an exchange depends on it and on the ids in front of it alone: a thread that goes on
    keeps the bytes of its beginning.
    """
    if _are_said(request.messages) and _is_framed(request.messages):  # most requests
        return request, ()
    messages: list[PromptMessage] = []
    repairs: list[str] = []
    ids: set[str] = set()
    for exchange in _exchanges(request.messages):
        if not _is_sound(exchange, ids):
            mender = _Mender(ids)
            exchange = mender.mended(exchange)
            repairs += mender.repairs
        ids.update(call.id for message in exchange for call in message.blocks if isinstance(call, ToolCall))
        messages += exchange
    if not messages or messages[0].role != "user":
        repairs.append("the first message is not the user's")
        messages.insert(0, PromptMessage("user", (Text(OPENING if messages else NOTHING),)))
    if messages[-1].role != "user":
        repairs.append("the last message is not the user's")
        messages.append(PromptMessage("user", (Text(NOTHING),)))
    if not repairs:
        return request, ()
    return replace(request, messages=tuple(messages)), tuple(dict.fromkeys(repairs))


def _is_framed(messages: Exchange) -> bool:
    """Whether the user's messages are the first one and the last."""
    return bool(messages) and messages[0].role == messages[-1].role == "user"


def _exchanges(messages: Exchange) -> Iterator[Exchange]:
    start = 0
    for index, message in enumerate(messages):
        if index > start and message.role == "assistant" and messages[index - 1].role == "user":
            yield messages[start:index]
            start = index
    yield messages[start:]


def _is_sound(exchange: Exchange, ids: AbstractSet[str]) -> bool:
    """Whether nothing is to be mended in it. ids: of the calls in front of it."""
    if _are_said(exchange):
        return True
    calls: list[str] = []
    results: list[str] = []
    for message in exchange:
        if not any(isinstance(block, Text | ToolCall | ToolResult | File) for block in message.blocks):
            return False
        for block in message.blocks:
            if not _may_hold(message, block):
                return False
            if isinstance(block, ToolCall):
                calls.append(block.id)
            elif isinstance(block, ToolResult):
                results.append(block.call_id)
    own = set(calls)
    return len(own) == len(calls) and own.isdisjoint(ids) and sorted(calls) == sorted(results) and _results_lead(exchange, len(results))


def _are_said(messages: Exchange) -> bool:
    """Whether each is nothing but one text, as nearly all are."""
    if {len(message.blocks) for message in messages} != {1}:
        return False
    texts = [block.text for message in messages for block in message.blocks if isinstance(block, Text)]
    return len(texts) == len(messages) and all(texts) and not any(map(str.isspace, texts))


def _results_lead(exchange: Exchange, count: int) -> bool:
    if not count:
        return True
    said = [block for message in exchange if message.role == "user" for block in message.blocks]
    return all(isinstance(block, ToolResult) for block in said[:count])


def _may_hold(message: PromptMessage, block: Block) -> bool:
    """Whether this block can be sent as it is in a message of this role."""
    match block:
        case Text(text):
            return bool(text) and not text.isspace()
        case ToolResult() | File():
            return message.role == "user"
        case ToolCall(identifier, name):
            return message.role == "assistant" and bool(identifier) and _NAME.fullmatch(name) is not None
        case Thinking(_, data):
            return message.role == "assistant" and _is_object(data)
    return False


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


_Piece = tuple[Block, bool, bool]
"""(a block, whether it carries a cache marker, whether it is the recalled text)"""


class _Mender:
    """Mends one exchange. ids: of the calls in front of it."""

    def __init__(self, ids: AbstractSet[str]) -> None:
        self.repairs: list[str] = []
        self._ids = set(ids)
        self._asked: dict[str, ToolCall] = {}  # the calls as they are sent, by the id they came with
        self._results: dict[str, _Piece] = {}  # likewise

    def mended(self, exchange: Exchange) -> list[PromptMessage]:
        kept = [(message, self._kept(message)) for message in exchange]
        results = [self._results.get(given) or self._lost(given, call) for given, call in self._asked.items()]
        first = next((at for at, (message, _) in enumerate(kept) if message.role == "user"), len(kept))
        if results:
            kept[first : first + 1] = [(PromptMessage("user", ()), [*results, *(kept[first][1] if first < len(kept) else ())])]
        if not self.repairs:
            self.repairs.append("results that do not stand right behind their calls")
        return [_joined(message, pieces) for message, pieces in kept if any(not isinstance(block, Thinking) for block, _, _ in pieces)]

    def _kept(self, message: PromptMessage) -> list[_Piece]:
        """What stays in a message. Its results are put aside."""
        pieces: list[_Piece] = []
        for index, block in enumerate(message.blocks):
            marked, recall = index in message.marked, index == message.recall
            if isinstance(block, ToolResult):
                self._answered(block, marked)
            elif isinstance(block, ToolCall) and message.role == "assistant":
                if (call := self._called(block)) is not None:
                    pieces.append((call, marked, recall))
            elif _may_hold(message, block):
                pieces.append((block, marked, recall))
            else:
                self.repairs.append("a blank text" if isinstance(block, Text) else "a block that cannot be sent")
        return pieces

    def _called(self, call: ToolCall) -> ToolCall | None:
        """The call as it is sent; None for a second one under an id that waits for its result."""
        if call.id in self._asked:
            self.repairs.append(f"two calls {_short(call.id)} at once")
            return None
        sent = call
        if not call.id or call.id in self._ids:
            self.repairs.append(f"a call {_short(call.id)} without an id of its own")
            sent = replace(sent, id=self._unused(call.id or "call"))
        if not _NAME.fullmatch(call.name):
            self.repairs.append(f"a call {_short(call.id)} by a name that no tool can have")
            sent = replace(sent, name=_NOT_IN_NAME.sub("_", call.name)[:LONGEST_NAME] or "_")
        self._ids.add(sent.id)
        self._asked[call.id] = sent
        return sent

    def _unused(self, name: str) -> str:
        number = 2
        while f"{name}_{number}" in self._ids:
            number += 1
        return f"{name}_{number}"

    def _answered(self, result: ToolResult, marked: bool) -> None:
        call = self._asked.get(result.call_id)
        if call is None or result.call_id in self._results:
            self.repairs.append(f"a result {_short(result.call_id)} without its call")
        else:
            self._results[result.call_id] = (replace(result, call_id=call.id, name=call.name), marked, False)

    def _lost(self, given: str, call: ToolCall) -> _Piece:
        self.repairs.append(f"a call {_short(given)} without its result")
        return ToolResult(call.id, call.name, LOST, is_error=True), False, False


def _joined(message: PromptMessage, pieces: Sequence[_Piece]) -> PromptMessage:
    """A message of these pieces."""
    marked = tuple(index for index, (_, is_marked, _) in enumerate(pieces) if is_marked)
    recall = next((index for index, (_, _, is_recall) in enumerate(pieces) if is_recall), None)
    return PromptMessage(message.role, tuple(block for block, _, _ in pieces), marked, recall)


def _short(identifier: str) -> str:
    """An id for the log: it comes from outside and may have any length."""
    return repr(identifier[:40])
