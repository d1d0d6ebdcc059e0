"""An emulator of the Anthropic Messages API: caching, validation, streaming and faults, on a loopback port."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from aiohttp import web

from .anthropic_cache import (
    LOOKBACK,
    Accounting,
    CacheStore,
    account,
    block_tokens,
    chain,
    flatten,
    resolve_markers,
)
from .anthropic_events import message_events, with_fault
from .anthropic_models import MODELS, Model, find_model
from .anthropic_rules import check_end, check_shape, check_thinking
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


@dataclass(slots=True)
class AnthropicRecord(Record):
    """One request; `accounting` is None when it was refused before it was accounted for."""

    workspace: str = ""
    accounting: Accounting | None = None


class AnthropicEmulator(Emulator[AnthropicRecord]):
    """Give `url` to a client as its base URL. See `Emulator` for faults, holds and records.

    `min_tokens` overrides the models' cacheable minimum and `window` their context window, both in tokens.
    `api_key` None accepts every key; each key is a workspace with a cache of its own. `strict_thinking` refuses
    replayed thinking blocks whose prefix has changed; thinking that the script leaves unsigned is signed.
    A script's reply is sent as it is: it is not cut at `max_tokens`.
    """

    def __init__(
        self,
        *,
        script: Script,
        tok: Tok = words,
        clock: Clock = time.time,
        min_tokens: int | None = None,
        lookback: int = LOOKBACK,
        window: int | None = None,
        api_key: str | None = None,
        strict_thinking: bool = False,
    ) -> None:
        super().__init__(script=script, tok=tok, clock=clock)
        self.store = CacheStore()
        self.min_tokens = min_tokens
        self.lookback = lookback
        self.window = window
        self.api_key = api_key
        self.strict_thinking = strict_thinking

    def _routes(self) -> Sequence[web.RouteDef]:
        return [
            web.post("/v1/messages", self._call(self._message)),
            web.post("/v1/messages/count_tokens", self._other(self._count)),
            web.get("/v1/models", self._other(self._list_models)),
            web.get("/v1/models/{id}", self._other(self._show_model)),
        ]

    def _new_record(self, request_id: str, path: str, headers: dict[str, str], started: float) -> AnthropicRecord:
        return AnthropicRecord(request_id, path, headers, started)

    def _error_body(self, error: Rejected, record: AnthropicRecord) -> JsonObject:
        shown = {"type": error.type, "message": error.message, **error.fields}
        return {"type": "error", "error": shown, "request_id": record.request_id}

    def _authenticate(self, record: AnthropicRecord) -> None:
        bearer = record.headers.get("authorization", "").removeprefix("Bearer ")
        record.workspace = record.headers.get("x-api-key") or bearer
        if not record.workspace:
            raise Rejected("x-api-key header is required", status=401, type="authentication_error")
        if self.api_key not in (None, record.workspace):
            raise Rejected("invalid x-api-key", status=401, type="authentication_error")
        if "anthropic-version" not in record.headers:
            raise Rejected("anthropic-version: header is required")

    async def _message(self, request: web.Request, record: AnthropicRecord) -> web.StreamResponse:
        body = await self._read(request, record)
        streaming = bool(body.get("stream"))
        fault = self._next_fault()
        if isinstance(fault, Fault):
            await self._held(body)
            refuse(fault, streaming=streaming)
        accounting = self._admit(record, counting=False)
        await self._held(body)
        reply = Reply([], "max_tokens")
        if body["max_tokens"] > 0:
            reply, fault = await self._reply(body, fault)
        refuse(fault, streaming=streaming)
        if isinstance(fault, Empty):
            reply = Reply([])
        message = self._render(record, reply, accounting)
        await before_first_byte(request, record, fault, streaming=streaming)
        self.store.commit(accounting, record.started)
        headers = self._success_headers(record)
        if streaming:
            events = with_fault(message_events(message), fault, record.request_id)
            return await send_events(request, record, headers, events, fault)
        text = fault.body if isinstance(fault, Malformed) else json.dumps(message, ensure_ascii=False)
        return web.Response(text=text, content_type="application/json", headers=headers)

    def _admit(self, record: AnthropicRecord, *, counting: bool) -> Accounting:
        """Check a request and say what it reads and writes; nothing is written yet."""
        body = record.body
        model = self._model(body)
        check_shape(body, record.headers, model, counting=counting)
        blocks = flatten(body, self.tok)
        hashes = chain(body, blocks, record.workspace)
        accounting = account(
            blocks,
            hashes,
            resolve_markers(blocks, body.get("cache_control")),
            self.store,
            record.started,
            minimum=model.minimum if self.min_tokens is None else self.min_tokens,
            lookback=self.lookback,
        )
        if self.strict_thinking:
            check_thinking(blocks, hashes, body)
        check_end(body, model, total=accounting.total, window=self.window or model.window, counting=counting)
        record.accounting = accounting
        return accounting

    def _model(self, body: JsonObject) -> Model:
        name = body.get("model")
        if not isinstance(name, str):
            raise Rejected("model: Field required" if name is None else "model: Input should be a valid string")
        return self._known_model(name)

    def _known_model(self, name: str) -> Model:
        model = find_model(name)
        if model is None:
            raise Rejected(f"model: {name}", status=404, type="not_found_error")
        return model

    def _render(self, record: AnthropicRecord, reply: Reply, accounting: Accounting) -> JsonObject:
        content = self._signed(record, reply.content)
        output = sum(block_tokens(part, self.tok) for part in content)
        window = self.window or self._model(record.body).window
        message: JsonObject = {
            "id": record.request_id.replace("req_", "msg_"),
            "type": "message",
            "role": "assistant",
            "model": record.body["model"],
            "content": content,
            "stop_reason": "model_context_window_exceeded" if accounting.total + output > window else reply.stop_reason,
            "stop_sequence": None,
            "usage": {
                "input_tokens": accounting.input,
                "cache_creation_input_tokens": accounting.created,
                "cache_read_input_tokens": accounting.read,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": accounting.created_5m,
                    "ephemeral_1h_input_tokens": accounting.created_1h,
                },
                "output_tokens": output,
                "service_tier": "standard",
            },
        }
        if reply.stop_details is not None:
            message["stop_details"] = reply.stop_details
        return message

    def _signed(self, record: AnthropicRecord, content: list[JsonObject]) -> list[JsonObject]:
        """Sign each unsigned thinking block with the hash of the prefix that it follows."""
        signed: list[JsonObject] = []
        for part in content:
            if part["type"] == "thinking" and not part.get("signature"):
                messages = [*record.body["messages"], {"role": "assistant", "content": signed}]
                before = {**record.body, "messages": messages}
                part = {**part, "signature": chain(before, flatten(before, self.tok), record.workspace)[-1]}
            signed.append(part)
        return signed

    def _success_headers(self, record: AnthropicRecord) -> dict[str, str]:
        reset = datetime.fromtimestamp(self.clock() + 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        headers = {"request-id": record.request_id}
        for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
            values = {"limit": "4000000", "remaining": "3999000", "reset": reset}
            headers |= {f"anthropic-ratelimit-{kind}-{name}": value for name, value in values.items()}
        return headers

    async def _count(self, request: web.Request, record: AnthropicRecord) -> web.StreamResponse:
        await self._read(request, record)
        return web.json_response({"input_tokens": self._admit(record, counting=True).total})

    async def _list_models(self, request: web.Request, record: AnthropicRecord) -> web.StreamResponse:
        data = [self._model_info(name) for name in MODELS]
        page = {"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}
        return web.json_response(page)

    async def _show_model(self, request: web.Request, record: AnthropicRecord) -> web.StreamResponse:
        return web.json_response(self._model_info(request.match_info["id"]))

    def _model_info(self, name: str) -> JsonObject:
        model = self._known_model(name)
        return {
            "type": "model",
            "id": name,
            "display_name": name.replace("-", " ").title(),
            "created_at": "2026-01-01T00:00:00Z",
            "max_input_tokens": self.window or model.window,
            "max_tokens": model.max_output,
        }
