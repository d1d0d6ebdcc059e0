"""The Anthropic Messages API, through the official SDK, with cache markers where the request puts them."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

from pydantic import SecretStr

from clew.config.settings import Settings as Section
from clew.context.files import IMAGES, PDF
from clew.messages import Block, File, Text, Thinking, ToolCall, ToolResult, Usage
from clew.plugins import Plugin
from clew.providers import Began, Delta, Done, Event, Limits, ProviderError, Request, Stop, SystemBlock, Timeouts, Ttl
from clew.providers.failures import Answer, failure, stalled
from clew.providers.probe import status_of
from clew.providers.sections import MaxTokens, ModelName, Url, Waits, Window
from clew.providers.wire import Turn, arguments, count, schema, turns, well_formed, words

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

KIND = "anthropic"
ENDPOINT = "https://api.anthropic.com"
ANSWERS_S = 2.0
"""Seconds in which another endpoint than Anthropic's must answer to count as there."""
LIMITS_S = 5.0
"""Seconds to ask for the model's limits."""

_FILES = IMAGES | {PDF}
"""Every model that is served takes them (Anthropic's model page of October 2026)."""
_UNKNOWN = Limits(window=200_000, max_output=32_000, marker_minimum=4_096, files=_FILES)
_KNOWN: Mapping[str, Limits] = {
    **{
        f"claude-{name}": Limits(1_000_000, 64_000, minimum, _FILES)
        for name, minimum in {
            "opus-5-5": 512,
            "sonnet-5-5": 512,
            "haiku-5-5": 4_096,  # not published: the largest known minimum is the safe guess
            "opus-5": 512,
            "fable-5": 512,
            "mythos-5": 512,
            "mythos-preview": 2_048,
            "opus-4-8": 1_024,
            "sonnet-5": 1_024,
            "opus-4-7": 2_048,
            "sonnet-4-6": 1_024,
            "opus-4-6": 4_096,
        }.items()
    },
    **{
        f"claude-{name}": Limits(200_000, 32_000, minimum, _FILES)
        for name, minimum in {
            "sonnet-4-5": 1_024,
            "opus-4-5": 4_096,
            "haiku-4-5": 4_096,
            "opus-4": 1_024,
            "sonnet-4": 1_024,
        }.items()
    },
}
"""By the beginning of a model's name; marker minimums and windows from Anthropic's pages of August to October 2026."""

_STOPS: Mapping[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "pause_turn": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class Settings(Section):
    """A model of Anthropic's, or of an endpoint that speaks its API (`base_url`). Sizes are in tokens."""

    model: ModelName = "claude-sonnet-5-5"
    api_key: SecretStr = SecretStr("")
    base_url: Url | None = None
    cache_ttl: Ttl = "1h"
    max_tokens: MaxTokens = "auto"
    context_window: Window | None = None
    timeouts: Waits = Waits()


def known_limits(model: str) -> Limits:
    """What is known of a model by its name (with or without its date) where the endpoint does not tell."""
    name = model.rpartition("/")[2]
    found = [known for known in _KNOWN if name == known or name.startswith(f"{known}-")]
    return _KNOWN[max(found, key=len)] if found else _UNKNOWN


def payload(request: Request, model: str) -> dict[str, Any]:
    """The body of the call, in the order of the request: the same request gives the same bytes."""
    mark = {"cache_control": {"type": "ephemeral", "ttl": request.cache_ttl}} if request.cache_ttl else {}
    body: dict[str, Any] = {"model": model, "max_tokens": request.max_tokens}
    if system := [_system_part(block, mark) for block in request.system if block.text.strip()]:
        body["system"] = system
    body["messages"] = [_message(turn, mark, request.files) for turn in turns(request.messages, author(model))]
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": schema(tool.schema)} for tool in request.tools
        ]
    return body


def author(model: str) -> str:
    """Whose thinking blocks these are: they are bound to the model that wrote them."""
    return f"{KIND}/{model}"


