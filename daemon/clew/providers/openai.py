"""Chat Completions, through the official SDK: llama.cpp, vLLM, LM Studio, OpenRouter, api.openai.com and their like."""

from __future__ import annotations

import asyncio
import importlib
import time
import uuid
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zlib import crc32

from pydantic import SecretStr

from clew.config.settings import Settings as Section
from clew.context.files import IMAGES
from clew.messages import Block, File, Text, ToolCall, ToolResult, Usage
from clew.plugins import Plugin
from clew.providers import Began, Delta, Done, Event, Limits, ProviderError, Request, Stop, Timeouts, Ttl
from clew.providers.failures import Answer, failure, stalled
from clew.providers.probe import get_json, status_of
from clew.providers.sections import MaxTokens, ModelName, Url, Waits, Window
from clew.providers.wire import Turn, arguments_text, count, schema, turns, well_formed, words

if TYPE_CHECKING:
    from openai import AsyncOpenAI

KIND = "openai"
ENDPOINT = "https://api.openai.com/v1"
ANY = "any"
"""As the model's name: the first one that the server lists."""
ANSWERS_S = 1.5
"""Seconds in which the server must list its models to count as there."""
FACTS_S = 3.0
"""Seconds to ask a server for its window or its models."""
LONGEST_ID = 40
"""Characters of a call's id that api.openai.com takes; others give longer ones and want them back."""
SMALL_WINDOW = 8192
"""Tokens of a window of which nothing is known."""

_OPENAI_WINDOWS = (("gpt-5", 400_000), ("gpt-4.1", 1_047_576), ("gpt-4o", 128_000), ("o3", 200_000), ("o4", 200_000))
"""By the beginning of the name, from OpenAI's model pages: its API does not tell."""

_STOPS: Mapping[str, Stop] = {"length": "length", "content_filter": "refusal"}


class Settings(Section):
    """A model behind an endpoint that speaks Chat Completions. Sizes are in tokens.

    api_key: absent for servers that need none; an empty one counts as not configured yet.
    """

    model: ModelName = ANY
    api_key: SecretStr | None = None
    base_url: Url = ENDPOINT
    max_tokens: MaxTokens = "auto"
    context_window: Window | None = None
    timeouts: Waits = Waits()


def payload(request: Request, model: str, *, official: bool) -> dict[str, Any]:
    """The body of the call. official: of api.openai.com, whose newer models refuse what the others need."""
    body: dict[str, Any] = {"model": model, "messages": _messages(request, LONGEST_ID if official else None)}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": each.name, "description": each.description, "parameters": schema(each.schema)},
            }
            for each in request.tools
        ]
    body["max_completion_tokens" if official else "max_tokens"] = request.max_tokens
    body["stream_options"] = {"include_usage": True}
    if official and request.cache_key:
        body["prompt_cache_key"] = request.cache_key
    return body


def _messages(request: Request, longest_id: int | None) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if request.system_text.strip():
        messages.append({"role": "system", "content": well_formed(request.system_text)})
    for turn in turns(request.messages, KIND):
        messages.extend([_assistant(turn, longest_id)] if turn.role == "assistant" else _user(turn, longest_id, request.files))
    return messages


def _assistant(turn: Turn, longest_id: int | None) -> dict[str, Any]:
    calls = [
        {
            "id": _id(block.id, longest_id),
            "type": "function",
            "function": {"name": well_formed(block.name), "arguments": arguments_text(block.arguments)},
        }
        for block, _ in turn.blocks
        if isinstance(block, ToolCall)
    ]
    text = _text(turn)
    return {"role": "assistant", **({"content": text} if text else {}), **({"tool_calls": calls} if calls else {})}


def _user(turn: Turn, longest_id: int | None, files: Mapping[str, str]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": _id(block.call_id, longest_id), "content": well_formed(block.text)}
        for block, _ in turn.blocks
        if isinstance(block, ToolResult)
    ]
    text = _text(turn)
    images = [
        {"type": "image_url", "image_url": {"url": f"data:{block.mime};base64,{files[block.hash]}"}}
        for block, _ in turn.blocks
        if isinstance(block, File)
    ]
    if images:
        return [*messages, {"role": "user", "content": [*([{"type": "text", "text": text}] if text else []), *images]}]
    return [*messages, {"role": "user", "content": text}] if text else messages


def _id(call_id: str, longest: int | None) -> str:
    """Ids of other providers may be longer than OpenAI's own; two that differ only behind the bound stay two."""
    known = well_formed(call_id)
    return known if longest is None or len(known) <= longest else f"{known[: longest - 9]}_{crc32(known.encode()):08x}"


def _text(turn: Turn) -> str:
    return "\n\n".join(well_formed(block.text) for block, _ in turn.blocks if isinstance(block, Text))


