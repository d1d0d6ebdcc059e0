"""An emulator of OpenAI-compatible chat servers: pair check, prefix cache, overflow errors, streaming and faults."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aiohttp import web

from .openai_events import chunks, with_fault
from .openai_rules import check, error_body
from .server import (
    Clock,
    Empty,
    Emulator,
    Fault,
    JsonObject,
    Malformed,
    Record,
    Rejected,
    Reply,
    Script,
    Tok,
    before_first_byte,
    refuse,
    send_events,
    words,
)

Overflow = Literal["openai", "llama.cpp", "vllm"]

FINISH_REASONS = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
IMAGE_TOKENS = 85


@dataclass(frozen=True, slots=True)
class Accounting:
    """What one request reuses, in tokens; `prefixes` has (hash, cumulative tokens) for the tools and each message."""

    cached: int
    total: int
    prefixes: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class OpenAIRecord(Record):
    """One request; `accounting` is None when it was refused before it was accounted for."""

    accounting: Accounting | None = None


class OpenAIEmulator(Emulator[OpenAIRecord]):
    """Give `base_url` to a client. See `Emulator` for faults, holds and records.

    Scripts speak in Anthropic blocks and stop reasons here, too, and a fault's `details` are fields of the error
    object, e.g. `{"code": "insufficient_quota"}`. `window` in tokens: a longer request is refused in the form that
    `overflow` names; vLLM reserves `max_tokens` in it. `models` has each model's extra fields in `GET /v1/models`,
    e.g. `{"qwen": {"meta": {"n_ctx_train": 32768}}}`. `n_ctx` in tokens is what `GET /props` tells;
    without it there is no such path. `api_key` None asks for none. `cache_step` and `cache_minimum` in tokens: cached
    tokens are reported in multiples of the step, and as 0 below the minimum; `caching` False leaves them out.
    """

    def __init__(
        self,
        *,
        script: Script,
        tok: Tok = words,
        clock: Clock = time.time,
        window: int | None = None,
        overflow: Overflow = "openai",
        models: dict[str, JsonObject] | None = None,
        n_ctx: int | None = None,
        api_key: str | None = None,
        caching: bool = True,
        cache_step: int = 1,
        cache_minimum: int = 0,
        sees: bool = True,
    ) -> None:
        super().__init__(script=script, tok=tok, clock=clock)
        self.window = window
        self.overflow = overflow
        self.models = models or {"any": {}}
        self.n_ctx = n_ctx
        self.api_key = api_key
        self.caching = caching
        self.cache_step = cache_step
        self.cache_minimum = cache_minimum
        self.sees = sees
        self.broken: set[str] = set()
        self._cached: set[str] = set()

    @property
    def base_url(self) -> str:
        """The URL that a client is configured with, ending in `/v1`."""
        return f"{self.url}/v1"

    def _routes(self) -> Sequence[web.RouteDef]:
        return [
            web.post("/v1/chat/completions", self._call(self._complete)),
            web.get("/v1/models", self._other(self._list_models)),
            web.get("/v1/models/{id:.+}", self._other(self._show_model)),
            web.get("/props", self._other(self._props)),
        ]

    def _new_record(self, request_id: str, path: str, headers: dict[str, str], started: float) -> OpenAIRecord:
        return OpenAIRecord(request_id, path, headers, started)

    def _error_body(self, error: Rejected, record: OpenAIRecord) -> JsonObject:
        return error_body(error)

    def _authenticate(self, record: OpenAIRecord) -> None:
        key = record.headers.get("authorization", "").removeprefix("Bearer ")
        if self.api_key not in (None, key):
            fields = {"code": "invalid_api_key"}
            raise Rejected(f"Incorrect API key provided: {key[:2]}***.", status=401, fields=fields)

    async def _complete(self, request: web.Request, record: OpenAIRecord) -> web.StreamResponse:
        body = await self._read(request, record)
        streaming = bool(body.get("stream"))
        fault = self._next_fault()
        if isinstance(fault, Fault):
            await self._held(body)
            refuse(fault, streaming=streaming)
        check(body)
        self._look(body)
        accounting = record.accounting = self._account(body)
        self._check_length(body, accounting.total)
        await self._held(body)
        reply, fault = await self._reply(body, fault)
        refuse(fault, streaming=streaming)
        if isinstance(fault, Empty):
            reply = Reply([])
        completion = self._render(record, reply, accounting)
        await before_first_byte(request, record, fault, streaming=streaming)
        self._cached.update(prefix for prefix, _ in accounting.prefixes)
        headers = {"x-request-id": record.request_id}
        if streaming:
            events = with_fault(chunks(completion, body), fault)
            return await send_events(request, record, headers, events, fault)
        text = fault.body if isinstance(fault, Malformed) else json.dumps(completion, ensure_ascii=False)
        return web.Response(text=text, content_type="application/json", headers=headers)

    def _look(self, body: JsonObject) -> None:
        """Refuse images that the model does not take: any, or those that are broken."""
        parts = [part for message in body["messages"] if isinstance(message.get("content"), list) for part in message["content"]]
        for url in (part["image_url"]["url"] for part in parts if part["type"] == "image_url"):
            if not self.sees:
                raise Rejected("This model does not support image inputs.", fields={"param": "messages", "code": "invalid_value"})
            if url.partition(",")[2] in self.broken:
                raise Rejected("You uploaded an unsupported image.", fields={"param": None, "code": "invalid_image_format"})

    def _account(self, body: JsonObject) -> Accounting:
        running, total, cached = str(body["model"]), 0, 0
        prefixes = []
        for part in [*(body.get("tools") or []), *body["messages"]]:
            running = hashlib.sha256(f"{running}\x00{json.dumps(part)}".encode()).hexdigest()
            total += self._tokens(part)
            prefixes.append((running, total))
            if running in self._cached:
                cached = total
        cached -= cached % self.cache_step
        return Accounting(cached if cached >= self.cache_minimum else 0, total, tuple(prefixes))

    def _tokens(self, part: JsonObject) -> int:
        if "function" in part:
            return self.tok(json.dumps(part["function"]))
        calls = [call["function"] for call in part.get("tool_calls") or []]
        said = sum(self.tok(call["name"]) + self.tok(call["arguments"]) for call in calls)
        content = part.get("content") or ""
        if isinstance(content, str):
            return said + self.tok(content)
        return said + sum(self.tok(inner["text"]) if "text" in inner else IMAGE_TOKENS for inner in content)

    def _check_length(self, body: JsonObject, total: int) -> None:
        if self.window is None:
            return
        wanted = body.get("max_tokens") or body.get("max_completion_tokens") or 0
        if self.overflow == "vllm":
            if total + wanted > self.window:
                raise _vllm_overflow(total, wanted, self.window)
        elif total > self.window:
            raise _llama_overflow(total, self.window) if self.overflow == "llama.cpp" else _overflow(total, self.window)

    def _render(self, record: OpenAIRecord, reply: Reply, accounting: Accounting) -> JsonObject:
        message = _message(reply)
        output = self._tokens(message)
        usage: JsonObject = {
            "prompt_tokens": accounting.total,
            "completion_tokens": output,
            "total_tokens": accounting.total + output,
        }
        if self.caching:
            usage["prompt_tokens_details"] = {"cached_tokens": accounting.cached}
        finish = FINISH_REASONS.get(reply.stop_reason, "stop")
        return {
            "id": record.request_id.replace("req_", "chatcmpl-"),
            "object": "chat.completion",
            "created": int(record.started),
            "model": record.body["model"],
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
            "usage": usage,
        }

    async def _list_models(self, request: web.Request, record: OpenAIRecord) -> web.StreamResponse:
        return web.json_response({"object": "list", "data": [self._model_info(name) for name in self.models]})

    async def _show_model(self, request: web.Request, record: OpenAIRecord) -> web.StreamResponse:
        name = request.match_info["id"]
        if name not in self.models:
            fields = {"param": "model", "code": "model_not_found"}
            raise Rejected(f"The model '{name}' does not exist", status=404, fields=fields)
        return web.json_response(self._model_info(name))

    def _model_info(self, name: str) -> JsonObject:
        return {"id": name, "object": "model", "created": 0, "owned_by": "emulator", **self.models[name]}

    async def _props(self, request: web.Request, record: OpenAIRecord) -> web.StreamResponse:
        if self.n_ctx is None:
            raise Rejected("File Not Found", status=404, type="not_found_error", fields={"code": 404})
        return web.json_response({"default_generation_settings": {"n_ctx": self.n_ctx}, "total_slots": 1})


def _message(reply: Reply) -> JsonObject:
    texts = [part["text"] for part in reply.content if part["type"] == "text"]
    thoughts = [part["thinking"] for part in reply.content if part["type"] == "thinking"]
    calls = [
        {
            "id": part["id"],
            "type": "function",
            "function": {"name": part["name"], "arguments": json.dumps(part["input"])},
        }
        for part in reply.content
        if part["type"] == "tool_use"
    ]
    message: JsonObject = {"role": "assistant", "content": "".join(texts) if texts or not calls else None}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def _overflow(total: int, window: int) -> Rejected:
    return Rejected(
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {total} tokens. "
        "Please reduce the length of the messages.",
        fields={"param": "messages", "code": "context_length_exceeded"},
    )


def _llama_overflow(total: int, window: int) -> Rejected:
    return Rejected(
        f"request ({total} tokens) exceeds the available context size ({window} tokens), try increasing it",
        type="exceed_context_size_error",
        fields={"code": 400, "n_prompt_tokens": total, "n_ctx": window},
    )


def _vllm_overflow(total: int, wanted: int, window: int) -> Rejected:
    return Rejected(
        f"This model's maximum context length is {window} tokens. However, you requested {wanted} output tokens and "
        f"your prompt contains at least {total} input tokens, for a total of at least {total + wanted} tokens.",
        type="BadRequestError",
        fields={"code": 400},
    )
