"""A chat completion as server-sent chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .server import AnyFault, JsonObject, Malformed, StreamError, pieces

DONE = b"data: [DONE]\n\n"


def event(payload: JsonObject) -> bytes:
    """One server-sent event; text stays UTF-8, so that it can be cut."""
    return f"data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode()


def chunks(completion: JsonObject, body: JsonObject) -> list[bytes]:
    """All chunks of a completion; the usage comes last, and only where `stream_options.include_usage` asks for it."""
    choice = completion["choices"][0]
    with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    base = {key: completion[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    if with_usage:
        base["usage"] = None
    events = [event(base | {"choices": [_choice(delta)]}) for delta in _deltas(choice["message"])]
    events.append(event(base | {"choices": [_choice({}, choice["finish_reason"])]}))
    if with_usage:
        events.append(event(base | {"choices": [], "usage": completion["usage"]}))
    return [*events, DONE]


def _choice(delta: JsonObject, finish_reason: str | None = None) -> JsonObject:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _deltas(message: JsonObject) -> Iterator[JsonObject]:
    yield {"role": "assistant", "content": None if message["content"] is None else ""}
    for piece in pieces(message.get("reasoning_content", "")):
        yield {"reasoning_content": piece}
    for piece in pieces(message["content"] or ""):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def with_fault(events: list[bytes], fault: AnyFault | None) -> list[bytes]:
    """Put an error event or an event that is not JSON into the stream, where the fault asks for one."""
    match fault:
        case StreamError():
            kept = 1 if fault.after is None else fault.after
            error = {"message": fault.message, "type": fault.type, "param": None, "code": None}
            return [*events[:kept], event({"error": error})]
        case Malformed():
            return [events[0], f"data: {fault.body}\n\n".encode(), *events[1:]]
        case _:
            return events