def _system_part(block: SystemBlock, mark: dict[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": well_formed(block.text), **(mark if block.marked else {})}


def _message(turn: Turn, mark: dict[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    return {"role": turn.role, "content": [_part(block, mark if marked else {}, files) for block, marked in turn.blocks]}


def _part(block: Block, mark: dict[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    match block:
        case Text(text):
            return {"type": "text", "text": well_formed(text), **mark}
        case ToolCall(call_id, name, text):
            return {"type": "tool_use", "id": _id(call_id), "name": well_formed(name), "input": arguments(text), **mark}
        case ToolResult(call_id, _, text, is_error):
            content = {"content": well_formed(text)} if text.strip() else {}
            error = {"is_error": True} if is_error else {}
            return {"type": "tool_result", "tool_use_id": _id(call_id), **content, **error, **mark}
        case Thinking(_, data):
            return dict(json.loads(data))  # takes no marker
        case File(digest, _, mime):
            source = {"type": "base64", "media_type": mime, "data": files[digest]}
            return {"type": "document" if mime == PDF else "image", "source": source, **mark}


def _id(call_id: str) -> str:
    """Ids of other providers may hold characters that this API refuses; two that differ only there stay two."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)
    return plain if plain == call_id else f"{plain}_{crc32(call_id.encode('utf-8', 'surrogatepass')):08x}"


@dataclass(slots=True)
class _Part:
    """A content block that is being streamed. pieces: its text, JSON or thinking. extra: signature or redacted data."""

    type: str
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)

    def block(self, writer: str) -> Block | None:
        text = well_formed("".join(self.pieces))
        match self.type:
            case "text":
                return Text(text) if text.strip() else None
            case "tool_use":
                return ToolCall(self.id or f"call_{crc32(text.encode()):08x}", self.name, text or "{}")
            case "thinking" if self.extra:
                data = {"type": "thinking", "thinking": text, "signature": well_formed("".join(self.extra))}
                return Thinking(writer, json.dumps(data, ensure_ascii=False))
            case "redacted_thinking":
                return Thinking(writer, json.dumps({"type": "redacted_thinking", "data": "".join(self.extra)}))
        return None


class Reply:
    """The events of one response, put together. `feed` them in order; `done` once `complete`."""

    def __init__(self, model: str) -> None:
        self._writer = author(model)
        self._parts: dict[int, _Part] = {}
        self._stop = ""
        self._usage: dict[str, int] = {}
        self._model = model
        self.began = False
        self.complete = False
        self.text_delivered = False

    def feed(self, event: Any) -> Began | Delta | None:
        """What is to be passed on for one raw event of the SDK, which does not check them. Raises ValueError for one of another shape."""
        try:
            return self._taken(event)
        except (AttributeError, TypeError) as error:
            raise ValueError(f"an event of another shape: {error}") from None

    def _taken(self, event: Any) -> Began | Delta | None:
        match event.type:
            case "message_start":
                self.began, self._model = True, well_formed(words(event.message.model or self._model))
                self._count(event.message.usage)
                return Began(self._tokens())
            case "content_block_start":
                return self._open(event.index, event.content_block)
            case "content_block_delta":
                return self._extend(event.index, event.delta)
            case "message_delta":
                self._stop = words(event.delta.stop_reason or self._stop)
                self._count(event.usage)
            case "message_stop":
                self.complete = True
        return None

    def done(self) -> Done:
        """The whole response."""
        blocks = [self._parts[index].block(self._writer) for index in sorted(self._parts)]
        kept = tuple(block for block in blocks if block is not None)
        return Done(kept, _STOPS.get(self._stop, "end"), self._tokens(), self._model)

    def _open(self, index: Any, block: Any) -> Delta | None:
        if not isinstance(index, int):
            raise TypeError("a block without a number")
        identifier, name = (well_formed(words(getattr(block, field, ""))) for field in ("id", "name"))
        part = self._parts[index] = _Part(block.type, identifier, name)
        if block.type == "redacted_thinking":
            part.extra.append(words(block.data))
        return self._said(part, block.text) if block.type == "text" else None

    def _extend(self, index: Any, delta: Any) -> Delta | None:
        if not isinstance(index, int):
            raise TypeError("a block without a number")
        part = self._parts.setdefault(index, _Part("text"))
        match delta.type:
            case "text_delta":
                return self._said(part, delta.text)
            case "input_json_delta":
                part.pieces.append(words(delta.partial_json))
            case "thinking_delta":
                part.pieces.append(words(delta.thinking))
            case "signature_delta":
                part.extra.append(words(delta.signature))
        return None

    def _said(self, part: _Part, text: str) -> Delta | None:
        if not text:
            return None
        part.pieces.append(words(text))
        self.text_delivered = True
        return Delta(well_formed(text))

    def _count(self, usage: Any) -> None:
        """Later counts are cumulative and replace earlier ones; what is absent stays."""
        for name in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
            value = getattr(usage, name, None)
            if value is not None:
                self._usage[name] = count(value)

    def _tokens(self) -> Usage:
        known = self._usage.get
        return Usage(
            input=known("input_tokens", 0),
            output=known("output_tokens", 0),
            cache_read=known("cache_read_input_tokens", 0),
            cache_write=known("cache_creation_input_tokens", 0),
        )


class Anthropic:
    """See `clew.providers.Provider`. `build(name, settings)` makes one for a section of the config."""

    kind = KIND

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.model = settings.model
        self.cache_ttl: Ttl | None = settings.cache_ttl
        self.max_tokens = settings.max_tokens
        self._settings = settings
        self._key = settings.api_key.get_secret_value()
        self._base_url = (settings.base_url or ENDPOINT).rstrip("/")
        self._timeouts = Timeouts(settings.timeouts.first_byte, settings.timeouts.between)
        self._client: AsyncAnthropic | None = None
        self._connecting = asyncio.Lock()
        self._limits: Limits | None = None

    @property
    def configured(self) -> bool:
        return bool(self._key)

    async def prepare(self) -> None:
        await self._sdk()

    async def answers(self) -> bool:
        """Asked with the key, so that a wrong one does not pass. Where nobody is reached, Anthropic itself is taken to be there: the
        network may come up after clew."""
        if not self.configured:
            return False
        headers = {"authorization": f"Bearer {self._key}", "x-api-key": self._key, "anthropic-version": "2023-06-01"}
        status = await status_of(f"{self._base_url}/v1/models?limit=1", headers, ANSWERS_S)
        return self._settings.base_url is None if status is None else status not in (401, 403)

    async def limits(self) -> Limits:
        known = known_limits(self.model)
        if self._settings.context_window:
            return replace(known, window=self._settings.context_window)
        if self._limits is None and self.configured:
            self._limits = await self._ask_limits(known)
        return self._limits or known

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        reply = Reply(self.model)
        client = await self._sdk()
        try:
            async with await self._begin(client, request) as events:
                async for event in events:
                    if (passed := reply.feed(event)) is not None:
                        yield passed
        except Exception as error:
            failed = self._failed(error, reply)
            if failed is None:
                raise
            raise failed from None
        if not reply.complete:
            raise ProviderError("cut", "the response ended early", text_delivered=reply.text_delivered)
        yield reply.done()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _begin(self, client: AsyncAnthropic, request: Request) -> Any:
        try:
            async with asyncio.timeout(self._timeouts.first_byte):
                return await client.messages.create(**payload(request, self.model), stream=True)
        except TimeoutError:
            raise stalled(self._timeouts.first_byte) from None

    async def _sdk(self) -> AsyncAnthropic:
        async with self._connecting:
            if self._client is None:
                self._client = await asyncio.to_thread(self._connect)
        return self._client

    def _connect(self) -> AsyncAnthropic:
        """Imports the SDK, which takes about a second of CPU."""
        sdk = importlib.import_module("anthropic")
        watch = importlib.import_module("clew.providers.watch")
        http = sdk.DefaultAioHttpClient(**watch.client_options(self._base_url, self._timeouts))
        client: AsyncAnthropic = sdk.AsyncAnthropic(api_key=self._key, base_url=self._base_url, max_retries=0, http_client=http)
        return client

    async def _ask_limits(self, known: Limits) -> Limits | None:
        """None where the endpoint could not be asked; what is known where it does not tell."""
        from anthropic import AnthropicError, NotFoundError

        client = await self._sdk()
        try:
            async with asyncio.timeout(LIMITS_S):
                info = await client.models.retrieve(self.model)
        except NotFoundError:
            return known
        except (AnthropicError, ProviderError, OSError, ValueError):
            return None
        window, output = getattr(info, "max_input_tokens", None), getattr(info, "max_tokens", None)
        return replace(known, window=window or known.window, max_output=output or known.max_output)

    def _failed(self, error: Exception, reply: Reply) -> ProviderError | None:
        from anthropic import APIConnectionError, APIError, APIStatusError

        from clew.providers.watch import broken, lost

        said = reply.text_delivered
        if isinstance(error, ProviderError):
            error.text_delivered = said
            return error
        if isinstance(error, APIStatusError):
            return failure(_answer(error), time.time(), secret=self._key, text_delivered=said)
        if isinstance(error, APIConnectionError):
            return lost(error, began=reply.began, text_delivered=said, secret=self._key)
        if isinstance(error, APIError):
            return failure(Answer(200, str(error.message)), time.time(), secret=self._key, text_delivered=said)
        return broken(error, began=reply.began, text_delivered=said, secret=self._key)


def _answer(error: Any) -> Answer:
    return Answer(
        status=error.status_code,
        message=str(error.api_message or error.message),
        type=str(error.type or ""),
        code=str(error.error_code or ""),
        headers={name.lower(): value for name, value in error.response.headers.items()},
    )


plugin = Plugin(KIND, Settings, Anthropic)
