"""No model, no key, no network: answers by quoting what clew remembers, summarises by extraction, and says so."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator

from clew.config.settings import Settings as Section
from clew.context.extract import extract
from clew.context.ledger import Entry, Ledger
from clew.context.operations import parse as operations
from clew.context.query import query
from clew.context.sentences import sentences
from clew.context.survival import Said, heard
from clew.context.text import index_text, stem, tokens
from clew.context.tokens import estimate
from clew.messages import Role, Text, ToolCall, ToolResult, Usage
from clew.plugins import Plugin
from clew.prompts import load
from clew.providers import Began, Delta, Done, Event, Limits, PromptMessage, Request, Ttl
from clew.providers.sections import MaxTokens

KIND = "offline"
NO_MODEL = "No model is configured, so I can only quote what I remember."
NOTHING_FOUND = "No model is configured, and I remember nothing about this."
HOW_TO = "To get real answers, set ANTHROPIC_API_KEY or name a model under `providers` in the config."
WINDOW = 200_000
"""Tokens. Nothing is sent anywhere, so it only has to be large."""
QUOTES = 4
"""Lines that are quoted."""
LONGEST_QUOTE = 400
"""Characters of one quoted line."""

_HEAD = re.compile(r"\A\s*\[[^\]\n]{3,60}\][^\S\n]*")
_MESSAGE = re.compile(r"\A\[#(?P<id>[^\s\]]{1,40})(?P<rest>[^\]\n]{0,200})\][^\S\n]*(?P<text>.*)\Z", re.DOTALL)
_CALLED = re.compile(r"^\(called \S+ with .*\)$", re.MULTILINE)
_RESULT = re.compile(r"\A\((?P<tool>\S+) (?P<how>failed|answered): (?P<text>.*)\)\Z", re.DOTALL)
_TIME = re.compile(r"(?:[0-9][0-9T:.+-]*Z?|[+-][0-9:]{4,6}|Mon|Tue|Wed|Thu|Fri|Sat|Sun|UTC),?\Z")
_TAG = re.compile(r"\A</?[a-z_ -]{1,40}>\Z")
_SECTION = re.compile(r"\A(?:</?[a-z_ -]{1,40}>|#{1,4} .{1,100}|[A-Z][^.!?]{2,100}:)\Z")
_SUMMARY = re.compile(r"summary", re.IGNORECASE)
_BULLET = re.compile(r"\A\s*(?:[-*•>]|[0-9]{1,3}[.)])\s+")
_ROLES: dict[str, Role] = {"assistant": "assistant", "tool": "tool"}


class Settings(Section):
    """Nothing to set but the longest reply, in tokens."""

    max_tokens: MaxTokens = "auto"


def answer(request: Request) -> str:
    """What can be said to the newest words of the user without a model."""
    asked = _asked(request)
    quotes = _quotes(asked, ((line, recalled) for line, recalled in _remembered(request) if not _empty(line, asked)))
    if not quotes:
        return f"{NOTHING_FOUND} {HOW_TO}"
    return "\n".join([NO_MODEL, "", *(f"- {quote}" for quote in quotes), "", HOW_TO])


def summary(request: Request) -> str:
    """What an extract of the messages in the newest user message of `request` adds to the summary."""
    text = "\n".join(block.text for block in _last_user(request).blocks if isinstance(block, Text))
    messages, before = parse(text)
    return extract(before, heard(messages), request.max_tokens)


def parse(text: str) -> tuple[list[Said], Ledger]:
    """The messages and the current ledger in the text of a summary request.

    A message begins with a line `[#id time speaker] text` and goes on to the next one or to the line that opens another
    section. Where there is no such line, the whole text is one message.
    """
    for prompt in ("summary", "summary_format"):
        text = text.replace(load(prompt).text, "")
    found: list[tuple[str, str, list[str]]] = []
    before: list[str] = []
    section = ""
    for line in text.splitlines():
        if head := _MESSAGE.match(line):
            found.append((head["id"], _speaker(head["rest"]), [head["text"]]))
            section = "messages"
        elif _ends(section, line.strip()):
            section = "summary" if _SUMMARY.search(line) and not line.startswith("</") else ""
        elif section == "messages":
            found[-1][2].append(line)
        elif section == "summary" and line.strip():
            before.append(line)
    if not found:
        return [Said(text)], ()
    return [_said(id, who, "\n".join(lines)) for id, who, lines in found], tuple(_entries("\n".join(before)))


def _said(id: str, who: str, text: str) -> Said:
    """A message without what stands in it for calls, and a tool's result without its head."""
    role = _ROLES.get(who.lower(), "user")
    failed = False
    if role == "assistant":
        text = _CALLED.sub("", text)
    elif role == "tool" and (result := _RESULT.match(text)):
        text, failed = result["text"], result["how"] == "failed"
    return Said(text, who, role, id, int(id) if id.isdecimal() else 0, failed=failed)


