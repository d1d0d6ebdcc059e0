"""The request: blocks in their order, the hash of every prefix, and where the cache markers stand. Pure.

tools · base+skills [M1] · notes · summary [M2] · recall · messages … [M3] … [M4]
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import lru_cache
from itertools import takewhile
from typing import Literal

from clew.context.files import file_tokens
from clew.context.quoting import quoted
from clew.context.tokens import CACHED_CHARS, FRAME_TOKENS, TOOL_PROMPT_TOKENS, estimate
from clew.context.view import Head, Rendered
from clew.messages import Block, File, Text, Thinking, ToolCall, ToolResult
from clew.request import PromptMessage, Purpose, Request, SystemBlock, SystemKind, ToolSpec, Ttl

Placement = Literal["system", "message"]

DEFAULT_PROMPT = (
    "You are clew, an assistant that people reach through their chat platforms. A conversation may run for weeks; its older part "
    "reaches you as a summary. Answer plainly, in the language of the person who writes, and say so when you do not know. "
    "Each of their messages begins with the time at which it arrived; never write such a head yourself."
)
"""The base prompt where the config gives none."""

OPENING = "[The beginning of this conversation is not shown here.]"
"""Stands in front of messages that begin with the model's words, where no summary tells of those before."""

SUMMARY_HEADING = "Summary of the conversation so far:"


def base_prompt(configured: str, zone_name: str) -> str:
    """The base: the configured text untouched, else the default with the zone of the message heads named once."""
    return configured or f"{DEFAULT_PROMPT} Times are in the zone {zone_name}."


@dataclass(frozen=True, slots=True)
class Covered:
    """What a summary stands for: so many messages between two times (seconds since the epoch, UTC)."""

    messages: int
    first_at: float
    last_at: float

    def line(self, zone: tzinfo) -> str:
        """How the model learns that something was compacted, and how to open it."""
        return (
            f"[{self.messages} messages between {_minute(self.first_at, zone)} and {_minute(self.last_at, zone)} were compacted into"
            " the summary; session_search finds and session_open opens them.]"
        )


@lru_cache(maxsize=1024)
def _minute(at: float, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M}"


@dataclass(frozen=True, slots=True)
class Parts:
    """All that a request is made of. `summary`, `notes`, `recall`: texts, empty for absent. `covered_line`: behind or after the summary."""

    base: str
    messages: tuple[Rendered, ...]
    head: Head
    tools: tuple[ToolSpec, ...] = ()
    notes: str = ""
    summary: str = ""
    covered_line: str = ""
    recall: str = ""
    placement: Placement = "system"


@dataclass(frozen=True, slots=True)
class Headed:
    """The messages of a thread as a model gets them. made: those that `rendered` became, each user's behind its `head`."""

    rendered: tuple[Rendered, ...]
    head: Head
    made: tuple[PromptMessage, ...]


def headed(rendered: tuple[Rendered, ...], head: Head, before: Headed | None = None) -> Headed:
    """`rendered` behind their heads. before: what this may go on from, so that only what is new is made; it changes nothing."""
    goes_on = before is not None and before.head is head and before.rendered == rendered[: len(before.rendered)]
    done = before.made if before is not None and goes_on else ()
    return Headed(rendered, head, (*done, *(_message(each, head) for each in rendered[len(done) :])))