def window_of(props: Any, entry: Any) -> int | None:
    """The window in tokens that llama.cpp's `/props` tells, else a server's entry of `/v1/models`; else None."""
    entry = entry if isinstance(entry, dict) else {}
    slots = props.get("default_generation_settings") if isinstance(props, dict) else None
    meta = entry.get("meta")
    told = [
        slots.get("n_ctx") if isinstance(slots, dict) else None,
        *(entry.get(name) for name in ("max_model_len", "loaded_context_length", "context_length")),
        meta.get("n_ctx_train") if isinstance(meta, dict) else None,
    ]
    return next((number for number in told if isinstance(number, int) and number >= 1), None)


def entry_of(listing: Any, model: str) -> dict[str, Any] | None:
    """The entry of `model` in a listing of models; for `any`, or where the server has only one, the first."""
    data = listing.get("data") if isinstance(listing, dict) else None
    entries = [each for each in data if isinstance(each, dict) and each.get("id")] if isinstance(data, list) else []
    named = next((each for each in entries if each["id"] == model), None)
    return named or (entries[0] if entries and (model == ANY or len(entries) == 1) else None)


@dataclass(slots=True)
class _Call:
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list)


class Reply:
    """The chunks of one response, put together. `feed` them in order; `done` once `complete`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._pieces: list[str] = []
        self._calls: list[_Call] = []
        self._open: dict[int, _Call] = {}
        self._finish = ""
        self._refused = False
        self._usage = Usage()
        self.began = False

    @property
    def complete(self) -> bool:
        return bool(self._finish)

    @property
    def text_delivered(self) -> bool:
        return bool(self._pieces)

    def feed(self, chunk: Any) -> list[Began | Delta]:
        """What is to be passed on for one chunk of the SDK, which does not check them. The model's reasoning is not. Raises ValueError
        for one of another shape."""
        try:
            return self._taken(chunk)
        except (AttributeError, TypeError) as error:
            raise ValueError(f"a chunk of another shape: {error}") from None

    def _taken(self, chunk: Any) -> list[Began | Delta]:
        passed: list[Began | Delta] = [] if self.began else [Began()]
        self.began, self._model = True, well_formed(words(getattr(chunk, "model", None) or self._model))
        if getattr(chunk, "usage", None) is not None:
            self._usage = _usage(chunk.usage)
        for choice in (getattr(chunk, "choices", None) or [])[:1]:
            self._finish = words(choice.finish_reason or self._finish)
            if choice.delta is not None:
                passed.extend(self._said(choice.delta))
        return passed

    def done(self) -> Done:
        """The whole response."""
        text = well_formed("".join(self._pieces))
        said: tuple[Block, ...] = (Text(text),) if text.strip() else ()
        calls = tuple(ToolCall(call.id, call.name, well_formed("".join(call.pieces)) or "{}") for call in self._calls)
        stop: Stop = "refusal" if self._refused else _STOPS.get(self._finish) or ("tools" if calls else "end")
        return Done((*said, *calls), stop, self._usage, self._model)

    def _said(self, delta: Any) -> list[Delta]:
        refusal = words(getattr(delta, "refusal", None) or "")
        self._refused = self._refused or bool(refusal)
        for piece in delta.tool_calls or []:
            self._called(piece)
        text = words(delta.content or "") + refusal
        if not text:
            return []
        self._pieces.append(text)
        return [Delta(well_formed(text))]

    def _called(self, piece: Any) -> None:
        """Calls are told apart by index, and by id where a server gives every call the index 0 or none."""
        index = piece.index or 0
        call = self._open.get(index)
        if call is None or (piece.id and piece.id != call.id):
            call = self._open[index] = _Call(well_formed(words(piece.id or "")) or f"call_{uuid.uuid4().hex}")
            self._calls.append(call)
        if piece.function is not None:
            call.name = call.name or well_formed(words(piece.function.name or ""))
            call.pieces.append(words(piece.function.arguments or ""))


def _usage(usage: Any) -> Usage:
    """`prompt_tokens` includes what was read from and written to the cache; ours does not."""
    details = getattr(usage, "prompt_tokens_details", None)
    read = count(getattr(details, "cached_tokens", None))
    written = count(getattr(details, "cache_write_tokens", None))
    prompt = count(getattr(usage, "prompt_tokens", None))
    return Usage(max(prompt - read - written, 0), count(getattr(usage, "completion_tokens", None)), read, written)


class OpenAI:
    """See `clew.providers.Provider`. `build(name, settings)` makes one for a section of the config."""

    kind = KIND
    cache_ttl: Ttl | None = None

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.model = settings.model
        self.max_tokens = settings.max_tokens
        self._settings = settings
        self._key = settings.api_key.get_secret_value() if settings.api_key is not None else None
        self._base_url = settings.base_url.rstrip("/")
        self._official = urlsplit(self._base_url).hostname == "api.openai.com"
        self._timeouts = Timeouts(settings.timeouts.first_byte, settings.timeouts.between)
        self._client: AsyncOpenAI | None = None
        self._connecting = asyncio.Lock()
        self._limits: Limits | None = None
        self._first_model = ""

    @property
    def configured(self) -> bool:
        return bool(self._key) or (self._key is None and not self._official)

    async def prepare(self) -> None:
        await self._sdk()

    async def answers(self) -> bool:
        if not self.configured:
            return False
        status = await status_of(f"{self._base_url}/models", self._headers, ANSWERS_S)
        return status is not None and (status < 400 or status in (404, 405))  # a server may not list its models

    async def limits(self) -> Limits:
        if self._settings.context_window:
            return Limits(self._settings.context_window, self._settings.context_window, files=IMAGES)
        if self._limits is None and (window := await self._ask_window()):
            self._limits = Limits(window, window, files=IMAGES)
        return self._limits or Limits(SMALL_WINDOW, SMALL_WINDOW, files=IMAGES)

    async def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        client = await self._sdk()
        model = await self._name()
        reply = Reply(model)
        try:
            async with await self._begin(client, payload(request, model, official=self._official)) as chunks:
                async for chunk in chunks:
                    for passed in reply.feed(chunk):
                        yield passed
        except Exception as error:
            failed = self._failed(error, reply)
            if failed is None:
                raise
            if failed.kind == "invalid":
                self._first_model = ""  # the server may have another model by now
            raise failed from None
        if not reply.complete:
            raise ProviderError("cut", "the response ended early", text_delivered=reply.text_delivered)
        yield reply.done()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    async def _name(self) -> str:
        if self.model == ANY and not self._first_model:
            listing = await get_json(f"{self._base_url}/models", self._headers, FACTS_S)
            self._first_model = str((entry_of(listing, ANY) or {}).get("id", ""))
        return self._first_model or self.model

    async def _ask_window(self) -> int | None:
        if self._official:
            return next((size for prefix, size in _OPENAI_WINDOWS if self.model.startswith(prefix)), None)
        origin = self._base_url.removesuffix("/v1")
        props, listing = await asyncio.gather(
            get_json(f"{origin}/props", self._headers, FACTS_S),
            get_json(f"{self._base_url}/models", self._headers, FACTS_S),
        )
        window = window_of(props, entry_of(listing, self.model))
        if window is None and listing is not None:  # LM Studio tells it in an API of its own
            listing = await get_json(f"{origin}/api/v0/models", self._headers, FACTS_S)
            window = window_of(None, entry_of(listing, self.model))
        return window

    async def _begin(self, client: AsyncOpenAI, body: dict[str, Any]) -> Any:
        from openai import omit

        headers = {} if self._key else {"Authorization": omit}
        try:
            async with asyncio.timeout(self._timeouts.first_byte):
                return await client.chat.completions.create(**body, stream=True, extra_headers=headers)
        except TimeoutError:
            raise stalled(self._timeouts.first_byte) from None

    async def _sdk(self) -> AsyncOpenAI:
        async with self._connecting:
            if self._client is None:
                self._client = await asyncio.to_thread(self._connect)
        return self._client

    def _connect(self) -> AsyncOpenAI:
        """Imports the SDK, which takes about half a second of CPU."""
        sdk = importlib.import_module("openai")
        watch = importlib.import_module("clew.providers.watch")
        http = sdk.DefaultAioHttpClient(**watch.client_options(self._base_url, self._timeouts))
        client: AsyncOpenAI = sdk.AsyncOpenAI(
            # Never None: the SDK would take a key from the environment and send it to whatever server this is.
            api_key=self._key or "none",
            base_url=self._base_url,
            max_retries=0,
            http_client=http,
        )
        return client

    def _failed(self, error: Exception, reply: Reply) -> ProviderError | None:
        from openai import APIConnectionError, APIError

        from clew.providers.watch import broken, lost

        said = reply.text_delivered
        if isinstance(error, ProviderError):
            error.text_delivered = said
            return error
        if isinstance(error, APIConnectionError):
            return lost(error, began=reply.began, text_delivered=said, secret=self._key or "")
        if isinstance(error, APIError):
            return failure(_answer(error), time.time(), secret=self._key or "", text_delivered=said)
        return broken(error, began=reply.began, text_delivered=said, secret=self._key or "")


def _answer(error: Any) -> Answer:
    """An error of the SDK. Inside a stream (status 200) gateways put the status into `code`; some send a bare text."""
    body = error.body if isinstance(error.body, dict) else {}
    code = body.get("code")
    status = getattr(error, "status_code", 200)
    inner = code if isinstance(code, int) and 400 <= code <= 599 else 200
    message = body.get("message") or (error.body if isinstance(error.body, str) and error.body else error.message)
    response = getattr(error, "response", None)
    return Answer(
        status=inner if status == 200 else status,
        message=str(message),
        type=str(body.get("type") or ""),
        code=code if isinstance(code, str) else "",
        headers={name.lower(): value for name, value in response.headers.items()} if response is not None else {},
    )


plugin = Plugin(KIND, Settings, OpenAI)