def _entries(text: str) -> Iterator[Entry]:
    for line in operations(text):
        if line.verb == "keep" and line.number:
            yield Entry(line.kind or "fact", line.text, status=line.status or "open", sources=line.sources, number=line.number)


def _ends(section: str, line: str) -> bool:
    """Whether `line` opens or closes a section. Messages and summaries may hold headings of their own."""
    if section == "messages":
        return bool(_TAG.match(line))
    if section == "summary":
        return bool(_TAG.match(line)) or (bool(_SECTION.match(line)) and "messages" in line.lower())
    return bool(_SECTION.match(line))


def _speaker(rest: str) -> str:
    """The speaker in the head of a message, behind its date and time."""
    words = rest.split()
    while words and _TIME.match(words[0]):
        words.pop(0)
    return " ".join(words)


def _asked(request: Request) -> str:
    """The newest words of the user, without the head that clew put in front and without recalled text."""
    for message in reversed(request.messages):
        if message.role == "user" and (words := _words(message)):
            return _HEAD.sub("", words)
    return ""


def _words(message: PromptMessage) -> str:
    blocks = (block for index, block in enumerate(message.blocks) if index != message.recall)
    return "\n".join(block.text for block in blocks if isinstance(block, Text)).strip()


def _last_user(request: Request) -> PromptMessage:
    users = [message for message in request.messages if message.role == "user"]
    return users[-1] if users else PromptMessage("user", ())


def _remembered(request: Request) -> Iterator[tuple[str, bool]]:
    """Lines that may be quoted; True for recalled ones, which were found for these very words."""
    recalled = [block.text for block in request.system if block.kind == "recall"]
    for message in request.messages[-1:]:
        if message.recall is not None and isinstance(block := message.blocks[message.recall], Text):
            recalled.append(block.text)
    for text in recalled:
        yield from ((line.lstrip()[2:], True) for line in text.splitlines() if line.lstrip().startswith("> "))
    for part in request.system:
        if part.kind in ("notes", "summary"):
            lines = (line for line in sentences(part.text) if not (_SECTION.match(line) or line.startswith("[")))
            yield from ((line, False) for line in lines)
    for message in request.messages[:-1]:
        if message.role == "user" and (said := _HEAD.sub("", _words(message))):
            yield from ((line, False) for line in sentences(said))


def _empty(line: str, asked: str) -> bool:
    """Whether a line says nothing: clew's own words without a model, or the very question again."""
    said, question = line.strip(), asked.strip()
    return any(words in line for words in (NO_MODEL, NOTHING_FOUND, HOW_TO)) or said == question or said.endswith(f": {question}")


def _quotes(asked: str, remembered: Iterator[tuple[str, bool]]) -> list[str]:
    """The lines that share most words with `asked`, best first; failing these, the first of the recalled ones."""
    wanted = query(asked)
    terms = {stem(word) for term in wanted.terms for word in term.split(" ")} if wanted else set()
    lines = dict(reversed([(_BULLET.sub("", line).strip(), recalled) for line, recalled in remembered]))
    ordered = [(line, recalled) for line, recalled in reversed(lines.items()) if line]
    shared = [(len(terms.intersection(tokens(index_text(line)))), line) for line, _ in ordered]
    best = [line for count, line in sorted(shared, key=lambda each: -each[0]) if count]
    chosen = best or [line for line, recalled in ordered if recalled]
    return [line if len(line) <= LONGEST_QUOTE else line[: LONGEST_QUOTE - 1] + "…" for line in chosen[:QUOTES]]


def _size(request: Request) -> int:
    texts = [request.system_text, *(tool.description + tool.schema for tool in request.tools)]
    for block in (block for message in request.messages for block in message.blocks):
        if isinstance(block, (Text, ToolResult)):
            texts.append(block.text)
        elif isinstance(block, ToolCall):
            texts.append(block.arguments)
    return sum(estimate(text) for text in texts)


class Offline:
    """See `clew.providers.Provider`. `build(name, settings)` makes one for a section of the config."""

    kind = KIND
    model = "offline"
    cache_ttl: Ttl | None = None
    configured = True

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.max_tokens = settings.max_tokens

    async def prepare(self) -> None: ...

    async def answers(self) -> bool:
        return True

    async def limits(self) -> Limits:
        return Limits(WINDOW, WINDOW)

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        # An extract of a long thread takes tens of milliseconds: not on the loop.
        text = await asyncio.to_thread(summary, request) if request.purpose == "summary" else answer(request)
        usage = Usage(input=_size(request), output=estimate(text))
        yield Began()
        for line in text.splitlines(keepends=True):
            yield Delta(line)
        yield Done((Text(text),) if text else (), "end", usage, self.model)

    async def close(self) -> None: ...


plugin = Plugin(KIND, Settings, Offline)