def layout(
    parts: Parts, *, max_tokens: int, ttl: Ttl | None, cache_key: str, purpose: Purpose = "reply", made: Headed | None = None
) -> Request:
    """`parts` in their order, unmarked. Each part present is parted from the one before by one blank line, which begins it.

    made: what `headed` made of the messages, where that is kept.
    """
    opening = not (parts.messages and parts.messages[0].kind == "user") and bool(parts.summary or parts.messages)
    summary = f"{SUMMARY_HEADING}\n{parts.summary}" if parts.summary else ""
    if summary and not opening:
        summary = f"{summary}\n\n{parts.covered_line}"
    recall = parts.recall if parts.placement == "system" else ""
    named: tuple[tuple[SystemKind, str], ...] = (
        ("base", parts.base),
        ("notes", parts.notes),
        ("summary", summary),
        ("recall", recall),
    )
    system: list[SystemBlock] = []
    for kind, text in named:
        if text:
            system.append(SystemBlock(kind, f"{_break(system[-1].text)}{text}" if system else text))
    messages = list((made or headed(parts.messages, parts.head)).made)
    if opening:
        messages.insert(0, PromptMessage("user", (Text(parts.covered_line if parts.summary else OPENING),)))
    if parts.recall and parts.placement == "message":
        messages = _with_recall(messages, parts.messages, parts.recall)
    tools = tuple(sorted(parts.tools, key=lambda tool: tool.name))
    return Request(tuple(system), tuple(messages), tools, max_tokens, purpose, ttl, cache_key)


def _break(before: str) -> str:
    """What is missing of one blank line behind `before`: a configured base often ends its own line."""
    return "\n" * max(0, 2 - (len(before) - len(before.rstrip("\n"))))


def _message(rendered: Rendered, head: Head) -> PromptMessage:
    role: Literal["user", "assistant"] = "assistant" if rendered.kind == "assistant" else "user"
    if rendered.rows[0].overheard:
        return _said("user", f"{head(rendered.rows[0])}\n{quoted(rendered.rows[0].text)}")
    match rendered.blocks:
        case (Text(text),) if len(text) <= CACHED_CHARS:
            return _said(role, f"{head(rendered.rows[0])} {text}" if rendered.kind == "user" else text)
    if rendered.kind != "user":
        return PromptMessage(role, rendered.blocks)
    first = f"{head(rendered.rows[0])} "
    blocks: list[Block] = []
    if isinstance(rendered.blocks[0], File):
        blocks, first = [Text(first.rstrip())], ""
    for block in rendered.blocks:
        blocks.append(Text(first + block.text) if isinstance(block, Text) else block)
        first = ""
    return PromptMessage("user", tuple(blocks))


@lru_cache(maxsize=2048)
def _said(role: Literal["user", "assistant"], text: str) -> PromptMessage:
    """One object for the same words: a request is compared with the one before it."""
    return PromptMessage(role, (Text(text),))


def _with_recall(messages: list[PromptMessage], rendered: Sequence[Rendered], recall: str) -> list[PromptMessage]:
    """Recall as a block of its own behind the newest user's text, never beside results."""
    offset = len(messages) - len(rendered)
    newest = max((i for i, each in enumerate(rendered) if each.kind == "user"), default=None)
    if newest is None:
        return messages
    message = messages[offset + newest]
    changed = replace(message, blocks=(*message.blocks, Text(recall)), recall=len(message.blocks))
    return [*messages[: offset + newest], changed, *messages[offset + newest + 1 :]]


# Prefix hashes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prefix:
    """A block of a request and the hash of everything up to it.

    segment: tools, base, notes, summary, recall or messages. place: (message, block) for messages, else (system block, 0) or (tool, 0).
    tokens: estimated, of everything up to it.
    """

    segment: str
    place: tuple[int, int]
    hash: str
    tokens: int
    markable: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """The hashes over tools, system and messages of a request, front to back. tokens: `request_tokens` of it."""

    request: Request
    account: str
    prefixes: tuple[Prefix, ...]
    tokens: int
    state: "hashlib._Hash"


def prefixes(request: Request, *, account: str = "") -> tuple[Prefix, ...]:
    """The prefixes of an unmarked request, front to back. account: what separates caches (provider, model)."""
    return chain(request, account).prefixes


