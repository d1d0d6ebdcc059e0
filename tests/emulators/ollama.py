"""An emulator of an Ollama server: its chat API with windows that are loaded, silent cuts, overflow errors and faults."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

from aiohttp import web

from .server import (
    AnyFault,
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
    StreamError,
    Tok,
    before_first_byte,
    pieces,
    refuse,
    send_events,
    words,
)

DEFAULT_WINDOW = 4096
TOO_LONG = (
    "the prompt is longer than the context length currently available to the model; shorten the prompt, "
    "adjust the context length in settings, or use a model with a longer context length"
)
REASONS = {"max_tokens": "length"}


class OllamaEmulator(Emulator[Record]):
    """Give `url` to a client as its base URL. See `Emulator` for faults, holds and records.

    Scripts speak in Anthropic blocks and stop reasons. `models` has each pulled model's trained window in tokens. A call
    loads its model with `num_ctx`, at most the trained window; `loads` lists (model, window) in order. `honest` False is an
    older server, which knows no `truncate` and leaves out the oldest messages until the prompt fits. `tools` False: its models
    know no tools. `ids` False: tool calls come without ids. capabilities: what `/api/show` says that its models can.
    """

    def __init__(
        self, *, script: Script, tok: Tok = words, clock: Clock = time.time, capabilities: Sequence[str] = ("completion", "tools")
    ) -> None:
        super().__init__(script=script, tok=tok, clock=clock)
        self.models = {"qwen3:latest": 40_960}
        self.loads: list[tuple[str, int]] = []
        self.honest = True
        self.tools = True
        self.ids = True
        self.capabilities = list(capabilities)

    def _routes(self) -> Sequence[web.RouteDef]:
        return [
            web.post("/api/chat", self._call(self._chat)),
            web.post("/api/show", self._other(self._show)),
            web.get("/api/tags", self._other(self._tags)),
            web.get("/api/ps", self._other(self._ps)),
        ]

    def _new_record(self, request_id: str, path: str, headers: dict[str, str], started: float) -> Record:
        return Record(request_id, path, headers, started)

    def _authenticate(self, record: Record) -> None:
        """Ollama asks for no key."""

    def _error_body(self, error: Rejected, record: Record) -> JsonObject:
        return {"error": error.message}

    async def _chat(self, request: web.Request, record: Record) -> web.StreamResponse:
        body = await self._read(request, record)
        fault = self._next_fault()
        if isinstance(fault, Fault):
            await self._held(body)
            refuse(fault, streaming=True)
        name = self._named(body)
        if "vision" not in self.capabilities and any(message.get("images") for message in body["messages"]):
            raise Rejected("this model is missing data required for image input")
        if body.get("tools") and not self.tools:
            raise Rejected(f"registry.ollama.ai/library/{name} does not support tools")
        window = self._loaded(name, body)
        counted = self._fitted(body, window)
        await self._held(body)
        reply, fault = await self._reply(body, fault)
        refuse(fault, streaming=True)
        if isinstance(fault, Empty):
            reply = Reply([])
        await before_first_byte(request, record, fault, streaming=True)
        events = _with_fault(list(self._lines(body["model"], reply, counted)), fault)
        return await send_events(request, record, {"content-type": "application/x-ndjson"}, events, fault)

    def _named(self, body: JsonObject) -> str:
        name = body.get("model", "")
        known = next((each for each in self.models if each in (name, f"{name}:latest")), None)
        if known is None:
            raise Rejected(f"model '{name}' not found", status=404)
        return known

    def _loaded(self, name: str, body: JsonObject) -> int:
        window: int = min(body.get("options", {}).get("num_ctx", DEFAULT_WINDOW), self.models[name])
        if not self.loads or self.loads[-1] != (name, window):
            self.loads.append((name, window))
        return window

    def _fitted(self, body: JsonObject, window: int) -> int:
        """The tokens of the prompt that is read: all of it, or what an older server leaves of it."""
        messages = [(message["role"], self._tokens(message)) for message in body["messages"]]
        total = sum(size for _, size in messages) + sum(self.tok(json.dumps(tool)) for tool in body.get("tools") or ())
        if total <= window:
            return total
        if self.honest and body.get("truncate") is False:
            raise Rejected(TOO_LONG)
        for role, size in messages[:-1]:
            total -= size if role != "system" and total > window else 0
        return min(total, window)

    def _tokens(self, message: JsonObject) -> int:
        calls = [self.tok(json.dumps(call["function"]["arguments"])) for call in message.get("tool_calls") or []]
        return self.tok(message.get("content") or "") + sum(calls)

    def _lines(self, model: str, reply: Reply, counted: int) -> Iterator[bytes]:
        base: JsonObject = {"model": model, "created_at": "2026-11-30T00:00:00Z"}
        output = 0
        for message in _messages(reply, ids=self.ids):
            output += 1
            yield _line({**base, "message": {"role": "assistant", "content": "", **message}, "done": False})
        end = {"done": True, "done_reason": REASONS.get(reply.stop_reason, "stop"), "prompt_eval_count": counted, "eval_count": output}
        yield _line({**base, "message": {"role": "assistant", "content": ""}, **end})

    async def _show(self, request: web.Request, record: Record) -> web.StreamResponse:
        name = self._named(await self._read(request, record))
        facts = {"general.architecture": "qwen3", "qwen3.context_length": self.models[name]}
        return web.json_response({"model_info": facts, "capabilities": self.capabilities})

    async def _tags(self, request: web.Request, record: Record) -> web.StreamResponse:
        return web.json_response({"models": [{"name": name, "model": name} for name in self.models]})

    async def _ps(self, request: web.Request, record: Record) -> web.StreamResponse:
        running = [{"name": name, "model": name, "context_length": window} for name, window in self.loads[-1:]]
        return web.json_response({"models": running})


def _messages(reply: Reply, *, ids: bool) -> Iterator[JsonObject]:
    for number, part in enumerate(reply.content, start=1):
        match part["type"]:
            case "thinking":
                yield from ({"thinking": piece} for piece in pieces(part["thinking"]))
            case "text":
                yield from ({"content": piece} for piece in pieces(part["text"]))
            case "tool_use":
                call = {"function": {"index": number - 1, "name": part["name"], "arguments": part["input"]}}
                yield {"tool_calls": [{"id": part["id"], **call} if ids else call]}


def _line(data: JsonObject) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode() + b"\n"


def _with_fault(lines: list[bytes], fault: AnyFault | None) -> list[bytes]:
    """Put an error or a line that is not JSON into the stream, where the fault asks for one."""
    match fault:
        case StreamError():
            kept = 1 if fault.after is None else fault.after
            return [*lines[:kept], _line({"error": fault.message})]
        case Malformed():
            return [lines[0], f"{fault.body}\n".encode(), *lines[1:]]
        case _:
            return lines