def chain(request: Request, account: str, before: Chain | None = None) -> Chain:
    """The chain of an unmarked request.

    before: a chain that this one may go on from, so that only what is new is hashed and measured; it changes nothing in the result.
    """
    if before is not None and _goes_on(request, account, before):
        state, done, tokens, first = before.state.copy(), list(before.prefixes), before.tokens, len(before.request.messages)
    else:
        (state, done, tokens), first = _system(request, account), 0
    upto = done[-1].tokens if done else 0
    for number, message in enumerate(request.messages[first:], first):
        tokens += message_tokens(message)
        for index, each in enumerate(message.blocks):
            canonical = [message.role, *_canonical(each)]
            _update(state, canonical)
            markable = index != message.recall and not isinstance(each, Thinking)
            upto += _canonical_tokens(each, canonical)
            done.append(Prefix("messages", (number, index), state.hexdigest(), upto, markable))
    return Chain(request, account, tuple(done), tokens, state)


def _goes_on(request: Request, account: str, before: Chain) -> bool:
    earlier = before.request
    last = len(earlier.messages)
    return (
        account == before.account
        and earlier.tools == request.tools
        and earlier.system == request.system
        and earlier.messages == request.messages[:last]
        and (not _have_files(request.messages[last:]) or _have_files(earlier.messages))
    )


def _system(request: Request, account: str) -> tuple["hashlib._Hash", list[Prefix], int]:
    """State, prefixes and tokens in front of the messages."""
    begun, prefixes = _begun(account, request.tools)
    state, done, tokens = begun.copy(), list(prefixes), _tools_tokens(request.tools)
    upto = done[-1].tokens if done else 0
    _level(state, "system")
    for index, block in enumerate(request.system):
        _update(state, [block.text])
        size = estimate(block.text)
        tokens, upto = tokens + size, upto + size
        done.append(Prefix(block.kind, (index, 0), state.hexdigest(), upto, markable=True))
    _level(state, "messages with images" if _have_files(request.messages) else "messages")
    return state, done, tokens


def _have_files(messages: Sequence[PromptMessage]) -> bool:
    return any(isinstance(block, File) for message in messages for block in message.blocks)


@lru_cache(maxsize=64)
def _begun(account: str, tools: tuple[ToolSpec, ...]) -> tuple["hashlib._Hash", tuple[Prefix, ...]]:
    """State and prefixes over the tools: they are the same in nearly every request, and long."""
    state = hashlib.sha256(account.encode())
    done: list[Prefix] = []
    upto = 0
    _level(state, "tools")
    for index, tool in enumerate(tools):
        texts = [tool.name, tool.description, tool.schema]
        _update(state, texts)
        upto += sum(map(estimate, texts))
        done.append(Prefix("tools", (index, 0), state.hexdigest(), upto, markable=True))
    return state, tuple(done)


def _level(state: "hashlib._Hash", name: str) -> None:
    # The other salts of a level (tool choice, thinking …) are constant here: clew varies none of them.
    state.update(f"\x00level:{name}\x00".encode())


def _update(state: "hashlib._Hash", texts: list[str]) -> None:
    state.update("".join([f"{len(text)}:{text}" for text in texts]).encode("utf-8", "surrogatepass"))


def _canonical(block: Block) -> list[str]:
    match block:
        case Text(text):
            return ["text", text]
        case ToolCall(identifier, name, arguments):
            return ["call", identifier, name, arguments]
        case ToolResult(call_id, name, text, is_error):
            return ["result", call_id, name, text, str(is_error)]
        case Thinking(provider, data):
            return ["thinking", provider, data]
        case File(digest, name, mime):
            return ["file", digest, name, mime]


def _canonical_tokens(block: Block, canonical: list[str]) -> int:
    return file_tokens(block) if isinstance(block, File) else sum(map(estimate, canonical))


# Markers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Marks:
    """Where the markers of a request stand, front to back. held: tokens of it that the provider holds by our own record, about as its
    model counts them; None where nothing is marked."""

    request: Request
    marked: tuple[tuple[str, Prefix], ...]
    held: int | None = None


def mark(request: Request, chain: Sequence[Prefix], cached: Collection[str], *, end: bool = True) -> Marks:
    """Set the markers M1 to M4.

    M1 the base; M2 the last of notes and summary; M4 the last block that is not recall; M3 the deepest block in front of it whose
    prefix is in `cached` (hashes of unexpired entries), left out if there is none. end: False leaves out M4, where nothing will go on
    from what stands last.
    """
    ends = {prefix.segment: index for index, prefix in enumerate(chain)}
    wanted = (
        ("M1", ends.get("base")),
        ("M2", ends.get("summary", ends.get("notes"))),
        ("M3", next((index for index in _markable(chain) if chain[index].hash in cached), None)),
        ("M4", next(_markable(chain), None) if end else None),
    )
    labels: dict[int, str] = {}
    for label, index in wanted:
        if index is not None:
            labels.setdefault(index, label)
    marked = tuple((labels[index], chain[index]) for index in sorted(labels))
    system, changed = list(request.system), list(request.messages)
    for _, prefix in marked:
        place, block = prefix.place
        if prefix.segment == "messages":
            message = changed[place]
            changed[place] = PromptMessage(message.role, message.blocks, (*message.marked, block), message.recall)
        else:
            system[place] = SystemBlock(system[place].kind, system[place].text, marked=True)
    return Marks(replace(request, system=tuple(system), messages=tuple(changed)), marked)


def _markable(chain: Sequence[Prefix]) -> Iterator[int]:
    """Where a marker may stand behind a message, from the end on."""
    messages = takewhile(lambda index: chain[index].segment == "messages", reversed(range(len(chain))))
    return (index for index in messages if chain[index].markable)


# Sizes -----------------------------------------------------------------------------------------------------------


READ_SHARE = 10
"""A token that is read from the cache costs at most so small a part of one that is not (prices of October 2026)."""


def read_tokens(chain: Sequence[Prefix], cached: Collection[str]) -> int:
    """Estimated tokens of the longest prefix of a request that is in `cached` (hashes of unexpired entries)."""
    return next((prefix.tokens for prefix in reversed(chain) if prefix.hash in cached), 0)


def is_cheaper(tokens: int, read: int, than: int) -> bool:
    """Whether a request of so many tokens, `read` of them from the cache, costs less than one of `than` tokens that reads none."""
    return tokens - read + read / READ_SHARE < than


def segments(chain: Sequence[Prefix]) -> tuple[tuple[str, str, int], ...]:
    """(name, hash up to its end, estimated tokens) of each segment of a request, front to back."""
    ends = {prefix.segment: prefix for prefix in chain}
    before = (0, *(prefix.tokens for prefix in ends.values()))
    return tuple((name, prefix.hash, prefix.tokens - start) for (name, prefix), start in zip(ends.items(), before, strict=False))


def request_tokens(request: Request, ratio: float = 1.0) -> int:
    """Estimated tokens of everything sent; `ratio`: how many tokens the model itself counts for one of the estimate."""
    system = sum(estimate(block.text) for block in request.system)
    messages = sum(message_tokens(message) for message in request.messages)
    return round((_tools_tokens(request.tools) + system + messages) * ratio)


@lru_cache(maxsize=64)
def _tools_tokens(tools: tuple[ToolSpec, ...]) -> int:
    described = sum(estimate(tool.name) + estimate(tool.description) + estimate(tool.schema) for tool in tools)
    return described + (TOOL_PROMPT_TOKENS if tools else 0)


def message_tokens(message: PromptMessage | Rendered) -> int:
    """Estimated tokens of one message."""
    return FRAME_TOKENS + sum(block_tokens(block) for block in message.blocks)


def block_tokens(block: Block) -> int:
    match block:
        case Text(text):
            return estimate(text)
        case File():
            return file_tokens(block)
    return sum(map(estimate, _canonical(block)[1:]))
